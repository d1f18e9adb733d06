"""`voucherd fx`: what one unit of each currency is worth in EUR (OP-50)."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

import typer

from voucherd.catalogue import store
from voucherd.catalogue.fx import FILE_BYTES_MAX, parse_ecb, parse_rate
from voucherd.cli.answers import Answer, table
from voucherd.cli.frame import command, noun, usage
from voucherd.cli.office import Office
from voucherd.cli.words import read_currency
from voucherd.money import RATE_DIGITS

app = noun()


@command(app, "import")
async def import_(
    office: Office,
    file: Annotated[
        typer.FileBinaryRead, typer.Argument(help="The ECB's daily or historical XML or CSV; - for stdin.")
    ],
) -> Answer:
    """Take the rates of one of the European Central Bank's files."""
    days = parse_ecb(file.read(FILE_BYTES_MAX + 1))
    async with office.transaction() as tx:
        count = await store.set_rates(tx, days, "ecb")
    first, last = min(day.day for day in days), max(day.day for day in days)
    span = f"{last}" if first == last else f"{first} to {last}"
    return Answer(
        {"rates": count, "days": len(days), "from": first, "to": last}, f"{count} rates of {span} are set."
    )


@command(app, "set")
async def set_(
    office: Office,
    currency: Annotated[str, typer.Argument(metavar="CURRENCY", parser=read_currency)],
    rate: Annotated[str, typer.Argument(metavar="RATE", help="What one unit is worth in EUR, such as 0.92.")],
) -> Answer:
    """Set today's rate of one currency by hand."""
    with usage():
        eur_e8 = parse_rate(rate)
    async with office.transaction() as tx:
        day = await store.set_rate(tx, currency, eur_e8)
    worth = _eur(eur_e8)
    return Answer(
        {"currency": currency, "eur": worth, "day": day}, f"1 {currency} = {worth} EUR from {day} on."
    )


@command(app, "list")
async def list_(office: Office) -> Answer:
    """List the rates in force today."""
    async with office.connection() as connection:
        rates = await store.list_rates(connection)
    view = table(
        ["currency", ">in EUR", "day", "source"],
        [(rate.currency, _eur(rate.eur_e8), rate.day, rate.source) for rate in rates],
        empty="No rates yet: take the ECB's with `voucherd fx import`.",
    )
    documents = [
        {"currency": rate.currency, "eur": _eur(rate.eur_e8), "day": rate.day, "source": rate.source}
        for rate in rates
    ]
    return Answer(documents, view)


def _eur(eur_e8: int) -> Decimal:
    return Decimal(eur_e8).scaleb(-RATE_DIGITS)
