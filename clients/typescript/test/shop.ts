import { randomUUID } from "node:crypto";

import { Voucherd, type CreateBody, type TransportOptions } from "voucherd-client";

/** What the test's surroundings say. */
export function told(name: string): string {
  const value = process.env[name];
  if (value === undefined) {
    throw new Error(`${name} is not set`);
  }
  return value;
}

export const url = told("VOUCHERD_URL");
export const product = told("VOUCHERD_PRODUCT");
export const variable = told("VOUCHERD_VARIABLE_PRODUCT");

/** A client with the sandbox key. */
export function sandbox(more: Partial<TransportOptions> = {}): Voucherd {
  return new Voucherd({ url, key: told("VOUCHERD_SANDBOX_KEY"), ...more });
}

/** A client with the live key. */
export function live(more: Partial<TransportOptions> = {}): Voucherd {
  return new Voucherd({ url, key: told("VOUCHERD_KEY"), ...more });
}

/** So many codes of the product, under a reference of its own. */
export function cart(amount = 1, reference: string = randomUUID()): CreateBody & { reference: string } {
  return { items: [{ productSlug: product, amount }], paymentCurrency: "EUR", reference };
}

/** A `fetch` of which the first so many answers are lost after the service has done its work. */
export function losing(answers: number, seen: string[] = []): typeof fetch {
  let left = answers;
  return async (input, init) => {
    seen.push(new Headers(init?.headers).get("idempotency-key") ?? "");
    const response = await fetch(input, init);
    if (left > 0) {
      left -= 1;
      await response.text();
      throw new TypeError("the connection broke");
    }
    return response;
  };
}

/** A `fetch` that answers so many times by itself before it asks the service. */
export function answering(times: number, answer: () => Response): typeof fetch {
  let left = times;
  return (input, init) => {
    left -= 1;
    return left >= 0 ? Promise.resolve(answer()) : fetch(input, init);
  };
}
