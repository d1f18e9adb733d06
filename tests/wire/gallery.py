"""Orders made by hand in every status, as the desk would hand them to the wire."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.handmade import NOW, order, product, unit
from voucherd.api.wire.templates import TemplateBook
from voucherd.api.wire.view import View
from voucherd.ids import Identifiers
from voucherd.money import RATE_ONE
from voucherd.orders.answers import Answer, delivered_ranges
from voucherd.orders.model import Order, Outcome
from voucherd.orders.rules.states import Payment, Status
from voucherd.vault.store import LotInfo

IDS = Identifiers(bytes(range(32)))
EXPIRY = datetime(2028, 2, 29, 23, 59, 59, 999_000, tzinfo=UTC)

# A name may hold what looks like a hole of a template, or like an escape of JSON.
GIFT = product(7, name='Gift "10" & co, 5%b %d \\u0000', slug="gift-10", async_delivery=True)
GAME = product(
    8,
    slug="game-variable",
    name="Game – variabel",
    product_type="gamecard",
    category="games",
    redeem_type="product",
    region="eu",
    vat_category="multi_purpose",
    incentive=True,
    face_currency="KWD",
    face_minor=None,
    face_min_minor=1_000,
    face_max_minor=50_500,
    price_minor=None,
    price_currency=None,
    fee_variable_e8=101_000_000,
    fee_fixed_minor=5,
)
GIFT_UNIT = unit(950, 200)
GIFT_UNIT_IN_JPY = unit(
    950, 200, pay_fx_e8=611_808, pay_price_minor=1_553, pay_vat_minor=327, pay_turnover_minor=1_553
)
GAME_UNIT = unit(
    2_530,
    5,
    face_minor=2_500,
    face_fx_e8=301_204_819,
    price_currency="KWD",
    price_fx_e8=301_204_819,
    turnover_minor=30,
    pay_fx_e8=611_808,
    pay_price_minor=1_246,
    pay_vat_minor=2,
    pay_turnover_minor=15,
)

LOTS = {
    40: LotInfo(7, 1_000, "wholesale", 900, "EUR", RATE_ONE, EXPIRY),
    42: LotInfo(7, 1_000, "second & sons", 1_015, "USD", 92_319_055, None),
    44: LotInfo(8, 2_500, "games ltd", 2_401, "KWD", 301_204_819, None),
    51: LotInfo(7, 1_000, "sandbox", 0, "EUR", RATE_ONE, None),
}
OFFERS = ((40, 3, 42, 17), (44, 5))


def code(lot_id: int, seq: int) -> tuple[str, str]:
    """The code and serial at a place."""
    return f"CODE-{lot_id}-{seq:05d}", f"S{lot_id}{seq:05d}"


def answer(shown: Order, *, with_codes: bool = True) -> Answer:
    """The order as the desk hands it over: with its codes, or for a stream without."""
    codes = [[code(lot_id, seq) for seq in range(a, b)] for lot_id, a, b in delivered_ranges(shown)]
    return Answer(shown, codes if with_codes else None, LOTS)


def view(
    shown: Order,
    *,
    bare: bool = False,
    costs: bool = True,
    with_codes: bool = True,
    templates: TemplateBook | None = None,
) -> View:
    """The order about to be shown."""
    handed = answer(shown, with_codes=with_codes)
    return View(handed, IDS, templates or TemplateBook(), "https://shop.example.com", costs, bare)


def gift(order_id: int, amount: int = 5, **changes: Any) -> Order:
    """An order of gift cards, with what became of it."""
    fields: dict[str, Any] = {
        "offers": OFFERS[:1],
        "updated_at": NOW + timedelta(seconds=2, microseconds=1_500),
    }
    return order(order_id, (GIFT, GIFT_UNIT, amount), **(fields | changes))


CREATED = order(
    4_660,
    (GIFT, GIFT_UNIT_IN_JPY, 2),
    (GAME, GAME_UNIT, 1),
    offers=OFFERS,
    payment_currency="JPY",
    payment_fx_e8=611_808,
    reference='{"cart": "Ä-1", "note": "two\\u2028lines"}',
    created_at=NOW + timedelta(microseconds=123_999),
)
PENDING = gift(
    4_662,
    status=Status.PENDING,
    payment_status=Payment.PAID,
    charged_minor=5_750,
    lines_finished=3,
    version=3,
    outcomes=(Outcome(0, 2, 40, 1), Outcome(2, 3, 42, 9)),
)
FINISHED = gift(
    4_664,
    3,
    status=Status.FINISHED,
    payment_status=Payment.PAID,
    charged_minor=3_450,
    lines_finished=3,
    downloaded=True,
    type=1,
    outcomes=(Outcome(0, 1, 40, 0), Outcome(1, 3, 42, 0)),
)
CANCELLED = gift(
    4_666,
    status=Status.CANCELLED,
    payment_status=Payment.PARTIALLY_REFUNDED,
    charged_minor=5_750,
    refunded_minor=3_450,
    lines_finished=2,
    lines_cancelled=3,
    outcomes=(Outcome(0, 2, 42, 3), Outcome(2, 5, None, None)),
)
SANDBOX_CANCELLED = gift(
    4_669,
    1,
    status=Status.CANCELLED,
    lines_cancelled=1,
    offers=((51, 1_999_999_990),),
    outcomes=(Outcome(0, 1, None, None),),
)
