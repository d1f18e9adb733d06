"""Lots and late codes in the console: what is left, what it is worth, and when it expires. Never a code."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final

from voucherd.catalogue import store as catalogue
from voucherd.catalogue.rules import is_slug
from voucherd.db import Connection
from voucherd.http import Response
from voucherd.pages.console.purchases import before_of
from voucherd.pages.forms import whole
from voucherd.pages.render import qualified, render
from voucherd.pages.visit import Visit
from voucherd.purchasing import records
from voucherd.purchasing.records import PurchaseProblem
from voucherd.vault import lots as shelves
from voucherd.vault import store as vault
from voucherd.vault.store import LotLine

PAGE_SIZE: Final = 50
SOON: Final = timedelta(days=30)


async def lots(visit: Visit) -> Response:
    """The lots: what expires first, or the newest with those that are sold out."""
    slug, sold_out = visit.query.get("slug"), visit.query.get("sold_out") == "yes"
    before, after = visit.query.get("before"), visit.query.get("after")
    async with visit.pool.acquire() as conn:
        now = await conn.fetchval("SELECT now()")
        product_id = await _product(conn, slug) if slug else None
        found: list[LotLine] = []
        if slug and product_id is None:
            pass
        elif sold_out:
            found = await vault.list_lots(
                conn,
                slug=slug or None,
                state=visit.state,
                sold_out=True,
                before=whole(before),
                limit=PAGE_SIZE + 1,
            )
        else:
            found = await shelves.by_expiry(
                conn, visit.state, product_id=product_id, after=_place(after), size=PAGE_SIZE + 1
            )
    page = found[:PAGE_SIZE]
    given = {"slug": slug, "sold_out": "yes" if sold_out else ""}
    onward = ""
    if len(found) > PAGE_SIZE:
        place = {"before": str(page[-1].id)} if sold_out else {"after": _written(page[-1])}
        onward = qualified("/console/lots", given | place)
    return render(
        "console/lots.html",
        visit,
        rows=[(lot, *_warning(lot, now)) for lot in page],
        slug=slug,
        sold_out=given["sold_out"],
        problem="There is no product of that slug." if slug and product_id is None else "",
        before=qualified("/console/lots", given) if before or after else "",
        after=onward,
    )


async def late(visit: Visit) -> Response:
    """Codes that came when no line wanted them any more (OP-46)."""
    async with visit.pool.acquire() as conn:
        found = await records.newest(
            conn,
            problem=PurchaseProblem.LATE,
            state=visit.state,
            before=await before_of(conn, visit),
            limit=PAGE_SIZE + 1,
        )
        page = found[:PAGE_SIZE]
        left = await records.left_of(conn, [one.id for one in page])
    return render(
        "console/late.html",
        visit,
        rows=[(one, left.get(one.id, 0)) for one in page],
        after=qualified("/console/late-codes", {"before": page[-1].id}) if len(found) > PAGE_SIZE else "",
    )


async def _product(conn: Connection, slug: str) -> int | None:
    listing = (await catalogue.current(conn, [slug])).get(slug) if is_slug(slug) else None
    return None if listing is None else listing.version.product_id


def _warning(lot: LotLine, now: datetime) -> tuple[str, str]:
    """How to mark a lot, and what to say."""
    if lot.left == 0:
        return "", "sold out"
    if lot.expires_at is None or lot.expires_at > now + SOON:
        return "", ""
    if lot.expires_at <= now:
        return "bad", "expired"
    days = (lot.expires_at - now).days
    return "warn", "today" if days == 0 else f"in {days} day{'s' if days > 1 else ''}"


def _written(lot: LotLine) -> str:
    """The place of a lot in the list, for the next page's address."""
    since = None if lot.expires_at is None else lot.expires_at - datetime.fromtimestamp(0, UTC)
    expiry = "never" if since is None else str(since // timedelta(microseconds=1))
    return f"{expiry}.{lot.id}"


def _place(text: str) -> tuple[datetime | None, int] | None:
    expiry, _, last = text.partition(".")
    number, lot_id = whole(expiry), whole(last)
    if lot_id is None or (number is None and expiry != "never"):
        return None
    if number is None:
        return None, lot_id
    with suppress(OverflowError, ValueError):
        # In whole microseconds: a float would lose some of them.
        return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=number), lot_id
    return None
