// Written by tools/typescript.py from the OpenAPI document; `make client-types` writes it anew.

import { decimals } from "../json.js";
import { walk } from "../paging.js";
import type { Call, CallOptions } from "../transport.js";
import type { Decimal } from "../decimal.js";
import type {
  Account,
  AccountEntry,
  AccountEntryPage,
  AdvanceBody,
  AdvancedClock,
  ApiKey,
  ApiKeyPage,
  Brand,
  BrandPage,
  CatalogueProduct,
  CategoryList,
  CreateBody,
  Event,
  EventPage,
  ExtendedLine,
  ExtendedOrder,
  ExtendedOrderPage,
  FxRateList,
  KeyBody,
  KeyRotation,
  LinePage,
  LoggedRequest,
  LoggedRequestDetail,
  LoggedRequestPage,
  ProductChangePage,
  ProductPage,
  QueuedEvent,
  QueuedEvents,
  QuotedOrder,
  Redemption,
  RedemptionBody,
  ReplayBody,
  RotateBody,
  SandboxClock,
  TopUpBody,
  TriggerBody,
  TriggeredEvent,
  Webhook,
  WebhookBody,
  WebhookChanges,
  WebhookDelivery,
  WebhookDeliveryPage,
  WebhookList,
} from "./types.js";

/** The fields of each answer that are decimals. */
export const DECIMALS = {
  Account: decimals([
    "availableAmount",
    "heldAmount",
    "totalAmount",
  ]),
  AccountEntryPage: decimals([
    "amount",
    "balanceAfter",
    "heldAfter",
    "holdAmount",
  ]),
  ApiKey: decimals([
    "spendDayEur",
    "spendOrderEur",
  ]),
  ApiKeyPage: decimals([
    "spendDayEur",
    "spendOrderEur",
  ]),
  CatalogueProduct: decimals([
    "discount",
    "faceValueAmount",
    "faceValueMax",
    "faceValueMin",
    "faceValues",
    "feeFixed",
    "feeVariable",
    "max",
    "min",
    "priceAmount",
    "priceAmountInPaymentCurrency",
    "priceInclVat",
    "priceInclVatInPaymentCurrency",
    "priceVat",
    "priceVatInPaymentCurrency",
  ]),
  Event: decimals([
    "amount",
    "availableAmount",
    "balance",
    "thresholdAmount",
  ]),
  EventPage: decimals([
    "amount",
    "availableAmount",
    "balance",
    "thresholdAmount",
  ]),
  ExtendedOrder: decimals([
    "commissionEur",
    "faceValueAmount",
    "faceValueFx",
    "faceValueMax",
    "faceValueMin",
    "paymentCurrencyFx",
    "priceAmount",
    "priceAmountInPaymentCurrency",
    "priceFx",
    "priceInclVat",
    "priceInclVatInPaymentCurrency",
    "priceVat",
    "priceVatAmount",
    "priceVatAmountInPaymentCurrency",
    "priceVatTurnover",
    "priceVatTurnoverInPaymentCurrency",
    "productFacevalueAmount",
    "productFacevalueFx",
    "purchasePriceAmount",
    "purchasePriceFx",
    "singlePriceAmount",
    "singlePriceAmountInPaymentCurrency",
    "totalPriceAmount",
    "totalPriceAmountInPaymentCurrency",
    "totalPriceInclVat",
    "totalPriceInclVatInPaymentCurrency",
    "totalPriceVat",
    "totalPriceVatInPaymentCurrency",
  ]),
  ExtendedOrderPage: decimals([
    "commissionEur",
    "faceValueAmount",
    "faceValueFx",
    "faceValueMax",
    "faceValueMin",
    "paymentCurrencyFx",
    "priceAmount",
    "priceAmountInPaymentCurrency",
    "priceFx",
    "priceInclVat",
    "priceInclVatInPaymentCurrency",
    "priceVat",
    "priceVatAmount",
    "priceVatAmountInPaymentCurrency",
    "priceVatTurnover",
    "priceVatTurnoverInPaymentCurrency",
    "productFacevalueAmount",
    "productFacevalueFx",
    "purchasePriceAmount",
    "purchasePriceFx",
    "singlePriceAmount",
    "singlePriceAmountInPaymentCurrency",
    "totalPriceAmount",
    "totalPriceAmountInPaymentCurrency",
    "totalPriceInclVat",
    "totalPriceInclVatInPaymentCurrency",
    "totalPriceVat",
    "totalPriceVatInPaymentCurrency",
  ]),
  FxRateList: decimals([
    "rate",
  ]),
  LinePage: decimals([
    "commissionEur",
    "paymentCurrencyFx",
    "priceAmount",
    "priceAmountInPaymentCurrency",
    "priceFx",
    "priceInclVat",
    "priceInclVatInPaymentCurrency",
    "priceVatAmount",
    "priceVatAmountInPaymentCurrency",
    "priceVatTurnover",
    "priceVatTurnoverInPaymentCurrency",
    "productFacevalueAmount",
    "productFacevalueFx",
    "purchasePriceAmount",
    "purchasePriceFx",
  ]),
  ProductChangePage: decimals([
    "discount",
    "faceValueAmount",
    "faceValueMax",
    "faceValueMin",
    "faceValues",
    "feeFixed",
    "feeVariable",
    "max",
    "min",
    "priceAmount",
    "priceAmountInPaymentCurrency",
    "priceInclVat",
    "priceInclVatInPaymentCurrency",
    "priceVat",
    "priceVatInPaymentCurrency",
  ]),
  ProductDescription: decimals([
    "faceValue",
    "price",
    "priceAmount",
    "purchasePrice",
  ]),
  ProductPage: decimals([
    "discount",
    "faceValueAmount",
    "faceValueMax",
    "faceValueMin",
    "faceValues",
    "feeFixed",
    "feeVariable",
    "max",
    "min",
    "priceAmount",
    "priceAmountInPaymentCurrency",
    "priceInclVat",
    "priceInclVatInPaymentCurrency",
    "priceVat",
    "priceVatInPaymentCurrency",
  ]),
  QuotedOrder: decimals([
    "faceValueAmount",
    "faceValueFx",
    "faceValueMax",
    "faceValueMin",
    "priceAmount",
    "priceFx",
    "priceInclVat",
    "priceVat",
    "singlePriceAmount",
    "singlePriceAmountInPaymentCurrency",
    "totalPriceAmount",
    "totalPriceAmountInPaymentCurrency",
    "totalPriceInclVat",
    "totalPriceInclVatInPaymentCurrency",
    "totalPriceVat",
    "totalPriceVatInPaymentCurrency",
  ]),
} as const;

/** What Find all orders can be asked for. */
export interface FindOrdersQuery {
  /** Number of the page: the first unless it is sent. Not together with `offset` or `cursor`. */
  page?: number | undefined;
  /** The most orders that a page holds. */
  limit?: number | undefined;
  /** How many to pass over, in place of `page`. */
  offset?: number | undefined;
  /** Where to go on: the `nextCursor` of the last page, or empty to begin a walk. */
  cursor?: string | undefined;
  /** Only the order with this trx. */
  trx?: string | undefined;
  /** Only orders with this status; repeat it for several. */
  orderStatus?: ("created" | "pending" | "finished" | "cancelled")[] | undefined;
  /** Only orders that this system created. */
  type?: "api" | "portal" | undefined;
  /** Only orders with exactly this reference. */
  reference?: string | undefined;
  /** Only orders with an item of this product. */
  productSlug?: string | undefined;
  /** Only orders paid in this currency. */
  paymentCurrency?: string | undefined;
  /** Only orders created at this moment or later: a date or date-time of ISO 8601, in UTC unless it names a zone. */
  dateFrom?: string | undefined;
  /** Only orders created at this moment or earlier. A bare date is its first moment. */
  dateTo?: string | undefined;
  /** `desc`: newest first. `asc`: oldest first. */
  sortOrder?: "asc" | "desc" | undefined;
}

/** What Find order can be asked for. */
export interface FindOrderQuery {
  /**
   * So many seconds the call may wait if the order is `pending`: it answers as soon as the order ends or another line
   * of it is delivered.
   */
  wait?: number | undefined;
}

/** What Find order lines can be asked for. */
export interface FindOrderLinesQuery {
  /** Where to go on: the `nextCursor` of the last page. */
  cursor?: string | undefined;
  /** The most lines that a page holds. */
  limit?: number | undefined;
}

/** What Find accounts can be asked for. */
export interface FindAccountsQuery {
  /** Only the account in this currency. */
  currency?: string | undefined;
}

/** What Find account entries can be asked for. */
export interface FindAccountEntriesQuery {
  /** Where to go on: the `nextCursor` of the last page. Not for CSV. */
  cursor?: string | undefined;
  /** The most movements that a page holds. Not for CSV, which has no pages. */
  limit?: number | undefined;
  /** Only movements of this moment or later: a date or date-time of ISO 8601, in UTC unless it names a zone. */
  dateFrom?: string | undefined;
  /** Only movements of this moment or earlier. A bare date is its first moment. */
  dateTo?: string | undefined;
  /** Only movements of this kind; repeat it for several. */
  kind?: ("top-up" | "order" | "refund" | "hold" | "release" | "correction")[] | undefined;
  /** Only movements of this order. */
  trx?: string | undefined;
  /** `desc`: newest first. `asc`: oldest first. */
  sortOrder?: "asc" | "desc" | undefined;
}

/** What Find all products can be asked for. */
export interface FindProductsQuery {
  /** Number of the page: the first unless it is sent. Not together with `offset` or `cursor`. */
  page?: number | undefined;
  /** The most products that a page holds. */
  limit?: number | undefined;
  /** How many to pass over, in place of `page`. */
  offset?: number | undefined;
  /** Where to go on: the `nextCursor` of the last page, or empty to begin a walk. */
  cursor?: string | undefined;
  /**
   * Only products in whose name, brand or slug, for each of these words, a word begins with it. Capitals and accents do
   * not matter.
   */
  q?: string | undefined;
  /** Only the product with this slug. */
  slug?: string | undefined;
  /** Only products of the brand with this slug. */
  brandSlug?: string | undefined;
  /** Only products of this category. */
  category?: string | undefined;
  /** Only products of this type. */
  productType?: "giftcard" | "gamecard" | "topup" | "paymentcard" | "subscription" | undefined;
  /** Only products that are redeemed for this. */
  redeemType?: "currency" | "product" | "subscription" | undefined;
  /** Only products for exactly this region. */
  region?: string | undefined;
  /** Only products with a face value in this currency. */
  currency?: string | undefined;
  /** Only products that can be had with this face value, in their own currency; variable products are priced at it. */
  faceValue?: Decimal | undefined;
  /** Only products whose face value the client picks, or only the others. */
  isVariableProduct?: boolean | undefined;
  /**
   * Only products that are in stock, or only the others. What was sold or stocked in the last moments may not be
   * counted yet; the field of each product is exact.
   */
  isStocked?: boolean | undefined;
  /** Show prices in this currency, too, as Create would fix them now. Refused if there is no exchange rate for it. */
  paymentCurrency?: string | undefined;
  /**
   * Amounts are compared by what they are worth in EUR; a variable product counts with its smallest face value. `brand`
   * is by brand, then by name.
   */
  sortBy?: "name" | "brand" | "price" | "faceValueAmount" | undefined;
  /** `asc`: smallest, or A, first. `desc`: the other way round. */
  sortOrder?: "asc" | "desc" | undefined;
}

/** What Find product can be asked for. */
export interface FindProductQuery {
  /** The face value at which a variable product is priced, in its own currency. */
  faceValue?: Decimal | undefined;
  /** Show prices in this currency, too, as Create would fix them now. Refused if there is no exchange rate for it. */
  paymentCurrency?: string | undefined;
}

/** What Find product changes can be asked for. */
export interface FindProductChangesQuery {
  /** Where to go on: the `nextCursor` of the last call, or `now`. */
  since?: string | undefined;
  /** The most changes that a page holds. */
  limit?: number | undefined;
  /** Show prices in this currency, too, as Create would fix them now. Refused if there is no exchange rate for it. */
  paymentCurrency?: string | undefined;
}

/** What Find all brands can be asked for. */
export interface FindBrandsQuery {
  /** Number of the page: the first unless it is sent. Not together with `offset` or `cursor`. */
  page?: number | undefined;
  /** The most brands that a page holds. */
  limit?: number | undefined;
  /** How many to pass over, in place of `page`. */
  offset?: number | undefined;
  /** Where to go on: the `nextCursor` of the last page, or empty to begin a walk. */
  cursor?: string | undefined;
}

/** What Find deliveries can be asked for. */
export interface FindDeliveriesQuery {
  /** Where to go on: the `nextCursor` of the last page. */
  cursor?: string | undefined;
  /** The most deliveries that a page holds. */
  limit?: number | undefined;
  /** Only deliveries that stand so. */
  status?: "waiting" | "delivered" | "failed" | undefined;
  /** Only deliveries of events of this type. */
  eventType?: "key.rotated" | "order.cancelled" | "order.created" | "order.deleted" | "order.expired" | "order.finished" | "order.line_finished" | "order.pending" | "product.updated" | "wallet.low_balance" | "wallet.topped_up" | "webhook.disabled" | "ping" | undefined;
}

/** What Recover webhook can be asked for. */
export interface RecoverWebhookQuery {
  /** A date or date-time of ISO 8601 within the last 30 days, in UTC unless it names a zone. */
  since: string;
}

/** What Find events can be asked for. */
export interface FindEventsQuery {
  /**
   * Where to go on: the `nextCursor` of the last page, or the id of an event. Left out, the page begins with the oldest
   * event that is kept.
   */
  cursor?: string | undefined;
  /** The most events that a page holds. */
  limit?: number | undefined;
  /** Only events of this type; repeat it for several. */
  type?: ("key.rotated" | "order.cancelled" | "order.created" | "order.deleted" | "order.expired" | "order.finished" | "order.line_finished" | "order.pending" | "ping" | "product.updated" | "wallet.low_balance" | "wallet.topped_up" | "webhook.disabled")[] | undefined;
  /** Only events of this order. */
  trx?: string | undefined;
  /** Only events of this moment or later: a date or date-time of ISO 8601, in UTC unless it names a zone. */
  dateFrom?: string | undefined;
  /** Only events of this moment or earlier. A bare date is its first moment. */
  dateTo?: string | undefined;
}

/** What Find all keys can be asked for. */
export interface FindKeysQuery {
  /** Where to go on: the `nextCursor` of the last page. */
  cursor?: string | undefined;
  /** The most keys that a page holds. */
  limit?: number | undefined;
}

/** What Revoke key can be asked for. */
export interface RevokeKeyQuery {
  /**
   * What becomes of the keys that were made with it, directly or not: they are revoked, too (`revoke`), or they stay
   * (`keep`) and belong to the key that it was made with itself.
   */
  children?: "revoke" | "keep" | undefined;
}

/** What Find requests can be asked for. */
export interface FindRequestsQuery {
  /** Where to go on: the `nextCursor` of the last page, or empty to begin. */
  cursor?: string | undefined;
  /** The most calls that a page holds. */
  limit?: number | undefined;
  /** Only calls with this `X-Request-Id`. */
  requestId?: string | undefined;
  /** Only calls whose path begins so. */
  path?: string | undefined;
  /** Only calls that were answered with this status. */
  httpStatus?: number | undefined;
  /** Only calls of the key with this id. */
  keyId?: string | undefined;
}

/** One method for every operation of the API, under the name that the document gives it. */
export abstract class Api {
  /** Sends a call, as often as it takes, and reads its answer. */
  protected abstract call<T>(call: Call, options?: CallOptions): Promise<T>;

  /**
   * Create order. Checks price and availability and fixes the price for 24 hours. Nothing is paid and no code is
   * delivered yet: confirm or resolve the order for that, or leave it to expire at no cost.
   */
  createOrder(body: CreateBody, options?: CallOptions): Promise<ExtendedOrder> {
    return this.call(
      {
        method: "POST",
        path: `/api/1.03/order`,
        body,
        decimals: DECIMALS.ExtendedOrder,
        writes: true,
      },
      options,
    );
  }

  /**
   * Find all orders. Your company's orders in the key's own state, newest first, a page at a time. Deleted orders never
   * appear. Use `page` for a list that people leaf through. Use `cursor` to walk through all orders: its cost is the
   * same at any depth and new orders do not shift it; the totals are left out then. A page looks at 10,000 orders at
   * most, so where few of very many fit it may be short: go on while `nextCursor` is not null.
   */
  findOrders(query: FindOrdersQuery = {}, options?: CallOptions): Promise<ExtendedOrderPage> {
    return this.call(
      {
        method: "GET",
        path: `/api/1.03/order`,
        query,
        decimals: DECIMALS.ExtendedOrderPage,
      },
      options,
    );
  }

  /** Find all orders: all of them, page by page as they are read. */
  allOrders(query: Omit<FindOrdersQuery, "page" | "offset" | "cursor"> = {}, options?: CallOptions): AsyncGenerator<ExtendedOrder, void, undefined> {
    return walk((cursor) => this.findOrders({ ...query, cursor }, options));
  }

  /**
   * Quote order. What Create would answer now, for the same body and with the same refusals, without an order: nothing
   * is kept, no price is fixed, and there is nothing to confirm. `isAvailable` says whether all codes could be
   * delivered at once; where it is false, some would come later.
   */
  quoteOrder(body: CreateBody, options?: CallOptions): Promise<QuotedOrder> {
    return this.call(
      {
        method: "POST",
        path: `/api/1.03/order/quote`,
        body,
        decimals: DECIMALS.QuotedOrder,
      },
      options,
    );
  }

  /**
   * Find order. The order as it stands. Ask again for an order that is `pending` until it is `finished` or `cancelled`,
   * or let the call wait for that.
   */
  findOrder(trx: string, query: FindOrderQuery = {}, options?: CallOptions): Promise<ExtendedOrder> {
    return this.call(
      {
        method: "GET",
        path: `/api/1.03/order/${encodeURIComponent(trx)}`,
        query,
        decimals: DECIMALS.ExtendedOrder,
      },
      options,
    );
  }

  /**
   * Find order lines. The lines of an order in pages, for orders that are too large to read at once. The lines are the
   * same as those of Find order in version 1.03, and each page shows them as they stand when it is read.
   */
  findOrderLines(trx: string, query: FindOrderLinesQuery = {}, options?: CallOptions): Promise<LinePage> {
    return this.call(
      {
        method: "GET",
        path: `/api/1.03/order/${encodeURIComponent(trx)}/line`,
        query,
        decimals: DECIMALS.LinePage,
      },
      options,
    );
  }

  /** Find order lines: all of them, page by page as they are read. */
  allOrderLines(trx: string, query: Omit<FindOrderLinesQuery, "cursor"> = {}, options?: CallOptions): AsyncGenerator<ExtendedLine, void, undefined> {
    return walk((cursor) => this.findOrderLines(trx, { ...query, cursor }, options));
  }

  /**
   * Download codes. The codes of the order's finished lines as a CSV file, however many. Once the first code has left,
   * `downloaded` of the order is true.
   */
  downloadCodes(trx: string, options?: CallOptions): Promise<string> {
    return this.call(
      {
        method: "GET",
        path: `/api/1.03/order/${encodeURIComponent(trx)}/codes.csv`,
        accepts: "text/csv",
      },
      options,
    );
  }

  /**
   * Set a PIN. Puts a PIN before every code behind the order's redemption links, another one, or (`null`) none. Nobody
   * can read it again: tell it to your recipients by another way than the link. After 5 wrong ones, at whichever links
   * of the order, all of them wait for 15 minutes, then twice as long each time, up to a day; with fewer than 6 digits
   * an hour, up to three days. Your owners and buyers are told by mail, and a new PIN begins anew. A network that tries
   * many has to wait, too. A PIN may be set before the order is confirmed, so that no link is ever without it.
   */
  protectOrder(trx: string, body: RedemptionBody, options?: CallOptions): Promise<Redemption> {
    return this.call(
      {
        method: "PATCH",
        path: `/api/1.03/order/${encodeURIComponent(trx)}/redemption`,
        body,
        writes: true,
      },
      options,
    );
  }

  /**
   * Confirm order. Takes the price from your balance and delivers the codes. For bulk orders and all that need not be
   * there this second: the call waits about 25 seconds for the last code, then answers with the order as it is. Then it
   * is `pending`, the codes that are there are in it, and the rest is delivered in the background.
   */
  confirmOrder(trx: string, options?: CallOptions): Promise<ExtendedOrder> {
    return this.call(
      {
        method: "PATCH",
        path: `/api/1.03/order/confirm/${encodeURIComponent(trx)}`,
        decimals: DECIMALS.ExtendedOrder,
        writes: true,
      },
      options,
    );
  }

  /**
   * Resolve order. Delivers the whole order now, or cancels it without a charge. For webshops and points of sale: it
   * never waits in a batch behind other orders, and the answer is there within 30 seconds.
   */
  resolveOrder(trx: string, options?: CallOptions): Promise<ExtendedOrder> {
    return this.call(
      {
        method: "PATCH",
        path: `/api/1.03/order/resolve/${encodeURIComponent(trx)}`,
        decimals: DECIMALS.ExtendedOrder,
        writes: true,
      },
      options,
    );
  }

  /**
   * Cancel order. Deletes an order that is `created`; it can no longer be found. Cancels one that is `pending`: codes
   * that were delivered stay delivered and paid for, all other lines are cancelled and refunded.
   */
  cancelOrder(trx: string, options?: CallOptions): Promise<ExtendedOrder | null> {
    return this.call(
      {
        method: "PATCH",
        path: `/api/1.03/order/cancel/${encodeURIComponent(trx)}`,
        decimals: DECIMALS.ExtendedOrder,
        writes: true,
      },
      options,
    );
  }

  /**
   * Find accounts. Your company's balances in the key's own state, one for each currency in which there ever was money.
   */
  findAccounts(query: FindAccountsQuery = {}, options?: CallOptions): Promise<Account[]> {
    return this.call(
      {
        method: "GET",
        path: `/api/1.03/account`,
        query,
        decimals: DECIMALS.Account,
      },
      options,
    );
  }

  /**
   * Find account entries. The statement of one account: every movement with the balance after it, newest first. The
   * chain has no gap: `seq` counts by one, and each `balanceAfter` is the one before plus `amount`, each `heldAfter`
   * the one before plus `holdAmount`. The last `balanceAfter` is the balance.
   */
  findAccountEntries(currency: string, query: FindAccountEntriesQuery = {}, options?: CallOptions): Promise<AccountEntryPage> {
    return this.call(
      {
        method: "GET",
        path: `/api/1.03/account/${encodeURIComponent(currency)}/entry`,
        query,
        decimals: DECIMALS.AccountEntryPage,
      },
      options,
    );
  }

  /**
   * Find account entries. The statement of one account: every movement with the balance after it, newest first. The
   * chain has no gap: `seq` counts by one, and each `balanceAfter` is the one before plus `amount`, each `heldAfter`
   * the one before plus `holdAmount`. The last `balanceAfter` is the balance.
   */
  findAccountEntriesAsCsv(currency: string, query: FindAccountEntriesQuery = {}, options?: CallOptions): Promise<string> {
    return this.call(
      {
        method: "GET",
        path: `/api/1.03/account/${encodeURIComponent(currency)}/entry`,
        query,
        accepts: "text/csv",
      },
      options,
    );
  }

  /** Find account entries: all of them, page by page as they are read. */
  allAccountEntries(currency: string, query: Omit<FindAccountEntriesQuery, "cursor"> = {}, options?: CallOptions): AsyncGenerator<AccountEntry, void, undefined> {
    return walk((cursor) => this.findAccountEntries(currency, { ...query, cursor }, options));
  }

  /**
   * Find all products. The products that are for sale, with the prices and the VAT of your company, a page at a time.
   * Use `page` for a list that people leaf through, and `cursor` to walk through all: its cost is the same at any
   * depth; the totals are left out then. A cursor belongs to its `sortBy` and `sortOrder`.
   */
  findProducts(query: FindProductsQuery = {}, options?: CallOptions): Promise<ProductPage> {
    return this.call(
      {
        method: "GET",
        path: `/api/1.03/product`,
        query,
        decimals: DECIMALS.ProductPage,
      },
      options,
    );
  }

  /** Find all products: all of them, page by page as they are read. */
  allProducts(query: Omit<FindProductsQuery, "page" | "offset" | "cursor"> = {}, options?: CallOptions): AsyncGenerator<CatalogueProduct, void, undefined> {
    return walk((cursor) => this.findProducts({ ...query, cursor }, options));
  }

  /** Find product. One product that is for sale. */
  findProduct(slug: string, query: FindProductQuery = {}, options?: CallOptions): Promise<CatalogueProduct> {
    return this.call(
      {
        method: "GET",
        path: `/api/1.03/product/${encodeURIComponent(slug)}`,
        query,
        decimals: DECIMALS.CatalogueProduct,
      },
      options,
    );
  }

  /**
   * Find product changes. Every change of a product that is for sale, in order and without a gap, each with the product
   * as it stood after it: `activation` (it came up for sale, or ceased to be: `isActive`), `price`, `content` and, with
   * a live key, `stock`. Keep `nextCursor` and pass it as `since` of the next call; while nothing is new you get an
   * empty page and the same cursor.
   */
  findProductChanges(query: FindProductChangesQuery = {}, options?: CallOptions): Promise<ProductChangePage> {
    return this.call(
      {
        method: "GET",
        path: `/api/1.03/product/changes`,
        query,
        decimals: DECIMALS.ProductChangePage,
      },
      options,
    );
  }

  /** Find all brands. The brands that have something for sale, by slug, a page at a time. */
  findBrands(query: FindBrandsQuery = {}, options?: CallOptions): Promise<BrandPage> {
    return this.call(
      {
        method: "GET",
        path: `/api/1.03/brand`,
        query,
      },
      options,
    );
  }

  /** Find all brands: all of them, page by page as they are read. */
  allBrands(query: Omit<FindBrandsQuery, "page" | "offset" | "cursor"> = {}, options?: CallOptions): AsyncGenerator<Brand, void, undefined> {
    return walk((cursor) => this.findBrands({ ...query, cursor }, options));
  }

  /** Find brand. One brand that has something for sale. */
  findBrand(slug: string, options?: CallOptions): Promise<Brand> {
    return this.call(
      {
        method: "GET",
        path: `/api/1.03/brand/${encodeURIComponent(slug)}`,
      },
      options,
    );
  }

  /** Find all categories. The categories that have something for sale, by slug, in one piece. */
  findCategories(options?: CallOptions): Promise<CategoryList> {
    return this.call(
      {
        method: "GET",
        path: `/api/1.03/category`,
      },
      options,
    );
  }

  /** Find all webhooks. The endpoints of your company in the key's own state, oldest first: 20 at most. */
  findWebhooks(options?: CallOptions): Promise<WebhookList> {
    return this.call(
      {
        method: "GET",
        path: `/api/1.03/webhook`,
      },
      options,
    );
  }

  /**
   * Add webhook. Makes an endpoint. From now on its events are sent there, signed as Standard Webhooks describes, with
   * the secret in the answer, which is shown this once. A delivery counts as made when it is answered with 2xx within
   * 15 seconds; otherwise it is tried again for three days.
   */
  addWebhook(body: WebhookBody, options?: CallOptions): Promise<Webhook> {
    return this.call(
      {
        method: "POST",
        path: `/api/1.03/webhook`,
        body,
        writes: true,
      },
      options,
    );
  }

  /** Find webhook. One endpoint, without its secret. */
  findWebhook(id: string, options?: CallOptions): Promise<Webhook> {
    return this.call(
      {
        method: "GET",
        path: `/api/1.03/webhook/${encodeURIComponent(id)}`,
      },
      options,
    );
  }

  /**
   * Change webhook. Changes what is sent and leaves the rest. An endpoint that is enabled again goes on with what still
   * waits; recover it for what happened meanwhile.
   */
  changeWebhook(id: string, body: WebhookChanges, options?: CallOptions): Promise<Webhook> {
    return this.call(
      {
        method: "PATCH",
        path: `/api/1.03/webhook/${encodeURIComponent(id)}`,
        body,
        writes: true,
      },
      options,
    );
  }

  /** Remove webhook. Removes an endpoint, what waits for it, and its log. */
  removeWebhook(id: string, options?: CallOptions): Promise<void> {
    return this.call(
      {
        method: "DELETE",
        path: `/api/1.03/webhook/${encodeURIComponent(id)}`,
        writes: true,
      },
      options,
    );
  }

  /**
   * Rotate webhook. Gives the endpoint a new secret, which is shown this once. For the overlap of your choice
   * deliveries carry a signature with each of both, so that you can change over without missing any. Without an overlap
   * (0 seconds) the old secret ends at once.
   */
  rotateWebhook(id: string, body: RotateBody = {}, options?: CallOptions): Promise<Webhook> {
    return this.call(
      {
        method: "POST",
        path: `/api/1.03/webhook/${encodeURIComponent(id)}/rotate`,
        body,
        writes: true,
      },
      options,
    );
  }

  /**
   * Find deliveries. What was sent to an endpoint in the last 30 days, newest events first: the message, each attempt
   * with its answer, and when it is tried next.
   */
  findDeliveries(id: string, query: FindDeliveriesQuery = {}, options?: CallOptions): Promise<WebhookDeliveryPage> {
    return this.call(
      {
        method: "GET",
        path: `/api/1.03/webhook/${encodeURIComponent(id)}/delivery`,
        query,
      },
      options,
    );
  }

  /** Find deliveries: all of them, page by page as they are read. */
  allDeliveries(id: string, query: Omit<FindDeliveriesQuery, "cursor"> = {}, options?: CallOptions): AsyncGenerator<WebhookDelivery, void, undefined> {
    return walk((cursor) => this.findDeliveries(id, { ...query, cursor }, options));
  }

  /** Test webhook. Sends a `ping` to one endpoint, whatever types it asked for. The log tells what came of it. */
  testWebhook(id: string, options?: CallOptions): Promise<QueuedEvent> {
    return this.call(
      {
        method: "POST",
        path: `/api/1.03/webhook/${encodeURIComponent(id)}/test`,
        writes: true,
      },
      options,
    );
  }

  /**
   * Recover webhook. Sends everything since a moment that the endpoint wants and did not get: what failed for good, and
   * what happened while it was disabled. What was delivered is not sent again.
   */
  recoverWebhook(id: string, query: RecoverWebhookQuery, options?: CallOptions): Promise<QueuedEvents> {
    return this.call(
      {
        method: "POST",
        path: `/api/1.03/webhook/${encodeURIComponent(id)}/recover`,
        query,
        writes: true,
      },
      options,
    );
  }

  /**
   * Replay event. Sends an event once more, with the same `webhook-id`: to one endpoint, or to all that are enabled and
   * want its type.
   */
  replayEvent(id: string, body: ReplayBody = {}, options?: CallOptions): Promise<QueuedEvents> {
    return this.call(
      {
        method: "POST",
        path: `/api/1.03/event/${encodeURIComponent(id)}/replay`,
        body,
        writes: true,
      },
      options,
    );
  }

  /**
   * Find exchange rates. The exchange rates that Create works with today: what one unit of each currency is worth in
   * EUR.
   */
  findFxRates(options?: CallOptions): Promise<FxRateList> {
    return this.call(
      {
        method: "GET",
        path: `/api/1.03/fx-rate`,
        decimals: DECIMALS.FxRateList,
      },
      options,
    );
  }

  /**
   * Find events. What happened to your orders, your balance and the catalogue, oldest first. Events are kept for 90
   * days. Go on with `nextCursor`, also after the last page: nothing is missed and nothing comes twice. A page may hold
   * fewer events than `limit`, or none, while `more` is true. The events of one order come in the order of their `seq`.
   */
  findEvents(query: FindEventsQuery = {}, options?: CallOptions): Promise<EventPage> {
    return this.call(
      {
        method: "GET",
        path: `/api/1.03/event`,
        query,
        decimals: DECIMALS.EventPage,
      },
      options,
    );
  }

  /** Find events: all of them, page by page as they are read. */
  allEvents(query: Omit<FindEventsQuery, "cursor"> = {}, options?: CallOptions): AsyncGenerator<Event, void, undefined> {
    return walk((cursor) => this.findEvents({ ...query, cursor }, options));
  }

  /** Find event. One event, exactly as it was told before. */
  findEvent(id: string, options?: CallOptions): Promise<Event> {
    return this.call(
      {
        method: "GET",
        path: `/api/1.03/event/${encodeURIComponent(id)}`,
        decimals: DECIMALS.Event,
      },
      options,
    );
  }

  /**
   * Find all keys. The keys of your company in the calling key's own state, newest first, those that can no longer be
   * used included. Keys themselves are never shown again.
   */
  findKeys(query: FindKeysQuery = {}, options?: CallOptions): Promise<ApiKeyPage> {
    return this.call(
      {
        method: "GET",
        path: `/api/1.03/key`,
        query,
        decimals: DECIMALS.ApiKeyPage,
      },
      options,
    );
  }

  /** Find all keys: all of them, page by page as they are read. */
  allKeys(query: Omit<FindKeysQuery, "cursor"> = {}, options?: CallOptions): AsyncGenerator<ApiKey, void, undefined> {
    return walk((cursor) => this.findKeys({ ...query, cursor }, options));
  }

  /**
   * Add key. Makes a key of your company in the calling key's own state. The key is in the answer, this once. What you
   * do not send is as with the calling key, except that the new one may make no keys; and it can not be given more than
   * the calling key has itself: scopes, networks, rate limit, limits of spending, expiry. What it spends counts for the
   * limits of the calling key, too, and it ends with it. A company has at most 100 keys in each state that can be used.
   */
  addKey(body: KeyBody, options?: CallOptions): Promise<ApiKey> {
    return this.call(
      {
        method: "POST",
        path: `/api/1.03/key`,
        body,
        decimals: DECIMALS.ApiKey,
        writes: true,
      },
      options,
    );
  }

  /** Find key. One key, without the key itself. */
  findKey(id: string, options?: CallOptions): Promise<ApiKey> {
    return this.call(
      {
        method: "GET",
        path: `/api/1.03/key/${encodeURIComponent(id)}`,
        decimals: DECIMALS.ApiKey,
      },
      options,
    );
  }

  /**
   * Change key. Changes what is sent and leaves the rest; nothing can be set beyond what the calling key has itself. A
   * key that may do more than the calling one, or that it was made with, can not be changed by it. Keys that were made
   * with the changed one lose the scopes and the time that it loses. It holds everywhere within a second. A key that
   * can no longer be used, or was replaced, stays as it is.
   */
  changeKey(id: string, body: KeyBody, options?: CallOptions): Promise<ApiKey> {
    return this.call(
      {
        method: "PATCH",
        path: `/api/1.03/key/${encodeURIComponent(id)}`,
        body,
        decimals: DECIMALS.ApiKey,
        writes: true,
      },
      options,
    );
  }

  /**
   * Revoke key. Ends a key's life, for good and everywhere within a second, and that of the keys that were made with it
   * unless you keep them. The calling key may end its own, but none that may do more than it, or that it was made with.
   */
  revokeKey(id: string, query: RevokeKeyQuery = {}, options?: CallOptions): Promise<void> {
    return this.call(
      {
        method: "DELETE",
        path: `/api/1.03/key/${encodeURIComponent(id)}`,
        query,
        writes: true,
      },
      options,
    );
  }

  /**
   * Rotate key. Makes a key like this one, which is in the answer, this once, and lets the old one expire after the
   * overlap of your choice. Both can be used until then, and share the limits of a day. Keys that were made with the
   * old one belong to the new one. The event `key.rotated` tells it. A key that may do more than the calling one, or
   * that it was made with, can not be rotated by it.
   */
  rotateKey(id: string, body: KeyRotation = {}, options?: CallOptions): Promise<ApiKey> {
    return this.call(
      {
        method: "POST",
        path: `/api/1.03/key/${encodeURIComponent(id)}/rotate`,
        body,
        decimals: DECIMALS.ApiKey,
        writes: true,
      },
      options,
    );
  }

  /**
   * Top up play money. Adds play money to a balance of your sandbox, which began with 10000.00 EUR. Nobody has to allow
   * it.
   */
  topUpSandbox(body: TopUpBody = {}, options?: CallOptions): Promise<Account> {
    return this.call(
      {
        method: "POST",
        path: `/api/1.03/sandbox/top-up`,
        body,
        decimals: DECIMALS.Account,
        writes: true,
      },
      options,
    );
  }

  /** Find clock. The time in your company's sandbox, which all of its sandbox keys share. */
  findClock(options?: CallOptions): Promise<SandboxClock> {
    return this.call(
      {
        method: "GET",
        path: `/api/1.03/sandbox/clock`,
      },
      options,
    );
  }

  /**
   * Advance clock. Moves the time in your sandbox ahead, so that what takes hours is there in seconds: orders that are
   * not confirmed expire, codes that are to come later come, a delivery window ends, webhooks that failed are tried
   * again, one that fails for days is disabled. What your sandbox waits for comes closer by as much; dates that are
   * past stay as they are, and so do purchases at suppliers, keys and everything that is live. Time never goes back.
   */
  advanceClock(body: AdvanceBody, options?: CallOptions): Promise<AdvancedClock> {
    return this.call(
      {
        method: "POST",
        path: `/api/1.03/sandbox/clock/advance`,
        body,
        writes: true,
      },
      options,
    );
  }

  /** Reset clock. Lets the clock show the real time again. What has happened stays. */
  resetClock(options?: CallOptions): Promise<SandboxClock> {
    return this.call(
      {
        method: "POST",
        path: `/api/1.03/sandbox/clock/reset`,
        writes: true,
      },
      options,
    );
  }

  /**
   * Find requests. The calls of your company's keys in the key's own state in the last 7 days, newest first; the last
   * 10,000 of them at most. Of more than 10 calls in one second some are left out. A call is there a second after its
   * answer.
   */
  findRequests(query: FindRequestsQuery = {}, options?: CallOptions): Promise<LoggedRequestPage> {
    return this.call(
      {
        method: "GET",
        path: `/api/1.03/request`,
        query,
      },
      options,
    );
  }

  /** Find requests: all of them, page by page as they are read. */
  allRequests(query: Omit<FindRequestsQuery, "cursor"> = {}, options?: CallOptions): AsyncGenerator<LoggedRequest, void, undefined> {
    return walk((cursor) => this.findRequests({ ...query, cursor }, options));
  }

  /**
   * Find request. The newest call with this `X-Request-Id`, with what was sent and answered. Codes, keys, secrets,
   * links and fields that the API does not know are hidden.
   */
  findRequest(id: string, options?: CallOptions): Promise<LoggedRequestDetail> {
    return this.call(
      {
        method: "GET",
        path: `/api/1.03/request/${encodeURIComponent(id)}`,
      },
      options,
    );
  }

  /**
   * Trigger event. Brings an event about by doing what it tells of: for `order.finished` an order of one code is
   * created, paid with play money and finished, so that a program which asks for it finds it. Only `wallet.low_balance`
   * is told with made-up amounts. The event comes as any other, in the feed, in streams and to webhooks.
   */
  triggerEvent(body: TriggerBody, options?: CallOptions): Promise<TriggeredEvent> {
    return this.call(
      {
        method: "POST",
        path: `/api/1.03/event/trigger`,
        body,
        writes: true,
      },
      options,
    );
  }
}
