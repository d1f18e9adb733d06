"""`voucherd supplier test`: speaks with a supplier as the dispatcher would, and buys nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from voucherd.cli.context import CommandContext
from voucherd.cli.output import CommandRefused, Output, table
from voucherd.cli.supplier_options import Name
from voucherd.suppliers import store as supplier_store
from voucherd.suppliers import trial
from voucherd.suppliers.store import SupplierRow
from voucherd.suppliers.trial import OFFERS_TRIED, OFFERS_TRIED_MAX, TrialFinding


async def try_out(
    context: CommandContext,
    name: Name,
    offers: Annotated[
        int, typer.Option("--offers", min=1, max=OFFERS_TRIED_MAX, help="How many to ask prices of.")
    ] = OFFERS_TRIED,
) -> Output:
    """Speak with a supplier: open it, ask for prices, look up a purchase that never was. Buys nothing."""
    async with context.pool() as pool:
        async with pool.acquire() as connection:
            row = await supplier_store.supplier(connection, name)
            sealer = await context.sealer(connection)
        found, untried = await trial.try_out(pool, sealer, row, offers)
    if untried:
        found.append(TrialFinding("prices", None, f"{untried:,} more offers were not tried (--offers)"))
    return _told(row, found)


def _told(row: SupplierRow, found: Sequence[TrialFinding]) -> Output:
    marks = {True: "ok", False: "failed", None: "note"}
    answer = Output(
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
        raise CommandRefused(f"{things} failed at {row.name}; nothing was bought", answer)
    return answer
