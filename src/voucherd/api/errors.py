"""The words and codes of every refusal: one table, walked by a test against every row of Contract 7.

A refusal carries facts; here it gets its status and its text, which differ by operation. A client that asks for
`application/problem+json` gets RFC 9457 with a stable code instead of the bare text (OP-26).
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from voucherd.api.wire.fields import doc
from voucherd.http import PROBLEM, TEXT, HttpError, Request, Response
from voucherd.keys.callers import Forbidden, Unauthorized
from voucherd.keys.grants import KEYS_MAX
from voucherd.orders.ageing import OPEN_MAX
from voucherd.orders.rules.refusals import (
    ApprovalNeeded,
    BadInput,
    CompanyNotActive,
    CompanyNotVerified,
    InsufficientBalance,
    OffersNotAvailable,
    OrderExpired,
    OrderNotFound,
    OutOfStock,
    Refusal,
    SeveralItems,
    SpendLimitExceeded,
    WrongStatus,
)
from voucherd.webhooks.endpoints import ENDPOINTS_MAX


class AccountNotFound(Refusal):
    """The company has no account in this currency and state."""


class ProductNotFound(Refusal):
    """No such product is for sale."""


class NoSuchBrand(Refusal):
    """No brand of that slug has anything for sale."""


class WebhookNotFound(Refusal):
    """The company has no such endpoint in this state."""


class TooManyWebhooks(Refusal):
    """The company has as many endpoints as it may have."""


class EventNotFound(Refusal):
    """The company was told of no such event, or it is no longer kept."""


class UnknownKey(Refusal):
    """The company has no such key in this state."""


class UnusableKey(Refusal):
    """The key is revoked, has expired or was replaced already."""


class KeyLimitReached(Refusal):
    """The company has as many keys as it may have."""


class SandboxOnly(Refusal):
    """A live key asks for something that there is in the sandbox alone."""


class ClockStuck(Refusal):
    """The company has more open orders in its sandbox than its clock can move at once."""


class RequestNotFound(Refusal):
    """No call of the company with this id is in the request log."""


class Op(Enum):
    """The operations of the contract."""

    CREATE = "create"
    QUOTE = "quote"
    CONFIRM = "confirm"
    RESOLVE = "resolve"
    CANCEL = "cancel"
    FIND = "find"
    FIND_ALL = "find_all"
    LINES = "lines"
    CODES = "codes"
    PROTECT = "protect"
    ACCOUNTS = "accounts"
    STATEMENT = "statement"
    PRODUCTS = "products"
    PRODUCT = "product"
    PRODUCT_CHANGES = "product_changes"
    BRANDS = "brands"
    BRAND = "brand"
    CATEGORIES = "categories"
    FX_RATES = "fx_rates"
    WEBHOOKS = "webhooks"
    ADD_WEBHOOK = "add_webhook"
    WEBHOOK = "webhook"
    CHANGE_WEBHOOK = "change_webhook"
    REMOVE_WEBHOOK = "remove_webhook"
    ROTATE_WEBHOOK = "rotate_webhook"
    DELIVERIES = "deliveries"
    TEST_WEBHOOK = "test_webhook"
    RECOVER_WEBHOOK = "recover_webhook"
    REPLAY_EVENT = "replay_event"
    EVENTS = "events"
    EVENT = "event"
    EVENT_STREAM = "event_stream"
    KEYS = "keys"
    ADD_KEY = "add_key"
    KEY = "key"
    CHANGE_KEY = "change_key"
    ROTATE_KEY = "rotate_key"
    REVOKE_KEY = "revoke_key"
    PLAY_MONEY = "play_money"
    CLOCK = "clock"
    ADVANCE_CLOCK = "advance_clock"
    RESET_CLOCK = "reset_clock"
    TRIGGER_EVENT = "trigger_event"
    REQUESTS = "requests"
    REQUEST = "request"


_EXPIRED: Final = "this order has expired, orders need confirmation within 24 hours"

_NO_WEBHOOK: Final = "webhook not found"
_NO_KEY: Final = "key not found"
_SANDBOX_ONLY: Final = "for sandbox keys only"
_FULL: Final = f"a company has at most {KEYS_MAX} keys"

REFUSALS: dict[tuple[Op, type[Refusal]], tuple[int, str]] = {
    (Op.CREATE, CompanyNotActive): (400, "company not active"),  # OP-21
    (Op.CREATE, OffersNotAvailable): (422, "Some offers not available: {names}"),  # OP-21
    (Op.QUOTE, CompanyNotActive): (400, "company not active"),  # OP-70
    (Op.QUOTE, OffersNotAvailable): (422, "Some offers not available: {names}"),  # OP-70
    (Op.CONFIRM, OrderNotFound): (404, "Order not found"),  # OP-20
    (Op.CONFIRM, CompanyNotActive): (400, "company not active"),  # OP-23
    (Op.CONFIRM, CompanyNotVerified): (400, "company not verified"),  # OP-20
    (Op.CONFIRM, WrongStatus): (400, "this order can not be confirmed"),
    (Op.CONFIRM, OrderExpired): (400, _EXPIRED),  # OP-20
    (Op.CONFIRM, OffersNotAvailable): (422, "some offers not available: {names}"),
    (Op.CONFIRM, OutOfStock): (422, "Product {name} is out of stock"),  # OP-20
    (Op.CONFIRM, InsufficientBalance): (402, "insufficient balance"),
    (Op.CONFIRM, SpendLimitExceeded): (402, "spend limit exceeded"),  # OP-61
    (Op.CONFIRM, ApprovalNeeded): (402, "approval needed"),  # OP-101
    (Op.RESOLVE, OrderNotFound): (404, "order not found"),
    (Op.RESOLVE, CompanyNotActive): (400, "company not active"),  # OP-23
    (Op.RESOLVE, CompanyNotVerified): (400, "company not verified"),
    (Op.RESOLVE, WrongStatus): (400, "this order can not be confirmed"),
    (Op.RESOLVE, OrderExpired): (400, _EXPIRED),
    (Op.RESOLVE, SeveralItems): (400, "MULTIPLE_ORDER_LINES"),
    (Op.RESOLVE, OffersNotAvailable): (422, "some offers not available: {names}"),
    (Op.RESOLVE, OutOfStock): (422, "Product {name} is out of stock"),
    (Op.RESOLVE, InsufficientBalance): (402, "insufficient balance"),
    (Op.RESOLVE, SpendLimitExceeded): (402, "spend limit exceeded"),  # OP-61
    (Op.RESOLVE, ApprovalNeeded): (402, "approval needed"),  # OP-101
    (Op.CANCEL, OrderNotFound): (404, "order not found"),  # OP-22
    (Op.CANCEL, WrongStatus): (400, "Invalid order status"),  # OP-22
    (Op.FIND, OrderNotFound): (404, "order not found"),  # OP-02
    (Op.LINES, OrderNotFound): (404, "order not found"),  # OP-02
    (Op.CODES, OrderNotFound): (404, "order not found"),  # OP-02
    (Op.PROTECT, OrderNotFound): (404, "order not found"),  # OP-96
    (Op.STATEMENT, AccountNotFound): (404, "account not found"),
    (Op.PRODUCT, ProductNotFound): (404, "product not found"),
    (Op.BRAND, NoSuchBrand): (404, "brand not found"),
    (Op.ADD_WEBHOOK, TooManyWebhooks): (409, f"a company has at most {ENDPOINTS_MAX} webhooks"),
    (Op.WEBHOOK, WebhookNotFound): (404, _NO_WEBHOOK),
    (Op.CHANGE_WEBHOOK, WebhookNotFound): (404, _NO_WEBHOOK),
    (Op.REMOVE_WEBHOOK, WebhookNotFound): (404, _NO_WEBHOOK),
    (Op.ROTATE_WEBHOOK, WebhookNotFound): (404, _NO_WEBHOOK),
    (Op.DELIVERIES, WebhookNotFound): (404, _NO_WEBHOOK),
    (Op.TEST_WEBHOOK, WebhookNotFound): (404, _NO_WEBHOOK),
    (Op.RECOVER_WEBHOOK, WebhookNotFound): (404, _NO_WEBHOOK),
    (Op.REPLAY_EVENT, EventNotFound): (404, "event not found"),
    (Op.EVENT, EventNotFound): (404, "event not found"),
    (Op.ADD_KEY, KeyLimitReached): (409, _FULL),
    (Op.KEY, UnknownKey): (404, _NO_KEY),
    (Op.CHANGE_KEY, UnknownKey): (404, _NO_KEY),
    (Op.CHANGE_KEY, UnusableKey): (409, "this key can not be changed"),
    (Op.ROTATE_KEY, UnknownKey): (404, _NO_KEY),
    (Op.ROTATE_KEY, UnusableKey): (409, "this key can not be rotated"),
    (Op.ROTATE_KEY, KeyLimitReached): (409, _FULL),
    (Op.REVOKE_KEY, UnknownKey): (404, _NO_KEY),
    (Op.PLAY_MONEY, SandboxOnly): (400, _SANDBOX_ONLY),  # OP-144
    (Op.CLOCK, SandboxOnly): (400, _SANDBOX_ONLY),  # OP-146
    (Op.ADVANCE_CLOCK, SandboxOnly): (400, _SANDBOX_ONLY),
    (Op.ADVANCE_CLOCK, ClockStuck): (409, f"more than {OPEN_MAX} orders are open"),
    (Op.RESET_CLOCK, SandboxOnly): (400, _SANDBOX_ONLY),
    (Op.TRIGGER_EVENT, SandboxOnly): (400, _SANDBOX_ONLY),  # OP-147
    (Op.REQUEST, RequestNotFound): (404, "request not found"),  # OP-148
}
# What an event is triggered by can be refused as the order that it is.
REFUSALS |= {
    (Op.TRIGGER_EVENT, kind): REFUSALS[Op.CONFIRM, kind]
    for kind in (
        CompanyNotActive,
        CompanyNotVerified,
        OffersNotAvailable,
        OutOfStock,
        InsufficientBalance,
        SpendLimitExceeded,
        ApprovalNeeded,
    )
}

_KINDS: Final[dict[type[Refusal], tuple[str, str]]] = {
    OrderNotFound: (
        "order_not_found",
        "There is no order with this trx, it was deleted, or it belongs to another company or state.",
    ),
    CompanyNotActive: ("company_not_active", "The company is not active."),
    CompanyNotVerified: ("company_not_verified", "The company is not verified."),
    WrongStatus: ("wrong_order_status", "The order is not `created`: it was confirmed or cancelled before."),
    OrderExpired: ("order_expired", "The order was created more than 24 hours ago."),
    SeveralItems: ("multiple_order_lines", "The order has more than one item."),
    OffersNotAvailable: ("offers_not_available", "A product was withdrawn since the order was created."),
    OutOfStock: ("out_of_stock", "A product has too little stock and can't be delivered later."),
    InsufficientBalance: (
        "insufficient_balance",
        "The balance in the payment currency does not cover the order.",
    ),
    SpendLimitExceeded: (
        "spend_limit_exceeded",
        "The order costs more than your company, or this key, may spend on one order or in one day.",
    ),
    ApprovalNeeded: (
        "approval_needed",
        "Your company asks for a second person from this amount on, and the key does not confirm alone: confirm the "
        "order in the portal, or let an owner allow it to the key.",
    ),
    AccountNotFound: ("account_not_found", "Your company never had money in this currency and state."),
    ProductNotFound: ("product_not_found", "There is no product with this slug, or it is not for sale."),
    NoSuchBrand: ("brand_not_found", "There is no brand with this slug, or nothing of it is for sale."),
    WebhookNotFound: (
        "webhook_not_found",
        "There is no endpoint with this id, or it belongs to another company or state.",
    ),
    TooManyWebhooks: (
        "too_many_webhooks",
        "Your company has as many endpoints in this state as it may have.",
    ),
    EventNotFound: (
        "event_not_found",
        "There is no event with this id, it is not yours, or it is no longer kept.",
    ),
    UnknownKey: (
        "key_not_found",
        "There is no key with this id, or it belongs to another company or state.",
    ),
    UnusableKey: ("key_not_usable", "The key is revoked, has expired or was replaced already."),
    SandboxOnly: ("sandbox_only", "The key is a live one, and this is there in the sandbox alone."),
    ClockStuck: (
        "too_many_open_orders",
        "Your sandbox has more open orders than its clock can move at once: finish or cancel some.",
    ),
    RequestNotFound: (
        "request_not_found",
        "No call of your company in this state has this id, or it is no longer in the log.",
    ),
    KeyLimitReached: ("too_many_keys", "Your company has as many keys in this state as it may have."),
}
"""The stable code of each refusal, and what has happened."""

CODES: Final = {BadInput: "bad_input"} | {kind: code for kind, (code, _) in _KINDS.items()}
_NOT_FOR_SALE: Final = (
    "A product is unknown, withdrawn, or has too little stock and can't be delivered later."
)
_WHEN: Final[dict[tuple[Op, type[Refusal]], str]] = {
    (Op.CREATE, OffersNotAvailable): _NOT_FOR_SALE,
    (Op.QUOTE, OffersNotAvailable): _NOT_FOR_SALE,
    (Op.CANCEL, WrongStatus): "The order is neither `created` nor `pending`.",
}
"""Where the same refusal has another meaning."""


def when(op: Op, kind: type[Refusal]) -> str:
    """What has happened when the operation refuses so."""
    return _WHEN.get((op, kind)) or _KINDS[kind][1]


class Problem(Struct):
    """An error in the form of RFC 9457, for clients that send `Accept: application/problem+json`."""

    type: Annotated[
        str, doc("A page about the `code`, from the root of the service on.", format="uri-reference")
    ]
    title: Annotated[str, doc("The message, as in the plain form.")]
    status: Annotated[int, doc("The HTTP status.", minimum=400, maximum=599)]
    detail: Annotated[str, doc("The message again.")]
    code: Annotated[str, doc("A stable name for the kind of error; decide by this.")]
    retryable: Annotated[bool, doc("Whether the same call may succeed later.")]
    requestId: Annotated[str, doc("The same as the header `X-Request-Id`.")]
    field: Annotated[str | UnsetType, doc("The field that breaks a rule. Only with `bad_input`.")] = UNSET


def refused(op: Op, refusal: Refusal, request: Request) -> Response:
    """The answer to a refused order."""
    if isinstance(refusal, BadInput):
        return error(request, 400, CODES[BadInput], str(refusal), field=refusal.field)
    status, template = REFUSALS[op, type(refusal)]
    if isinstance(refusal, OffersNotAvailable):
        text = template.format(names=", ".join(refusal.names))
    elif isinstance(refusal, OutOfStock):
        text = template.format(name=refusal.name)
    else:
        text = template
    return error(request, status, CODES[type(refusal)], text)


def turned_away(request: Request, reason: Unauthorized | Forbidden) -> Response:
    """The answer to a caller without a valid key, or with one that may not do this (OP-24)."""
    if isinstance(reason, Forbidden):
        return error(request, 403, "forbidden", "forbidden")
    challenge = b'Bearer error="invalid_token"' if reason.token_sent else b"Bearer"
    return error(request, 401, "unauthorized", "unauthorized", headers=[(b"www-authenticate", challenge)])


def http_error(request: Request, problem: HttpError) -> Response:
    """The answer to a call that HTTP itself refuses."""
    return error(
        request,
        problem.status,
        problem.code,
        problem.text,
        headers=problem.headers,
        retryable=problem.retryable,
    )


def error(
    request: Request,
    status: int,
    code: str,
    text: str,
    *,
    field: str | None = None,
    headers: list[tuple[bytes, bytes]] | None = None,
    retryable: bool = False,
) -> Response:
    """One line of text, or RFC 9457 for a client that asks for it by name (OP-26)."""
    more = list(headers or [])
    if not _accepts_problems(request.headers.get(b"accept", b"")):
        return Response(status, text.encode(), TEXT, more)
    return Response(
        status,
        msgspec.json.encode(
            problem(status, code, text, request.id, field=field, retryable=retryable, root=request.root)
        ),
        PROBLEM,
        more,
    )


_NEVER: Final = re.compile(rb"q\s*=\s*0(\.0*)?")


def _accepts_problems(accept: bytes) -> bool:
    """Whether the client names the form of RFC 9457, and not only to refuse it (`q=0`)."""
    for choice in accept.lower().split(b","):
        media, *rules = (part.strip() for part in choice.split(b";"))
        if media == PROBLEM:
            return not any(_NEVER.fullmatch(rule) for rule in rules)
    return False


def problem(
    status: int,
    code: str,
    text: str,
    request_id: str,
    *,
    field: str | None = None,
    retryable: bool = False,
    root: str = "",
) -> Problem:
    """The error in the form of RFC 9457."""
    about = UNSET if field is None else field
    return Problem(f"{root}/docs/errors/{code}", text, status, text, code, retryable, request_id, about)
