"""A trial of a supplier: it is spoken with as the dispatcher would, and nothing is bought."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import uuid4

from voucherd.catalogue import store as catalogue
from voucherd.db import Pool
from voucherd.money import Money
from voucherd.suppliers import registry
from voucherd.suppliers import store as supplier_store
from voucherd.suppliers.protocol import (
    NotFound,
    QuoteFailed,
    Sku,
    Supplier,
    SupplierQuote,
    SupplierRefused,
    Unclear,
    WantedCodes,
)
from voucherd.suppliers.registry import Spec
from voucherd.suppliers.store import OfferRow, SupplierRow
from voucherd.vault.seal import Sealer

OFFERS_TRIED: Final = 20
OFFERS_TRIED_MAX: Final = 1_000
OVERTIME_S: Final = 5.0
PRICES_S_MAX: Final = 120.0

_FACE: Final = Money(100, "EUR")


class TrialFinding(NamedTuple):
    """One thing that was tried, and what came of it; `good` is None for what is neither good nor bad."""

    what: str
    good: bool | None
    text: str


async def try_out(
    pool: Pool, sealer: Sealer, row: SupplierRow, offers: int = OFFERS_TRIED
) -> tuple[list[TrialFinding], int]:
    """What came of opening it, asking for prices and looking up a purchase that never was; offers not tried."""
    async with pool.acquire() as connection:
        sold = [one for one in await supplier_store.offers(connection, row.id) if one.active]
    found = await try_spec(pool, row.spec(sealer), row.on_unknown, sold[:offers])
    return found, max(len(sold) - offers, 0)


async def try_spec(
    pool: Pool, spec: Spec, on_unknown: str, sold: Sequence[OfferRow] = ()
) -> list[TrialFinding]:
    """The same of a supplier that may not be stored yet, with these of its offers."""
    try:
        adapter = registry.open_supplier(spec, pool)
    except ValueError as wrong:
        return [TrialFinding("opens", False, str(wrong))]
    try:
        return [
            TrialFinding("opens", True, f"{spec.kind}, {spec.state.word}"),
            *await _prices(pool, adapter, sold),
            await _look_up(spec, on_unknown, adapter, sold),
        ]
    finally:
        await adapter.close()


async def _prices(pool: Pool, adapter: Supplier, sold: Sequence[OfferRow]) -> list[TrialFinding]:
    if not sold:
        return [TrialFinding("prices", None, "it sells nothing yet")]
    ends = [(one, face) for one in sold for face in (one.face_minor, one.face_to_minor) if face is not None]
    try:
        async with asyncio.timeout(PRICES_S_MAX):
            quotes = await adapter.quote([Sku(one.sku, Money(face, one.face_currency)) for one, face in ends])
    except (QuoteFailed, TimeoutError) as error:
        return [TrialFinding("prices", False, str(error) or "the prices took too long")]
    async with pool.acquire() as connection:
        rates = await catalogue.rates(connection, {quote.price.currency for quote in quotes})
    said = {(quote.sku, quote.face): quote for quote in quotes}
    return [
        _price(one, said.get((one.sku, Money(face, one.face_currency))), face, rates) for one, face in ends
    ]


def _price(
    offer: OfferRow, quote: SupplierQuote | None, face_minor: int, rates: dict[str, int]
) -> TrialFinding:
    face = Money(face_minor, offer.face_currency)
    what = f"price of {offer.slug}" + ("" if offer.face_to_minor is None else f" {face}")
    if quote is None:
        return TrialFinding(what, False, f"it does not sell {offer.sku} of {face}")
    if quote.price.currency not in rates:
        return TrialFinding(what, False, f"{quote.price}, but no exchange rate for {quote.price.currency}")
    return TrialFinding(what, True, f"{quote.price}, {quote.stock} in stock")


async def _look_up(spec: Spec, on_unknown: str, adapter: Supplier, sold: Sequence[OfferRow]) -> TrialFinding:
    """Whether the supplier says of a reference that nobody used that it knows none such."""
    if not adapter.looks_up:
        return TrialFinding("look-up", None, f"it can't be asked; on unknown: {on_unknown}")
    face = Money(sold[0].face_minor, sold[0].face_currency) if sold else _FACE
    wanted = WantedCodes(sold[0].sku if sold else "none", face, 1, face)
    try:
        async with asyncio.timeout(spec.timeout_s + OVERTIME_S):
            answer = await adapter.look_up(str(uuid4()), wanted)
    except TimeoutError:
        answer = Unclear("the call took too long")
    match answer:
        case NotFound():
            return TrialFinding("look-up", True, "of a purchase that never was: not found, as it should be")
        case Unclear(text):
            return TrialFinding("look-up", False, f"unclear: {text}")
        case SupplierRefused(why, text):
            # Believed, this would send every lost purchase to the next supplier at once.
            return TrialFinding(
                "look-up", False, f"of a purchase that never was: refused ({why}) {text}".rstrip()
            )
        case _:
            return TrialFinding("look-up", False, "it says it knows a purchase that never was")
