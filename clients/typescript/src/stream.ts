import { VoucherdError } from "./errors.js";
import { DECIMALS } from "./generated/api.js";
import type { Event } from "./generated/types.js";
import { parse } from "./json.js";
import { pause, pauseAfter, type Transport } from "./transport.js";

const SILENCE_MS_MAX = 90_000;

/** What a stream of events can be asked for. */
export interface StreamOptions {
  /** Where to begin: the id of an event. Left out, the stream begins now; empty, with the oldest event that is kept. */
  cursor?: string | undefined;
  /** Only events of these types. */
  type?: readonly Event["type"][] | undefined;
  /** Ends the stream. */
  signal?: AbortSignal | undefined;
}

/** Events as they happen. A connection that breaks is made again, and goes on behind the last event that was read. */
export async function* stream(transport: Transport, options: StreamOptions): AsyncGenerator<Event, void, undefined> {
  const { cursor, type, signal } = options;
  const place = { last: "", failed: 0 };
  const isEnded = (): boolean => signal?.aborted === true;
  while (!isEnded()) {
    try {
      yield* connected(transport, { cursor, type }, place, signal);
    } catch (error) {
      if (isEnded()) {
        return;
      }
      if (error instanceof VoucherdError && !error.retryable) {
        throw error;
      }
    }
    await pause(pauseAfter(place.failed), signal).catch(() => undefined);
    place.failed += 1;
  }
}

async function* connected(
  transport: Transport,
  query: object,
  place: { last: string; failed: number },
  signal?: AbortSignal,
): AsyncGenerator<Event, void, undefined> {
  const line = new AbortController();
  const stop = (): void => line.abort();
  signal?.addEventListener("abort", stop);
  // The service gives a sign of life far more often than that.
  let watch = setTimeout(stop, SILENCE_MS_MAX);
  try {
    const call = { method: "GET", path: "/api/1.03/event/stream", query, accepts: "text/event-stream" };
    const more: Record<string, string> = place.last === "" ? {} : { "last-event-id": place.last };
    const response = await transport.open(call, more, line.signal);
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    const decoder = new TextDecoder();
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        return;
      }
      clearTimeout(watch);
      watch = setTimeout(stop, SILENCE_MS_MAX);
      place.failed = 0;
      text += decoder.decode(value, { stream: true });
      const messages = text.split(/\r?\n\r?\n/);
      text = messages.pop() ?? "";
      for (const message of messages) {
        const { id, data } = fieldsOf(message);
        if (data !== undefined) {
          yield parse(data, DECIMALS.Event) as Event;
        }
        // Only now: whoever stops in the middle of an event gets it again.
        place.last = id ?? place.last;
      }
    }
  } finally {
    clearTimeout(watch);
    signal?.removeEventListener("abort", stop);
    line.abort();
  }
}

function fieldsOf(message: string): { id: string | undefined; data: string | undefined } {
  const found: Record<string, string> = {};
  for (const line of message.split(/\r?\n/)) {
    const [, name, value = ""] = /^([a-z]+):? ?(.*)$/.exec(line) ?? [];
    if (name !== undefined) {
      found[name] = name in found ? `${found[name]}\n${value}` : value;
    }
  }
  return { id: found["id"], data: found["data"] };
}
