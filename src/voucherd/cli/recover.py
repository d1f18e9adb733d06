"""`voucherd recover`: makes a database that was restored to an earlier moment safe to sell from."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from typer import Option

from voucherd.cli.command import command, noun
from voucherd.cli.context import CommandContext
from voucherd.cli.output import CommandRefused, Output, facts, stacked, table_of
from voucherd.cli.words import priced, read_moment
from voucherd.db import Connection, transaction
from voucherd.migrate import connected
from voucherd.recovery import deeds, store, words
from voucherd.recovery.deeds import LotPlan, Plan
from voucherd.vault import withheld
from voucherd.vault.master_key import has_master
from voucherd.vault.withheld import Serials

app = noun()


@command(app, "recover")
async def recover(
    context: CommandContext,
    moment: Annotated[
        datetime | None,
        Option(parser=read_moment, metavar="TIME", help="To when it was restored, if other tools did it."),
    ] = None,
    sold: Annotated[
        list[str] | None, Option(metavar="LOT=N", help="Of this lot at most N codes were sold since.")
    ] = None,
    old_database: Annotated[
        str | None, Option(metavar="URL", help="The lost database, if it can still be read.")
    ] = None,
    nothing_sold: Annotated[
        bool, Option("--nothing-sold", help="Nothing was sold since: withhold no code but of lots named.")
    ] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Show what it would do, and change nothing.")] = False,
) -> Output:
    """Withhold the codes that may have been sold after the moment of a restore, and start a new epoch of numbers."""
    sold_max, otherwise = dict(map(_bound, sold or ())), 0 if nothing_sold else None
    # Only the tables' owner may let numbers jump; nobody serves the embedded database meanwhile.
    async with context.owner_pool(exclusive=True) as pool:
        async with pool.acquire() as connection:
            if old_database is not None:
                sold_max = await _sold_there(connection, old_database) | sold_max
            found, _ = await deeds.find_moment(connection, context.settings.data, moment)
            done = await deeds.plan(connection, found, sold_max, otherwise=otherwise)
            serials, trx = await _named(context, connection, done)
        if not dry_run:
            async with transaction(pool) as tx:
                done = await deeds.recover(
                    tx, context.actor, context.settings.data, moment, sold_max, otherwise=otherwise
                )
    document = {
        "done": not dry_run,
        "moment": done.moment,
        "lots": [_document(one, serials) for one in done.live],
        "codes": sum(one.count for one in done.live),
        "ordersOpen": done.orders_open,
        "orders": trx,
        "steps": list(words.OPERATOR_STEPS),
        "tellClients": words.client_letter(done.moment, done.now),
    }
    return Output(document, _view(document))


def _bound(text: str) -> tuple[int, int]:
    lot, _, count = text.partition("=")
    if not (lot.isdecimal() and count.isdecimal() and len(lot) < 19 and len(count) < 10):
        raise typer.BadParameter(f"{text[:40]!r} is not a lot and a number of codes such as 42=100")
    return int(lot), int(count)


async def _sold_there(connection: Connection, url: str) -> dict[int, int]:
    """How many codes of each lot the lost database sold since."""
    here = {one.lot: one.cursor for one in await withheld.at_risk(connection)}
    async with connected(url) as old:
        there = await store.cursors(old, list(here))
    if any(there.get(lot, -1) < cursor for lot, cursor in here.items()):
        raise CommandRefused("that database has sold less than this one: it is not the one that was lost")
    return {lot: there[lot] - cursor for lot, cursor in here.items()}


async def _named(
    context: CommandContext, connection: Connection, plan: Plan
) -> tuple[Mapping[int, Serials], list[str]]:
    """The serials at both ends of what is withheld, and the open orders; nothing where the master key is not."""
    if not has_master(context.settings):
        return {}, []
    ring = await context.key_ring(connection)
    places = [(one.lot.lot, one.lot.cursor, one.end) for one in plan.live]
    serials = await withheld.ends_of(connection, ring.sealer, places)
    return serials, [ring.identifiers().trx_unkept(order_id) for order_id in plan.orders_shown]


def _document(one: LotPlan, serials: Mapping[int, Serials]) -> dict[str, Any]:
    first, last = serials.get(one.lot.lot, (None, None))
    return facts(
        one.lot,
        "lot product faceValue faceValueCurrency supplier withheld goesOn value valueCurrency firstSerial lastSerial",
        **priced("faceValue", one.lot.face.minor, one.lot.face.currency),
        withheld=one.count,
        goesOn=one.lot.size - one.end,
        **priced("value", one.lot.purchase.minor * one.count, one.lot.purchase.currency),
        firstSerial=first,
        lastSerial=last,
    )


def _view(document: Mapping[str, Any]) -> RenderableType:
    verb = "withheld" if document["done"] else "would be withheld"
    lots = table_of(
        document["lots"],
        [
            *(">lot", "product", (">face value", "faceValue faceValueCurrency"), ">withheld"),
            *((">goes on with", "goesOn"), (">at cost", "value valueCurrency")),
            *(("?first serial", "firstSerial"), ("?last serial", "lastSerial")),
        ],
        empty="No live lot has a code left that could be sold.",
    )
    lines = [
        f"Restored to {document['moment']:%Y-%m-%d %H:%M:%S} UTC: {document['codes']:,} codes {verb}.",
        "",
    ]
    after = [""]
    if document["ordersOpen"]:
        after += [
            f"{document['ordersOpen']} orders waited for codes at that moment. They may have been delivered or "
            "refunded since, and will be served again; cancel those that were:",
            *(f"  {trx}" for trx in document["orders"]),
            "",
        ]
    if document["done"]:
        after += [
            "No number of an order, event, lot or webhook of the lost time will come again.",
            "",
            "Now:",
        ]
        after += [f"{at}. {step}" for at, step in enumerate(document["steps"], start=1)]
        after += ["", "Tell your clients:", "", document["tellClients"]]
    else:
        after.append("Nothing was changed.")
    return stacked("\n".join(lines), lots, "\n".join(after))
