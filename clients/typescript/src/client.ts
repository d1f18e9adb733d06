import { WaitTimeoutError } from "./errors.js";
import { Api, DECIMALS, type FindProductChangesQuery } from "./generated/api.js";
import type {
  Event,
  ExtendedOrder,
  FinishedLine,
  ProductChange,
  ProductDescription,
  UnfinishedLine,
} from "./generated/types.js";
import { parse } from "./json.js";
import { stream, type StreamOptions } from "./stream.js";
import { pause, Transport, type Call, type CallOptions, type TransportOptions } from "./transport.js";

const WAIT_S = 25;
const LOOK_EVERY_MS = 1_000;

/** How long to wait for an order. */
export interface WaitOptions {
  /** The longest to wait; five minutes. */
  timeoutMs?: number | undefined;
  /** Gives the waiting up. */
  signal?: AbortSignal | undefined;
}

/** A client of the order API. Calls that fail for a moment are sent again, and nothing is ever done twice. */
export class Voucherd extends Api {
  readonly #transport: Transport;

  constructor(options: TransportOptions) {
    super();
    this.#transport = new Transport(options);
  }

  protected override call<T>(call: Call, options?: CallOptions): Promise<T> {
    return this.#transport.call(call, options) as Promise<T>;
  }

  /** The order once it is finished or cancelled; fails with WaitTimeoutError if it is neither in time. */
  async wait(trx: string, options: WaitOptions = {}): Promise<ExtendedOrder> {
    const { signal, timeoutMs = 300_000 } = options;
    const endsAt = Date.now() + timeoutMs;
    for (;;) {
      const leftS = Math.max(0, Math.ceil((endsAt - Date.now()) / 1_000));
      const asked = Date.now();
      const order = await this.findOrder(trx, { wait: Math.min(WAIT_S, leftS) }, { signal });
      if (order.orderStatus === "finished" || order.orderStatus === "cancelled") {
        return order;
      }
      if (Date.now() >= endsAt) {
        throw new WaitTimeoutError(trx);
      }
      // A call returns early when a line was delivered, or when there is nothing to wait for yet.
      await pause(Math.max(0, Math.min(asked + LOOK_EVERY_MS, endsAt) - Date.now()), signal);
    }
  }

  /** Events as they happen, for as long as they are read. */
  streamEvents(options: StreamOptions = {}): AsyncGenerator<Event, void, undefined> {
    return stream(this.#transport, options);
  }

  /** Changes of the catalogue up to now, oldest first; returns the `since` to go on from another time. */
  async *allProductChanges(
    query: FindProductChangesQuery = {},
    options?: CallOptions,
  ): AsyncGenerator<ProductChange, string, undefined> {
    let since = query.since;
    for (;;) {
      const { data, metadata } = await this.findProductChanges({ ...query, since }, options);
      yield* data;
      if (data.length === 0 || metadata.nextCursor === since) {
        return metadata.nextCursor;
      }
      since = metadata.nextCursor;
    }
  }
}

type CodeField = "externalId" | "redemptionLink" | "token" | "voucherCode" | "voucherSerial" | "voucherUrl";

/** A finished line whose code is there: only a key that may not read codes gets others. */
export type LineWithCode = Omit<FinishedLine, CodeField> & Record<CodeField, string>;

/** The lines of an order whose codes are there. */
export function linesWithCodes(order: Pick<ExtendedOrder, "items">): LineWithCode[] {
  const lines = order.items.flatMap((item) => item.orderLines);
  return lines.filter((line): line is LineWithCode & FinishedLine => "id" in line && line.voucherCode !== null);
}

/** The product of a line as it was at Create. */
export function productOf(line: Pick<FinishedLine | UnfinishedLine, "product">): ProductDescription {
  return parse(line.product, DECIMALS.ProductDescription) as ProductDescription;
}
