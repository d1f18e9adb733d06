"""The operations of the document: one for every route and version, each with all that can come of it."""

from __future__ import annotations

from itertools import groupby
from typing import Final

from voucherd.api.errors import Op
from voucherd.api.openapi import accounts, catalogue, events, examples, keys, problems, redemption, webhooks
from voucherd.api.openapi.accounts import FINDING, MONEY
from voucherd.api.openapi.catalogue import CATALOGUE
from voucherd.api.openapi.events import EVENTS
from voucherd.api.openapi.keys import KEYS
from voucherd.api.openapi.parameters import FIND_ALL, IDEMPOTENCY_KEY, SANDBOX_OUTCOME, TRX, WAIT
from voucherd.api.openapi.problems import Problem
from voucherd.api.openapi.redemption import REDEEMING
from voucherd.api.openapi.schemas import REF
from voucherd.api.openapi.webhooks import WEBHOOKS
from voucherd.api.openapi.words import Body, Part, Success, Words
from voucherd.api.routes import Route
from voucherd.keys.key_text import Scope

MAIN_VERSION: Final = "1.03"
_HEADERS: Final = "#/components/headers/"
_RESPONSES: Final = "#/components/responses/"

ORDERING: Final = "Ordering"
TAGS: Final = (
    (ORDERING, "Create an order, then confirm, resolve or cancel it."),
    (FINDING, "Read one order or many, its lines and its codes."),
    (REDEEMING, "What recipients are asked before they see a code."),
    (MONEY, "Balances, and every movement of them."),
    (EVENTS, "What happened, in pages and as it happens."),
    (WEBHOOKS, "Be told what happens: endpoints, and what was sent to them."),
    (KEYS, "Your API keys: who may do what, from where and until when."),
    (CATALOGUE, "What is for sale, at which price, and what changed."),
)

_CART: Final = Body("CreateBody", "Two codes of one product", examples.create_body)
_FINISHED: Final = ("Every code is delivered", examples.finished)

WORDS: Final[dict[Op, Words]] = {
    Op.CREATE: Words(
        "createOrder",
        "Create order",
        ORDERING,
        "Checks price and availability and fixes the price for 24 hours. Nothing is paid and no code is delivered "
        "yet: confirm or resolve the order for that, or leave it to expire at no cost.",
        (Success(201, "The order was created.", {"created": ("A new order", examples.created)}),),
        body=_CART,
    ),
    Op.QUOTE: Words(
        "quoteOrder",
        "Quote order",
        ORDERING,
        "What Create would answer now, for the same body and with the same refusals, without an order: nothing is "
        "kept, no price is fixed, and there is nothing to confirm. `isAvailable` says whether all codes could be "
        "delivered at once; where it is false, some would come later.",
        (
            Success(
                200,
                "The price of the cart.",
                {"quote": ("A cart that could be delivered at once", examples.quoted)},
                schema={"$ref": REF + "QuotedOrder"},
            ),
        ),
        body=_CART,
    ),
    Op.FIND_ALL: Words(
        "findOrders",
        "Find all orders",
        FINDING,
        "Your company's orders in the key's own state, newest first, a page at a time. Deleted orders never appear. "
        "Use `page` for a list that people leaf through. Use `cursor` to walk through all orders: its cost is the "
        "same at any depth and new orders do not shift it; the totals are left out then.",
        (
            Success(
                200, "A page of orders.", {"page": ("A page with one order", examples.page)}, is_page=True
            ),
        ),
        FIND_ALL,
    ),
    Op.FIND: Words(
        "findOrder",
        "Find order",
        FINDING,
        "The order as it stands. Ask again for an order that is `pending` until it is `finished` or `cancelled`, or "
        "let the call wait for that.",
        (Success(200, "The order.", {"finished": ("A finished order", examples.found)}),),
        (TRX, WAIT),
    ),
    Op.CONFIRM: Words(
        "confirmOrder",
        "Confirm order",
        ORDERING,
        "Takes the price from your balance and delivers the codes. For bulk orders and all that need not be there "
        "this second: the call waits about 25 seconds for the last code, then answers with the order as it is. "
        "Then it is `pending`, the codes that are there are in it, and the rest is delivered in the background.\n\n"
        "Only an order that is `created` can be confirmed. A line whose `allowAsyncDelivery` is false must be in "
        "stock; any other may wait. In the answer a line that is not finished has only `tag` and `status`.",
        (
            Success(
                200,
                "The order, `finished` or `pending`; with a sandbox key it may be `cancelled`.",
                {"finished": _FINISHED, "pending": ("One code is still to come", examples.pending)},
            ),
        ),
        (TRX, SANDBOX_OUTCOME),
    ),
    Op.RESOLVE: Words(
        "resolveOrder",
        "Resolve order",
        ORDERING,
        "Delivers the whole order now, or cancels it without a charge. For webshops and points of sale: it never "
        "waits in a batch behind other orders, and the answer is there within 30 seconds.\n\n"
        "Only an order that is `created` and has exactly one item (of any amount) can be resolved. In the answer a "
        "line that is not finished has only `tag` and `status`.",
        (
            Success(
                200,
                "The order, `finished` or `cancelled`.",
                {
                    "finished": _FINISHED,
                    "cancelled": ("Not delivered in time, not charged", examples.timed_out),
                },
            ),
        ),
        (TRX, SANDBOX_OUTCOME),
    ),
    Op.CANCEL: Words(
        "cancelOrder",
        "Cancel order",
        ORDERING,
        "Deletes an order that is `created`; it can no longer be found. Cancels one that is `pending`: codes that "
        "were delivered stay delivered and paid for, all other lines are cancelled and refunded.",
        (
            Success(
                200,
                "The order was confirmed before: it is `cancelled`, and what was not delivered is refunded.",
                {"cancelled": ("One code was delivered, one is refunded", examples.cancelled)},
            ),
            Success(204, "The order was not confirmed: it is deleted and nothing was charged."),
        ),
        (TRX,),
    ),
    **redemption.WORDS,
    **accounts.WORDS,
    **catalogue.WORDS,
    **webhooks.WORDS,
    **events.WORDS,
    **keys.WORDS,
}


def operation(route: Route, version: str, public_url: str, body_bytes_max: int) -> Part:
    """One route in one version."""
    words = WORDS[route.op]
    part: Part = {
        "operationId": words.id + _suffix(version),
        "tags": [words.tag],
        "summary": words.title,
        "description": f"{words.text}\n\n{_needs(route.scopes)}",
        "security": [{"ApiKey": [scope.value for scope in route.scopes]}],
    }
    parameters = [*words.parameters, *([IDEMPOTENCY_KEY] if route.writes else [])]
    if parameters:
        part["parameters"] = parameters
    if words.body is not None:
        part["requestBody"] = _body(words.body)
    good = {str(success.status): _success(success, version, public_url) for success in words.successes}
    if route.writes:
        for answer in good.values():
            answer["headers"] |= _headers("Idempotent-Replayed")
    part["responses"] = good | _failures(route, body_bytes_max)
    return part


def _needs(scopes: tuple[Scope, ...]) -> str:
    named = " and ".join(f"`{scope.value}`" for scope in scopes)
    return f"Needs the scope{'s' if len(scopes) > 1 else ''} {named}."


def _suffix(version: str) -> str:
    """What tells an operation's id from the same one in the main version."""
    if version == MAIN_VERSION:
        return ""
    return version if version.isalpha() else "V" + version.replace(".", "")


def _body(body: Body) -> Part:
    example = {"summary": body.title, "value": body.example()}
    content = {"schema": {"$ref": REF + body.schema}, "examples": {"body": example}}
    return {"required": body.required, "content": {"application/json": content}}


def shape_name(version: str, *, is_page: bool = False) -> str:
    """The schema of an order, or of a page of them, in this version."""
    return ("Extended" if version == MAIN_VERSION else "Short") + ("OrderPage" if is_page else "Order")


def _success(success: Success, version: str, public_url: str) -> Part:
    part: Part = {
        "description": success.words,
        "headers": _headers("X-Request-Id", "RateLimit", "RateLimit-Policy"),
    }
    if success.status == 201:
        part["headers"] |= _headers("Location")
    content: Part = {}
    if success.examples:
        content["application/json"] = {
            "schema": success.schema or {"$ref": REF + shape_name(version, is_page=success.is_page)},
            "examples": {
                name: {"summary": title, "value": make(version, public_url)}
                for name, (title, make) in success.examples.items()
            },
        }
    if success.csv is not None:
        example = {"summary": "As CSV", "value": success.csv(public_url)}
        part["headers"] |= _headers("Content-Disposition")
        content["text/csv"] = {"schema": {"type": "string"}, "examples": {"csv": example}}
    if success.stream is not None:
        example = {"summary": "An event, and later a sign of life", "value": success.stream(public_url)}
        content["text/event-stream"] = {"schema": {"type": "string"}, "examples": {"stream": example}}
    if content:
        part["content"] = content
    return part


def _failures(route: Route, body_bytes_max: int) -> Part:
    own = problems.of_operation(route.op, body_bytes_max)
    if route.writes:
        own = sorted([*problems.REPEATED, *own], key=lambda problem: problem.status)
    parts = {str(status): failure(list(group)) for status, group in groupby(own, lambda p: p.status)}
    shared = {str(problem.status): {"$ref": f"{_RESPONSES}{problem.status}"} for problem in problems.ANYWHERE}
    return dict(sorted((parts | shared).items()))


def shared_failures() -> Part:
    """The answers that any operation may give, by status."""
    return {
        str(status): failure(list(group)) for status, group in groupby(problems.ANYWHERE, lambda p: p.status)
    }


_ALSO: Final = {
    401: ("WWW-Authenticate",),
    409: ("Retry-After",),
    429: ("Retry-After",),
    503: ("Retry-After",),
}
_UNCOUNTED: Final = (401, 413, 500, 503)
"""Answers that are given before a call is counted, or after counting it became moot."""


def failure(found: list[Problem]) -> Part:
    """All problems of one status: plain text, or RFC 9457 for clients that ask for it."""
    status = found[0].status
    counted = () if status in _UNCOUNTED else ("RateLimit", "RateLimit-Policy")
    return {
        "description": " ".join(dict.fromkeys(problem.when for problem in found)),
        "headers": _headers("X-Request-Id", *counted, *_ALSO.get(status, ())),
        "content": {
            "text/plain": {
                "schema": {"type": "string"},
                "examples": {p.code: {"summary": p.when, "value": p.text} for p in found},
            },
            "application/problem+json": {
                "schema": {"$ref": REF + "Problem"},
                "examples": {p.code: {"summary": p.when, "value": p.body} for p in found},
            },
        },
    }


def _headers(*names: str) -> Part:
    return {name: {"$ref": _HEADERS + name} for name in names}
