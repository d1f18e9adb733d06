"""What can go wrong with a call, as classes: by the code of the service's problem, or by its status.

A code that this version does not know becomes the class of its status, so a program that catches `NotPaid` also
catches what the service refuses for want of money in years to come.
"""

from __future__ import annotations

from typing import ClassVar

from voucherd_client.shapes.orders import Order


class VoucherdError(Exception):
    """Everything that this package raises about a call."""

    idempotency_key: str | None = None
    """The key of the call: sent again with it, the call is still done once."""


class NoAnswer(VoucherdError):
    """No answer came, however often it was tried: what was asked for may be done or not."""


class UnreadableAnswer(VoucherdError):
    """The answer is not what the service would say; something between us and it may have said it."""


class StillPending(VoucherdError):
    """The time to wait for an order is over; `order` is how it stands."""

    order: Order | None = None


class NotGenuine(VoucherdError):
    """A webhook was not signed with any of the secrets, was changed, or is too old; the text says which."""


class ApiError(VoucherdError):
    """The service refused. Nothing has changed, unless the class says otherwise."""

    codes: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        code: str | None = None,
        field: str | None = None,
        retryable: bool = False,
        retry_after_s: float | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.field = field
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        self.request_id = request_id

    def __str__(self) -> str:
        about = [str(self.status), self.code, self.request_id and f"request {self.request_id}"]
        return f"{self.message} [{', '.join(filter(None, about))}]"


# ── by status ─────────────────────────────────────────────────────────────────────────────────────────────


class BadRequest(ApiError):
    """The same call will be refused again: correct it, or tell your user."""


class Unauthorized(ApiError):
    """The key is missing, wrong, revoked or has expired."""

    codes = ("unauthorized",)


class NotPaid(ApiError):
    """The order may not be paid now."""


class Forbidden(ApiError):
    """The key may not do this, or not from this address."""

    codes = ("forbidden",)


class NotFound(ApiError):
    """There is no such thing, or it is not yours."""


class Conflict(ApiError):
    """It does not fit what is there."""


class Gone(ApiError):
    """It was there once."""


class TooManyRequests(ApiError):
    """Wait, and try again."""


class Unavailable(ApiError):
    """The service failed; repeated with the same key, the call is still done once."""


# ── by code ───────────────────────────────────────────────────────────────────────────────────────────────


class BadInput(BadRequest):
    """A field breaks a rule: `field` is its name."""

    codes = ("bad_input",)


class NotUnderstood(BadRequest):
    """The request could not be read as one; this client sends none of those by itself."""

    codes = (
        *("bad_request", "not_json", "unsupported_media_type", "method_not_allowed", "body_too_large"),
        *("address_too_long", "headers_too_large", "too_many_chunks", "unknown_coding"),
    )


class CompanyNotActive(BadRequest):
    """The company is not active."""

    codes = ("company_not_active",)


class CompanyNotVerified(BadRequest):
    """The company is not verified."""

    codes = ("company_not_verified",)


class WrongOrderStatus(BadRequest):
    """The order was confirmed or cancelled before."""

    codes = ("wrong_order_status",)


class OrderExpired(BadRequest):
    """The order was created more than 24 hours ago."""

    codes = ("order_expired",)


class MultipleOrderLines(BadRequest):
    """Resolve takes an order of one item only."""

    codes = ("multiple_order_lines",)


class OffersNotAvailable(BadRequest):
    """A product is unknown, was withdrawn, or has too little stock and can't be delivered later."""

    codes = ("offers_not_available",)


class OutOfStock(BadRequest):
    """A product has too little stock and can't be delivered later."""

    codes = ("out_of_stock",)


class IdempotencyKeyReused(BadRequest):
    """The key was used for another request."""

    codes = ("idempotency_key_reused",)


class InsufficientBalance(NotPaid):
    """The balance in the payment currency does not cover the order: top it up, then confirm again."""

    codes = ("insufficient_balance",)


class SpendLimitExceeded(NotPaid):
    """The order costs more than the company, or this key, may spend on one order or in one day."""

    codes = ("spend_limit_exceeded",)


class ApprovalNeeded(NotPaid):
    """A second person has to confirm the order, in the portal."""

    codes = ("approval_needed",)


class SandboxOnly(Forbidden):
    """The key is a live one, and this is there in the sandbox alone."""

    codes = ("sandbox_only",)


class OrderNotFound(NotFound):
    """There is no order with this trx, it was deleted, or it is of another company or state."""

    codes = ("order_not_found",)


class AccountNotFound(NotFound):
    """The company never had money in this currency and state."""

    codes = ("account_not_found",)


class ProductNotFound(NotFound):
    """There is no product with this slug, or it is not for sale."""

    codes = ("product_not_found",)


class BrandNotFound(NotFound):
    """There is no brand with this slug, or nothing of it is for sale."""

    codes = ("brand_not_found",)


class WebhookNotFound(NotFound):
    """There is no endpoint with this id, or it is of another company or state."""

    codes = ("webhook_not_found",)


class EventNotFound(NotFound):
    """There is no event with this id, it is not yours, or it is no longer kept."""

    codes = ("event_not_found",)


class KeyNotFound(NotFound):
    """There is no key with this id, or it is of another company or state."""

    codes = ("key_not_found",)


class RequestNotFound(NotFound):
    """No call of yours has this id, or it is no longer in the log."""

    codes = ("request_not_found",)


class NoSuchPath(NotFound):
    """The service knows no such path: its address may be wrong, or it is older than this client."""

    codes = ("no_such_path",)


class IdempotencyKeyInUse(Conflict):
    """The first request with this key is still running, for longer than this client waits for it."""

    codes = ("idempotency_key_in_use",)


class TooManyWebhooks(Conflict):
    """The company has as many endpoints as it may have."""

    codes = ("too_many_webhooks",)


class KeyNotUsable(Conflict):
    """The key is revoked, has expired or was replaced already."""

    codes = ("key_not_usable",)


class TooManyKeys(Conflict):
    """The company has as many keys as it may have."""

    codes = ("too_many_keys",)


class TooManyOpenOrders(Conflict):
    """The sandbox has more open orders than its clock can move at once."""

    codes = ("too_many_open_orders",)


class CursorTooOld(Gone):
    """The events behind this cursor are no longer kept: begin without one."""

    codes = ("cursor_too_old",)


class RateLimitExceeded(TooManyRequests):
    """The key has made its requests of this minute."""

    codes = ("rate_limit_exceeded",)


class TooManyFailures(TooManyRequests):
    """Too many requests without a valid key came from this address."""

    codes = ("too_many_failures",)


class TooManyStreams(TooManyRequests):
    """The key has as many streams open as it may."""

    codes = ("too_many_streams",)


class TooMuchAtOnce(TooManyRequests):
    """The company sends more at once than it may."""

    codes = ("too_much_at_once",)


class Busy(Unavailable):
    """Too many requests are waiting."""

    codes = ("busy",)


class Late(Unavailable):
    """The answer took too long: what was asked for may be done or not."""

    codes = ("late", "too_slow")


class ServiceUnavailable(Unavailable):
    """The service has no database at the moment."""

    codes = ("unavailable",)


class DoneButUnseen(Unavailable):
    """It is done, and could not be shown: find the order."""

    codes = ("done_but_unseen",)


class InternalError(Unavailable):
    """Something went wrong in the service."""

    codes = ("internal_error",)
