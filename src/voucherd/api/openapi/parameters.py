"""What clients may send beside a body, and the headers that answers carry."""

from __future__ import annotations

from typing import Any, Final

from voucherd.api.openapi import examples
from voucherd.api.openapi.fields import ORDER_STATUSES
from voucherd.api.openapi.problems import REQUEST_ID
from voucherd.api.query import PAGE_MAX, PAGE_SIZE, PAGE_SIZE_MAX
from voucherd.api.requests import SLOW_S_MAX, WAIT_S_MAX
from voucherd.idempotency.model import KEPT_DAYS, KEY_CHARS_MAX
from voucherd.keys.key_text import RATE_LIMIT_DEFAULT
from voucherd.limits.rate_limits import Taken, policy, standing
from voucherd.orders.model import TYPES
from voucherd.orders.rules.decide import SANDBOX_PENDING_S, SandboxOutcome

Part = dict[str, Any]


def query_parameter(name: str, words: str, schema: Part, **more: Any) -> Part:
    """A parameter of the query."""
    return {"name": name, "in": "query", "description": words, "schema": schema, **more}


TRX: Final[Part] = {
    "name": "trx",
    "in": "path",
    "required": True,
    "description": "The trx that Create order returned.",
    "schema": {"type": "string"},
    "example": examples.trx(),
}

WAIT: Final = query_parameter(
    "wait",
    "So many seconds the call may wait if the order is `pending`: it answers as soon as the order ends or another "
    "line of it is delivered.",
    {"type": "integer", "minimum": 0, "maximum": WAIT_S_MAX, "default": 0},
    example=25,
)

OUTCOMES: Final[dict[SandboxOutcome, tuple[str, str]]] = {
    SandboxOutcome.FINISHED: ("finished", "Every code is delivered at once."),
    SandboxOutcome.CANCELLED: ("cancelled", "The order is cancelled at once and not charged."),
    SandboxOutcome.PENDING: (
        "pending",
        f"Confirm answers `pending` at once and delivers {SANDBOX_PENDING_S} seconds later. Resolve waits for its "
        "limit and cancels.",
    ),
    SandboxOutcome.SLOW: (
        "slow:<seconds>",
        f"Delivery takes that many seconds, at most {SLOW_S_MAX:,}.",
    ),
    SandboxOutcome.OUT_OF_STOCK: ("out-of-stock", "Refused: `Product … is out of stock`."),
    SandboxOutcome.INSUFFICIENT_BALANCE: ("insufficient-balance", "Refused: `insufficient balance`."),
}
"""What a sandbox call can ask for (OP-49): how it is written, and what happens then."""


def _outcome_pattern() -> str:
    """The header's form; slow is the one that takes a number."""
    plain = [
        sandbox_outcome.value
        for sandbox_outcome in SandboxOutcome
        if sandbox_outcome is not SandboxOutcome.SLOW
    ]
    return f"^({'|'.join(plain)}|slow:[0-9]{{1,4}})$"


SANDBOX_OUTCOME: Final[Part] = {
    "name": "X-Sandbox-Outcome",
    "in": "header",
    "description": "Sandbox keys only: what is to become of the call. Without it, half of all sandbox calls are "
    "cancelled at once.\n\n" + "\n".join(f"- `{form}`: {words}" for form, words in OUTCOMES.values()),
    "schema": {"type": "string", "pattern": _outcome_pattern()},
    "example": SandboxOutcome.FINISHED.value,
}

IDEMPOTENCY_KEY: Final[Part] = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "Any text of your own, one for each thing that you want done, such as a UUID. Sent again with the "
    f"same request within {KEPT_DAYS} days it does nothing, and gets the first answer again with "
    "`Idempotent-Replayed: true`.",
    "schema": {"type": "string", "minLength": 1, "maxLength": KEY_CHARS_MAX, "pattern": "^[ -~]+$"},
    "example": "0b5e2f6c-5f0e-4f8e-9d0c-6b1f2a3c4d5e",
}

FIND_ALL: Final[tuple[Part, ...]] = (
    query_parameter(
        "page",
        "Number of the page. Not together with `cursor`.",
        {"type": "integer", "minimum": 1, "maximum": PAGE_MAX, "default": 1},
    ),
    query_parameter(
        "limit",
        "The most orders that a page holds.",
        {"type": "integer", "minimum": 1, "maximum": PAGE_SIZE_MAX, "default": PAGE_SIZE},
    ),
    query_parameter(
        "cursor",
        "Where to go on: the `nextCursor` of the last page, or empty to begin a walk.",
        {"type": "string"},
        allowEmptyValue=True,
        example=examples.cursor(),
    ),
    query_parameter("trx", "Only the order with this trx.", {"type": "string"}),
    query_parameter(
        "orderStatus",
        "Only orders with this status; repeat it for several.",
        {"type": "array", "items": {"type": "string", "enum": list(ORDER_STATUSES)}},
        style="form",
        explode=True,
    ),
    query_parameter("type", "Only orders that this system created.", {"type": "string", "enum": list(TYPES)}),
    query_parameter("reference", "Only orders with exactly this reference.", {"type": "string"}),
    query_parameter("productSlug", "Only orders with an item of this product.", {"type": "string"}),
    query_parameter(
        "paymentCurrency",
        "Only orders paid in this currency.",
        {"type": "string", "pattern": "^[A-Za-z]{3}$"},
    ),
    query_parameter(
        "dateFrom",
        "Only orders created at this moment or later: a date or date-time of ISO 8601, in UTC unless it names a "
        "zone.",
        {"type": "string"},
        example="2026-01-01",
    ),
    query_parameter(
        "dateTo",
        "Only orders created at this moment or earlier. A bare date is its first moment.",
        {"type": "string"},
        example="2026-02-01T00:00:00Z",
    ),
    query_parameter(
        "sortOrder",
        "`desc`: newest first. `asc`: oldest first.",
        {"type": "string", "enum": ["desc", "asc"], "default": "desc"},
    ),
)


def _header(words: str, example: str | int, kind: str = "string") -> Part:
    return {"description": words, "schema": {"type": kind}, "example": example}


HEADERS: Final[dict[str, Part]] = {
    "X-Request-Id": _header("Names the call in our logs: quote it when you ask about one.", REQUEST_ID),
    "RateLimit-Policy": _header(
        "The quota of the key (`q`) and its window in seconds (`w`).", policy(RATE_LIMIT_DEFAULT).decode()
    ),
    "RateLimit": _header(
        "What remains of the quota (`r`) and the seconds until it is restored (`t`).",
        standing(Taken(True, RATE_LIMIT_DEFAULT - 2, 58)).decode(),
    ),
    "Idempotent-Replayed": _header("There, and `true`, if this is the answer to an earlier request.", "true"),
    "Retry-After": _header("Seconds to wait before the next attempt.", 1, "integer"),
    "Location": _header("The path of what was made.", f"/api/1.03/order/{examples.trx()}"),
    "Content-Disposition": _header("The name of the file. Only with CSV.", 'attachment; filename="….csv"'),
    "WWW-Authenticate": _header("How to authenticate.", 'Bearer error="invalid_token"'),
}
