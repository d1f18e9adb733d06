"""`voucherd supplier test`: speaks with a supplier as the dispatcher would, and buys nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Final, NamedTuple
from uuid import uuid4

import typer

from voucherd.catalogue import store as catalogue
from voucherd.cli.answers import Answer, Refused, table
from voucherd.cli.office import Office
from voucherd.cli.supplier_options import Name
from voucherd.cli.supplier_views import faces
from voucherd.db import Pool
from voucherd.fulfilment.suppliers import registry, rows
from voucherd.fulfilment.suppliers.protocol import (
    NotFound,
    Quote,
    QuoteFailed,
    Sku,
    Supplier,
    Unclear,
    Wanted,
)
from voucherd.fulfilment.suppliers.protocol import (
    Refused as SupplierRefused,
)
from voucherd.fulfilment.suppliers.rows import OfferRow, SupplierRow
from voucherd.money import Money

OFFERS_TRIED: Final = 20
OFFERS_TRIED_MAX: Final = 1_000
OVERTIME_S: Final = 5.0
PRICES_S_MAX: Final = 120.0

_FACE: Final = Money(100, "EUR")


class Finding(NamedTuple):
    """One thing that was tried, and what came of it; `good` is None for what is neither good nor bad."""

    what: str
    good: bool | None
    text: str


async def try_out(
    office: Office,
    name: Name,
    offers: Annotated[
        int, typer.Option("--offers", min=1, max=OFFERS_TRIED_MAX, help="How many to ask prices of.")
    ] = OFFERS_TRIED,
) -> Answer:
    """Speak with a supplier: open it, ask for prices, look up a purchase that never was. Buys nothing."""
    async with office.pool() as pool:
        async with pool.acquire() as connection:
            row = await rows.supplier(connection, name)
            sold = [one for one in await rows.offers(connection, row.id) if one.active]
            sealer = await office.sealer(connection)
        try:
            adapter = registry.open_supplier(row.spec(sealer), pool)
        except ValueError as wrong:
            found = [Finding("opens", False, str(wrong))]
        else:
            try:
                found = [
                    Finding("opens", True, f"{row.kind}, {row.state.word}"),
                    *await _prices(pool, row, adapter, sold[:offers]),
                    await _look_up(row, adapter, sold),
                ]
            finally:
                await adapter.close()
    if len(sold) > offers:
        found.append(Finding("prices", None, f"{len(sold) - offers:,} more offers were not tried (--offers)"))
    return _told(row, found)


async def _prices(pool: Pool, row: SupplierRow, adapter: Supplier, sold: Sequence[OfferRow]) -> list[Finding]:
    if not sold:
        return [Finding("prices", None, f"it sells nothing yet: voucherd supplier offer {row.name} SLUG")]
    ends = [(one, face) for one in sold for face in (one.face_minor, one.face_to_minor) if face is not None]
    try:
        async with asyncio.timeout(PRICES_S_MAX):
            quotes = await adapter.quote([Sku(one.sku, Money(face, one.face_currency)) for one, face in ends])
    except (QuoteFailed, TimeoutError) as error:
        return [Finding("prices", False, str(error) or "the prices took too long")]
    async with pool.acquire() as connection:
        rates = await catalogue.rates(connection, {quote.price.currency for quote in quotes})
    said = {(quote.sku, quote.face): quote for quote in quotes}
    return [
        _price(one, said.get((one.sku, Money(face, one.face_currency))), face, rates) for one, face in ends
    ]


def _price(offer: OfferRow, quote: Quote | None, face_minor: int, rates: dict[str, int]) -> Finding:
    face = Money(face_minor, offer.face_currency)
    what = f"price of {offer.slug}" + ("" if offer.face_to_minor is None else f" {face}")
    if quote is None:
        return Finding(
            what, False, f"it does not sell {offer.sku} of {face if offer.face_to_minor else faces(offer)}"
        )
    if quote.price.currency not in rates:
        return Finding(
            what, False, f"{quote.price}, but no exchange rate for {quote.price.currency}: voucherd fx set"
        )
    return Finding(what, True, f"{quote.price}, {quote.stock:,} in stock")


async def _look_up(row: SupplierRow, adapter: Supplier, sold: Sequence[OfferRow]) -> Finding:
    """Whether the supplier says of a reference that nobody used that it knows none such."""
    if not adapter.looks_up:
        return Finding("look-up", None, f"it can't be asked; on unknown: {row.on_unknown}")
    face = Money(sold[0].face_minor, sold[0].face_currency) if sold else _FACE
    wanted = Wanted(sold[0].sku if sold else "none", face, 1, face)
    try:
        async with asyncio.timeout(row.timeout_s + OVERTIME_S):
            answer = await adapter.look_up(str(uuid4()), wanted)
    except TimeoutError:
        answer = Unclear("the call took too long")
    match answer:
        case NotFound():
            return Finding("look-up", True, "of a purchase that never was: not found, as it should be")
        case Unclear(text):
            return Finding("look-up", False, f"unclear: {text}")
        case SupplierRefused(why, text):
            # Believed, this would send every lost purchase to the next supplier at once.
            return Finding("look-up", False, f"of a purchase that never was: refused ({why}) {text}".rstrip())
        case _:
            return Finding("look-up", False, "it says it knows a purchase that never was")


def _told(row: SupplierRow, found: Sequence[Finding]) -> Answer:
    marks = {True: "ok", False: "failed", None: "note"}
    answer = Answer(
        {
            "supplier": row.name,
            "ok": all(one.good is not False for one in found),
            "findings": [{"what": one.what, "result": marks[one.good], "text": one.text} for one in found],
        },
        table(
            ["result", "what", "~found"],
            [(marks[one.good], one.what, one.text) for one in found],
            empty="",
        ),
    )
    failed = sum(one.good is False for one in found)
    if failed:
        things = "1 thing" if failed == 1 else f"{failed} things"
        raise Refused(f"{things} failed at {row.name}; nothing was bought", answer)
    return answer
