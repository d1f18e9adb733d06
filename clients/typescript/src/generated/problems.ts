// Written by tools/typescript.py from the OpenAPI document; `make client-types` writes it anew.

import { VoucherdError } from "../errors.js";

/** Your company never had money in this currency and state. */
export class AccountNotFoundError extends VoucherdError {
  override readonly name = "AccountNotFoundError";
}

/**
 * Your company asks for a second person from this amount on, and the key does not confirm alone: confirm the order in
 * the portal, or let an owner allow it to the key.
 */
export class ApprovalNeededError extends VoucherdError {
  override readonly name = "ApprovalNeededError";
}

/** A field is missing or wrong. */
export class BadInputError extends VoucherdError {
  override readonly name = "BadInputError";
}

/** The body is too large. */
export class BodyTooLargeError extends VoucherdError {
  override readonly name = "BodyTooLargeError";
}

/** There is no brand with this slug, or nothing of it is for sale. */
export class BrandNotFoundError extends VoucherdError {
  override readonly name = "BrandNotFoundError";
}

/** The service is full. Wait for `Retry-After` seconds. */
export class BusyError extends VoucherdError {
  override readonly name = "BusyError";
}

/** The company is not active. */
export class CompanyNotActiveError extends VoucherdError {
  override readonly name = "CompanyNotActiveError";
}

/** The company is not verified. */
export class CompanyNotVerifiedError extends VoucherdError {
  override readonly name = "CompanyNotVerifiedError";
}

/** What followed the cursor is no longer kept. */
export class CursorTooOldError extends VoucherdError {
  override readonly name = "CursorTooOldError";
}

/** There is no event with this id, it is not yours, or it is no longer kept. */
export class EventNotFoundError extends VoucherdError {
  override readonly name = "EventNotFoundError";
}

/** The key lacks the scope, or may not be used from this address. */
export class ForbiddenError extends VoucherdError {
  override readonly name = "ForbiddenError";
}

/** The first request with the same `Idempotency-Key` has no answer yet. */
export class IdempotencyKeyInUseError extends VoucherdError {
  override readonly name = "IdempotencyKeyInUseError";
}

/** The `Idempotency-Key` was used for another request. */
export class IdempotencyKeyReusedError extends VoucherdError {
  override readonly name = "IdempotencyKeyReusedError";
}

/** The balance in the payment currency does not cover the order. */
export class InsufficientBalanceError extends VoucherdError {
  override readonly name = "InsufficientBalanceError";
}

/** Something broke on our side. */
export class InternalError extends VoucherdError {
  override readonly name = "InternalError";
}

/** There is no key with this id, or it belongs to another company or state. */
export class KeyNotFoundError extends VoucherdError {
  override readonly name = "KeyNotFoundError";
}

/** The key is revoked, has expired or was replaced already. */
export class KeyNotUsableError extends VoucherdError {
  override readonly name = "KeyNotUsableError";
}

/**
 * The answer took too long. What a call changes may be done or not: find the order, or send the same call with the same
 * `Idempotency-Key`.
 */
export class LateError extends VoucherdError {
  override readonly name = "LateError";
}

/** The order has more than one item. */
export class MultipleOrderLinesError extends VoucherdError {
  override readonly name = "MultipleOrderLinesError";
}

/** The body is not JSON. */
export class NotJsonError extends VoucherdError {
  override readonly name = "NotJsonError";
}

/** A product is unknown, withdrawn, or has too little stock and can't be delivered later. */
export class OffersNotAvailableError extends VoucherdError {
  override readonly name = "OffersNotAvailableError";
}

/** The order was created more than 24 hours ago. */
export class OrderExpiredError extends VoucherdError {
  override readonly name = "OrderExpiredError";
}

/** There is no order with this trx, it was deleted, or it belongs to another company or state. */
export class OrderNotFoundError extends VoucherdError {
  override readonly name = "OrderNotFoundError";
}

/** A product has too little stock and can't be delivered later. */
export class OutOfStockError extends VoucherdError {
  override readonly name = "OutOfStockError";
}

/** There is no product with this slug, or it is not for sale. */
export class ProductNotFoundError extends VoucherdError {
  override readonly name = "ProductNotFoundError";
}

/** The key made more calls than it may. Wait for `Retry-After` seconds. */
export class RateLimitExceededError extends VoucherdError {
  override readonly name = "RateLimitExceededError";
}

/** No call of your company in this state has this id, or it is no longer in the log. */
export class RequestNotFoundError extends VoucherdError {
  override readonly name = "RequestNotFoundError";
}

/** The key is a live one, and this is there in the sandbox alone. */
export class SandboxOnlyError extends VoucherdError {
  override readonly name = "SandboxOnlyError";
}

/** The order costs more than your company, or this key, may spend on one order or in one day. */
export class SpendLimitExceededError extends VoucherdError {
  override readonly name = "SpendLimitExceededError";
}

/** Too many calls without a valid key came from your address. Wait for `Retry-After` seconds. */
export class TooManyFailuresError extends VoucherdError {
  override readonly name = "TooManyFailuresError";
}

/** Your company has as many keys in this state as it may have. */
export class TooManyKeysError extends VoucherdError {
  override readonly name = "TooManyKeysError";
}

/** Your sandbox has more open orders than its clock can move at once: finish or cancel some. */
export class TooManyOpenOrdersError extends VoucherdError {
  override readonly name = "TooManyOpenOrdersError";
}

/** Your company has as many endpoints in this state as it may have. */
export class TooManyWebhooksError extends VoucherdError {
  override readonly name = "TooManyWebhooksError";
}

/** There is no API key, or none that is valid. */
export class UnauthorizedError extends VoucherdError {
  override readonly name = "UnauthorizedError";
}

/** The database is away. Wait for `Retry-After` seconds. */
export class UnavailableError extends VoucherdError {
  override readonly name = "UnavailableError";
}

/** The body's content type is not `application/json`. */
export class UnsupportedMediaTypeError extends VoucherdError {
  override readonly name = "UnsupportedMediaTypeError";
}

/** There is no endpoint with this id, or it belongs to another company or state. */
export class WebhookNotFoundError extends VoucherdError {
  override readonly name = "WebhookNotFoundError";
}

/** The order is not `created`: it was confirmed or cancelled before. */
export class WrongOrderStatusError extends VoucherdError {
  override readonly name = "WrongOrderStatusError";
}

/** The class of each code; a code that is not here is a plain VoucherdError. */
export const ERRORS: Readonly<Record<string, typeof VoucherdError>> = {
  account_not_found: AccountNotFoundError,
  approval_needed: ApprovalNeededError,
  bad_input: BadInputError,
  body_too_large: BodyTooLargeError,
  brand_not_found: BrandNotFoundError,
  busy: BusyError,
  company_not_active: CompanyNotActiveError,
  company_not_verified: CompanyNotVerifiedError,
  cursor_too_old: CursorTooOldError,
  event_not_found: EventNotFoundError,
  forbidden: ForbiddenError,
  idempotency_key_in_use: IdempotencyKeyInUseError,
  idempotency_key_reused: IdempotencyKeyReusedError,
  insufficient_balance: InsufficientBalanceError,
  internal_error: InternalError,
  key_not_found: KeyNotFoundError,
  key_not_usable: KeyNotUsableError,
  late: LateError,
  multiple_order_lines: MultipleOrderLinesError,
  not_json: NotJsonError,
  offers_not_available: OffersNotAvailableError,
  order_expired: OrderExpiredError,
  order_not_found: OrderNotFoundError,
  out_of_stock: OutOfStockError,
  product_not_found: ProductNotFoundError,
  rate_limit_exceeded: RateLimitExceededError,
  request_not_found: RequestNotFoundError,
  sandbox_only: SandboxOnlyError,
  spend_limit_exceeded: SpendLimitExceededError,
  too_many_failures: TooManyFailuresError,
  too_many_keys: TooManyKeysError,
  too_many_open_orders: TooManyOpenOrdersError,
  too_many_webhooks: TooManyWebhooksError,
  unauthorized: UnauthorizedError,
  unavailable: UnavailableError,
  unsupported_media_type: UnsupportedMediaTypeError,
  webhook_not_found: WebhookNotFoundError,
  wrong_order_status: WrongOrderStatusError,
};
