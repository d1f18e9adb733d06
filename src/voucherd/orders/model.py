"""What an order is, and what it takes to decide about one. Pure data.

An order of 10,000 codes is a handful of these: lines are ranges, not rows. `Struct` rather than `dataclass`
because a batch makes thousands of them and these are made in C.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from msgspec import Struct

from voucherd.catalogue.pricing import UnitPrice
from voucherd.catalogue.products import ProductVersion
from voucherd.ids import State, state_of
from voucherd.money import RATE_ONE, worth
from voucherd.orders.rules.states import Payment, Status
from voucherd.ranges import gaps, overlap

ITEMS_MAX: Final = 100
CODE_COLUMNS: Final = (
    "lineId",
    "tag",
    "productSlug",
    "faceValueAmount",
    "faceValueCurrency",
    "voucherCode",
    "voucherSerial",
    "voucherDateExpired",
    "redemptionLink",
    "status",
)
"""The columns of the CSV file of an order's codes, for programs and for people alike."""
AMOUNT_MAX: Final = 10_000
REFERENCE_CHARS_MAX: Final = 1_000
OFFERS_SHOWN_MAX: Final = 5
INLINE_LINES_MAX: Final = 100
"""Orders up to this many lines get their codes with the batch; larger ones are streamed in pieces of it."""

TYPES: Final = ("api", "portal")


class Item(Struct, frozen=True):
    """One product in an order, with the prices that were fixed at Create (OP-42)."""

    item_no: int
    version: ProductVersion
    amount: int
    first_line: int
    unit: UnitPrice
    offers: tuple[int, ...]
    """Offer, stock, offer, stock …: what Create saw, best first. Lots have positive numbers, quotes negative ones."""

    @property
    def end_line(self) -> int:
        """The line after the item's last."""
        return self.first_line + self.amount

    @property
    def unit_charge_minor(self) -> int:
        """What one line costs, VAT included, in the payment currency."""
        return self.unit.pay_price_minor + self.unit.pay_vat_minor

    @property
    def lines(self) -> range:
        """The numbers of its lines."""
        return range(self.first_line, self.end_line)

    @property
    def shelf(self) -> tuple[int, int]:
        """Where its codes come from: the product and the face value."""
        return self.version.product_id, self.unit.face_minor


class Outcome(Struct, frozen=True):
    """What became of a range of lines: delivered from a range of a lot, or (no lot) cancelled."""

    line_from: int
    line_to: int
    lot_id: int | None
    seq_from: int | None
    at: datetime | None = None
    """When it was stored; None for one of the order's last change, whose time is the order's own."""

    @property
    def lines(self) -> range:
        """The numbers of the lines."""
        return range(self.line_from, self.line_to)

    @property
    def count(self) -> int:
        """How many lines."""
        return self.line_to - self.line_from


class Viewed(Struct, frozen=True):
    """When a line's link was first opened, its code first shown (OP-57), and when it was taken back."""

    line: int
    link_at: datetime | None
    voucher_at: datetime | None
    returned_at: datetime | None = None


class Order(Struct, frozen=True):
    """An order as it stands."""

    id: int
    company_id: int
    type: int
    status: Status
    payment_status: Payment
    payment_currency: str
    payment_fx_e8: int
    price_minor: int
    vat_minor: int
    charged_minor: int
    refunded_minor: int
    held_minor: int
    lines: int
    lines_finished: int
    lines_cancelled: int
    resolving: bool
    cancelling: bool
    downloaded: bool
    version: int
    created_at: datetime
    expires_at: datetime
    updated_at: datetime
    deadline_at: datetime | None
    reference: str | None
    items: tuple[Item, ...]
    outcomes: tuple[Outcome, ...] = ()
    views: tuple[Viewed, ...] = ()
    """What recipients saw of its lines. Of an order that is streamed one at most, which says that there are some."""

    @property
    def state(self) -> State:
        """Live or sandbox."""
        return state_of(self.id)

    @property
    def shown_status(self) -> Status:
        """The status that clients see: while a Resolve works on an order it is not paid, so it is created (OP-139)."""
        held = self.status is Status.PENDING and self.payment_status is Payment.UNPAID
        return Status.CREATED if held else self.status

    @property
    def total_minor(self) -> int:
        """What the whole order costs, VAT included, in the payment currency."""
        return self.price_minor + self.vat_minor

    @property
    def eur_minor(self) -> int:
        """What the whole order costs in euro cents, rounded up, at the rate that was fixed at Create."""
        return -(-worth(self.total_minor, self.payment_currency, self.payment_fx_e8) // (RATE_ONE * 10))

    def open_ranges(self) -> Iterator[tuple[Item, int, int]]:
        """The ranges of lines that have no outcome yet, item by item, in order."""
        settled = [outcome.lines for outcome in self.outcomes]
        for item in self.items:
            for gap in gaps(item.lines, settled):
                yield item, gap.start, gap.stop

    def delivered(self, within: range) -> Iterator[tuple[Item, Outcome, range]]:
        """The delivered lines among these, item by item, in order, each part with its outcome."""
        outcomes = sorted(
            (one for one in self.outcomes if one.lot_id is not None), key=lambda one: one.line_from
        )
        for item in self.items:
            for outcome in outcomes:
                lines = overlap(overlap(within, item.lines), outcome.lines)
                if lines:
                    yield item, outcome, lines
