// Written by tools/typescript.py from the OpenAPI document; `make client-types` writes it anew.

import type { Decimal } from "../decimal.js";

/** A balance in one currency. */
export interface Account {
  /** Currency of the account. Upper case. */
  currency: string;
  /** The environment of the account, picked by the API key. */
  state: "live" | "sandbox";
  /** The balance. */
  totalAmount: Decimal;
  /** What of it is set aside for orders that are being resolved. */
  heldAmount: Decimal;
  /** What an order can be paid from: the balance less what is held. */
  availableAmount: Decimal;
}

/** One movement of an account. */
export interface AccountEntry {
  /** Number of the movement: 1, 2, 3 … in each account. */
  seq: number;
  /** When the money moved. */
  dateCreated: string;
  /** Why it moved. */
  kind: "top-up" | "order" | "refund" | "hold" | "release" | "correction";
  /** What came in; negative for what went out. */
  amount: Decimal;
  /** What was set aside; negative for what was given back or spent. */
  holdAmount: Decimal;
  /** The balance after the movement. */
  balanceAfter: Decimal;
  /** What was set aside after the movement. */
  heldAfter: Decimal;
  /** Currency of the account. Upper case. */
  currency: string;
  /** The order that the movement belongs to; null if there is none. */
  trx: string | null;
  /** The text of a top-up or correction; null for a movement of an order. */
  reference: string | null;
}

/** A page of an account's statement. */
export interface AccountEntryPage {
  /** The movements of the page. */
  data: AccountEntry[];
  /** Where the page stands. */
  metadata: WalkMetadata;
}

/** By how much to move the clock. */
export interface AdvanceBody {
  /** By so many seconds, always ahead. */
  seconds: number;
}

/** The clock after a step, and what came closer by it. */
export interface AdvancedClock {
  /** The time in your sandbox. */
  dateNow: string;
  /** How far it is ahead of the real time. */
  aheadSeconds: number;
  /** Open orders whose deadlines came closer. */
  orders: number;
  /** Orders among them that expired by it. */
  expiredOrders: number;
  /** Deliveries to webhooks that wait and came closer. */
  deliveries: number;
}

/** An API key, as its owner may see it. */
export interface ApiKey {
  /** Name of the key; it opens nothing. */
  id: string;
  /** What the key works on. */
  state: "live" | "sandbox";
  /** How the key begins, to recognise it by. */
  prefix: string;
  /**
   * Whether the key can be used: `valid` and `replaced` can, the latter for the rest of its overlap; `expired` and
   * `revoked` can not.
   */
  standing: "valid" | "replaced" | "expired" | "revoked";
  /** Whether it is the key that makes this call. */
  isCaller: boolean;
  /** Your own text. */
  description: string;
  /** What the key may do. */
  scopes: ("orders:read" | "orders:write" | "codes:read" | "catalogue:read" | "wallet:read" | "events:read" | "webhooks:write" | "keys:write")[];
  /** The networks that the key may be used from; none for any. */
  allowIps: string[];
  /** Requests a minute. */
  rateLimit: number;
  /** The most that an order may cost, in EUR. Null for no limit. */
  spendOrderEur: Decimal | null;
  /** The most that the key may spend in a day (UTC), in EUR. Null for no limit. */
  spendDayEur: Decimal | null;
  /** When it was made. */
  dateCreated: string;
  /** When it was last used, to a few seconds. Null if it never was. */
  dateLastUsed: string | null;
  /** From when on it can not be used. Null if it does not expire. */
  dateExpires: string | null;
  /** When it was revoked. Null if it was not. */
  dateRevoked: string | null;
  /** The id of the key that a rotation replaced it by. */
  replacedBy: string | null;
  /** The id of the key that it was made with, and ends with. Null if people or the operator made it. */
  madeWith: string | null;
  /**
   * Whether it confirms orders for which your company asks for a second person. Only an owner of your company, or the
   * operator, can change it.
   */
  confirmsAlone: boolean;
  /**
   * Scopes that it was given and lost, because the person who made it has lost the right to it. They wait for an owner
   * of your company, who may keep the key.
   */
  withheldScopes: ("orders:read" | "orders:write" | "codes:read" | "catalogue:read" | "wallet:read" | "events:read" | "webhooks:write" | "keys:write")[];
  /** The key itself. Only in the answer that makes it. */
  key?: string | undefined;
}

/** A page of keys. */
export interface ApiKeyPage {
  /** The keys of the page. */
  data: ApiKey[];
  /** Where the page stands. */
  metadata: WalkMetadata;
}

/** A line of version 1.03 that is pending or cancelled, as Confirm and Resolve show it. */
export interface BareLine {
  /** Identifier of the line. */
  tag: string;
  /** Where the line stands. */
  status: "pending" | "cancelled";
}

/** A brand that has something for sale. */
export interface Brand {
  /** Slug, for filters. */
  slug: string;
  /** Name for people. */
  name: string;
  /** How many products are for sale. */
  productCount: number;
  /** The same as `name`. */
  brandName: string;
  /** Slug of the category of its first product by name; others may differ. */
  category: string;
  /** What a code is redeemed for, of its first product by name; others may differ. */
  redeemType: "currency" | "product" | "subscription";
}

/** A page of brands. */
export interface BrandPage {
  /** The brands of the page, by slug. */
  data: Brand[];
  /** Where the page stands in the whole list. */
  metadata: PageMetadata;
  /** The same in other names. Not in a walk by cursor. */
  pagination?: Pagination | undefined;
}

/** A product that is for sale, at the prices of the calling company. */
export interface CatalogueProduct {
  /** Slug of the product: its name in orders. */
  slug: string;
  /** Name of the product. */
  name: string;
  /** Name of the brand. */
  brand: string;
  /** The same as `brand`. */
  brandName: string;
  /** Slug of the brand. */
  brandSlug: string;
  /** Kind of product. */
  productType: "giftcard" | "gamecard" | "topup" | "paymentcard" | "subscription";
  /** Where a code can be used; `ww` is everywhere. */
  region: string;
  /** Face value of one code. Null for a variable product. */
  faceValueAmount: Decimal | null;
  /** Currency of the face value. Lower case. */
  faceValueCurrency: string;
  /** Smallest face value that can be ordered. */
  faceValueMin: Decimal;
  /** Largest face value that can be ordered. */
  faceValueMax: Decimal;
  /**
   * The face values of a variable product of which a code could be delivered now, the smallest first; null where that
   * is every one from `faceValueMin` to `faceValueMax`. Only for variable products, and not in the feed of changes.
   */
  faceValues?: Decimal[] | null | undefined;
  /** Ranges of face values that a supplier sells now, beside `faceValues`. Only where there are some. */
  faceValueRanges?: FaceValueRange[] | undefined;
  /** Slug of the category. */
  mainCategory: string;
  /** The same as `mainCategory`. */
  category: string;
  /** What a code is redeemed for. */
  redeemType: "currency" | "product" | "subscription";
  /**
   * What a code is redeemed in: the currency of its face value where `redeemType` is `currency`, its region otherwise.
   * Lower case.
   */
  redeemValue: string;
  /**
   * Whether a code could be delivered now, from stock or by a supplier: of the `faceValue` that was asked for, or of
   * any. Always true in the sandbox.
   */
  isStocked: boolean;
  /** Whether the client picks the face value. */
  isVariableProduct: boolean;
  /** Whether the product is an incentive. */
  isIncentiveProduct: boolean;
  /** Whether the product is for sale. False only in the feed of changes. */
  isActive: boolean;
  /** Whether a code may be delivered later; see Confirm order. */
  allowAsyncDelivery: boolean;
  /** What VAT is computed on. */
  vatCategory: "single_purpose" | "multi_purpose" | "exempt";
  /** Price of one code before VAT. Null for a variable product unless `faceValue` was asked for. */
  priceAmount: Decimal | null;
  /** Currency of the price. Lower case. */
  priceCurrency: string;
  /** VAT on one code for your company, today. Null for a variable product unless `faceValue` was asked for. */
  priceVat: Decimal | null;
  /** Price of one code including VAT. Null for a variable product unless `faceValue` was asked for. */
  priceInclVat: Decimal | null;
  /** What the face value is multiplied with. Null for a fixed price. */
  feeVariable: Decimal | null;
  /** What is added to that. Null for a fixed price. */
  feeFixed: Decimal | null;
  /** Currency of `feeFixed`. Lower case. Null for a fixed price. */
  feeCurrency: string | null;
  /**
   * Your company's discount, as a share: it is taken from the price, or from face value and fee together, before
   * rounding. Only where there is one.
   */
  discount?: Decimal | undefined;
  /** The currency that was asked for. Lower case. */
  paymentCurrency?: string | undefined;
  /**
   * Price of one code before VAT, in `paymentCurrency`. Only if it was asked for. Null for a variable product unless
   * `faceValue` was asked for, and where there is no exchange rate.
   */
  priceAmountInPaymentCurrency?: Decimal | null | undefined;
  /**
   * VAT on one code, in `paymentCurrency`. Only if it was asked for. Null for a variable product unless `faceValue` was
   * asked for, and where there is no exchange rate.
   */
  priceVatInPaymentCurrency?: Decimal | null | undefined;
  /**
   * Price of one code including VAT, in `paymentCurrency`: what Create would fix now. Only if it was asked for. Null
   * for a variable product unless `faceValue` was asked for, and where there is no exchange rate.
   */
  priceInclVatInPaymentCurrency?: Decimal | null | undefined;
  /** How a code is redeemed, in plain text; null if nothing is said. */
  redeemInstructions: string | null;
  /** What the user of a code agrees to, in plain text; null if nothing is said. */
  terms: string | null;
  /** A picture of the product; null if there is none. */
  imageUrl: string | null;
  /** When the product last changed. */
  dateUpdated: string;
}

/** A category that has something for sale. */
export interface Category {
  /** Slug, for filters. */
  slug: string;
  /** Name for people. */
  name: string;
  /** How many products are for sale. */
  productCount: number;
}

/** All categories. */
export interface CategoryList {
  /** The categories, by slug. */
  data: Category[];
  /** How many there are. */
  metadata: ListMetadata;
}

/** The body of a Create request. Unknown fields are ignored. */
export interface CreateBody {
  /** The products to order; their amounts add up to at most 10,000 codes. */
  items: CreateItem[];
  /** ISO 4217 code of the balance to pay from, in upper or lower case. */
  paymentCurrency: string;
  /** Your own text, such as an order number. It comes back in every response and can be searched for. */
  reference?: string | null | undefined;
  /**
   * Where the events of this order are sent, beside your endpoints: an address as an endpoint has it. It needs a
   * webhook with `perOrder`, whose secret signs them.
   */
  webhookUrl?: string | null | undefined;
}

/** One product of a Create request. */
export interface CreateItem {
  /** Slug of the product. */
  productSlug: string;
  /** How many codes. */
  amount: number;
  /**
   * Face value of one code, in the product's own currency. Required for a product with a variable face value. Any other
   * takes its own value alone.
   */
  faceValue?: Decimal | null | undefined;
}

/** Something that happened. It looks the same here, in a stream and in a webhook, however often it is told. */
export type Event = OrderEvent | TopUpEvent | LowBalanceEvent | ProductEvent | KeyRotatedEvent | WebhookDisabledEvent | PingEvent;

/** Where a page of events ends. */
export interface EventMetadata {
  /** The most events that a page holds: the `limit` that was asked for. */
  pageSize: number;
  /** The `cursor` of the next call, at the end of the feed, too. */
  nextCursor: string;
  /** Whether there is more to read there already. */
  more: boolean;
}

/** A page of events. */
export interface EventPage {
  /** The events, oldest first. */
  data: Event[];
  /** Where to go on. */
  metadata: EventMetadata;
}

/** One product of an order, with extended lines. */
export interface ExtendedItem {
  /** The product as it was when the order was created. */
  product: Product;
  /** How many codes of the product were ordered. */
  amount: number;
  /** Currency that the product is priced in. Lower case. */
  priceCurrency: string;
  /** Price of one code before VAT. */
  singlePriceAmount: Decimal;
  /** Price of all codes before VAT. */
  totalPriceAmount: Decimal;
  /** VAT on all codes. */
  totalPriceVat: Decimal;
  /** Price of all codes including VAT. */
  totalPriceInclVat: Decimal;
  /** What one unit of `priceCurrency` is worth in EUR. */
  priceFx: Decimal;
  /** Currency that the order is paid in. Lower case. */
  paymentCurrency: string;
  /** Price of one code before VAT, in `paymentCurrency`. */
  singlePriceAmountInPaymentCurrency: Decimal;
  /** Price of all codes before VAT, in `paymentCurrency`. */
  totalPriceAmountInPaymentCurrency: Decimal;
  /** VAT on all codes, in `paymentCurrency`. */
  totalPriceVatInPaymentCurrency: Decimal;
  /** Price of all codes including VAT, in `paymentCurrency`. */
  totalPriceInclVatInPaymentCurrency: Decimal;
  /** How many of the lines are `finished`. */
  linesCompleted: number;
  /** Slug of the product. */
  productSlug: string;
  /** Face value of one code. */
  faceValueAmount: Decimal;
  /** Currency of the face value. Lower case. */
  faceValueCurrency: string;
  /** What one unit of `faceValueCurrency` is worth in EUR. */
  faceValueFx: Decimal;
  /** One line for each code ordered. */
  orderLines: ExtendedLine[];
}

/** A line in version 1.03. In Confirm and Resolve an unfinished one carries only its tag and status. */
export type ExtendedLine = FinishedLine | UnfinishedLine | BareLine;

/** An order in version 1.03. */
export interface ExtendedOrder {
  /** Identifier of the order. */
  trx: string;
  /** Currency of the order's prices: the one it is paid in. Upper case. */
  priceCurrency: string;
  /** Price before VAT. */
  priceAmount: Decimal;
  /** VAT amount. */
  priceVat: Decimal;
  /** Price including VAT: what Confirm or Resolve takes from the balance. */
  priceInclVat: Decimal;
  /** What one unit of `priceCurrency` is worth in EUR. */
  priceFx: Decimal;
  /** The same as `priceCurrency`. */
  paymentCurrency: string;
  /** When the order was created. */
  dateCreated: string;
  /** How far the order is paid. */
  paymentStatus: "unpaid" | "paid" | "partially_refunded" | "refunded";
  /** The system that created the order. */
  type: "api" | "portal";
  /** Your own text from Create; null if there was none. */
  reference: string | null;
  /** The environment of the order, picked by the API key. */
  state: "live" | "sandbox";
  /** Where the order stands. */
  orderStatus: "created" | "pending" | "finished" | "cancelled";
  /** Whether the order is paid from the balance; it always is. */
  isBalancePayment: boolean;
  /** Whether the codes were exported as a file. */
  downloaded: boolean;
  /** End of the confirmation window. Only on an order that is `created`. */
  dateExpires?: string | undefined;
  /** The ordered products, in the order of the request. */
  items: ExtendedItem[];
}

/** A page of orders in version 1.03. */
export interface ExtendedOrderPage {
  /** The orders of the page. */
  data: ExtendedOrder[];
  /** Where the page stands in the whole list. */
  metadata: PageMetadata;
  /** The same in other names. Not in a walk by cursor. */
  pagination?: Pagination | undefined;
}

/** Face values between two that can be ordered, both included. */
export interface FaceValueRange {
  /** The smallest. */
  min: Decimal;
  /** The largest. */
  max: Decimal;
}

/** Where the feed goes on. */
export interface FeedMetadata {
  /** The `since` of the next call: the same again while nothing is new. */
  nextCursor: string;
}

/** A finished line of version 1.03: it has its code. */
export interface FinishedLine {
  /** Identifier of the line. */
  tag: string;
  /** Where the line stands. */
  status: "finished";
  /** Number of the line. */
  id: number;
  /** Number of the order. */
  orderId: number;
  /** When the order was created. */
  dateCreated: string;
  /** Slug of the brand. */
  brandSlug: string;
  /** Slug of the product. */
  productSlug: string;
  /** Face value of the code. */
  productFacevalueAmount: Decimal;
  /** Currency of the face value. Lower case. */
  productFacevalueCurrency: string;
  /** What one unit of `productFacevalueCurrency` is worth in EUR. */
  productFacevalueFx: Decimal;
  /** Price of the code before VAT. */
  priceAmount: Decimal;
  /** Currency that the product is priced in. Lower case. */
  priceCurrency: string;
  /** What one unit of `priceCurrency` is worth in EUR. */
  priceFx: Decimal;
  /** The code. Null if the key may not read codes. */
  voucherCode: string | null;
  /** The code's serial number. Null if the key may not read codes. */
  voucherSerial: string | null;
  /** The same as `redemptionLink`. Null if the key may not read codes. */
  voucherUrl: string | null;
  /** When the code expires; null for one that does not. Null if the key may not read codes. */
  voucherDateExpired: string | null;
  /** What the operator paid for the code. Null if the operator does not show costs, or no offer is known. */
  purchasePriceAmount: Decimal | null;
  /** Currency of `purchasePriceAmount`. Lower case. Null if the operator does not show costs, or no offer is known. */
  purchasePriceCurrency: string | null;
  /**
   * What one unit of `purchasePriceCurrency` is worth in EUR. Null if the operator does not show costs, or no offer is
   * known.
   */
  purchasePriceFx: Decimal | null;
  /**
   * Price before VAT less the purchase price, in EUR. Null if the operator does not show costs, or no offer is known.
   */
  commissionEur: Decimal | null;
  /**
   * The supplier's identifier of the code; the tag if the operator does not show costs. Null if the key may not read
   * codes.
   */
  externalId: string | null;
  /**
   * The offer that served the line, or the best one at Create. Null if the operator does not show costs, or no offer is
   * known.
   */
  offerId: string | null;
  /** The supplier of the code. Null if the operator does not show costs, or no offer is known. */
  externalSupplier: string | null;
  /** VAT on the code. */
  priceVatAmount: Decimal;
  /** The amount that the VAT was computed on. */
  priceVatTurnover: Decimal;
  /** Price of the code including VAT. */
  priceInclVat: Decimal;
  /** Price of the code before VAT, in `paymentCurrency`. */
  priceAmountInPaymentCurrency: Decimal;
  /** VAT on the code, in `paymentCurrency`. */
  priceVatAmountInPaymentCurrency: Decimal;
  /** The amount that the VAT was computed on, in `paymentCurrency`. */
  priceVatTurnoverInPaymentCurrency: Decimal;
  /** Price of the code including VAT, in `paymentCurrency`. */
  priceInclVatInPaymentCurrency: Decimal;
  /** Currency that the order is paid in. Lower case. */
  paymentCurrency: string;
  /** What one unit of `paymentCurrency` is worth in EUR. */
  paymentCurrencyFx: Decimal;
  /** When this line last changed: created, delivered, cancelled, opened, shown or returned. */
  dateUpdated: string;
  /** The environment of the order. */
  state: "live" | "sandbox";
  /** The product as it was at Create: a string that holds a JSON document of the shape `ProductDescription`. */
  product: string;
  /** The secret in the redemption link. Null if the key may not read codes. */
  token: string | null;
  /** A secret link to the page that shows the code to its final owner. Null if the key may not read codes. */
  redemptionLink: string | null;
  /** When the code was first revealed through the link; null before. */
  dateVoucherViewed: string | null;
  /** When the link was first opened; null before. */
  dateLinkViewed: string | null;
  /** When the code was returned; null if it was not. */
  dateReturned: string | null;
  /** Whether the code may be delivered later; see Confirm order. */
  allowAsyncDelivery: boolean;
  /** Where the code can be used. */
  productRegion: string;
  /** Number of the company that ordered. */
  entityId: number;
}

/** The same rate in the names that clients of other services read. */
export interface FxPair {
  /** The currency. Lower case. */
  currencyFrom: string;
  /** The currency that it is worth something in: always `eur`. */
  currencyTo: string;
  /** What one unit of `currencyFrom` is worth in `currencyTo`. */
  rate: Decimal;
}

/** What one unit of a currency is worth in another. */
export interface FxRate {
  /** The currency. Lower case. */
  fromCurrency: string;
  /** The currency that it is worth something in: always `eur`. */
  toCurrency: string;
  /** What one unit of `fromCurrency` is worth in `toCurrency`. */
  rate: Decimal;
  /** The day of the rate; it is in force until there is a newer one. */
  date: string;
}

/** All exchange rates that are in force. */
export interface FxRateList {
  /** The rates, by currency. */
  data: FxRate[];
  /** How many there are. */
  metadata: ListMetadata;
  /** The same rates in other names. */
  fxRates: FxPair[];
}

/** What a key is to be. A field that is not sent is as with the calling key, or stays as it is. */
export interface KeyBody {
  /** Your own text. */
  description?: string | undefined;
  /**
   * What the key may do; each must be a scope of the calling key. If it is not sent, a new key has all of those but
   * `keys:write`.
   */
  scopes?: string[] | undefined;
  /**
   * The networks that it may be used from, such as `192.0.2.0/24` or `2001:db8::1`; none for any. They must lie within
   * those of the calling key, if it has any.
   */
  allowIps?: string[] | undefined;
  /** Requests a minute, at most those of the calling key. */
  rateLimit?: number | undefined;
  /**
   * From when on it can not be used: a date (its first moment) or date-time of ISO 8601, in UTC unless it names a zone,
   * and not after that of the calling key. Null for never.
   */
  dateExpires?: string | null | undefined;
  /** The most that an order may cost, in EUR, and not above that of the calling key. Null for no limit. */
  spendOrderEur?: Decimal | null | undefined;
  /** The most that it may spend in a day (UTC), in EUR, and not above that of the calling key. Null for no limit. */
  spendDayEur?: Decimal | null | undefined;
}

/** An API key was replaced. */
export interface KeyRotatedEvent {
  /** Identifier of the event. The same event has it wherever it is told. */
  id: string;
  /** What happened. */
  type: "key.rotated";
  /** When it happened. */
  timestamp: string;
  /** What it happened to. Never a code. */
  data: KeyRotatedEventData;
}

/** Which key was replaced, and by which. */
export interface KeyRotatedEventData {
  /** The environment in which it happened. */
  state: "live" | "sandbox";
  /** The id of the key that was replaced. */
  id: string;
  /** The id of its successor. */
  replacedBy: string;
}

/** How a key is replaced. The body may be left out. */
export interface KeyRotation {
  /** How long the old key can still be used. One day unless it is sent. */
  overlapSeconds?: number | undefined;
}

/** A page of an order's lines. */
export interface LinePage {
  /** The lines of the page. */
  data: ExtendedLine[];
  /** Where the page stands. */
  metadata: WalkMetadata;
}

/** How long a list is that comes in one piece. */
export interface ListMetadata {
  /** How many there are. */
  totalItems: number;
}

/** A call of one of your keys, without its bodies. */
export interface LoggedRequest {
  /** `X-Request-Id` of its answer. */
  requestId: string;
  /** When it was answered. */
  dateCreated: string;
  /** The method. */
  method: string;
  /** The path, with the query. */
  path: string;
  /** The status of the answer. */
  httpStatus: number;
  /** How long it took, in milliseconds. */
  durationMs: number;
  /** The id of the key that made it. */
  keyId: string;
}

/** A call of one of your keys. */
export interface LoggedRequestDetail {
  /** `X-Request-Id` of its answer. */
  requestId: string;
  /** When it was answered. */
  dateCreated: string;
  /** The method. */
  method: string;
  /** The path, with the query. */
  path: string;
  /** The status of the answer. */
  httpStatus: number;
  /** How long it took, in milliseconds. */
  durationMs: number;
  /** The id of the key that made it. */
  keyId: string;
  /**
   * What was sent: without codes, keys, secrets and links, the first 4,000 characters. Null for a key that may not make
   * such calls.
   */
  requestBody: string | null;
  /**
   * What was answered: without codes, keys, secrets and links, the first 4,000 characters. Null for a key that may not
   * make such calls.
   */
  responseBody: string | null;
}

/** A page of calls. */
export interface LoggedRequestPage {
  /** The calls, newest first. */
  data: LoggedRequest[];
  /** Where the page stands. */
  metadata: WalkMetadata;
}

/** A balance is low. */
export interface LowBalanceEvent {
  /** Identifier of the event. The same event has it wherever it is told. */
  id: string;
  /** What happened. */
  type: "wallet.low_balance";
  /** When it happened. */
  timestamp: string;
  /** What it happened to. Never a code. */
  data: LowBalanceEventData;
}

/** Which balance fell below the amount that was chosen for it. */
export interface LowBalanceEventData {
  /** The environment in which it happened. */
  state: "live" | "sandbox";
  /** Currency of the account. Upper case. */
  currency: string;
  /** What an order can be paid from. */
  availableAmount: Decimal;
  /** The amount that was chosen. */
  thresholdAmount: Decimal;
}

/** One way to get a code, in the serialised product of an extended line. */
export interface Offer {
  /** Price of one code before VAT. */
  price: Decimal;
  /** Identifier of the offer. */
  offerId: string;
  /** Currency of the price. Lower case. */
  currency: string;
  /** Who supplies the code. */
  supplier: string;
  /** How many codes the offer had at Create. */
  stockCount: number;
  /** What the operator paid for one code. */
  purchasePrice: Decimal;
  /** Currency of the purchase price. Lower case. */
  purchasePriceCurrency: string;
}

/** Something happened to an order. */
export interface OrderEvent {
  /** Identifier of the event. The same event has it wherever it is told. */
  id: string;
  /** What happened. */
  type: "order.cancelled" | "order.created" | "order.deleted" | "order.expired" | "order.finished" | "order.line_finished" | "order.pending";
  /** When it happened. */
  timestamp: string;
  /** What it happened to. Never a code. */
  data: OrderEventData;
}

/** Which order an event is about, and where the order stands. Never a code. */
export interface OrderEventData {
  /** The environment of the order. */
  state: "live" | "sandbox";
  /** Identifier of the order. */
  trx: string;
  /** Your own text; null if there is none, or the order was never confirmed and is removed. */
  reference: string | null;
  /** Where the order stands right after the event. */
  orderStatus: "created" | "pending" | "finished" | "cancelled" | "deleted";
  /** Counts the order's events from 1. */
  seq: number;
}

/** Where a page stands in the whole list; the totals are there when pages are counted. */
export interface PageMetadata {
  /** The most orders that a page holds: the `limit` that was asked for. */
  pageSize: number;
  /** The `cursor` of the next page. Null on the last page. */
  nextCursor: string | null;
  /** Number of the page. Not in a walk by cursor. */
  page?: number | undefined;
  /** How many orders the filters let through, among the first 10,000 that are looked at. Not in a walk by cursor. */
  totalItems?: number | undefined;
  /** How many pages they fill. Not in a walk by cursor. */
  totalPages?: number | undefined;
  /**
   * `true` where there are more than 10,000 orders, so that there may be more than `totalItems` says: walk by cursor,
   * or choose dates. Not there otherwise.
   */
  moreItems?: boolean | undefined;
  /**
   * On the last page, where the operator keeps an archive: orders created before this are found by their trx, and are
   * in no list. Not there otherwise.
   */
  archivedBefore?: string | undefined;
}

/** Where a counted page stands, in the names that clients of other services read. */
export interface Pagination {
  /** The same as `totalItems`. */
  total: number;
  /** The same as `pageSize`. */
  limit: number;
  /** How many come before the page. */
  offset: number;
  /** The same as `page` of the metadata. */
  page: number;
  /** The same as `totalPages`. */
  pages: number;
}

/** You asked for a test. */
export interface PingEvent {
  /** Identifier of the event. The same event has it wherever it is told. */
  id: string;
  /** What happened. */
  type: "ping";
  /** When it happened. */
  timestamp: string;
  /** What it happened to. Never a code. */
  data: PingEventData;
}

/** A test. */
export interface PingEventData {
  /** The environment in which it happened. */
  state: "live" | "sandbox";
  /** A greeting. */
  message: string;
}

/** An error in the form of RFC 9457, for clients that send `Accept: application/problem+json`. */
export interface Problem {
  /** A page about the `code`, from the root of the service on. */
  type: string;
  /** The message, as in the plain form. */
  title: string;
  /** The HTTP status. */
  status: number;
  /** The message again. */
  detail: string;
  /** A stable name for the kind of error; decide by this. */
  code: string;
  /** Whether the same call may succeed later. */
  retryable: boolean;
  /** The same as the header `X-Request-Id`. */
  requestId: string;
  /** The field that breaks a rule. Only with `bad_input`. */
  field?: string | undefined;
}

/** The product of an item. */
export interface Product {
  /** Slug of the product. */
  slug: string;
  /** Name of the product. */
  name: string;
  /** Name of the brand. */
  brand: string;
  /** Kind of product. */
  productType: "giftcard" | "gamecard" | "topup" | "paymentcard" | "subscription";
  /** Where a code can be used; `ww` is everywhere. */
  region: string;
  /** Face value of one code. */
  faceValueAmount: Decimal;
  /** Currency of the face value. Lower case. */
  faceValueCurrency: string;
  /** Smallest face value that can be ordered. Version 1.03 only. */
  faceValueMin?: Decimal | undefined;
  /** Largest face value that can be ordered. Version 1.03 only. */
  faceValueMax?: Decimal | undefined;
  /** Slug of the category. */
  mainCategory: string;
  /** What a code is redeemed for. */
  redeemType: "currency" | "product" | "subscription";
  /** Whether codes are in stock; once the order is no longer `created`, whether they were at Create. */
  isStocked: boolean;
}

/** One change of a product. */
export interface ProductChange {
  /** What changed: whether it is for sale, its price, anything else about it, or whether it is in stock. */
  type: "activation" | "price" | "content" | "stock";
  /** When it changed. */
  at: string;
  /** The product as it stood after the change, at your prices of today. */
  product: CatalogueProduct;
}

/** A page of the feed of changes. */
export interface ProductChangePage {
  /** The changes, oldest first. */
  data: ProductChange[];
  /** Where the feed goes on. */
  metadata: FeedMetadata;
}

/** The serialised product of an extended line, as it was at Create. */
export interface ProductDescription {
  /** Name of the product. */
  name: string;
  /** Slug of the product. */
  slug: string;
  /** Name of the brand. */
  brand: string;
  /**
   * The best offers at Create, best first, and the one that the line was delivered from. Empty if the operator does not
   * show costs.
   */
  offers: Offer[];
  /** Where a code can be used. */
  region: string;
  /** Whether the product can be ordered with this key; it always can. */
  inScope: boolean;
  /** The first of `offers`; null if there was none. */
  bestOffer: Offer | null;
  /** Face value of one code. */
  faceValue: Decimal;
  /** The same as that of the item's product. */
  isStocked: boolean;
  /** What a code is redeemed for. */
  redeemType: "currency" | "product" | "subscription";
  /** How many codes there are; once the order is no longer `created`, how many there were. */
  stockCount: number;
  /** Price of one code before VAT. */
  priceAmount: Decimal;
  /** Kind of product. */
  productType: "giftcard" | "gamecard" | "topup" | "paymentcard" | "subscription";
  /** What VAT is computed on. */
  vatCategory: "single_purpose" | "multi_purpose" | "exempt";
  /** Slug of the category. */
  mainCategory: string;
  /** Currency of the price. Lower case. */
  priceCurrency: string;
  /** Currency of the face value. Lower case. */
  faceValueCurrency: string;
  /** Whether the client picks the face value. */
  isVariableProduct: boolean;
  /** Whether the product is an incentive. */
  isIncentiveProduct: boolean;
}

/** A product is new or has changed. */
export interface ProductEvent {
  /** Identifier of the event. The same event has it wherever it is told. */
  id: string;
  /** What happened. */
  type: "product.updated";
  /** When it happened. */
  timestamp: string;
  /** What it happened to. Never a code. */
  data: ProductEventData;
}

/** Which product changed; find it for the rest. */
export interface ProductEventData {
  /** Slug of the product. */
  slug: string;
  /** Whether it is for sale. */
  active: boolean;
  /** Whether it is in stock. Only if that is what changed. */
  stocked?: boolean | undefined;
}

/** A page of products. */
export interface ProductPage {
  /** The products of the page. */
  data: CatalogueProduct[];
  /** Where the page stands in the whole list. */
  metadata: PageMetadata;
  /** The same in other names. Not in a walk by cursor. */
  pagination?: Pagination | undefined;
}

/** A message that will be sent in a moment. */
export interface QueuedEvent {
  /** Name of the event. */
  eventId: string;
}

/** How much will be sent in a moment. */
export interface QueuedEvents {
  /** How many deliveries were queued. */
  queued: number;
  /** Only of a recovery: from when to ask again, because it looked at as many events as it may. */
  dateNext?: string | null | undefined;
}

/** One product of a quote. */
export interface QuotedItem {
  /** The product as it is now. */
  product: Product;
  /** How many codes of the product were asked for. */
  amount: number;
  /** Currency that the product is priced in. Lower case. */
  priceCurrency: string;
  /** Price of one code before VAT. */
  singlePriceAmount: Decimal;
  /** Price of all codes before VAT. */
  totalPriceAmount: Decimal;
  /** VAT on all codes. */
  totalPriceVat: Decimal;
  /** Price of all codes including VAT. */
  totalPriceInclVat: Decimal;
  /** What one unit of `priceCurrency` is worth in EUR. */
  priceFx: Decimal;
  /** Currency that the order is paid in. Lower case. */
  paymentCurrency: string;
  /** Price of one code before VAT, in `paymentCurrency`. */
  singlePriceAmountInPaymentCurrency: Decimal;
  /** Price of all codes before VAT, in `paymentCurrency`. */
  totalPriceAmountInPaymentCurrency: Decimal;
  /** VAT on all codes, in `paymentCurrency`. */
  totalPriceVatInPaymentCurrency: Decimal;
  /** Price of all codes including VAT, in `paymentCurrency`. */
  totalPriceInclVatInPaymentCurrency: Decimal;
  /** Whether all of them could be delivered at once; if not, some would come later. */
  isAvailable: boolean;
  /** Slug of the product. */
  productSlug: string;
  /** Face value of one code. */
  faceValueAmount: Decimal;
  /** Currency of the face value. Lower case. */
  faceValueCurrency: string;
  /** What one unit of `faceValueCurrency` is worth in EUR. */
  faceValueFx: Decimal;
}

/** What an order would cost if it were created now. */
export interface QuotedOrder {
  /** Currency of the order's prices: the one it is paid in. Upper case. */
  priceCurrency: string;
  /** Price before VAT. */
  priceAmount: Decimal;
  /** VAT amount. */
  priceVat: Decimal;
  /** Price including VAT: what the order would take from the balance. */
  priceInclVat: Decimal;
  /** What one unit of `priceCurrency` is worth in EUR. */
  priceFx: Decimal;
  /** The same as `priceCurrency`. */
  paymentCurrency: string;
  /** Your own text; null if there was none. */
  reference: string | null;
  /** The environment, picked by the API key. */
  state: "live" | "sandbox";
  /** Whether every code could be delivered at once. */
  isAvailable: boolean;
  /** The products, in the order of the request. */
  items: QuotedItem[];
}

/** How an order's redemption links are protected. */
export interface Redemption {
  /** Identifier of the order. */
  trx: string;
  /** Whether the order's links ask for a PIN. */
  hasPin: boolean;
}

/** What is to be asked of recipients before they see a code. */
export interface RedemptionBody {
  /** 4 to 12 digits, better 6 or more; `null` to ask for none any more. */
  pin: string | null;
}

/** Where an event is sent once more. The body may be left out: to every endpoint that is enabled. */
export interface ReplayBody {
  /** The one endpoint to send to. */
  webhookId?: string | null | undefined;
}

/** How an endpoint gets a new secret. The body may be left out. */
export interface RotateBody {
  /** How long the old secret signs beside the new one. One day unless it is sent. */
  overlapSeconds?: number | undefined;
  /** A secret of your own; one is made if you send none. */
  secret?: string | null | undefined;
}

/** The clock of your sandbox. */
export interface SandboxClock {
  /** The time in your sandbox. */
  dateNow: string;
  /** How far it is ahead of the real time. */
  aheadSeconds: number;
}

/** One product of an order, with short lines. */
export interface ShortItem {
  /** The product as it was when the order was created. */
  product: Product;
  /** How many codes of the product were ordered. */
  amount: number;
  /** Currency that the product is priced in. Lower case. */
  priceCurrency: string;
  /** Price of one code before VAT. */
  singlePriceAmount: Decimal;
  /** Price of all codes before VAT. */
  totalPriceAmount: Decimal;
  /** VAT on all codes. */
  totalPriceVat: Decimal;
  /** Price of all codes including VAT. */
  totalPriceInclVat: Decimal;
  /** What one unit of `priceCurrency` is worth in EUR. */
  priceFx: Decimal;
  /** Currency that the order is paid in. Lower case. */
  paymentCurrency: string;
  /** Price of one code before VAT, in `paymentCurrency`. */
  singlePriceAmountInPaymentCurrency: Decimal;
  /** Price of all codes before VAT, in `paymentCurrency`. */
  totalPriceAmountInPaymentCurrency: Decimal;
  /** VAT on all codes, in `paymentCurrency`. */
  totalPriceVatInPaymentCurrency: Decimal;
  /** Price of all codes including VAT, in `paymentCurrency`. */
  totalPriceInclVatInPaymentCurrency: Decimal;
  /** How many of the lines are `finished`. */
  linesCompleted: number;
  /** Slug of the product. */
  productSlug: string;
  /** Face value of one code. */
  faceValueAmount: Decimal;
  /** Currency of the face value. Lower case. */
  faceValueCurrency: string;
  /** What one unit of `faceValueCurrency` is worth in EUR. */
  faceValueFx: Decimal;
  /** One line for each code ordered. */
  orderLines: ShortLine[];
}

/** A line in versions 1.00 and Next; the code fields are there once it is finished. */
export type ShortLine = ShortLineWithCode | ShortLineWithoutCode;

/** A finished line of versions 1.00 and Next, with its code. */
export interface ShortLineWithCode {
  /** Identifier of the line. */
  tag: string;
  /** Where the line stands. */
  status: "finished";
  /** The code. Only on a finished line. */
  voucherCode: string;
  /** The code's serial number. Only on a finished line. */
  voucherSerial: string;
  /** When the code expires. Only on a finished line whose code expires. */
  voucherDateExpired?: string | undefined;
}

/** A line of versions 1.00 and Next without its code: it is not finished, or the key may not read codes. */
export interface ShortLineWithoutCode {
  /** Identifier of the line. */
  tag: string;
  /** Where the line stands. */
  status: "pending" | "finished" | "cancelled";
}

/** An order in versions 1.00 and Next. */
export interface ShortOrder {
  /** Identifier of the order. */
  trx: string;
  /** Currency of the order's prices: the one it is paid in. Upper case. */
  priceCurrency: string;
  /** Price before VAT. */
  priceAmount: Decimal;
  /** VAT amount. */
  priceVat: Decimal;
  /** Price including VAT: what Confirm or Resolve takes from the balance. */
  priceInclVat: Decimal;
  /** What one unit of `priceCurrency` is worth in EUR. */
  priceFx: Decimal;
  /** The same as `priceCurrency`. */
  paymentCurrency: string;
  /** When the order was created. */
  dateCreated: string;
  /** How far the order is paid. */
  paymentStatus: "unpaid" | "paid" | "partially_refunded" | "refunded";
  /** The system that created the order. */
  type: "api" | "portal";
  /** Your own text from Create; null if there was none. */
  reference: string | null;
  /** The environment of the order, picked by the API key. */
  state: "live" | "sandbox";
  /** Where the order stands. */
  orderStatus: "created" | "pending" | "finished" | "cancelled";
  /** Whether the order is paid from the balance; it always is. */
  isBalancePayment: boolean;
  /** Whether the codes were exported as a file. */
  downloaded: boolean;
  /** End of the confirmation window. Only on an order that is `created`. */
  dateExpires?: string | undefined;
  /** The ordered products, in the order of the request. */
  items: ShortItem[];
}

/** A page of orders in versions 1.00 and Next. */
export interface ShortOrderPage {
  /** The orders of the page. */
  data: ShortOrder[];
  /** Where the page stands in the whole list. */
  metadata: PageMetadata;
  /** The same in other names. Not in a walk by cursor. */
  pagination?: Pagination | undefined;
}

/** Play money to add. The body may be left out. */
export interface TopUpBody {
  /** ISO 4217 code of the balance, in upper or lower case. */
  currency?: string | undefined;
  /** How much to add, 10,000.00 if it is left out. The balance may be at most 100,000,000. */
  amount?: Decimal | undefined;
}

/** A balance was topped up. */
export interface TopUpEvent {
  /** Identifier of the event. The same event has it wherever it is told. */
  id: string;
  /** What happened. */
  type: "wallet.topped_up";
  /** When it happened. */
  timestamp: string;
  /** What it happened to. Never a code. */
  data: TopUpEventData;
}

/** What was paid in. */
export interface TopUpEventData {
  /** The environment in which it happened. */
  state: "live" | "sandbox";
  /** Currency of the account. Upper case. */
  currency: string;
  /** What came in. */
  amount: Decimal;
  /** The balance after it. */
  balance: Decimal;
  /** The text of the top-up. */
  reference: string;
}

/** The event to bring about. */
export interface TriggerBody {
  /** What is to happen. */
  type: "order.created" | "order.pending" | "order.finished" | "order.cancelled" | "order.deleted" | "order.expired" | "wallet.topped_up" | "wallet.low_balance";
  /** The product to order for it; any with a fixed face value if it is left out. */
  productSlug?: string | null | undefined;
}

/** An event that was asked for. It comes as any other: in the feed, in streams and to webhooks. */
export interface TriggeredEvent {
  /** What happened. */
  type: string;
  /** The order that was made for it; null for an event that is of no order. */
  trx: string | null;
}

/** A line of version 1.03 that is pending or cancelled: it has no code. */
export interface UnfinishedLine {
  /** Identifier of the line. */
  tag: string;
  /** Where the line stands. */
  status: "pending" | "cancelled";
  /** Number of the line. */
  id: number;
  /** Number of the order. */
  orderId: number;
  /** When the order was created. */
  dateCreated: string;
  /** Slug of the brand. */
  brandSlug: string;
  /** Slug of the product. */
  productSlug: string;
  /** Face value of the code. */
  productFacevalueAmount: Decimal;
  /** Currency of the face value. Lower case. */
  productFacevalueCurrency: string;
  /** What one unit of `productFacevalueCurrency` is worth in EUR. */
  productFacevalueFx: Decimal;
  /** Price of the code before VAT. */
  priceAmount: Decimal;
  /** Currency that the product is priced in. Lower case. */
  priceCurrency: string;
  /** What one unit of `priceCurrency` is worth in EUR. */
  priceFx: Decimal;
  /** The code. Null until the line is finished. */
  voucherCode: string | null;
  /** The code's serial number. Null until the line is finished. */
  voucherSerial: string | null;
  /** The same as `redemptionLink`. Null until the line is finished. */
  voucherUrl: string | null;
  /** When the code expires; null for one that does not. Null until the line is finished. */
  voucherDateExpired: string | null;
  /** What the operator paid for the code. Null if the operator does not show costs, or no offer is known. */
  purchasePriceAmount: Decimal | null;
  /** Currency of `purchasePriceAmount`. Lower case. Null if the operator does not show costs, or no offer is known. */
  purchasePriceCurrency: string | null;
  /**
   * What one unit of `purchasePriceCurrency` is worth in EUR. Null if the operator does not show costs, or no offer is
   * known.
   */
  purchasePriceFx: Decimal | null;
  /**
   * Price before VAT less the purchase price, in EUR. Null if the operator does not show costs, or no offer is known.
   */
  commissionEur: Decimal | null;
  /**
   * The supplier's identifier of the code; the tag if the operator does not show costs. Null until the line is
   * finished.
   */
  externalId: string | null;
  /**
   * The offer that served the line, or the best one at Create. Null if the operator does not show costs, or no offer is
   * known.
   */
  offerId: string | null;
  /** The supplier of the code. Null if the operator does not show costs, or no offer is known. */
  externalSupplier: string | null;
  /** VAT on the code. */
  priceVatAmount: Decimal;
  /** The amount that the VAT was computed on. */
  priceVatTurnover: Decimal;
  /** Price of the code including VAT. */
  priceInclVat: Decimal;
  /** Price of the code before VAT, in `paymentCurrency`. */
  priceAmountInPaymentCurrency: Decimal;
  /** VAT on the code, in `paymentCurrency`. */
  priceVatAmountInPaymentCurrency: Decimal;
  /** The amount that the VAT was computed on, in `paymentCurrency`. */
  priceVatTurnoverInPaymentCurrency: Decimal;
  /** Price of the code including VAT, in `paymentCurrency`. */
  priceInclVatInPaymentCurrency: Decimal;
  /** Currency that the order is paid in. Lower case. */
  paymentCurrency: string;
  /** What one unit of `paymentCurrency` is worth in EUR. */
  paymentCurrencyFx: Decimal;
  /** When this line last changed: created, delivered, cancelled, opened, shown or returned. */
  dateUpdated: string;
  /** The environment of the order. */
  state: "live" | "sandbox";
  /** The product as it was at Create: a string that holds a JSON document of the shape `ProductDescription`. */
  product: string;
  /** The secret in the redemption link. Null until the line is finished. */
  token: string | null;
  /** A secret link to the page that shows the code to its final owner. Null until the line is finished. */
  redemptionLink: string | null;
  /** When the code was first revealed through the link; null before. */
  dateVoucherViewed: string | null;
  /** When the link was first opened; null before. */
  dateLinkViewed: string | null;
  /** When the code was returned; null if it was not. */
  dateReturned: string | null;
  /** Whether the code may be delivered later; see Confirm order. */
  allowAsyncDelivery: boolean;
  /** Where the code can be used. */
  productRegion: string;
  /** Number of the company that ordered. */
  entityId: number;
}

/** Where a walk by cursor stands. */
export interface WalkMetadata {
  /** The most that a page holds: the `limit` that was asked for. */
  pageSize: number;
  /** The `cursor` of the next page. Null on the last page. */
  nextCursor: string | null;
}

/** An endpoint: where events are sent. */
export interface Webhook {
  /** Name of the endpoint. */
  id: string;
  /** Whose events it gets: those of the key that made it. */
  state: "live" | "sandbox";
  /** Where events are sent. Null where each order names its own address. */
  url: string | null;
  /** Whether it is for the addresses that orders name with `webhookUrl`. */
  perOrder: boolean;
  /** How events are written to it. */
  format: "standard" | "classic";
  /** The types of events that are sent; none for all. */
  eventTypes: ("key.rotated" | "order.cancelled" | "order.created" | "order.deleted" | "order.expired" | "order.finished" | "order.line_finished" | "order.pending" | "product.updated" | "wallet.low_balance" | "wallet.topped_up" | "webhook.disabled")[];
  /** Your own text. */
  description: string;
  /** Whether anything is sent. */
  enabled: boolean;
  /** Why we disabled it: it answered 410, or failed for five days. Null otherwise. */
  disabledReason: "gone" | "failing" | null;
  /** The names of your own headers, in lower case. */
  headerNames: string[];
  /** Attempts that failed since the last one that did not. */
  failures: number;
  /** Since when it fails. */
  dateFailingSince: string | null;
  /** Until when the secret before this one signs too. */
  dateOldSecretExpires: string | null;
  /** When it was made. */
  dateCreated: string;
  /** When it was last changed. */
  dateUpdated: string;
  /** What deliveries are signed with. Only in the answer that makes it. */
  secret?: string | undefined;
}

/** One time that a delivery was tried. */
export interface WebhookAttempt {
  /** Number of the attempt. */
  number: number;
  /** When it was sent; `webhook-timestamp` said the same in seconds. */
  dateSent: string;
  /** Where it was sent. */
  url: string;
  /** Milliseconds until the answer, or until it was given up. */
  durationMs: number;
  /** Status of the answer. Null if there was none. */
  httpStatus: number | null;
  /** Why there was no answer. */
  error: string | null;
  /** The headers of the answer, cut off. */
  responseHead: string;
  /** The beginning of the answer's body. */
  responseBody: string;
}

/** A new endpoint. */
export interface WebhookBody {
  /**
   * Where events are sent: an https address of the public internet, at port 443, 4443, 8443 or 9443, without a user,
   * password or fragment. Required unless `perOrder` is true.
   */
  url?: string | null | undefined;
  /** Make the endpoint for the addresses that orders name with `webhookUrl`. One a state. */
  perOrder?: boolean | undefined;
  /**
   * How events are written to it. `standard`: as Find event shows them. `classic`: `event` in capitals, `state`,
   * `apiKeyDescription` (the description of the endpoint) and, of an order, its `trx` and `reference` in `data`.
   */
  format?: "standard" | "classic" | undefined;
  /** The types of events to send; null or none for all. */
  eventTypes?: string[] | null | undefined;
  /** Your own text. */
  description?: string | undefined;
  /** Whether to send anything; true unless it is sent. */
  enabled?: boolean | undefined;
  /**
   * Headers of your own that every delivery carries, at most 10; values have up to 1,000 characters and are never shown
   * again.
   */
  headers?: Record<string, string> | undefined;
  /** A secret of your own; one is made if you send none. */
  secret?: string | null | undefined;
}

/** What is to change about an endpoint; a field that is not sent stays as it is. */
export interface WebhookChanges {
  /**
   * Where events are sent: an https address of the public internet, at port 443, 4443, 8443 or 9443, without a user,
   * password or fragment.
   */
  url?: string | undefined;
  /**
   * How events are written to it. `standard`: as Find event shows them. `classic`: `event` in capitals, `state`,
   * `apiKeyDescription` (the description of the endpoint) and, of an order, its `trx` and `reference` in `data`.
   */
  format?: "standard" | "classic" | undefined;
  /** The types of events to send; null or none for all. */
  eventTypes?: string[] | null | undefined;
  /** Your own text. */
  description?: string | undefined;
  /** Whether to send anything. What waits goes on when it is true again. */
  enabled?: boolean | undefined;
  /**
   * Headers of your own that every delivery carries, at most 10; values have up to 1,000 characters and are never shown
   * again. They replace all that were there.
   */
  headers?: Record<string, string> | undefined;
}

/** One event on its way to one endpoint. */
export interface WebhookDelivery {
  /** Name of the event: `webhook-id` of every attempt. */
  eventId: string;
  /** Type of the event. */
  type: string;
  /** `waiting` for its next attempt, `delivered`, or `failed` after the last one. */
  status: "waiting" | "delivered" | "failed";
  /** When it was queued. */
  dateCreated: string;
  /** When it is tried next. */
  dateNextAttempt: string | null;
  /** What was tried so far, oldest first. */
  attempts: WebhookAttempt[];
  /** The event in the endpoint's format: the very text that is sent and signed. */
  message: Record<string, unknown> | null;
}

/** A page of deliveries. */
export interface WebhookDeliveryPage {
  /** The deliveries of the page. */
  data: WebhookDelivery[];
  /** Where the page stands. */
  metadata: WalkMetadata;
}

/** We stopped sending to an endpoint. */
export interface WebhookDisabledEvent {
  /** Identifier of the event. The same event has it wherever it is told. */
  id: string;
  /** What happened. */
  type: "webhook.disabled";
  /** When it happened. */
  timestamp: string;
  /** What it happened to. Never a code. */
  data: WebhookDisabledEventData;
}

/** Which endpoint gets nothing more, and why. */
export interface WebhookDisabledEventData {
  /** The environment in which it happened. */
  state: "live" | "sandbox";
  /** The id of the endpoint. */
  webhookId: string;
  /** Where events were sent. */
  url: string;
  /** It answered 410, or failed for five days. */
  reason: "gone" | "failing";
}

/** All endpoints of the key's company and state. */
export interface WebhookList {
  /** The endpoints, oldest first. */
  data: Webhook[];
  /** How many. */
  metadata: WebhookListMetadata;
}

/** How many endpoints there are. */
export interface WebhookListMetadata {
  /** How many there are. */
  totalItems: number;
}
