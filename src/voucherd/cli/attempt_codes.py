"""`voucherd attempt settle`: the codes that a supplier says it sold, from a file, and what came of settling."""

from __future__ import annotations

import asyncio
import io
from typing import BinaryIO

from voucherd.cli.context import CommandContext
from voucherd.cli.output import CommandRefused, Output, table
from voucherd.cli.signals import InterruptibleStream
from voucherd.db import Pool
from voucherd.orders.store import OrderCaches
from voucherd.purchasing import by_hand
from voucherd.purchasing.attempts import Attempt
from voucherd.purchasing.by_hand import BadCodes, TooManyCodes
from voucherd.purchasing.outcomes import Hand, NothingNew
from voucherd.purchasing.records import Record
from voucherd.suppliers.protocol import SURPLUS_MAX, Bought, Code
from voucherd.suppliers.stocking import NoRateFor
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
    try:
        await by_hand.receive(pool, caches, sealer, attempt, bought, hand)
    except NoRateFor as missing:
        raise CommandRefused(f"{missing}: set one with `voucherd fx set`") from None
    except NothingNew:
        raise CommandRefused(
            "none of these codes can be taken: they are known, malformed or expired"
        ) from None
    except TooManyCodes:
        asked = attempt.count
        raise CommandRefused(
            f"the file has {len(bought.codes)} codes, and {asked} were asked for: "
            f"at most {asked + SURPLUS_MAX} are believed"
        ) from None


def settled(before: Record, after: Record) -> Output:
    """What settling changed."""
    document = {
        "attempt": str(after.id),
        "status": after.phase.name.lower(),
        "codesTaken": after.codes - before.codes,
        "spare": after.spare - before.spare,
        "quarantined": after.quarantined - before.quarantined,
        "linesReleased": by_hand.released(before, after),
        "settledBy": after.settled_by,
    }
    return Output(document, by_hand.settled_words(before, after))
