import { webcrypto } from "./crypto.js";
import { NoAnswerError, VoucherdError } from "./errors.js";
import { ERRORS } from "./generated/problems.js";
import type { Problem } from "./generated/types.js";
import { parse, stringify } from "./json.js";

const PROBLEM = "application/problem+json";
const FIRST_PAUSE_MS = 250;
const PAUSE_MS_MAX = 8_000;
const RETRY_AFTER_MS_MAX = 60_000;

/** One call of the API. */
export interface Call {
  method: string;
  path: string;
  query?: object;
  body?: unknown;
  /** The fields of the answer that are decimals. */
  decimals?: ReadonlySet<string>;
  /** The type of an answer that is not JSON. */
  accepts?: string;
  /** Whether it changes anything, so that it needs an idempotency key to be sent twice. */
  writes?: boolean;
}

/** What can be said about a single call. */
export interface CallOptions {
  /** Your own name for what is to be done; a call with the same one does nothing more. One is made if you send none. */
  idempotencyKey?: string | undefined;
  /** Sandbox keys only: what is to become of the call, such as `finished`. */
  sandboxOutcome?: string | undefined;
  /** Gives the call up. */
  signal?: AbortSignal | undefined;
  /** The longest that one attempt may take. */
  timeoutMs?: number | undefined;
  /** How often a call that failed is sent again; 0 for never. */
  retries?: number | undefined;
}

/** Where to send calls, and how. */
export interface TransportOptions {
  /** The address of the service, such as `https://vouchers.example.com`. */
  url: string;
  /** An API key. */
  key: string;
  /** The longest that one attempt may take: 75 seconds, because Confirm and Find may wait for an order. */
  timeoutMs?: number | undefined;
  /** How often a call that failed is sent again: 4 times, with longer and longer pauses. */
  retries?: number | undefined;
  /** Another `fetch` than the platform's. */
  fetch?: typeof fetch | undefined;
}

/** An answer whose body was read. */
interface Answer {
  status: number;
  headers: Headers;
  text: string;
}

/** Sends calls, and sends those again that may succeed later, with the same idempotency key each time. */
export class Transport {
  readonly #url: string;
  readonly #key: string;
  readonly #fetch: typeof fetch;
  readonly #timeoutMs: number;
  readonly #retries: number;

  constructor(options: TransportOptions) {
    this.#url = new URL(options.url).href.replace(/\/+$/, "");
    this.#key = options.key;
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
    this.#timeoutMs = options.timeoutMs ?? 75_000;
    this.#retries = options.retries ?? 4;
  }

  /** The answer to a call as a value: JSON, the text of a file, or null where there is no body. */
  async call(call: Call, options: CallOptions = {}): Promise<unknown> {
    const headers = await this.#headers(call, options);
    const body = call.body === undefined ? null : stringify(call.body);
    const init: RequestInit = { method: call.method, headers, body, redirect: "manual" };
    const timeoutMs = options.timeoutMs ?? this.#timeoutMs;
    const answer = await this.#persist(options, async () => {
      const answer = await this.#once(this.#address(call), init, timeoutMs, options.signal);
      if (answer.status < 200 || answer.status >= 300) {
        throw failure(answer);
      }
      return answer;
    });
    if (answer.status === 204) {
      return null;
    }
    return call.accepts === undefined ? parse(answer.text, call.decimals) : answer.text;
  }

  /** An answer whose body is still to be read, for streams. It can be given up by the signal alone. */
  async open(call: Call, more: Record<string, string>, signal: AbortSignal): Promise<Response> {
    const headers = { ...(await this.#headers(call, {})), ...more };
    const response = await this.#answered(this.#address(call), { method: call.method, headers, signal, redirect: "manual" }, signal);
    if (response.status !== 200) {
      throw failure({ status: response.status, headers: response.headers, text: await response.text() });
    }
    return response;
  }

  async #headers(call: Call, options: CallOptions): Promise<Record<string, string>> {
    const headers: Record<string, string> = {
      authorization: `Bearer ${this.#key}`,
      accept: `${call.accepts ?? "application/json"}, ${PROBLEM}`,
    };
    if (call.body !== undefined) {
      headers["content-type"] = "application/json";
    }
    if (call.writes === true) {
      headers["idempotency-key"] = options.idempotencyKey ?? (await webcrypto()).randomUUID();
    }
    if (options.sandboxOutcome !== undefined) {
      headers["x-sandbox-outcome"] = options.sandboxOutcome;
    }
    return headers;
  }

  #address(call: Call): string {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(call.query ?? {})) {
      for (const one of Array.isArray(value) ? value : [value]) {
        if (one !== undefined && one !== null) {
          query.append(name, String(one));
        }
      }
    }
    const text = query.toString();
    return this.#url + call.path + (text === "" ? "" : `?${text}`);
  }

  async #persist<T>(options: CallOptions, attempt: () => Promise<T>): Promise<T> {
    const retries = options.retries ?? this.#retries;
    for (let failed = 0; ; failed += 1) {
      try {
        return await attempt();
      } catch (error) {
        if (!(error instanceof VoucherdError) || !error.retryable || failed >= retries) {
          throw error;
        }
        const pauseMs = error.retryAfterMs ?? pauseAfter(failed);
        if (pauseMs > RETRY_AFTER_MS_MAX) {
          throw error;
        }
        await pause(pauseMs, options.signal);
      }
    }
  }

  async #once(url: string, init: RequestInit, timeoutMs: number, signal?: AbortSignal): Promise<Answer> {
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(), timeoutMs);
    const stop = (): void => limit.abort();
    signal?.addEventListener("abort", stop);
    try {
      signal?.throwIfAborted();
      const response = await this.#answered(url, { ...init, signal: limit.signal }, signal);
      const text = await response.text();
      return { status: response.status, headers: response.headers, text };
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof NoAnswerError) {
        throw error;
      }
      throw new NoAnswerError(limit.signal.aborted ? `no answer within ${timeoutMs} ms` : "the answer broke off", error);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
    }
  }

  async #answered(url: string, init: RequestInit, signal?: AbortSignal): Promise<Response> {
    try {
      return await this.#fetch(url, init);
    } catch (error) {
      signal?.throwIfAborted();
      throw new NoAnswerError(init.signal?.aborted === true ? "no answer in time" : "no connection", error);
    }
  }
}

/** How long to wait after so many failures: twice as long each time, and never all clients at once. */
export function pauseAfter(failed: number): number {
  return Math.min(FIRST_PAUSE_MS * 2 ** failed, PAUSE_MS_MAX) * (0.5 + Math.random() / 2);
}

/** Returns after so many milliseconds; given up by the signal. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal?.aborted === true) {
      stop();
    } else {
      signal?.addEventListener("abort", stop, { once: true });
    }
  });
}

/** The error that an answer tells of. */
function failure(answer: Answer): VoucherdError {
  const retryAfter = Number(answer.headers.get("retry-after") ?? Number.NaN);
  const retryAfterMs = Number.isFinite(retryAfter) ? retryAfter * 1_000 : undefined;
  const problem = problemOf(answer);
  if (problem === undefined) {
    // Not from the service: a proxy in front of it, or another address.
    const retryable = [429, 502, 503, 504].includes(answer.status);
    const requestId = answer.headers.get("x-request-id") ?? undefined;
    const code = `http_${answer.status}`;
    return new VoucherdError(`${answer.status} without a reason`, {
      status: answer.status, code, retryable, requestId, retryAfterMs,
    });
  }
  const kind = ERRORS[problem.code] ?? VoucherdError;
  const { code, retryable, requestId, field } = problem;
  return new kind(problem.title, { status: answer.status, code, retryable, requestId, field, retryAfterMs });
}

function problemOf(answer: Answer): Problem | undefined {
  if (!(answer.headers.get("content-type") ?? "").startsWith(PROBLEM)) {
    return undefined;
  }
  try {
    return JSON.parse(answer.text) as Problem;
  } catch {
    return undefined;
  }
}
