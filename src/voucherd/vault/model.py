"""What can be sold and from which shelf, and who is shown which codes. Pure data."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Final, TypeAlias

from msgspec import Struct

from voucherd.actors import ActorKind
from voucherd.money import RATE_ONE, worth

GENERATED_SIZE: Final = 2_000_000_000
"""How many codes a lot of the sandbox has, which are computed."""
GENERATED_LASTS: Final = timedelta(days=180)
"""A lot of the sandbox is followed by another when its codes last no longer: one that sells now never ends a shelf."""

Shelf: TypeAlias = tuple[int, int, int]
"""Product, face value in minor units, state."""


class Lot(Struct, frozen=True):
    """A run of codes that can be sold from `cursor` on."""

    id: int
    product_id: int
    face_minor: int
    state: int
    cursor: int
    size: int
    expires_at: datetime | None
    purchase_minor: int
    purchase_currency: str
    purchase_fx_e8: int
    generated: bool = False

    @property
    def left(self) -> int:
        """How many codes are still for sale."""
        return self.size - self.cursor

    @property
    def cost(self) -> int:
        """What one code cost us, in EUR, to compare."""
        return worth(self.purchase_minor, self.purchase_currency, self.purchase_fx_e8)


_NEVER: Final = datetime.max.replace(tzinfo=UTC)


def selling_order(lot: Lot) -> tuple[datetime, int, int]:
    """First expiring first, then cheapest in EUR, then oldest."""
    return lot.expires_at or _NEVER, lot.cost, lot.id


def lasts(lots: Iterable[Lot], now: datetime) -> bool:
    """Whether a sandbox shelf has codes that expire, and not soon."""
    return any(lot.expires_at is not None and lot.expires_at > now + GENERATED_LASTS for lot in lots)


def unmade_lot(product_id: int, face_minor: int) -> Lot:
    """A sandbox shelf's lot as the first call would make it (OP-49), for one who only looks."""
    return Lot(0, product_id, face_minor, 1, 0, GENERATED_SIZE, None, 0, "EUR", RATE_ONE, generated=True)


class Via(IntEnum):
    """How codes were shown."""

    CONFIRM = 0
    RESOLVE = 1
    FIND = 2
    FIND_ALL = 3
    LINES = 4
    FILE = 5
    PORTAL = 6
    REDEMPTION = 7
    CANCEL = 8

    @property
    def word(self) -> str:
        """The way in lower case."""
        return self.name.lower()


class Viewer(Struct, frozen=True):
    """Who sees codes, and from where: a key, a person, or the holder of a link."""

    kind: ActorKind
    id: int | None
    address: str | None
    """As the request told it; what is no address is left out."""


class Reveal(Struct, frozen=True):
    """Codes of one order that are about to be shown."""

    order_id: int
    company_id: int
    lines: int
    """How many codes."""
    via: Via
    viewer: Viewer
    line_from: int = 0
    """The first line of those that are shown."""
