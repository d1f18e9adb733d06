"""Reading what clients send. Bad input gets one line that names the field and the rule (OP-25)."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from voucherd.api import query
from voucherd.api.query import PageQuery
from voucherd.http import HttpError, Request
from voucherd.ids import LINES_MAX, Identifiers, State
from voucherd.orders.find import OrderFilters
from voucherd.orders.model import AMOUNT_MAX, ITEMS_MAX, REFERENCE_CHARS_MAX, TYPES
from voucherd.orders.rules.cart import CartLine, Create
from voucherd.orders.rules.decide import SandboxOutcome
from voucherd.orders.rules.refusals import BadInput
from voucherd.orders.rules.states import Status
from voucherd.webhooks.addresses import Network
from voucherd.webhooks.targets import BadTarget, read_target

SLUG_CHARS_MAX: Final = 100
FACE_VALUE_CHARS_MAX: Final = 30
SLOW_S_MAX: Final = 3_600
WAIT_S_MAX: Final = 60
SANDBOX_HEADER: Final = b"x-sandbox-outcome"


class CreateItem(Struct):
    """One product of a Create request."""

    productSlug: str
    amount: int
    faceValue: Raw = Raw()


class CreateBody(Struct):
    """The body of a Create request. Unknown fields are ignored (OP-10)."""

    items: list[CreateItem]
    paymentCurrency: str
    reference: str | None = None
    webhookUrl: str | None = None


_decode_create: Final = msgspec.json.Decoder(CreateBody).decode


def create(request: Request, company_id: int, state: State, own: Sequence[Network] = ()) -> Create:
    """The Create command in a request."""
    body: CreateBody = decode(request, _decode_create)
    if not 1 <= len(body.items) <= ITEMS_MAX:
        raise BadInput("items", f"must hold between 1 and {ITEMS_MAX} products")
    cart = tuple(_cart_line(at, item) for at, item in enumerate(body.items))
    if sum(line.amount for line in cart) > LINES_MAX:
        raise BadInput("items", f"must add up to at most {LINES_MAX} codes")
    currency = query.currency("paymentCurrency", body.paymentCurrency)
    return Create(
        company_id,
        state,
        0,
        cart,
        currency,
        _reference(body.reference),
        webhook_url=_webhook_url(body.webhookUrl, own),
    )


def _webhook_url(url: str | None, own: Sequence[Network]) -> str | None:
    """The address that the order's events go to, if it names one; nothing is looked up for it here."""
    try:
        if url is not None:
            read_target(url, own)
    except BadTarget as rule:
        raise BadInput("webhookUrl", str(rule)) from None
    return url


def _cart_line(at: int, item: CreateItem) -> CartLine:
    if not 1 <= len(item.productSlug) <= SLUG_CHARS_MAX or not item.productSlug.isprintable():
        raise BadInput(f"items[{at}].productSlug", f"must be 1 to {SLUG_CHARS_MAX} printable characters")
    if not 1 <= item.amount <= AMOUNT_MAX:
        raise BadInput(f"items[{at}].amount", f"must be between 1 and {AMOUNT_MAX}")
    face_value = bytes(item.faceValue)
    if not face_value:
        return CartLine(item.productSlug, item.amount)
    return CartLine(item.productSlug, item.amount, decimal(f"items[{at}].faceValue", face_value))


def decimal(field: str, raw: bytes) -> Decimal | None:
    """A JSON number, exactly as it was written: it never becomes a binary float."""
    text = raw.decode().strip()
    if text == "null":
        return None
    if len(text) > FACE_VALUE_CHARS_MAX or not re.fullmatch(
        r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,2})?", text
    ):
        raise BadInput(field, "must be a number")
    try:
        return Decimal(text)
    except InvalidOperation:
        raise BadInput(field, "must be a number") from None


def _reference(reference: str | None) -> str | None:
    if reference is None:
        return None
    if len(reference) > REFERENCE_CHARS_MAX:
        raise BadInput("reference", f"must be at most {REFERENCE_CHARS_MAX} characters")
    if any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or 0xD800 <= ord(c) < 0xE000 for c in reference):
        raise BadInput("reference", "must have no control characters")
    return reference


def decode(request: Request, decoder: Any) -> Any:
    """The request's JSON as the decoder's type."""
    content_type = request.headers.get(b"content-type", b"application/json")
    if content_type.partition(b";")[0].strip().lower() != b"application/json":
        raise HttpError(415, "unsupported_media_type", "content type must be application/json")
    try:
        return decoder(request.body)
    except msgspec.ValidationError as error:
        raise _explained(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise HttpError(400, "not_json", "the body is not valid JSON") from None


_WORDS: Final = {
    "int": "must be a whole number",
    "bool": "must be true or false",
    "str": "must be a string",
    "str | null": "must be a string",
    "array": "must be an array",
    "array | null": "must be an array",
    "object": "must be an object",
}


def _explained(message: str) -> BadInput:
    """The decoder's message as a field and a rule."""
    reason, _, path = message.partition(" - at `$")
    field = path.rstrip("`").lstrip(".").replace("[...]", "[]")
    missing = re.search(r"missing required field `(\w+)`", reason)
    if missing:
        return BadInput(f"{field}.{missing[1]}" if field else missing[1], "is required")
    expected = re.search(r"Expected `([^`]+)`", reason)
    rule = _WORDS.get(expected[1], f"must be {expected[1]}") if expected else "is not valid"
    return BadInput(field or "body", rule)


def sandbox_outcome(request: Request, state: State) -> tuple[SandboxOutcome, int] | None:
    """What the sandbox header asks for (OP-49); None where it was not sent."""
    raw = request.headers.get(SANDBOX_HEADER)
    if raw is None:
        return None
    name = "X-Sandbox-Outcome"
    if state is State.LIVE:
        raise BadInput(name, "is for sandbox keys only")
    word, _, seconds = raw.decode("latin-1").strip().partition(":")
    if word == "slow" and re.fullmatch("[0-9]{1,4}", seconds) and int(seconds) <= SLOW_S_MAX:
        return SandboxOutcome.SLOW, int(seconds)
    if not seconds and word != "slow" and word in (choice.value for choice in SandboxOutcome):
        return SandboxOutcome(word), 0
    raise BadInput(
        name, "must be finished, cancelled, pending, slow:<seconds>, out-of-stock or insufficient-balance"
    )


def wait_s(request: Request) -> int:
    """How long Find may wait for a pending order to move."""
    return query.whole(query.read(request), "wait", 0, WAIT_S_MAX, least=0)


def find_all(request: Request, ids: Identifiers) -> tuple[OrderFilters, PageQuery]:
    """The filters and the page of a Find all request (OP-03)."""
    given = query.read(request)
    statuses = tuple(_status(word) for word in given.get("orderStatus", ()))
    trx = query.one(given, "trx")
    kind = query.one(given, "type")
    if kind is not None and kind not in TYPES:
        raise BadInput("type", "must be api or portal")
    currency = query.one(given, "paymentCurrency")
    filters = OrderFilters(
        order_id=None if trx is None else ids.order_id(trx) or 0,
        statuses=statuses,
        type=None if kind is None else TYPES.index(kind),
        reference=query.one(given, "reference"),
        product_slug=query.one(given, "productSlug"),
        payment_currency=None if currency is None else query.currency("paymentCurrency", currency),
        date_from=query.moment(given, "dateFrom"),
        date_to=query.moment(given, "dateTo"),
        oldest_first=query.choice(given, "sortOrder", ("asc", "desc")) == "asc",
    )
    return filters, query.page(given)


def _status(word: str) -> Status:
    try:
        status = Status[word.upper()]
    except KeyError:
        status = Status.DELETED
    if status is Status.DELETED:
        raise BadInput("orderStatus", "must be created, pending, finished or cancelled")
    return status


def cursor_of(created_at: datetime, order_id: int) -> str:
    """Where a page ended, for the next one to go on from."""
    micros = round(created_at.timestamp() * 1_000_000)
    return base64.urlsafe_b64encode(f"{micros}.{order_id}".encode()).decode().rstrip("=")


def read_cursor(text: str) -> tuple[datetime, int]:
    """The place that a cursor of ours names."""
    try:
        plain = base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4)).decode("ascii")
        found = re.fullmatch(r"([0-9]{1,17})\.([0-9]{1,18})", plain)
    except (ValueError, binascii.Error, UnicodeError):
        found = None
    if found is None:
        raise BadInput("cursor", "is not one of ours")
    seconds, micros = divmod(int(found[1]), 1_000_000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=micros), int(found[2])
