"""The errors of every operation: read off the table of refusals, or got by asking for them.

Where a message is made by a function, that function is called; the few that are written in the middle of a request's
way are repeated here, and a test compares them with what the service says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Struct

from voucherd.api import (
    accounts,
    catalogue_requests,
    errors,
    events,
    key_requests,
    order_parts,
    redemption,
    requests,
    webhook_requests,
)
from voucherd.api.errors import (
    CODES,
    REFUSALS,
    AccountNotFound,
    BrandNotFound,
    EventNotFound,
    KeyNotFound,
    KeyNotUsable,
    Op,
    ProductNotFound,
    TooManyKeys,
    TooManyWebhooks,
    WebhookNotFound,
)
from voucherd.api.openapi import examples
from voucherd.http import PROBLEM, HttpError, Request
from voucherd.idempotency.model import KEY_CHARS_MAX
from voucherd.ids import Identifiers, State
from voucherd.orders.rules.refusals import (
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

REQUEST_ID: Final = "req_5f2b8c0e9a7100000001"


class Problem(Struct, frozen=True):
    """One thing that can go wrong, as a client hears it."""

    status: int
    code: str
    text: str
    when: str
    retryable: bool = False
    field: str | None = None

    @property
    def body(self) -> dict[str, Any]:
        """The same in the form of RFC 9457, made by the function that makes every other."""
        request = _request(headers={b"accept": PROBLEM})
        response = errors.error(
            request, self.status, self.code, self.text, field=self.field, retryable=self.retryable
        )
        assert isinstance(response.body, bytes)
        decoded: dict[str, Any] = msgspec.json.decode(response.body)
        return decoded


_WHEN: Final[dict[type[Refusal], str]] = {
    OrderNotFound: "There is no order with this trx, it was deleted, or it belongs to another company or state.",
    CompanyNotActive: "The company is not active.",
    CompanyNotVerified: "The company is not verified.",
    WrongStatus: "The order's status does not allow it.",
    OrderExpired: "The order was created more than 24 hours ago.",
    SeveralItems: "The order has more than one item.",
    OffersNotAvailable: "A product is unknown, withdrawn, or has too little stock and can't be delivered later.",
    OutOfStock: "A product has too little stock and can't be delivered later.",
    InsufficientBalance: "The balance in the payment currency does not cover the order.",
    SpendLimitExceeded: "The order costs more than your company, or this key, may spend on one order or in one day.",
    AccountNotFound: "Your company never had money in this currency and state.",
    ProductNotFound: "There is no product with this slug, or it is not for sale.",
    WebhookNotFound: "There is no endpoint with this id, or it belongs to another company or state.",
    TooManyWebhooks: "Your company has as many endpoints in this state as it may have.",
    EventNotFound: "There is no event with this id, it is not yours, or it is no longer kept.",
    KeyNotFound: "There is no key with this id, or it belongs to another company or state.",
    KeyNotUsable: "The key is revoked, has expired or was replaced already.",
    TooManyKeys: "Your company has as many keys in this state as it may have.",
    BrandNotFound: "There is no brand with this slug, or nothing of it is for sale.",
}


_WHEN_HERE: Final[dict[tuple[Op, type[Refusal]], str]] = {
    (Op.CONFIRM, WrongStatus): "The order is not `created`: it was confirmed or cancelled before.",
    (Op.RESOLVE, WrongStatus): "The order is not `created`: it was confirmed or cancelled before.",
    (Op.CANCEL, WrongStatus): "The order is neither `created` nor `pending`.",
    (Op.CONFIRM, OffersNotAvailable): "A product was withdrawn since the order was created.",
    (Op.RESOLVE, OffersNotAvailable): "A product was withdrawn since the order was created.",
}
"""Where the same refusal has a narrower meaning."""


def of_operation(op: Op, body_bytes_max: int) -> list[Problem]:
    """What this operation can refuse, by status; what any call can meet is in `ANYWHERE`."""
    told = [
        Problem(
            status,
            CODES[kind],
            text.format(names=examples.NAME, name=examples.NAME),
            _WHEN_HERE.get((op, kind)) or _WHEN[kind],
        )
        for (owner, kind), (status, text) in REFUSALS.items()
        if owner is op
    ]
    told += _bad_input(op)
    if op in (Op.EVENTS, Op.EVENT_STREAM):
        told.append(
            Problem(410, events.TOO_OLD_CODE, events.TOO_OLD, "What followed the cursor is no longer kept.")
        )
    if op in _BODIES:
        _, read = _BODIES[op]
        too_large = f"the body must be at most {body_bytes_max} bytes"
        told += [
            _caught(lambda: read(_request(b"{")), "The body is not JSON."),
            Problem(413, "body_too_large", too_large, "The body is too large."),
            _caught(
                lambda: read(_request(b" ", {b"content-type": b"text/plain"})),
                "The body's content type is not `application/json`.",
            ),
        ]
    return sorted(told, key=lambda problem: problem.status)


_CART: Final = b'{"items":[{"productSlug":"%s","amount":0}],"paymentCurrency":"EUR"}' % examples.SLUG.encode()
_BODIES: Final[dict[Op, tuple[bytes, Callable[[Request], object]]]] = {
    Op.CREATE: (_CART, lambda request: requests.create(request, 1, State.LIVE)),
    Op.QUOTE: (_CART, lambda request: requests.create(request, 1, State.LIVE)),
    Op.PROTECT: (b'{"pin":"12"}', redemption.read_pin),
    Op.ADD_WEBHOOK: (b'{"url":"https://10.0.0.1/"}', lambda request: webhook_requests.add(request, ())),
    Op.CHANGE_WEBHOOK: (b'{"enabled":"no"}', lambda request: webhook_requests.change(request, ())),
    Op.ROTATE_WEBHOOK: (b'{"overlapSeconds":-1}', webhook_requests.rotate),
    Op.REPLAY_EVENT: (b'{"webhookId":7}', webhook_requests.replay),
    Op.ADD_KEY: (b'{"allowIps":["office"]}', key_requests.wishes),
    Op.CHANGE_KEY: (b'{"rateLimit":0}', key_requests.wishes),
    Op.ROTATE_KEY: (b'{"overlapSeconds":-1}', key_requests.rotation),
}
"""A body that each operation refuses, and what reads it."""

_IDS: Final = Identifiers(bytes(32))
_BAD_QUERIES: Final[dict[Op, tuple[bytes, Callable[[Request], object]]]] = {
    Op.FIND: (b"wait=90", requests.wait_s),
    Op.FIND_ALL: (b"limit=1000", lambda request: requests.find_all(request, _IDS)),
    Op.LINES: (b"limit=5000", order_parts.read_lines),
    Op.ACCOUNTS: (b"currency=euro", accounts.read_currency),
    Op.STATEMENT: (b"kind=purchase", lambda request: accounts.read_statement(request, _IDS)),
    Op.PRODUCTS: (b"sortBy=colour", catalogue_requests.find_all),
    Op.PRODUCT: (b"paymentCurrency=euro", catalogue_requests.find),
    Op.PRODUCT_CHANGES: (b"since=yesterday", catalogue_requests.changes),
    Op.BRANDS: (b"limit=1000", catalogue_requests.brands),
    Op.DELIVERIES: (b"status=lost", webhook_requests.deliveries),
    Op.RECOVER_WEBHOOK: (b"since=yesterday", webhook_requests.recover),
    Op.KEYS: (b"limit=1000", lambda request: key_requests.page(request, _IDS)),
    Op.EVENTS: (b"limit=1000", lambda request: events.read_page(request, _IDS)),
    Op.EVENT_STREAM: (b"cursor=1", lambda request: events.read_stream(request, _IDS)),
}
"""A query that each list refuses, and what reads it."""


def _bad_input(op: Op) -> list[Problem]:
    """A field that breaks a rule: one example for each operation that takes fields."""
    if op in _BODIES:
        body, read_body = _BODIES[op]
        return [_caught(lambda: read_body(_request(body)), "A field is missing or wrong.")]
    if op in _BAD_QUERIES:
        query, read = _BAD_QUERIES[op]
        return [_caught(lambda: read(_request(query=query)), "A parameter is wrong.")]
    if op in (Op.CONFIRM, Op.RESOLVE):
        asked = _request(headers={requests.SANDBOX_HEADER: b"finished"})
        return [
            _caught(
                lambda: requests.sandbox_outcome(asked, State.LIVE),
                "The header `X-Sandbox-Outcome` is wrong, or the key is a live one.",
            )
        ]
    return []


def _caught(attempt: Any, when: str) -> Problem:
    """What the attempt is refused with."""
    try:
        attempt()
    except BadInput as bad:
        return Problem(400, CODES[BadInput], str(bad), when, field=bad.field)
    except HttpError as problem:
        return Problem(problem.status, problem.code, problem.text, when)
    raise AssertionError("an example of bad input was accepted")


def _request(body: bytes = b"", headers: dict[bytes, bytes] | None = None, *, query: bytes = b"") -> Request:
    return Request("POST", "/", query, headers or {}, body, "", REQUEST_ID)


REPEATED: Final = (
    Problem(
        400,
        "bad_input",
        f"Idempotency-Key: must be 1 to {KEY_CHARS_MAX} printable ASCII characters",
        "The `Idempotency-Key` is empty, too long or not printable.",
    ),
    Problem(
        409,
        "idempotency_key_in_use",
        "the first request with this Idempotency-Key is still running",
        "The first request with the same `Idempotency-Key` has no answer yet.",
        retryable=True,
    ),
    Problem(
        422,
        "idempotency_key_reused",
        "this Idempotency-Key was used for another request",
        "The `Idempotency-Key` was used for another request.",
    ),
)
"""What a request with an `Idempotency-Key` meets, above all one that was sent before (OP-28)."""

ANYWHERE: Final = (
    Problem(401, "unauthorized", "unauthorized", "There is no API key, or none that is valid."),
    Problem(403, "forbidden", "forbidden", "The key lacks the scope, or may not be used from this address."),
    Problem(
        429,
        "too_many_failures",
        "too many requests without a valid key",
        "Too many calls without a valid key came from your address. Wait for `Retry-After` seconds.",
        retryable=True,
    ),
    Problem(
        429,
        "rate_limit_exceeded",
        "rate limit exceeded",
        "The key made more calls than it may. Wait for `Retry-After` seconds.",
        retryable=True,
    ),
    Problem(500, "internal_error", "internal error", "Something broke on our side.", retryable=True),
    Problem(
        503,
        "unavailable",
        "service unavailable",
        "The database is away. Wait for `Retry-After` seconds.",
        retryable=True,
    ),
    Problem(
        503,
        "busy",
        "too many requests are waiting",
        "The service is full. Wait for `Retry-After` seconds.",
        retryable=True,
    ),
)
"""What any call can meet."""

OFF_THE_MAP: Final = (
    Problem(404, "no_such_path", "not found", "There is no such path, or not in this version."),
    Problem(
        405,
        "method_not_allowed",
        "method not allowed",
        "The path exists, but not with this method; see `Allow`.",
    ),
)
"""What a call to no operation meets."""
