"""`voucherd attempt settle`: the codes that a supplier says it sold, from a file, and what came of settling."""

from __future__ import annotations

import asyncio
import io
from typing import BinaryIO

from voucherd.catalogue import store as catalogue
from voucherd.cli.context import CommandContext
from voucherd.cli.output import CommandRefused, Output, table
from voucherd.cli.signals import InterruptibleStream
from voucherd.db import Pool
from voucherd.orders.store import OrderCaches
from voucherd.purchasing import by_hand
from voucherd.purchasing.attempts import Attempt
from voucherd.purchasing.by_hand import BadCodes, Hand, TooMany
from voucherd.purchasing.outcomes import NothingNew
from voucherd.purchasing.records import Record
from voucherd.suppliers.protocol import SURPLUS_MAX, Bought, Code
from voucherd.vault.lines import BadLine


async def read_codes(context: CommandContext, file: BinaryIO) -> tuple[Code, ...]:
    """The codes of a file: all of them or none."""
    stream = io.BufferedReader(InterruptibleStream(file.fileno(), context.ending))
    try:
        return await asyncio.to_thread(by_hand.read_codes, stream)
    except BadCodes as refused:
        raise CommandRefused(str(refused), _bad(refused.bad) if refused.bad else None) from None


def _bad(bad: list[BadLine]) -> Output:
    return Output(
        {"bad": [{"line": line.line, "reason": line.reason} for line in bad]},
        table([">line", "~what is wrong"], [(line.line, line.reason) for line in bad], empty=""),
    )


async def take_in(
    context: CommandContext, pool: Pool, caches: OrderCaches, attempt: Attempt, bought: Bought, hand: Hand
) -> None:
    """Store the codes and deliver them; refused if they can't be those of this purchase."""
    async with pool.acquire() as connection:
        sealer = await context.sealer(connection)
        wanted = [] if bought.price is None else [bought.price.currency]
        rates = await catalogue.rates(connection, wanted) if wanted else {}
    if set(wanted) - set(rates):
        raise CommandRefused(f"no exchange rate for {wanted[0]}: set one with `voucherd fx set`")
    try:
        await by_hand.receive(pool, caches, sealer, attempt, bought, hand)
    except NothingNew:
        raise CommandRefused(
            "none of these codes can be taken: they are known, malformed or expired"
        ) from None
    except TooMany:
        asked = attempt.count
        raise CommandRefused(
            f"the file has {len(bought.codes)} codes, and {asked} were asked for: "
            f"at most {asked + SURPLUS_MAX} are believed"
        ) from None


def settled(before: Record, after: Record) -> Output:
    """What settling changed."""
    came = after.codes - before.codes
    parts = [f"{came} codes were taken"] if came else []
    spare, aside = after.spare - before.spare, after.quarantined - before.quarantined
    parts += [f"{spare} of them lie on the shelf, for no line wanted them"] if spare else []
    parts += [f"{aside} went to quarantine"] if aside else []
    freed = before.waiting - after.waiting - (came - spare)
    parts += [f"{freed} lines go on to the next supplier or are refunded"] if freed > 0 else []
    words = f"The purchase is {after.phase.name.lower()}" + "".join(f"; {part}" for part in parts) + "."
    document = {
        "attempt": str(after.id),
        "status": after.phase.name.lower(),
        "codesTaken": came,
        "spare": spare,
        "quarantined": aside,
        "linesReleased": max(freed, 0),
        "settledBy": after.settled_by,
    }
    return Output(document, words)
