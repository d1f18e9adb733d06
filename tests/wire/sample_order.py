"""Examples that are real: one sample order, priced, paid and delivered by the same pure decisions as any other.

What the document shows is what the wire makes of the outcome, so an example can't show what no client will see.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Final

from msgspec import Raw
from msgspec.structs import replace

from voucherd.api.wire.order import render
from voucherd.api.wire.quote import quoted as wire_quote
from voucherd.api.wire.shapes import place_of
from voucherd.api.wire.templates import TemplateBook, encode
from voucherd.api.wire.versions import SHAPES
from voucherd.api.wire.view import View
from voucherd.catalogue.products import Listing, ProductVersion
from voucherd.ids import Identifiers, State
from voucherd.money import RATE_ONE
from voucherd.orders.answers import Answer
from voucherd.orders.create import Quote
from voucherd.orders.model import Order
from voucherd.orders.rules import decide
from voucherd.orders.rules.cart import Buyer, CartLine, Create, Shop, place
from voucherd.orders.rules.decide import Cancel, Finalise
from voucherd.orders.rules.refusals import Refusal
from voucherd.orders.rules.ruling import CompanyStanding, Facts, Windows
from voucherd.orders.rules.waits import Wait
from voucherd.vault.model import Lot
from voucherd.vault.store import LotInfo
from voucherd.wallet.ledger import Wallet

CREATED_AT: Final = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
CONFIRMED_AT: Final = CREATED_AT + timedelta(minutes=2)
REFERENCE: Final = "PO-2026-0131"
SLUG: Final = "brightbean-25-eur"
NAME: Final = "Brightbean Coffee 25 EUR"

IDS: Final = Identifiers(bytes(range(32)))
ORDER_ID: Final = 6_842
_COMPANY_ID: Final = 17
_LOT_ID: Final = 304
_SHELF: Final = (1, 2500, int(State.LIVE))
_CODES: Final = [("BRGT-7K2M-Q9XD-41PA", "B0000118"), ("BRGT-M3VW-08ZT-C6HN", "B0000119")]
PRODUCT: Final = ProductVersion(
    version_id=1,
    product_id=1,
    slug=SLUG,
    name=NAME,
    brand_slug="brightbean",
    brand_name="Brightbean",
    product_type="giftcard",
    category="food-and-drink",
    redeem_type="currency",
    region="nl",
    vat_category="single_purpose",
    async_delivery=True,
    incentive=False,
    face_currency="EUR",
    face_minor=2500,
    face_min_minor=None,
    face_max_minor=None,
    price_minor=2390,
    price_currency="EUR",
    fee_variable_e8=None,
    fee_fixed_minor=None,
)
_EXPIRES_AT: Final = datetime(2028, 1, 31, tzinfo=UTC)


def create_body() -> Raw:
    """The body of a Create request."""
    items = [{"productSlug": SLUG, "amount": 2}]
    return Raw(encode({"items": items, "paymentCurrency": "EUR", "reference": REFERENCE}))


def trx() -> str:
    """The trx of the sample order."""
    return IDS.trx(ORDER_ID)


def created(version: str, public_url: str) -> Raw:
    """The order after Create."""
    return _shown(_created(), version, public_url)


def quoted(_version: str, _public_url: str) -> Raw:
    """The answer of Quote to the same cart."""
    return Raw(encode(wire_quote(Quote(_created(), (True,)))))


def finished(version: str, public_url: str) -> Raw:
    """The answer of Confirm or Resolve to an order that was delivered at once."""
    return _shown(_confirmed(in_stock=2), version, public_url, bare=True)


def pending(version: str, public_url: str) -> Raw:
    """The answer of Confirm to an order of which one code is there and one is not."""
    return _shown(_confirmed(in_stock=1), version, public_url, bare=True)


def timed_out(version: str, public_url: str) -> Raw:
    """The answer of Resolve to an order that could not be delivered in time."""
    return _shown(_timed_out(), version, public_url, bare=True)


def found(version: str, public_url: str) -> Raw:
    """The finished order, as Find order shows it."""
    return _shown(_confirmed(in_stock=2), version, public_url)


def cancelled(version: str, public_url: str) -> Raw:
    """The answer of Cancel to an order of which one code was delivered and one was not."""
    return _shown(_cancelled(_confirmed(in_stock=1)), version, public_url)


def page(version: str, public_url: str) -> Raw:
    """The first page of Find all orders."""
    metadata, pagination = map(encode, place_of(50, 0, None, 1))
    orders = found(version, public_url)
    return Raw(b'{"data":[%b],"metadata":%b,"pagination":%b}' % (orders, metadata, pagination))


def sample(in_stock: int) -> Order:
    """The sample order, confirmed with so many codes in stock."""
    return _confirmed(in_stock)


def sample_view(public_url: str) -> View:
    """The sample order, finished, about to be shown."""
    return _view(_confirmed(in_stock=2), public_url)


@cache
def _created() -> Order:
    shop = Shop(
        now=CREATED_AT,
        window=timedelta(hours=24),
        operator_country="NL",
        buyers={_COMPANY_ID: Buyer(active=True, country="NL", vat_number=None)},
        listings={SLUG: Listing(PRODUCT, active=True)},
        rates={"EUR": RATE_ONE},
        vat_rates={"NL": 2100},
        shelves={_SHELF: [_lot(left=2)]},
    )
    command = Create(_COMPANY_ID, State.LIVE, 0, (CartLine(SLUG, 2),), "EUR", REFERENCE)
    return _granted(place(shop, [command], lambda _: ORDER_ID)[0])


@cache
def _confirmed(in_stock: int) -> Order:
    return _finalised(_facts(_created(), in_stock), resolve=False)


@cache
def _timed_out() -> Order:
    return _cancelled(_finalised(_facts(_created(), in_stock=0), resolve=True))


def _finalised(facts: Facts, *, resolve: bool) -> Order:
    command = Finalise(ORDER_ID, _COMPANY_ID, State.LIVE, resolve)
    return _granted(decide.finalise(facts, [command]).answers[0])


def _cancelled(order: Order) -> Order:
    """The order after Cancel, or after Resolve gave up on it."""
    facts = _facts(order, in_stock=0)
    ends_at = order.deadline_at or CONFIRMED_AT
    facts.waits[ORDER_ID] = [
        Wait(0, *item.shelf, _COMPANY_ID, ORDER_ID, line_from, line_to, CONFIRMED_AT, ends_at)
        for item, line_from, line_to in order.open_ranges()
    ]
    if order.held_minor:
        facts.wallets[1] = replace(facts.wallets[1], held_minor=order.held_minor)
    return _granted(decide.cancel(facts, [Cancel(ORDER_ID, _COMPANY_ID, State.LIVE)]).answers[0])


def _facts(order: Order, in_stock: int) -> Facts:
    """What is true when the sample order is finalised."""
    return Facts(
        now=CONFIRMED_AT,
        windows=Windows(timedelta(hours=72), timedelta(seconds=30)),
        orders={ORDER_ID: order},
        standing={_COMPANY_ID: CompanyStanding(active=True, verified=True)},
        wallet_of_order={ORDER_ID: 1},
        wallets={1: Wallet(1, 100_000, 0, 1)},
        shelves={_SHELF: [_lot(left=in_stock)]},
    )


def _lot(left: int) -> Lot:
    first = 118
    return Lot(_LOT_ID, 1, 2500, int(State.LIVE), first, first + left, _EXPIRES_AT, 2250, "EUR", RATE_ONE)


def _granted(answer: Order | Refusal) -> Order:
    assert isinstance(answer, Order), answer
    return answer


def _shown(order: Order, version: str, public_url: str, *, bare: bool = False) -> Raw:
    """The order as the wire writes it."""
    return Raw(render(SHAPES[version], _view(order, public_url, bare=bare)))


def _view(order: Order, public_url: str, *, bare: bool = False) -> View:
    codes = [_CODES[o.line_from : o.line_to] for o in order.outcomes if o.lot_id is not None]
    lot = LotInfo(1, 2500, "harbour-wholesale", 2250, "EUR", RATE_ONE, _EXPIRES_AT)
    return View(
        answer=Answer(order, codes, {_LOT_ID: lot}),
        ids=IDS,
        templates=TemplateBook(),
        public_url=public_url,
        expose_costs=True,
        bare_lines=bare,
    )
