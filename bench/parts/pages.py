"""Every page that can be read, with many orders and products behind it; each beside Find in the same run."""

from __future__ import annotations

import re
from typing import Final

import httpx

from bench.figures import Row, judged
from bench.goods import stock_catalogue
from bench.session import SLUG, Session, sound
from bench.stage import Server
from voucherd.db import transaction
from voucherd.pages.page import Audience, Page
from voucherd.pages.routes import PAGES
from voucherd.people import sessions, user_store
from voucherd.people.sessions import Browser
from voucherd.people.users import UserDraft

P95_MS_MAX: Final = 50.0
PAGE_S: Final = 0.6
WARM_S: Final = 0.2
SHOWN: Final = 8
FILE_S_MAX: Final = 300.0
ENDLESS: Final = re.compile(r"/live$")
_PLACE: Final = re.compile(r"\{([a-z_]+)\}")


async def measure(session: Session) -> None:
    """Open each page again and again from one connection, as one person would."""
    async with session.stage.server() as server:
        company_id, trx = await _history(session, server)
        key = session.keys_by_company[company_id]
        how = {"warm_s": session.plan.warm_s, "load_s": session.plan.load_s}
        find = sound(await server.load(keys=[key], paths=[f"/api/1.03/order/{trx}"], connections=1, **how))
        session.add(Row(what="find, 1 conn.", rate=find.rate, times=find.first, tally=find))
        places = {"trx": trx, "order": trx, "slug": SLUG, "product": SLUG}
        places |= {"company": str(company_id), "company_id": str(company_id)}
        for audience, name, role, currency in (
            (Audience.COMPANY, "portal", "owner", "EUR"),
            (Audience.OPERATOR, "console", "admin", "USD"),
        ):
            of_company = company_id if audience is Audience.COMPANY else None
            cookie = await _signed_in(session, role, of_company)
            places["currency"] = currency
            # Reports, files and the check of the trail read all there is, and have minutes for it.
            quick = [page for page in PAGES if page.audience is audience and not page.slow]
            paths = [_filled(page, places) for page in quick]
            shown = await _shown(server, [path for path in paths if path is not None], cookie)
            rows = [await _row(server, path, cookie, find.first.p50_ms) for path in shown]
            rows.sort(key=lambda row: -(row.times.p95_ms if row.times else 0.0))
            worst = rows[0].times
            assert worst is not None
            session.add(
                Row(
                    what=f"{name}: {len(rows)} pages, the slowest",
                    times=worst,
                    more=f"p95 {worst.p95_ms:.1f} ms at {rows[0].what}",
                    goal=judged(f"p95 < {P95_MS_MAX:g} ms", worst.p95_ms < P95_MS_MAX),
                )
            )
            for row in rows[:SHOWN]:
                session.add(row)


async def _history(session: Session, server: Server) -> tuple[int, str]:
    """A company with many orders beside a large catalogue; its id, and an order that was delivered."""
    plan, pool = session.plan, session.stage.pool
    company_id, key = next(iter(session.keys_by_company.items()))
    await session.fill_shelf()
    sound(await server.load(keys=[key], connections=1, operation="confirm", slug=SLUG, rounds_max=20))
    order_id = await pool.fetchval(
        "SELECT id FROM orders WHERE company_id = $1 AND status = 2 ORDER BY created_at DESC LIMIT 1",
        company_id,
    )
    await session.seeder.old_orders(order_id, plan.page_orders)
    await stock_catalogue(pool, plan.page_products, 0)
    await pool.execute("VACUUM ANALYZE")
    return company_id, session.seeder.ids.trx(order_id)


async def _signed_in(session: Session, role: str, company_id: int | None) -> str:
    async with transaction(session.stage.pool) as tx:
        draft = UserDraft(f"{role}@bench.example", company_id, role)
        user = await user_store.add_user(tx, draft, "no password opens this")
        token = await sessions.begin(tx, user.id, Browser("127.0.0.1", "bench"), strong=True)
    return f"voucherd={token}"


async def _shown(server: Server, paths: list[str], cookie: str) -> list[str]:
    """Those that show a page. Some are files, and some lead elsewhere, such as the one to cancel what is delivered."""
    url = f"http://127.0.0.1:{server.port}"
    headers = {"cookie": cookie, "accept": "text/html"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=FILE_S_MAX) as client:
        answers = [(path, await client.get(path)) for path in paths]
    broken = [path for path, answer in answers if answer.status_code not in (200, 303)]
    assert not broken, f"not to be opened: {broken}"
    pages = [
        path for path, answer in answers if answer.headers.get("content-type", "").startswith("text/html")
    ]
    return [path for path, answer in answers if path in pages and answer.status_code == 200]


async def _row(server: Server, path: str, cookie: str, find_ms: float) -> Row:
    how = {"warm_s": WARM_S, "load_s": PAGE_S}
    tally = sound(await server.load(keys=[""], paths=[path], connections=1, cookie=cookie, **how))
    times = tally.first
    more = f"p95 {times.p95_ms:.1f} ms, {times.p50_ms / find_ms:.1f} × Find, {tally.bytes_max / 1000:.0f} KB"
    return Row(what=path, rate=tally.rate, times=times, tally=tally, more=more)


def _filled(page: Page, places: dict[str, str]) -> str | None:
    """The path of a page that can be read; None for a form, for one without an end, or of a thing not made here."""
    names = _PLACE.findall(page.path)
    if page.method != "GET" or ENDLESS.search(page.path) or not set(names) <= set(places):
        return None
    return page.path.format(**places)
