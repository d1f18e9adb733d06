"""`voucherd attempt`: purchases at suppliers, and what a person does about those that went wrong."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, TypeAlias

import typer

from voucherd.cli.attempt_codes import read_codes, settled, take_in
from voucherd.cli.attempt_views import listed, shown
from voucherd.cli.command import command, noun, usage
from voucherd.cli.context import CommandContext
from voucherd.cli.output import CommandRefused, Output, table
from voucherd.cli.words import read_money
from voucherd.db import Connection, Pool
from voucherd.orders.store import OrderCaches
from voucherd.purchasing import attempts, by_hand, records
from voucherd.purchasing.attempts import Attempt, AttemptPhase
from voucherd.purchasing.by_hand import TooEarly, masked
from voucherd.purchasing.outcomes import AttemptClosed
from voucherd.purchasing.records import ID_DIGITS, ID_DIGITS_MIN, PurchaseProblem, Record
from voucherd.suppliers import registry
from voucherd.suppliers import store as supplier_store
from voucherd.suppliers.protocol import EXTERNAL_ID_CHARS_MAX, Bought

app = noun()

Id: TypeAlias = Annotated[
    str, typer.Argument(metavar="ID", help="Its id, or at least the first eight digits of it.")
]
By: TypeAlias = Annotated[str, typer.Option("--by", metavar="NAME", help="Who you are: it is written down.")]
Note: TypeAlias = Annotated[str, typer.Option("--note", metavar="TEXT", help="Why: it is written down.")]


class AttemptStatusWord(StrEnum):
    """How far a purchase is, as it is written."""

    CALLING = "calling"
    ASKING = "asking"
    UNKNOWN = "unknown"
    BOUGHT = "bought"
    FAILED = "failed"


@command(app, "list")
async def list_(
    context: CommandContext,
    status: Annotated[AttemptStatusWord | None, typer.Option(help="Only those that stand so.")] = None,
    supplier: Annotated[str | None, typer.Option(help="Only this supplier's.")] = None,
    problem: Annotated[PurchaseProblem | None, typer.Option(help="Only those with this trouble.")] = None,
    before: Annotated[
        str | None, typer.Option("--before", metavar="ID", help="Go on behind this one.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=records.PAGE_MAX)] = 20,
) -> Output:
    """List the newest purchases at suppliers."""
    async with context.connection() as connection:
        if supplier is not None:
            await supplier_store.supplier(connection, supplier)
        found = await records.newest(
            connection,
            supplier=supplier,
            phase=None if status is None else AttemptPhase[status.name],
            problem=problem,
            before=None if before is None else await _record(connection, before),
            limit=limit,
        )
    return listed(found, more=len(found) == limit)


@command(app, "show")
async def show(context: CommandContext, attempt_id: Id) -> Output:
    """Show a purchase: for whom it was made, what it brought, and what people did about it."""
    async with context.connection() as connection:
        record = await _record(connection, attempt_id)
        names = await context.identifiers(connection)
        return shown(
            record,
            await records.bought_for(connection, record.id),
            await records.lots(connection, record.id),
            await records.deeds(connection, record.id),
            names,
            await connection.fetchval("SELECT now()"),
        )


@command(app, "retry")
async def retry(context: CommandContext, attempt_id: Id, by: By, note: Note = "") -> Output:
    """Ask the supplier once more what became of an unknown purchase. Nothing is bought."""
    with usage():
        hand = by_hand.hand_of(context.actor, by, note)
    async with context.pool() as pool:
        record, attempt = await _both(pool, attempt_id)
        async with pool.acquire() as connection:
            row = await supplier_store.supplier(connection, record.supplier)
        if not registry.can_look_up(row.kind, row.config):
            raise CommandRefused(
                f"{row.name} can't be asked about purchases: settle it with `voucherd attempt settle`"
            )
        try:
            await by_hand.retry(pool, attempt, hand)
        except AttemptClosed as refused:
            raise CommandRefused(_standing(record, refused.phase)) from None
    return Output({"attempt": attempt.reference, "retried": True}, f"{row.name} is asked again now.")


@command(app, "settle")
async def settle(
    context: CommandContext,
    attempt_id: Id,
    by: By,
    note: Note,
    failed: Annotated[bool, typer.Option("--failed", help="Nothing (more) was bought.")] = False,
    codes: Annotated[
        typer.FileBinaryRead | None,
        typer.Option(
            "--codes", metavar="FILE", help="These were bought: CSV or XLSX of code,serial,expires."
        ),
    ] = None,
    price: Annotated[
        str | None, typer.Option("--price", metavar="'9.10 EUR'", help="What one code cost; else as quoted.")
    ] = None,
    external_id: Annotated[
        str | None, typer.Option("--external-id", metavar="ID", help="The supplier's name for the purchase.")
    ] = None,
) -> Output:
    """Say what became of a purchase: nothing, so that its lines are bought elsewhere; or these codes."""
    with usage():
        hand = by_hand.hand_of(context.actor, by, note)
    if failed == (codes is not None):
        raise typer.BadParameter("give --failed or --codes FILE")
    if failed and (price or external_id):
        raise typer.BadParameter("--price and --external-id go with --codes")
    if external_id is not None and not 1 <= len(external_id) <= EXTERNAL_ID_CHARS_MAX:
        raise typer.BadParameter(f"--external-id: must be 1 to {EXTERNAL_ID_CHARS_MAX} characters")
    cost = None if price is None else read_money("price", price)
    async with context.pool() as pool:
        record, attempt = await _both(pool, attempt_id)
        caches = OrderCaches.empty(context.settings)
        try:
            if codes is None:
                await by_hand.fail(pool, caches, attempt, hand)
            else:
                bought = Bought(await read_codes(context, codes), external_id, cost)
                await take_in(context, pool, caches, attempt, bought, hand)
        except AttemptClosed as refused:
            raise CommandRefused(_standing(record, refused.phase)) from None
        except TooEarly:
            raise CommandRefused(
                f"a request may be on its way to {record.supplier} until {record.settles_at:%H:%M:%S} UTC: "
                f"what is settled before may be bought twice"
            ) from None
        async with pool.acquire() as connection:
            after = await _record(connection, str(record.id))
    return settled(record, after)


@command(app, "quarantine")
async def quarantine(
    context: CommandContext,
    attempt_id: Id,
    by: By,
    reveal: Annotated[bool, typer.Option("--reveal", help="Print the codes: it is written down.")] = False,
    note: Note = "",
) -> Output:
    """List the codes of a purchase that can't be sold, masked unless you ask to see them."""
    with usage():
        hand = by_hand.hand_of(context.actor, by, note)
    async with context.pool() as pool:
        _, attempt = await _both(pool, attempt_id)
        async with pool.acquire() as connection:
            sealer = await context.sealer(connection)
        found = await by_hand.quarantined(pool, sealer, attempt, hand, reveal=reveal)
    lines = [
        {
            "code": one.code if reveal else masked(one.code),
            "serial": one.serial if reveal else masked(one.serial),
            "reason": one.reason,
            "at": one.at,
        }
        for one in found
    ]
    view = table(
        ["~code", "~serial", "reason", "since"],
        [tuple(line.values()) for line in lines],
        empty="Nothing of this purchase is in quarantine.",
    )
    return Output({"attempt": attempt.reference, "revealed": reveal and bool(found), "codes": lines}, view)


async def _record(connection: Connection, text: str) -> Record:
    """The purchase of that id, or of the only one that begins so."""
    digits = text.strip().lower().replace("-", "")
    if not re.fullmatch(rf"[0-9a-f]{{{ID_DIGITS_MIN},{ID_DIGITS}}}", digits):
        raise typer.BadParameter(
            f"{text[:40]!r} is not the id of a purchase, nor {ID_DIGITS_MIN} digits of one"
        )
    found = await records.find(connection, digits)
    if not found:
        raise CommandRefused(f"there is no purchase {text[:40]}")
    if len(found) > 1:
        raise CommandRefused(f"more than one purchase begins with {text[:40]}: give more digits")
    return found[0]


async def _both(pool: Pool, text: str) -> tuple[Record, Attempt]:
    """The purchase as the operator sees it, and as the dispatcher does."""
    async with pool.acquire() as connection:
        record = await _record(connection, text)
        attempt = await attempts.find(connection, record.id)
    assert attempt is not None, "attempts are never deleted"
    return record, attempt


def _standing(record: Record, phase: AttemptPhase) -> str:
    """Why nothing can be done about a purchase as it stands."""
    who = f"purchase {record.id}"
    match phase:
        case AttemptPhase.CALLING:
            return f"{who} is being made at this moment: wait until the call has ended"
        case AttemptPhase.ASKING:
            return f"{who} is being asked about already"
        case AttemptPhase.BOUGHT:
            return f"{who} is bought already ({record.codes} of {record.count} codes)"
        case AttemptPhase.FAILED:
            return f"{who} has failed already"
        case _:
            return f"{who} is unknown: settle it or ask again"
