"""What every supplier can be asked, and what it may answer. Pure data and one protocol.

The words matter for money. `Refused` and `NotFound` mean that surely nothing was bought; `Unclear` means that
nobody knows, and is the answer to everything that an adapter does not understand. No adapter raises for what a
supplier does: a time-out, a reset connection or a page of HTML are answers too.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final, Protocol, TypeAlias

from msgspec import Struct

from voucherd.money import Money

CODE_CHARS_MAX: Final = 500
SERIAL_CHARS_MAX: Final = 200
EXTERNAL_ID_CHARS_MAX: Final = 200
REASON_CHARS_MAX: Final = 300
BULK_MAX: Final = 10_000
"""More codes than this are never asked for in one purchase, whatever a supplier says it can do."""
SURPLUS_MAX: Final = 100
"""So many codes more than asked for are kept; an answer with more than that is not believed at all."""


class WantedCodes(Struct, frozen=True):
    """The codes to buy: so many of a product, under the supplier's own name for it."""

    sku: str
    face: Money
    count: int
    price_max: Money
    """The most that one code may cost; a supplier that asks for more is refused before anything is bought."""


class Sku(Struct, frozen=True):
    """A product under the supplier's own name, for which a price is asked."""

    sku: str
    face: Money


class SupplierQuote(Struct, frozen=True):
    """What a supplier asks for one code now, and how many it has."""

    sku: str
    face: Money
    price: Money
    stock: int


class Code(Struct, frozen=True):
    """A code as a supplier hands it over."""

    code: str
    serial: str = ""
    expires_at: datetime | None = None

    def __repr__(self) -> str:
        return "Code(***)"  # Answers end in messages of errors and of failed tests; bearer secrets must not.


class Bought(Struct, frozen=True):
    """The purchase happened, and these are the codes: as many as were asked for, fewer, or more."""

    codes: tuple[Code, ...]
    external_id: str | None = None
    """The supplier's own name for the purchase."""
    price: Money | None = None
    """What one code cost, where the supplier says so; else the quote stands."""
    final: bool = False
    """Whether no more will come, however few these are; else the others may come yet."""


class UnderWay(Struct, frozen=True):
    """The supplier has taken the purchase and will know later; ask again."""

    external_id: str | None = None


class Why(StrEnum):
    """Why nothing was bought."""

    OUT_OF_STOCK = "out_of_stock"
    PRICE = "price"  # It costs more than we may pay.
    FUNDS = "funds"  # Our balance there is too low.
    REJECTED = "rejected"  # Any other answer that is clearly a no.
    UNREACHABLE = "unreachable"  # The request surely never arrived.
    CANCELLED = "cancelled"  # It was taken back before anything was delivered.

    @property
    def for_good(self) -> bool:
        """Whether the same purchase would be refused again, as long as nothing changes there (OP-140)."""
        return self not in (Why.UNREACHABLE, Why.CANCELLED)


class SupplierRefused(Struct, frozen=True):
    """Surely nothing was bought."""

    why: Why
    text: str = ""


class NotFound(Struct, frozen=True):
    """The supplier knows no purchase under this reference (yet: a request may still be on its way)."""


class Unclear(Struct, frozen=True):
    """Nobody knows whether something was bought: the answer did not come, or can't be understood."""

    text: str


Answer: TypeAlias = Bought | UnderWay | SupplierRefused | Unclear
Finding: TypeAlias = Bought | UnderWay | SupplierRefused | NotFound | Unclear


class QuoteFailed(Exception):
    """No prices could be had; the text says why and holds no secret."""


class Supplier(Protocol):
    """A supplier of any kind. Every call ends by itself within the time limit that the adapter was made with."""

    @property
    def looks_up(self) -> bool:
        """Whether `look_up` can tell what became of a reference."""

    @property
    def bulk_max(self) -> int:
        """The most codes that one purchase may ask for."""

    async def quote(self, skus: Sequence[Sku]) -> list[SupplierQuote]:
        """Prices and stock of these products; one that the supplier does not sell is left out."""

    async def buy(self, reference: str, wanted: WantedCodes) -> Answer:
        """Buy, under our reference. Never called twice with the same one."""

    async def look_up(self, reference: str, wanted: WantedCodes) -> Finding:
        """What became of the purchase with this reference; buys nothing."""

    async def cancel(self, reference: str, wanted: WantedCodes) -> Finding:
        """Take the purchase back if that can still be done; what became of it in the end."""

    async def close(self) -> None:
        """Let go of connections."""
