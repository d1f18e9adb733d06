"""Suppliers' offers: what a code would cost us there, and which of them serves a range of lines. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from voucherd.money import worth


class Offer(Struct, frozen=True):
    """What a supplier asks for one code of a product and face value, and how many it says it has."""

    supplier_id: int
    quote_id: int
    sku: str
    stock: int
    price_minor: int
    currency: str
    fx_e8: int

    @property
    def cost(self) -> int:
        """What one code would cost us, in EUR, to compare."""
        return worth(self.price_minor, self.currency, self.fx_e8)


class QuoteTerms(Struct, frozen=True):
    """A quote's prices: at one face value, or at both ends of a range of them."""

    face_minor: int
    price_minor: int
    face_to_minor: int | None
    price_to_minor: int | None

    def price_at(self, face_minor: int) -> int:
        """The price of one code of this face value, rounded up: between the ends of a range it is a straight line."""
        if self.face_to_minor is None or self.price_to_minor is None:
            return self.price_minor
        rise = (self.price_to_minor - self.price_minor) * (face_minor - self.face_minor)
        return self.price_minor - (-rise // (self.face_to_minor - self.face_minor))


def cheapest_first(offers: Sequence[Offer]) -> list[Offer]:
    """The offers by what they cost in EUR; of equal ones the one with more stock comes first."""
    return sorted(offers, key=lambda offer: (offer.cost, -offer.stock, offer.supplier_id))


def share_out(offers: Sequence[Offer], count: int) -> list[tuple[Offer, int]]:
    """Who is asked for how many of `count` codes, cheapest first, as far as their stocks go."""
    shares: list[tuple[Offer, int]] = []
    for offer in offers:
        taken = min(offer.stock, count)
        if taken > 0:
            shares.append((offer, taken))
            count -= taken
    return shares


def one_for_all(offers: Sequence[Offer], count: int) -> Offer | None:
    """The cheapest offer that has all of them."""
    return next((offer for offer in offers if offer.stock >= count), None)


def price_ceiling(price_minor: int, slack_bp: int) -> int:
    """The most that we pay for one code that was quoted at this price."""
    return price_minor + max(price_minor * slack_bp // 10_000, 1 if slack_bp else 0)
