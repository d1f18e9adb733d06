"""Reading what clients send. Bad input gets one line that names the field and the rule (OP-25)."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from voucherd.api import query
from voucherd.api.outcomes import Asked
from voucherd.api.query import PageQuery
from voucherd.api.wire import fields
from voucherd.api.wire.fields import doc, rule
from voucherd.http import HttpError, Request
from voucherd.idempotency.model import Ticket
from voucherd.ids import LINES_MAX, Identifiers, State
from voucherd.orders.find import OrderFilters
from voucherd.orders.model import AMOUNT_MAX, ITEMS_MAX, REFERENCE_CHARS_MAX, TYPES
from voucherd.orders.rules.cart import CartLine, Create
from voucherd.orders.rules.refusals import BadInput
from voucherd.orders.rules.sandbox import SandboxOutcome
from voucherd.orders.rules.states import Status
from voucherd.webhooks.addresses import Network
from voucherd.webhooks.targets import URL_CHARS_MAX, BadTarget, read_target

SLUG_CHARS_MAX: Final = 100
FACE_VALUE_CHARS_MAX: Final = 30
AMOUNT_DIGITS_MAX: Final = len(str(AMOUNT_MAX))
WAIT_S_MAX: Final = 60

MaybeNumber: TypeAlias = Annotated[Raw, rule(type=["number", "null"])]
"""A number or null as it was sent, digit by digit."""
WholeNumber: TypeAlias = Annotated[Raw, rule(type="integer")]
"""A whole number as it was sent: 1 is the same as 1.0."""
TargetUrl: TypeAlias = Annotated[str, rule(format="uri", minLength=1, maxLength=URL_CHARS_MAX)]


class CreateItem(Struct):
    """One product of a Create request."""

    productSlug: Annotated[fields.ProductSlug, rule(minLength=1, maxLength=SLUG_CHARS_MAX)]
    amount: Annotated[WholeNumber, doc("How many codes.", minimum=1, maximum=AMOUNT_MAX)]
    faceValue: Annotated[
        MaybeNumber | UnsetType,
        doc(
            "Face value of one code, in the product's own currency. Required for a product with a variable face "
            "value. Any other takes its own value alone.",
            exclusiveMinimum=0,
        ),
    ] = UNSET


class CreateBody(Struct):
    """The body of a Create request. Unknown fields are ignored (OP-10)."""

    items: Annotated[
        list[CreateItem],
        doc(
            f"The products to order; their amounts add up to at most {LINES_MAX:,} codes.",
            minItems=1,
            maxItems=ITEMS_MAX,
        ),
    ]
    paymentCurrency: Annotated[
        fields.AnyCurrency, doc("ISO 4217 code of the balance to pay from, in upper or lower case.")
    ]
    reference: Annotated[
        str | None,
        doc(
            "Your own text, such as an order number. It comes back in every response and can be searched for.",
            maxLength=REFERENCE_CHARS_MAX,
            pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$",
        ),
    ] = None
    webhookUrl: Annotated[
        TargetUrl | None,
        doc(
            "Where the events of this order are sent, beside your endpoints: an address as an endpoint has it. It "
            "needs a webhook with `perOrder`, whose secret signs them."
        ),
    ] = None


_decode_create: Final = msgspec.json.Decoder(CreateBody).decode


def create(
    request: Request,
    company_id: int,
    state: State,
    own: Sequence[Network] = (),
    ticket: Ticket | None = None,
    asked: Asked | None = None,
) -> Create:
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
        ticket,
        webhook_url=_webhook_url(body.webhookUrl, own),
        webhook_delay_s=asked.seconds if asked and asked.outcome is SandboxOutcome.SLOW_WEBHOOK else 0,
        withdrawn=asked is not None and asked.outcome is SandboxOutcome.WITHDRAWN,
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
    amount = _amount(f"items[{at}].amount", bytes(item.amount))
    if item.faceValue is UNSET:
        return CartLine(item.productSlug, amount)
    return CartLine(item.productSlug, amount, decimal(f"items[{at}].faceValue", item.faceValue))


def _amount(field: str, text: bytes) -> int:
    """How many codes; a number of JSON may have a point and zeros behind it."""
    found = _WHOLE.fullmatch(text)
    if found is None:
        raise BadInput(field, "must be a whole number")
    if len(found[1]) > AMOUNT_DIGITS_MAX or not 1 <= (amount := int(found[1])) <= AMOUNT_MAX:
        raise BadInput(field, f"must be between 1 and {AMOUNT_MAX}")
    return amount


_WHOLE: Final = re.compile(rb"(-?[0-9]+)(\.0+)?")


def decimal(field: str, raw: Raw) -> Decimal | None:
    """A JSON number, exactly as it was written: it never becomes a binary float."""
    text = bytes(raw).decode().strip()
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


def refuse_other_types(request: Request) -> None:
    """Refuse a body that says it is something else than JSON."""
    content_type = request.headers.get(b"content-type", b"application/json")
    if content_type.partition(b";")[0].strip().lower() != b"application/json":
        raise HttpError(415, "unsupported_media_type", "content type must be application/json")


def decode(request: Request, decoder: Any) -> Any:
    """The request's JSON as the decoder's type."""
    refuse_other_types(request)
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


WAIT: Final = query.whole(
    "wait",
    "So many seconds the call may wait if the order is `pending`: it answers as soon as the order ends or another "
    "line of it is delivered.",
    least=0,
    most=WAIT_S_MAX,
    default=0,
    example=25,
)


def wait_s(request: Request) -> int:
    """How long Find may wait for a pending order to move."""
    return WAIT.read(query.read(request))


_PAGES: Final = query.Pages("orders", "3ceec4f3996ab63591eca4b7aa1609c6ec6e126f936039afeb6304b240de5c19")
_TRX: Final = query.text("trx", "Only the order with this trx.")
_STATUS: Final = query.several(
    "orderStatus", "Only orders with this status; repeat it for several.", fields.ORDER_STATUSES
)
_TYPE: Final = query.text("type", "Only orders that this system created.", enum=TYPES)
_REFERENCE: Final = query.text("reference", "Only orders with exactly this reference.")
_PRODUCT: Final = query.text("productSlug", "Only orders with an item of this product.")
_CURRENCY: Final = query.currency_code("paymentCurrency", "Only orders paid in this currency.")
_FROM, _TO = query.period("orders created at")
FIND_ALL: Final = (
    *_PAGES.parameters,
    _TRX,
    _STATUS,
    _TYPE,
    _REFERENCE,
    _PRODUCT,
    _CURRENCY,
    _FROM,
    _TO,
    query.BY_TIME,
)


def find_all(request: Request, ids: Identifiers) -> tuple[OrderFilters, PageQuery]:
    """The filters and the page of a Find all request (OP-03)."""
    given = query.read(request)
    statuses = tuple(_status(word) for word in given.get(_STATUS.name, ()))
    trx, kind = _TRX.read(given), _TYPE.read(given)
    if kind is not None and kind not in TYPES:
        raise BadInput(_TYPE.name, query.either(TYPES))
    filters = OrderFilters(
        order_id=None if trx is None else ids.order_id(trx) or 0,
        statuses=statuses,
        type=None if kind is None else TYPES.index(kind),
        reference=_REFERENCE.read(given),
        product_slug=_PRODUCT.read(given),
        payment_currency=_CURRENCY.read(given),
        date_from=_FROM.read(given),
        date_to=_TO.read(given),
        oldest_first=query.BY_TIME.read(given) == "asc",
    )
    return filters, _PAGES.read(given)


def _status(word: str) -> Status:
    try:
        status = Status[word.upper()]
    except KeyError:
        status = Status.DELETED
    if status is Status.DELETED:
        raise BadInput(_STATUS.name, query.either(fields.ORDER_STATUSES))
    return status


def cursor_of(ids: Identifiers, created_at: datetime, order_id: int) -> str:
    """Where a page ended, for the next one to go on from."""
    return ids.cursor(b"orders", _PLACE.pack(round(created_at.timestamp() * 1_000_000), order_id))


def read_cursor(ids: Identifiers, text: str) -> tuple[datetime, int]:
    """The place that a cursor of ours names."""
    place = ids.cursor_place(b"orders", text)
    if place is None:
        raise BadInput("cursor", "is not one of ours")
    micros, order_id = _PLACE.unpack(place)
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=micros), int(order_id)


_PLACE: Final = struct.Struct(">QQ")
