"""The audit trail: who did what, from where, and whether its chain is whole; and who has seen an order's codes."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, Final

from voucherd import trail
from voucherd.companies import store as company_store
from voucherd.companies.model import CompanyNotFound
from voucherd.http import Response
from voucherd.pages.console.inputs import number_of, optional_day
from voucherd.pages.forms import midnight
from voucherd.pages.render import qualified, render
from voucherd.pages.visit import Visit
from voucherd.trail import TrailFilters, TrailPage, archived, chain
from voucherd.trail import heads as heads_file
from voucherd.trail.verification import Flaw, verify
from voucherd.vault import reveals
from voucherd.vault.reveals import OrderReveals

PAGE: Final = 50
REVEALS_SHOWN_MAX: Final = 200
FLAWS_SHOWN_MAX: Final = 20
VERIFY_S_MAX: Final = 20.0
_FILTERS: Final = ("actor", "action", "company", "from", "to")


async def deeds_done(visit: Visit) -> Response:
    """What was done, newest first, with filters."""
    chosen = {name: visit.query.get(name)[:300] for name in _FILTERS}
    first, last = visit.ask("from", optional_day), visit.ask("to", optional_day)
    found = TrailPage([], None)
    async with visit.pool.acquire() as conn:
        owner = None
        if chosen["company"]:
            try:
                owner = (await company_store.find_company(conn, chosen["company"])).id
            except CompanyNotFound as unknown:
                visit.problems["company"] = str(unknown)
        if not visit.problems:
            filters = TrailFilters(
                company_id=owner,
                actor=chosen["actor"] or None,
                action=chosen["action"] or None,
                since=None if first is None else midnight(first),
                until=None if last is None else midnight(last + timedelta(days=1)),
            )
            before = number_of(visit.query.get("before"))
            found = await trail.search(conn, filters, before=before, limit=PAGE)
        named = {row.company_id for row in found.rows if row.company_id is not None}
        names = {key: one.name for key, one in (await company_store.companies(conn, named)).items()}
        heads = await chain.heads(conn)
    path = "/console/trail"
    return render(
        "console/trail.html",
        visit,
        rows=[(row, names.get(row.company_id or 0), _words(row.detail)) for row in found.rows],
        chosen=chosen,
        heads=heads,
        newest=qualified(path, chosen) if visit.query.get("before") else "",
        older="" if found.before is None else qualified(path, chosen | {"before": found.before}),
        archived_until=found.archived_until,
    )


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
    found = OrderReveals([], None)
    if order_id is not None:
        found = await visit.look(reveals.of_order, order_id, REVEALS_SHOWN_MAX)
    unknown = bool(trx) and order_id is None
    return render(
        "console/reveals.html",
        visit,
        status=422 if unknown else 200,
        trx=trx,
        unknown=unknown,
        rows=found.rows,
        archived_until=found.archived_until,
    )


def _words(detail: dict[str, Any] | None) -> str:
    return ", ".join(f"{name} {value}" for name, value in (detail or {}).items())
