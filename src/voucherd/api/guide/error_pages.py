"""A page for each code of an error: when it comes, in which words, and what to do about it."""

from __future__ import annotations

from typing import Final

import msgspec
from markupsafe import Markup
from msgspec import Raw, Struct

from voucherd.api.openapi import problems
from voucherd.api.openapi.markup import pretty, prose
from voucherd.api.openapi.problems import DescribedProblem
from voucherd.api.openapi.reference import ReferenceOperation
from voucherd.api.routes import ROUTES

ADVICE: Final = {
    "bad_input": "Correct the field that `field` names; the message says which rule it breaks.",
    "bad_request": "Let an HTTP library write the request. A proxy on your side may have damaged it.",
    "not_json": "Send a body that is JSON, in UTF-8. Let a library write it instead of joining strings.",
    "unsupported_media_type": "Send the header `Content-Type: application/json`.",
    "body_too_large": "Split the order into several, or leave out what is not needed.",
    "unauthorized": (
        "Send `Authorization: Bearer` and a key that is neither revoked nor expired. A key is shown once, "
        "when it is made: if yours is lost, make a new one in the portal."
    ),
    "forbidden": "Look at the key in the portal: its scopes, and the addresses from which it may be used.",
    "too_many_failures": (
        "Stop sending the key that is refused. Wait for `Retry-After` seconds, then send a valid one."
    ),
    "rate_limit_exceeded": (
        "Wait for `Retry-After` seconds, then repeat the call. The header `RateLimit` tells how many calls "
        "are left before it comes so far."
    ),
    "internal_error": (
        "Repeat the call after a pause, with the same `Idempotency-Key`, a few times at most. If it stays, "
        "tell us the `X-Request-Id`."
    ),
    "unavailable": "Wait for `Retry-After` seconds, then repeat the call with the same `Idempotency-Key`.",
    "busy": "Wait for `Retry-After` seconds, then repeat the call, on fewer connections at once.",
    "late": (
        "It may be done or not. Repeat the call with the same `Idempotency-Key`, or ask Find order first."
    ),
    "done_but_unseen": "Do not repeat the call: it went through. Ask Find order for the codes.",
    "no_such_path": (
        "Compare the path with the reference. A path may be missing in one version and be there in another."
    ),
    "method_not_allowed": "Use a method that the header `Allow` names.",
    "idempotency_key_in_use": (
        "Wait for the second in `Retry-After`, then repeat the call: it gets the answer of the first."
    ),
    "idempotency_key_reused": "Use a new `Idempotency-Key` for each thing that you want done.",
    "order_not_found": (
        "Check the `trx`, and whether the key is of the environment in which the order was created: a sandbox"
        " key never finds a live order."
    ),
    "company_not_active": (
        "Ask your operator: your company can't order at present. Nothing in the call is wrong."
    ),
    "company_not_verified": (
        "Ask your operator to verify your company; orders wait for that, not for your program."
    ),
    "wrong_order_status": (
        "Ask Find order what became of it. If it is `finished` or `pending`, an earlier call went through: "
        "use its codes. If it is `cancelled`, create a new order."
    ),
    "order_expired": "Create the order again: it has today’s prices. Confirm within 24 hours.",
    "multiple_order_lines": "Confirm the order instead, or create one order for each product.",
    "offers_not_available": (
        "Take another product, or order fewer codes. Find product tells whether it is for sale and in stock."
    ),
    "out_of_stock": "Take another product, or try again later: the order stays `created` until it expires.",
    "insufficient_balance": (
        "Top up the balance in the payment currency, then confirm the same order again. Send a new "
        "`Idempotency-Key`: the old one repeats the refusal."
    ),
    "spend_limit_exceeded": "Wait until tomorrow, use another key, or have the limit raised in the portal.",
    "approval_needed": (
        "Let a person confirm the order in the portal, or let an owner allow the key to confirm alone."
    ),
    "account_not_found": (
        "Find accounts lists the currencies in which your company has money in this environment."
    ),
    "product_not_found": "Find all products lists the slugs that are for sale.",
    "brand_not_found": "Find all brands lists the slugs of brands.",
    "webhook_not_found": "Find all webhooks lists the endpoints of this environment.",
    "too_many_webhooks": (
        "Remove an endpoint that you no longer need. One endpoint can take every type of event."
    ),
    "event_not_found": "Events are kept for 90 days; Find events lists those that are there.",
    "key_not_found": "Find all keys lists the keys of this environment.",
    "key_not_usable": "Make a new key: this one has ended.",
    "too_many_keys": "Revoke keys that nobody uses; `dateLastUsed` tells which.",
    "sandbox_only": "Send a key that begins with `vk_test_`. There is no play money and no clock to move in live.",
    "too_many_open_orders": "Finish or cancel some of the sandbox’s orders, then move its clock again.",
    "request_not_found": (
        "Check the `X-Request-Id`, and whether the key is of the same environment. A call is kept for 7 days,"
        " and is written down a few seconds after its answer."
    ),
    "cursor_too_old": "Begin again without a cursor, and read the orders that you follow with Find order.",
    "too_many_streams": "Close streams that you no longer read. One stream can carry every type of event.",
    "too_much_at_once": "Send fewer large bodies at the same time.",
    "too_slow": "Send the whole request at once; a proxy on your side may hold it back.",
    "too_many_chunks": "Send the body in larger chunks, or with a `Content-Length`.",
    "unknown_coding": "Send the body plain or `chunked`, not packed.",
    "address_too_long": "Ask for less at once: fewer filters, shorter values.",
    "headers_too_large": "Send fewer headers. Cookies have no meaning for the API.",
}
"""What to do, by code."""
_CORRECT_IT: Final = "Correct the call: the same one will be refused again."


class Wording(Struct, frozen=True):
    """One message of a code, and when it comes."""

    status: int
    text: str
    when: Markup


class ErrorPage(Struct, frozen=True):
    """Everything about one code."""

    code: str
    wordings: tuple[Wording, ...]
    retryable: bool
    advice: Markup
    problem: Markup
    """It in the form of RFC 9457."""
    operations: tuple[ReferenceOperation, ...]
    anywhere: bool
    """Whether any call can meet it."""

    @property
    def statuses(self) -> list[int]:
        """The statuses with which it comes, mostly one."""
        return sorted({wording.status for wording in self.wordings})


def pages_by_code(operations: list[ReferenceOperation], body_bytes_max: int) -> dict[str, ErrorPage]:
    """The page of every code that a call of the API can meet, by code."""
    found: dict[str, list[DescribedProblem]] = {}
    by_code: dict[str, list[ReferenceOperation]] = {}
    for route, operation in zip(ROUTES, operations, strict=True):
        own = problems.of_operation(route.op, body_bytes_max)
        for problem in (*own, *(problems.REPEATED if route.writes else ())):
            found.setdefault(problem.code, []).append(problem)
            if operation not in by_code.setdefault(problem.code, []):
                by_code[problem.code].append(operation)
    anywhere = (*problems.ANYWHERE, *problems.OFF_THE_MAP, *problems.OF_HTTP)
    for problem in anywhere:
        found.setdefault(problem.code, []).append(problem)
    everywhere = {problem.code for problem in problems.ANYWHERE}
    return {
        code: _page(code, found[code], tuple(by_code.get(code, ())), anywhere=code in everywhere)
        for code in sorted(found)
    }


def _page(
    code: str, met: list[DescribedProblem], operations: tuple[ReferenceOperation, ...], *, anywhere: bool
) -> ErrorPage:
    wordings = {
        (one.status, one.text): Wording(one.status, one.text, prose(one.when, inline=True)) for one in met
    }
    first = met[0]
    return ErrorPage(
        code,
        tuple(wordings.values()),
        first.retryable,
        prose(ADVICE.get(code, _CORRECT_IT)),
        pretty(Raw(msgspec.json.encode(first.body))),
        operations,
        anywhere,
    )
