"""Reading what clients ask of their sandbox. Bad input gets one line that names the field and the rule (OP-25)."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from voucherd.api import query
from voucherd.api.requests import SLUG_CHARS_MAX, decimal, decode
from voucherd.api.wire import fields
from voucherd.api.wire.fields import doc, rule
from voucherd.events import kinds
from voucherd.http import Request
from voucherd.money import BadAmount, Money
from voucherd.orders.rules.refusals import BadInput
from voucherd.sandbox.deeds import STEP_MAX
from voucherd.wallet.deeds import FIRST_PLAY_MONEY, PLAY_MONEY_MAX

STEP_S_MAX: Final = int(STEP_MAX.total_seconds())
TRIGGERS: Final = (
    kinds.ORDER_CREATED,
    kinds.ORDER_PENDING,
    kinds.ORDER_FINISHED,
    kinds.ORDER_CANCELLED,
    kinds.ORDER_DELETED,
    kinds.ORDER_EXPIRED,
    kinds.WALLET_TOPPED_UP,
    kinds.WALLET_LOW_BALANCE,
)
"""Events that can be asked for."""


class TopUpBody(Struct):
    """Play money to add. The body may be left out."""

    currency: Annotated[fields.AnyCurrency, doc("ISO 4217 code of the balance, in upper or lower case.")] = (
        FIRST_PLAY_MONEY.currency
    )
    amount: Annotated[
        Annotated[Raw, rule(type="number")] | UnsetType,
        doc(
            f"How much to add, {FIRST_PLAY_MONEY.decimal():,f} if it is left out. The balance may be at most "
            f"{PLAY_MONEY_MAX:,}.",
            exclusiveMinimum=0,
        ),
    ] = UNSET


class AdvanceBody(Struct):
    """By how much to move the clock."""

    seconds: Annotated[int, doc("By so many seconds, always ahead.", minimum=1, maximum=STEP_S_MAX)]


class TriggerBody(Struct):
    """The event to bring about."""

    type: Annotated[str, doc("What is to happen.", enum=TRIGGERS)]
    productSlug: Annotated[
        str | None,
        doc(
            "The product to order for it; any with a fixed face value if it is left out.",
            minLength=1,
            maxLength=SLUG_CHARS_MAX,
        ),
    ] = None


_decode_top_up: Final = msgspec.json.Decoder(TopUpBody).decode
_decode_advance: Final = msgspec.json.Decoder(AdvanceBody).decode
_decode_trigger: Final = msgspec.json.Decoder(TriggerBody).decode


def top_up(request: Request) -> Money:
    """The play money that is asked for."""
    body: TopUpBody = decode(request, _decode_top_up) if request.body else TopUpBody()
    currency = query.currency("currency", body.currency)
    given = None if body.amount is UNSET else decimal("amount", body.amount)
    try:
        return Money.parse(FIRST_PLAY_MONEY.decimal().to_integral() if given is None else given, currency)
    except BadAmount as bad:
        raise BadInput("amount", str(bad)) from None


def advance(request: Request) -> timedelta:
    """By how much the clock is to be moved."""
    body: AdvanceBody = decode(request, _decode_advance)
    if not 1 <= body.seconds <= STEP_S_MAX:
        raise BadInput("seconds", f"must be between 1 and {STEP_S_MAX}")
    return timedelta(seconds=body.seconds)


def trigger(request: Request) -> TriggerBody:
    """The event that is asked for."""
    body: TriggerBody = decode(request, _decode_trigger)
    if body.type not in TRIGGERS:
        raise BadInput("type", query.either(TRIGGERS))
    slug = body.productSlug
    if slug is not None and not (1 <= len(slug) <= SLUG_CHARS_MAX and slug.isprintable()):
        raise BadInput("productSlug", f"must be 1 to {SLUG_CHARS_MAX} printable characters")
    return body
