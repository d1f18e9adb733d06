"""`voucherd attempt settle`: the codes that a supplier says it sold, from a file, and what came of settling."""

from __future__ import annotations

import asyncio
import io
from typing import BinaryIO

from voucherd.catalogue import store as catalogue
from voucherd.cli.answers import Answer, Refused, table
from voucherd.cli.ending import EndingStream
from voucherd.cli.office import Office
from voucherd.db import Pool
from voucherd.fulfilment.attempts import Attempt
from voucherd.fulfilment.records import Record
from voucherd.fulfilment.suppliers.protocol import SURPLUS_MAX, Bought, Code
from voucherd.orders import byhand
from voucherd.orders.byhand import BadCodes, Hand, TooMany
from voucherd.orders.store import Memory
from voucherd.orders.supply import NothingNew
from voucherd.vault.lines import BadLine


async def read_codes(office: Office, file: BinaryIO) -> tuple[Code, ...]:
    """The codes of a file: all of them or none."""
    stream = io.BufferedReader(EndingStream(file.fileno(), office.ending))
    try:
        return await asyncio.to_thread(byhand.read_codes, stream)
    except BadCodes as refused:
        raise Refused(str(refused), _bad(refused.bad) if refused.bad else None) from None


def _bad(bad: list[BadLine]) -> Answer:
    return Answer(
        {"bad": [{"line": line.line, "reason": line.reason} for line in bad]},
        table([">line", "~what is wrong"], [(line.line, line.reason) for line in bad], empty=""),
    )


async def take_in(
    office: Office, pool: Pool, memory: Memory, attempt: Attempt, bought: Bought, hand: Hand
) -> None:
    """Store the codes and deliver them; refused if they can't be those of this purchase."""
    async with pool.acquire() as connection:
        sealer = await office.sealer(connection)
        wanted = [] if bought.price is None else [bought.price.currency]
        rates = await catalogue.rates(connection, wanted) if wanted else {}
    if set(wanted) - set(rates):
        raise Refused(f"no exchange rate for {wanted[0]}: set one with `voucherd fx set`")
    try:
        await byhand.receive(pool, memory, sealer, attempt, bought, hand)
    except NothingNew:
        raise Refused("none of these codes can be taken: they are known, malformed or expired") from None
    except TooMany:
        asked = attempt.count
        raise Refused(
            f"the file has {len(bought.codes)} codes, and {asked} were asked for: "
            f"at most {asked + SURPLUS_MAX} are believed"
        ) from None


def settled(before: Record, after: Record) -> Answer:
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
    return Answer(document, words)
