import { webcrypto } from "./crypto.js";
import { WebhookVerificationError } from "./errors.js";
import { DECIMALS } from "./generated/api.js";
import type { Event } from "./generated/types.js";
import { parse } from "./json.js";

const PREFIX = "whsec_";
const SCHEME = "v1,";
const TOLERANCE_S = 300;

/** Headers as `fetch` has them, or as Node and its frameworks do. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

/** How a message is verified. */
export interface VerifyOptions {
  /** How many seconds the time of a message may be from now; 300. */
  toleranceS?: number | undefined;
  /** The time to compare with. */
  now?: Date | undefined;
}

/**
 * The event of a message that was signed with this secret, or with one of these while a secret is replaced. Any other
 * message is refused. Hand over the body as it came: one that was read and written anew has another signature.
 */
export async function verifyWebhook(
  secrets: string | readonly string[],
  headers: WebhookHeaders,
  body: string | Uint8Array,
  options: VerifyOptions = {},
): Promise<Event> {
  const id = header(headers, "webhook-id");
  const timestamp = header(headers, "webhook-timestamp");
  const nowS = (options.now ?? new Date()).getTime() / 1_000;
  if (!/^\d{1,12}$/.test(timestamp) || Math.abs(nowS - Number(timestamp)) > (options.toleranceS ?? TOLERANCE_S)) {
    throw new WebhookVerificationError("its time is too far from now");
  }
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const signed = joined(new TextEncoder().encode(`${id}.${timestamp}.`), bytes);
  const signatures = header(headers, "webhook-signature")
    .split(" ")
    .filter((one) => one.startsWith(SCHEME))
    .map((one) => decoded(one.slice(SCHEME.length)));
  for (const secret of typeof secrets === "string" ? [secrets] : secrets) {
    if (await fits(secret, signatures, signed)) {
      return parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes), DECIMALS.Event) as Event;
    }
  }
  throw new WebhookVerificationError("no signature of it fits");
}

async function fits(
  secret: string,
  signatures: readonly (Uint8Array<ArrayBuffer> | undefined)[],
  signed: Uint8Array<ArrayBuffer>,
): Promise<boolean> {
  const raw = secret.startsWith(PREFIX) ? decoded(secret.slice(PREFIX.length)) : undefined;
  if (raw === undefined) {
    throw new TypeError("a secret is whsec_ and base64");
  }
  const { subtle } = await webcrypto();
  const key = await subtle.importKey("raw", raw, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
  let found = false;
  for (const signature of signatures) {
    // Each is compared, in constant time: how long it takes tells nothing.
    if (signature !== undefined && (await subtle.verify("HMAC", key, signature, signed))) {
      found = true;
    }
  }
  return found;
}

function header(headers: WebhookHeaders, name: string): string {
  const value = headers instanceof Headers ? headers.get(name) : anyCase(headers, name);
  const one = typeof value === "object" && value !== null ? value[0] : value;
  if (one === undefined || one === null) {
    throw new WebhookVerificationError(`the header ${name} is missing`);
  }
  return one;
}

function anyCase(
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
  name: string,
): string | readonly string[] | undefined {
  const found = Object.keys(headers).find((one) => one.toLowerCase() === name);
  return found === undefined ? undefined : headers[found];
}

function decoded(base64: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function joined(one: Uint8Array, other: Uint8Array): Uint8Array<ArrayBuffer> {
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}
