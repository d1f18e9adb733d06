"""The examples of the OpenAPI document are what the service says, byte for byte.

`VOUCHERD_TEST_UPDATE_GOLDEN=1` writes the file anew; then look at the difference before it is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from msgspec import UNSET, Raw, UnsetType

from tests.wire import sample_order, samples
from tests.wire.sample_order import IDS, SLUG
from tests.wire.test_golden import UPDATE
from voucherd.api import (
    accounts,
    catalogue_requests,
    events,
    key_requests,
    openapi,
    order_parts,
    outcomes,
    request_log,
    requests,
    sandbox_requests,
    webhook_requests,
)
from voucherd.api.errors import Op
from voucherd.api.openapi import problems
from voucherd.api.openapi.examples import EXAMPLE_URL, Example, Examples, Refused, TextExample
from voucherd.api.openapi.paths import operation_id
from voucherd.api.operations import OPERATIONS
from voucherd.api.routes import ROUTES
from voucherd.http import HttpError, Request
from voucherd.ids import State
from voucherd.orders.rules.refusals import BadInput
from voucherd.storefront.listing import ProductOrder
from voucherd.storefront.search import folded
from voucherd.storefront.sorting import SortPosition

FILE = Path(openapi.__file__).parent / "examples.json"

Made = Raw | Callable[[str, str], Raw]

FINISHED = ("Every code is delivered", sample_order.finished)
ANSWERS: dict[Op, dict[str, tuple[str, Made]]] = {
    Op.CREATE: {"created": ("A new order", sample_order.created)},
    Op.QUOTE: {"quote": ("A cart that could be delivered at once", sample_order.quoted)},
    Op.FIND_ALL: {"page": ("A page with one order", sample_order.page)},
    Op.FIND: {"finished": ("A finished order", sample_order.found)},
    Op.CONFIRM: {"finished": FINISHED, "pending": ("One code is still to come", sample_order.pending)},
    Op.RESOLVE: {
        "finished": FINISHED,
        "cancelled": ("Not delivered in time, not charged", sample_order.timed_out),
    },
    Op.CANCEL: {"cancelled": ("One code was delivered, one is refunded", sample_order.cancelled)},
    Op.LINES: {"lines": ("Two lines of a finished order", samples.lines)},
    Op.PROTECT: {"protected": ("With a PIN", samples.PROTECTED)},
    Op.ACCOUNTS: {"accounts": ("One account", samples.ACCOUNTS)},
    Op.STATEMENT: {"statement": ("A top-up and an order", samples.STATEMENT)},
    Op.PRODUCTS: {"example": ("A page with one product, in USD, too", samples.PRODUCTS)},
    Op.PRODUCT: {"example": ("A product", samples.PRODUCT)},
    Op.PRODUCT_CHANGES: {"example": ("A new price", samples.CHANGES)},
    Op.BRANDS: {"example": ("A page with one brand", samples.BRANDS)},
    Op.BRAND: {"example": ("A brand", samples.BRAND)},
    Op.CATEGORIES: {"example": ("One category", samples.CATEGORIES)},
    Op.FX_RATES: {"example": ("One rate", samples.RATES)},
    Op.WEBHOOKS: {"list": ("One endpoint", samples.WEBHOOK_LIST)},
    Op.ADD_WEBHOOK: {"made": ("With its secret", samples.WEBHOOK_MADE)},
    Op.WEBHOOK: {"endpoint": ("An endpoint", samples.WEBHOOK)},
    Op.CHANGE_WEBHOOK: {"endpoint": ("An endpoint", samples.WEBHOOK)},
    Op.ROTATE_WEBHOOK: {"rotated": ("A new secret", samples.WEBHOOK_ROTATED)},
    Op.DELIVERIES: {"log": ("One delivery", samples.DELIVERIES)},
    Op.TEST_WEBHOOK: {"ping": ("Its event", samples.PING)},
    Op.RECOVER_WEBHOOK: {"recovered": ("Twelve events", samples.RECOVERED)},
    Op.REPLAY_EVENT: {"replayed": ("To one endpoint", samples.REPLAYED)},
    Op.EVENTS: {"page": ("An order was created and finished", samples.EVENT_PAGE)},
    Op.EVENT: {"event": ("An order was finished", samples.EVENT)},
    Op.KEYS: {"page": ("One key", samples.KEY_PAGE)},
    Op.ADD_KEY: {"made": ("With the key itself", samples.KEY_MADE)},
    Op.KEY: {"key": ("A key", samples.KEY)},
    Op.CHANGE_KEY: {"key": ("A key", samples.KEY)},
    Op.ROTATE_KEY: {"rotated": ("With the key itself", samples.KEY_MADE)},
    Op.PLAY_MONEY: {"account": ("The balance of a new company, topped up", samples.PLAY_MONEY)},
    Op.CLOCK: {"clock": ("An hour ahead", samples.CLOCK)},
    Op.ADVANCE_CLOCK: {"advanced": ("A day later", samples.ADVANCED)},
    Op.RESET_CLOCK: {"clock": ("The real time", samples.REAL_TIME)},
    Op.TRIGGER_EVENT: {"triggered": ("An order that is finished", samples.TRIGGERED)},
    Op.REQUESTS: {"page": ("One call", samples.REQUEST_PAGE)},
    Op.REQUEST: {"request": ("A Confirm", samples.REQUEST)},
}
"""The good answers: a title, and what makes them for a version and an address."""

TEXTS: dict[Op, dict[str, dict[str, tuple[str, str]]]] = {
    Op.CODES: {"text/csv": {"csv": ("As CSV", samples.codes_file(EXAMPLE_URL))}},
    Op.STATEMENT: {"text/csv": {"csv": ("As CSV", samples.STATEMENT_FILE)}},
    Op.EVENT_STREAM: {
        "text/event-stream": {"stream": ("An event, and later a sign of life", samples.STREAM)}
    },
}

BODIES: dict[Op, tuple[str, Raw]] = {
    Op.CREATE: ("Two codes of one product", sample_order.create_body()),
    Op.QUOTE: ("Two codes of one product", sample_order.create_body()),
    Op.PROTECT: ("A PIN", Raw(b'{"pin":"274913"}')),
    Op.ADD_WEBHOOK: ("Two types of events", samples.NEW_WEBHOOK),
    Op.CHANGE_WEBHOOK: ("Enable it again", Raw(b'{"enabled":true}')),
    Op.ROTATE_WEBHOOK: ("One hour for both", Raw(b'{"overlapSeconds":3600}')),
    Op.REPLAY_EVENT: ("To one endpoint", Raw(msgspec.json.encode({"webhookId": samples.WEBHOOK_ID}))),
    Op.ADD_KEY: ("A key for a till", samples.NEW_KEY),
    Op.CHANGE_KEY: ("Only from the office", Raw(b'{"allowIps":["192.0.2.0/24"]}')),
    Op.ROTATE_KEY: ("One hour for both", Raw(b'{"overlapSeconds":3600}')),
    Op.PLAY_MONEY: ("Some dollars", Raw(b'{"currency":"USD","amount":500.00}')),
    Op.ADVANCE_CLOCK: ("One day", Raw(b'{"seconds":86400}')),
    Op.TRIGGER_EVENT: ("An order that is finished", Raw(b'{"type":"order.finished"}')),
}

BAD_CART = b'{"items":[{"productSlug":"%s","amount":0}],"paymentCurrency":"EUR"}' % SLUG.encode()
READ_BODY: dict[Op, tuple[bytes, Callable[[Request], object]]] = {
    Op.CREATE: (BAD_CART, lambda request: requests.create(request, 1, State.LIVE)),
    Op.QUOTE: (BAD_CART, lambda request: requests.create(request, 1, State.LIVE)),
    Op.PROTECT: (b'{"pin":"12"}', order_parts.read_pin),
    Op.ADD_WEBHOOK: (b'{"url":"https://10.0.0.1/"}', lambda request: webhook_requests.add(request, ())),
    Op.CHANGE_WEBHOOK: (b'{"enabled":"no"}', lambda request: webhook_requests.change(request, ())),
    Op.ROTATE_WEBHOOK: (b'{"overlapSeconds":-1}', webhook_requests.rotate),
    Op.REPLAY_EVENT: (b'{"webhookId":7}', webhook_requests.replay),
    Op.ADD_KEY: (b'{"allowIps":["office"]}', key_requests.wishes),
    Op.CHANGE_KEY: (b'{"rateLimit":0}', key_requests.wishes),
    Op.ROTATE_KEY: (b'{"overlapSeconds":-1}', key_requests.rotation),
    Op.PLAY_MONEY: (b'{"currency":"euro"}', sandbox_requests.top_up),
    Op.ADVANCE_CLOCK: (b'{"seconds":0}', sandbox_requests.advance),
    Op.TRIGGER_EVENT: (b'{"type":"order.lost"}', sandbox_requests.trigger),
}
"""A body that each operation refuses, and what reads it."""

READ_QUERY: dict[Op, tuple[bytes, Callable[[Request], object]]] = {
    Op.FIND: (b"wait=90", requests.wait_s),
    Op.FIND_ALL: (b"limit=1000", lambda request: requests.find_all(request, IDS)),
    Op.LINES: (b"limit=5000", order_parts.read_lines),
    Op.ACCOUNTS: (b"currency=euro", accounts.read_currency),
    Op.STATEMENT: (b"kind=purchase", lambda request: accounts.read_statement(request, IDS)),
    Op.PRODUCTS: (b"sortBy=colour", lambda request: catalogue_requests.find_all(request, IDS)),
    Op.PRODUCT: (b"paymentCurrency=euro", catalogue_requests.find),
    Op.PRODUCT_CHANGES: (b"since=yesterday", lambda request: catalogue_requests.changes(request, IDS)),
    Op.BRANDS: (b"limit=1000", lambda request: catalogue_requests.brands(request, IDS)),
    Op.DELIVERIES: (b"status=lost", webhook_requests.deliveries),
    Op.RECOVER_WEBHOOK: (b"since=yesterday", webhook_requests.recover),
    Op.KEYS: (b"limit=1000", lambda request: key_requests.page(request, IDS)),
    Op.EVENTS: (b"limit=1000", lambda request: events.read_page(request, IDS)),
    Op.EVENT_STREAM: (b"cursor=1", lambda request: events.read_stream(request, IDS)),
    Op.REQUESTS: (b"limit=1000", lambda request: request_log.read_page(request, IDS)),
}
"""A query that each list refuses, and what reads it."""


def asked(body: bytes = b"", headers: dict[bytes, bytes] | None = None, *, query: bytes = b"") -> Request:
    """A request as the readers see it."""
    return Request("POST", "/", query, headers or {}, body, "", problems.REQUEST_ID)


def refused(op: Op) -> Refused | UnsetType:
    """What an input that breaks a rule is told."""
    try:
        if op in READ_BODY:
            when, (body, read) = "A field is missing or wrong.", READ_BODY[op]
            read(asked(body))
        elif op in READ_QUERY:
            when, (query, read) = "A parameter is wrong.", READ_QUERY[op]
            read(asked(query=query))
        elif op in (Op.CONFIRM, Op.RESOLVE):
            when = "The header `X-Sandbox-Outcome` is wrong, or the key is a live one."
            outcomes.read(asked(headers={outcomes.HEADER: b"finished"}), State.LIVE)
        else:
            return UNSET
    except BadInput as bad:
        return Refused(when, str(bad), bad.field)
    raise AssertionError(f"an example of bad input was accepted: {op}")


def examples_of(op: Op, version: str) -> Examples:
    """What the service says and refuses."""
    return Examples(
        {
            name: Example(title, made(version, EXAMPLE_URL) if callable(made) else made)
            for name, (title, made) in ANSWERS.get(op, {}).items()
        },
        {
            media: {name: TextExample(*one) for name, one in some.items()}
            for media, some in TEXTS.get(op, {}).items()
        },
        Example(*BODIES[op]) if op in BODIES else UNSET,
        refused(op),
    )


def test_the_examples_are_what_the_service_says() -> None:
    """An example can't show what no client will see: each is made by the code that makes the answers."""
    made = {
        operation_id(route.op, version): examples_of(route.op, version)
        for route in ROUTES
        for version in route.versions
    }
    made |= {type_: Examples(body=Example(type_, body)) for type_, body in samples.MESSAGES.items()}
    lines = [
        b"%b:%b" % (msgspec.json.encode(name), msgspec.json.encode(one)) for name, one in sorted(made.items())
    ]
    body = b"{\n" + b",\n".join(lines) + b"\n}\n"
    if UPDATE:
        FILE.write_bytes(body)
    assert body == FILE.read_bytes()


@pytest.mark.parametrize("op", READ_BODY)
def test_a_body_that_is_no_json_is_refused_as_the_document_says(op: Op) -> None:
    """OP-25: the messages that all bodies share."""
    read = READ_BODY[op][1]
    for problem, body, headers in (
        (problems.NOT_JSON, b"{", {}),
        (problems.NOT_THE_TYPE, b" ", {b"content-type": b"text/plain"}),
    ):
        with pytest.raises(HttpError) as heard:
            read(asked(body, headers))
        told = heard.value
        assert (told.status, told.code, told.text) == (problem.status, problem.code, problem.text)
        assert problem in problems.of_operation(op, 262_144)


PLACE = SortPosition((folded(sample_order.NAME),), 0, 1)
NAMES: dict[tuple[Op, str], str] = {
    (Op.FIND, "trx"): sample_order.trx(),
    (Op.FIND_ALL, "cursor"): requests.cursor_of(
        sample_order.IDS, sample_order.CREATED_AT, sample_order.ORDER_ID
    ),
    (Op.PRODUCTS, "cursor"): catalogue_requests.place_cursor(sample_order.IDS, PLACE, ProductOrder()),
    (Op.PRODUCT, "slug"): SLUG,
    (Op.PRODUCT_CHANGES, "since"): catalogue_requests.number_cursor(sample_order.IDS, samples.CHANGE - 1),
    (Op.BRANDS, "cursor"): catalogue_requests.slug_cursor(sample_order.IDS, samples.BRAND_SLUG),
    (Op.BRAND, "slug"): samples.BRAND_SLUG,
    (Op.WEBHOOK, "id"): samples.WEBHOOK_ID,
    (Op.DELIVERIES, "cursor"): samples.TOLD_ID,
    (Op.REPLAY_EVENT, "id"): samples.TOLD_ID,
    (Op.EVENTS, "cursor"): samples.EVENT_ID,
    (Op.EVENT, "id"): samples.EVENT_ID,
    (Op.EVENT_STREAM, "cursor"): samples.EVENT_ID,
    (Op.KEYS, "cursor"): samples.KEY_ID,
    (Op.KEY, "id"): samples.KEY_ID,
}


@pytest.mark.parametrize(("op", "name"), NAMES)
def test_a_name_in_a_parameter_is_that_of_a_sample(op: Op, name: str) -> None:
    """A reader finds the order, the key and the page of one example in the others."""
    (found,) = (one for one in OPERATIONS[op].parameters if one.name == name)
    assert found.example == NAMES[op, name]
