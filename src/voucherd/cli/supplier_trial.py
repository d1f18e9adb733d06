"""`voucherd supplier test`: speaks with a supplier as the dispatcher would, and buys nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from voucherd.cli.answers import Answer, Refused, table
from voucherd.cli.office import Office
from voucherd.cli.supplier_options import Name
from voucherd.fulfilment.suppliers import rows, trial
from voucherd.fulfilment.suppliers.rows import SupplierRow
from voucherd.fulfilment.suppliers.trial import OFFERS_TRIED, OFFERS_TRIED_MAX, Finding


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
            sealer = await office.sealer(connection)
        found, untried = await trial.try_out(pool, sealer, row, offers)
    if untried:
        found.append(Finding("prices", None, f"{untried:,} more offers were not tried (--offers)"))
    return _told(row, found)


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
