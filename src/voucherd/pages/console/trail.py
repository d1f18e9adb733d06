"""The audit trail: who did what, from where, and whether its chain is whole; and who has seen an order's codes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any, Final

from voucherd import trail
from voucherd.actors import ActorKind
from voucherd.companies import store as company_store
from voucherd.db import Connection
from voucherd.http import HttpError, Response
from voucherd.pages.console.inputs import (
    FILE_ROWS_MAX,
    company_in_query,
    company_options,
    number_of,
    optional_day,
)
from voucherd.pages.console.orders import names_of
from voucherd.pages.console.timeline import VIAS, viewer_words
from voucherd.pages.render import qualified, render, sheet
from voucherd.pages.visit import Visit
from voucherd.people import user_store
from voucherd.sheets.writing import Row
from voucherd.sorting import OLDEST, by_time
from voucherd.trail import TrailFilters, TrailPage, TrailRow, archived, chain
from voucherd.trail import heads as heads_file
from voucherd.trail.verification import Flaw, verify
from voucherd.vault import reveals
from voucherd.vault.reveals import OrderReveals

PAGE: Final = 40
PEOPLE_MAX: Final = 500
"""People whose name holds what is looked for, and whose deeds are shown."""
REVEALS_SHOWN_MAX: Final = 200
FLAWS_SHOWN_MAX: Final = 20
VERIFY_S_MAX: Final = 20.0
FILE_COLUMNS: Final = (
    *("at", "by", "who", "name", "action", "subject", "detail", "company", "state", "address", "request"),
)
_FILTERS: Final = ("actor", "action", "company", "from", "to")


async def deeds_done(visit: Visit) -> Response:
    """What was done, newest first unless the address says otherwise, with filters."""
    chosen = {name: visit.query.get(name)[:300] for name in _FILTERS}
    kept = chosen | {"sort": by_time(visit.query.get("sort"))}
    found = TrailPage([], None)
    async with visit.pool.acquire() as conn:
        filters = await _filters(conn, visit)
        if not visit.problems:
            before = number_of(visit.query.get("before"))
            found = await trail.search(
                conn, filters, before=before, limit=PAGE, oldest=kept["sort"] == OLDEST
            )
        names = await _company_names(conn, found.rows)
        people = await _people(conn, found.rows)
        companies = await company_options(conn)
        heads = await chain.heads(conn)
    path = "/console/trail"
    return render(
        "console/trail.html",
        visit,
        rows=[
            (row, people.get(_number(row), ""), names.get(row.company_id or 0), _words(row.detail))
            for row in found.rows
        ],
        chosen=chosen,
        companies=[("", "Every company"), *companies],
        heads=heads,
        sort=kept["sort"],
        first=qualified(path, kept) if visit.query.get("before") else "",
        after="" if found.before is None else qualified(path, kept | {"before": found.before}),
        archived_until=found.archived_until,
    )


async def deeds_file(visit: Visit) -> Response:
    """The same deeds as a file."""
    filters = await visit.look(_filters, visit)
    if visit.problems:
        raise HttpError(400, "bad_filter", " ".join(visit.problems.values()))
    return await sheet(visit, "audit-trail", FILE_COLUMNS, _file_rows(visit, filters), title="Audit trail")


async def _file_rows(visit: Visit, filters: TrailFilters) -> AsyncIterator[list[Row]]:
    before, oldest = None, visit.query.get("sort") == OLDEST
    for _ in range(FILE_ROWS_MAX // trail.PAGE_MAX):
        async with visit.pool.acquire() as conn:
            found = await trail.search(conn, filters, before=before, limit=trail.PAGE_MAX, oldest=oldest)
            names = await _company_names(conn, found.rows)
            people = await _people(conn, found.rows)
        yield [
            (
                *(row.at, row.actor_kind.word, row.actor, people.get(_number(row), "")),
                *(row.action, row.subject, _words(row.detail)),
                names.get(row.company_id or 0),
                *(None if row.state is None else row.state.word, row.address, row.request_id),
            )
            for row in found.rows
        ]
        before = found.before
        if before is None:
            return


async def _filters(conn: Connection, visit: Visit) -> TrailFilters:
    """What the address asks for; what it asks wrongly is a problem beside its field."""
    first, last = visit.ask("from", optional_day), visit.ask("to", optional_day)
    actor = visit.query.get("actor")[:300] or None
    named = [] if actor is None else await user_store.search_users(conn, actor, PEOPLE_MAX)
    return TrailFilters(
        company_id=await company_in_query(conn, visit),
        actor=actor,
        people=tuple(one.id for one in named),
        action=visit.query.get("action")[:300] or None,
        since=None if first is None else visit.words.midnight(first),
        until=None if last is None else visit.words.midnight(last + timedelta(days=1)),
    )


async def _company_names(conn: Connection, rows: Sequence[TrailRow]) -> dict[int, str]:
    named = {row.company_id for row in rows if row.company_id is not None}
    return {key: one.name for key, one in (await company_store.companies(conn, named)).items()}


async def _people(conn: Connection, rows: Sequence[TrailRow]) -> dict[int, str]:
    """The names of the people that did these deeds; the trail itself keeps their addresses."""
    return {one.id: one.name for one in await user_store.find_users(conn, {_number(row) for row in rows})}


def _number(row: TrailRow) -> int:
    """The number of the person who did it; 0 where it was no person."""
    return (row.actor_id or 0) if row.actor_kind in (ActorKind.PERSON, ActorKind.OPERATOR) else 0


async def check_trail(visit: Visit) -> Response:
    """Whether any row of the trail was changed since it was sealed."""
    flaws: list[Flaw] = []
    whole = True
    try:
        async with asyncio.timeout(VERIFY_S_MAX), visit.pool.acquire() as conn:
            async with conn.transaction(isolation="repeatable_read", readonly=True):
                noted = heads_file.read_file(visit.services.settings.data / heads_file.FILE)
                async for flaw in verify(conn, visit.services.sealer.trail_key, noted):
                    flaws.append(flaw)
                    if len(flaws) == FLAWS_SHOWN_MAX:
                        break
            heads, filed = await chain.heads(conn), await archived.count(conn)
    except TimeoutError:
        whole, heads, filed = False, [], 0
    return render(
        "console/trail_check.html",
        visit,
        flaws=flaws,
        whole=whole,
        heads=heads,
        filed=filed,
        longest=VERIFY_S_MAX,
    )


async def reveals_of(visit: Visit) -> Response:
    """Who has seen the codes of one order."""
    trx = visit.query.get("trx")
    order_id = visit.services.ids.order_id(trx) if trx else None
    found, names = OrderReveals([], None), {}
    if order_id is not None:
        async with visit.pool.acquire() as conn:
            found = await reveals.of_order(conn, order_id, REVEALS_SHOWN_MAX)
            names = await names_of(conn, found.rows)
    unknown = bool(trx) and order_id is None
    return render(
        "console/reveals.html",
        visit,
        status=422 if unknown else 200,
        trx=trx,
        unknown=unknown,
        rows=[(row, viewer_words(names, row.actor_kind, row.actor_id), VIAS[row.via]) for row in found.rows],
        archived_until=found.archived_until,
    )


def _words(detail: dict[str, Any] | None) -> str:
    return ", ".join(f"{name} {value}" for name, value in (detail or {}).items())
