"""`voucherd trail`: who did what, from where; and the head of its chain, to be noted elsewhere (OP-94)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final

import typer
from typer import Argument, Option

from voucherd import trail
from voucherd.archive import blocks
from voucherd.cli.command import command, noun
from voucherd.cli.context import CommandContext, warn
from voucherd.cli.output import CommandRefused, Output, facts, listed
from voucherd.cli.words import read_moment
from voucherd.clock import iso
from voucherd.companies import store as company_store
from voucherd.trail import TrailRow, archived, chain, heads
from voucherd.trail.chain import REVEAL, Head
from voucherd.vault import reveals
from voucherd.vault.reveals import RevealRow

ROWS_SHOWN: Final = 50

app = noun()


@command(app, "list")
async def list_(
    context: CommandContext,
    company: Annotated[str | None, Option(metavar="COMPANY", help="Only what concerns it.")] = None,
    actor: Annotated[str | None, Option(help="Only what somebody of this name did.")] = None,
    action: Annotated[
        str | None, Option(metavar="key.revoke", help="Only this; `key` means all of key.…")
    ] = None,
    since: Annotated[
        datetime | None, Option(parser=read_moment, metavar="DATE", help="Only from then on.")
    ] = None,
    before: Annotated[
        int | None, Option(metavar="ID", min=1, help="Go on from the last row of a page.")
    ] = None,
    limit: Annotated[int, Option(min=1, max=trail.PAGE_MAX)] = ROWS_SHOWN,
) -> Output:
    """List what was done, newest first."""
    async with context.connection() as connection:
        owner = None if company is None else (await company_store.find_company(connection, company)).id
        found = await trail.page(
            connection, company_id=owner, actor=actor, action=action, since=since, before=before, limit=limit
        )
        rows = found.rows
        names = {row.company_id for row in rows if row.company_id is not None}
        companies = {key: one.name for key, one in (await company_store.companies(connection, names)).items()}
    if found.archived_until is not None:
        warn(f"deeds up to {iso(found.archived_until)} are in the archive, and in no list")
    return listed(
        [_document(row, companies) for row in rows],
        [
            *(">id", "at", ("who", "actor"), ("did", "action"), ("~to", "subject"), "?company"),
            ("?from", "address"),
            (
                "?detail",
                lambda row: " ".join(f"{key}={value}" for key, value in (row["detail"] or {}).items()),
            ),
        ],
        empty="Nothing of this sort was done.",
    )


@command(app, "reveals")
async def reveals_(
    context: CommandContext,
    trx: Annotated[str, Argument(metavar="TRX")],
    limit: Annotated[int, Option(min=1, max=trail.PAGE_MAX)] = ROWS_SHOWN,
) -> Output:
    """List who has seen codes of an order, newest first."""
    async with context.connection() as connection:
        order_id = (await context.identifiers(connection)).order_id(trx)
        if order_id is None:
            raise CommandRefused(f"there is no order {trx[:40]}")
        rows, until = await reveals.of_order(connection, order_id, limit)
        files = [] if until is None else await archived.files(connection, REVEAL.name)
    # The files are read when nothing waits for them any more.
    if len(rows) < limit:
        folder = context.settings.archive_folder
        rows += map(_archived, blocks.find_reveals(folder, files, order_id, limit - len(rows)))
    return listed(
        [facts(row, "id at actorKind actorId via lineFrom codes address", codes=row.lines) for row in rows],
        [
            *(">id", "at"),
            (
                "who",
                lambda row: f"{row['actorKind']} {'' if row['actorId'] is None else row['actorId']}".strip(),
            ),
            *("via", (">from line", "lineFrom"), ">codes", ("?from", "address")),
        ],
        empty="Nobody has seen a code of this order.",
    )


def _archived(row: dict[str, Any]) -> RevealRow:
    """A reveal as it lies in a file: with its moment in microseconds, and an address with its mask."""
    address = None if row["address"] is None else row["address"].partition("/")[0]
    return reveals.row_of({**row, "at": blocks.moment(row["at"]), "address": address})


@command(app, "head")
async def head(
    context: CommandContext,
    noted: Annotated[
        list[str] | None, Option(metavar="BOOK:BLOCK:HASH", help="Refuse unless it is in the chain.")
    ] = None,
) -> Output:
    """Print the newest hash of each chain: noted elsewhere, it proves later that nothing before it was changed."""
    wanted = [noted_head(text) for text in noted or ()]
    async with context.connection() as connection:
        for one in wanted:
            if not await chain.holds(connection, one):
                raise CommandRefused(
                    f"{one.book} has no block {one.block} with that hash: its chain was rewritten"
                )
        found = await chain.heads(connection)
    return Output(
        [facts(one, "book block", hash=one.hash.hex()) for one in found],
        "\n".join(map(str, found)) or "Nothing is sealed yet: a worker does it within seconds.",
    )


def noted_head(text: str) -> Head:
    """The head that somebody noted; refused if it is none."""
    try:
        return heads.read_head(text)
    except heads.NoHead:
        raise typer.BadParameter(
            f"{text[:100]!r} is not a head such as `voucherd trail head` prints"
        ) from None


def _document(row: TrailRow, companies: dict[int, str]) -> dict[str, Any]:
    return facts(
        row,
        "id at actorKind actorId actor action subject company state address requestId detail",
        company=companies.get(row.company_id or 0),
    )
