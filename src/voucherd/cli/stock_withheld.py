"""`voucherd stock withheld` and `release`: codes that a recovery took off the shelf, and their way back (OP-120)."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from voucherd.cli.context import CommandContext
from voucherd.cli.output import CommandRefused, Output, facts, listed
from voucherd.cli.words import priced
from voucherd.vault import withheld
from voucherd.vault.withheld import ReleaseRefused


async def list_withheld(
    context: CommandContext,
    lot: Annotated[
        int | None, Argument(metavar="[LOT]", min=1, help="The serials of this lot's withheld codes.")
    ] = None,
) -> Output:
    """List what is withheld because it may have been sold before a restore: counts, or serials; never a code."""
    async with context.connection() as connection:
        if lot is not None:
            found = await withheld.serials(connection, await context.sealer(connection), lot)
            return Output(found, "\n".join(found) or f"No code of lot {lot} is withheld.")
        ranges = await withheld.ranges(connection)
    return listed(
        [
            facts(
                one,
                "lot product faceValue faceValueCurrency supplier count withheldAt",
                **priced("faceValue", one.face.minor, one.face.currency),
            )
            for one in ranges
        ],
        [
            *(">lot", "product", (">face value", "faceValue faceValueCurrency"), (">withheld", "count")),
            *(("since", "withheldAt"), "?supplier"),
        ],
        empty="Nothing is withheld.",
    )


async def release(
    context: CommandContext,
    lot: Annotated[int, Argument(metavar="LOT", min=1)],
    sold: Annotated[int, Option(min=0, max=2**31 - 1, help="How many of them were sold: the first ones.")],
) -> Output:
    """Put withheld codes that were never sold back on the shelf, as a new lot."""
    async with context.transaction() as tx:
        try:
            new_lot, count = await withheld.release(tx, context.actor, await context.sealer(tx), lot, sold)
        except ReleaseRefused as refused:
            raise CommandRefused(str(refused)) from None
    return Output({"lot": new_lot, "codes": count}, f"Lot {new_lot} has {count:,} codes for sale again.")
