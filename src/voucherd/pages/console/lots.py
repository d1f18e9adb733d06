"""Lots and late codes in the console: what is left, what it is worth, and when it expires. Never a code."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from voucherd.catalogue import store as catalogue
from voucherd.catalogue.rules import is_slug
from voucherd.db import Connection
from voucherd.http import HttpError, Response
from voucherd.ids import State
from voucherd.pages.console.inputs import FILE_ROWS_MAX, picked, product_names, product_options
from voucherd.pages.console.purchases import before_of
from voucherd.pages.forms import whole
from voucherd.pages.render import qualified, render, sheet
from voucherd.pages.visit import Visit
from voucherd.purchasing import records
from voucherd.purchasing.records import PurchaseProblem, Record
from voucherd.sheets.writing import Row
from voucherd.sorting import chosen
from voucherd.vault import lots as shelves
from voucherd.vault import store as vault
from voucherd.vault.store import LotLine

PAGE_SIZE: Final = 50
SOON: Final = timedelta(days=30)
FILE_PAGE: Final = 1_000
FILE_COLUMNS: Final = (
    *(
        "lot",
        "product",
        "face value",
        "face currency",
        "left",
        "size",
        "cost of one",
        "currency",
        "value left",
    ),
    *("expires", "supplier", "imported"),
)
LATE_COLUMNS: Final = (
    "product",
    "supplier",
    "late codes",
    "cost",
    "currency",
    "left of its lots",
    "placed",
    "purchase",
)


async def lots(visit: Visit) -> Response:
    """The lots: what expires first, or the newest with those that are sold out."""
    before, after = visit.query.get("before"), visit.query.get("after")
    async with visit.pool.acquire() as conn:
        now = await conn.fetchval("SELECT now()")
        wanted = await _wanted(conn, visit)
        found: list[LotLine] = []
        if not visit.problems:
            found = await wanted.page(conn, whole(before), _place(after), PAGE_SIZE + 1)
        names = await product_names(conn, [one.slug for one in found])
        products = await product_options(conn)
    page = found[:PAGE_SIZE]
    given = {"slug": wanted.slug, "sold_out": "yes" if wanted.sold_out else "", "sort": wanted.sort}
    onward = ""
    if len(found) > PAGE_SIZE:
        place = {"before": str(page[-1].id)} if wanted.sold_out else {"after": _written(page[-1])}
        onward = qualified("/console/lots", given | place)
    return render(
        "console/lots.html",
        visit,
        rows=[(lot, names.get(lot.slug, lot.slug), *_warning(lot, now)) for lot in page],
        products=[("", "Every product"), *products],
        given=given,
        sort=wanted.sort,
        first=qualified("/console/lots", given) if before or after else "",
        after=onward,
    )


async def lots_file(visit: Visit) -> Response:
    """The same lots as a file."""
    wanted = await visit.look(_wanted, visit)
    if visit.problems:
        raise HttpError(400, "bad_filter", " ".join(visit.problems.values()))
    return await sheet(visit, "lots", FILE_COLUMNS, _file_rows(visit, wanted), title="Lots")


async def _file_rows(visit: Visit, wanted: LotFilters) -> AsyncIterator[list[Row]]:
    before, after = None, None
    for _ in range(FILE_ROWS_MAX // FILE_PAGE):
        async with visit.pool.acquire() as conn:
            found = await wanted.page(conn, before, after, FILE_PAGE)
        yield [_file_row(one) for one in found]
        if len(found) < FILE_PAGE:
            return
        before, after = found[-1].id, (found[-1].expires_at, found[-1].id)


def _file_row(lot: LotLine) -> Row:
    return (
        *(lot.id, lot.slug, lot.face.decimal(), lot.face.currency, lot.left, lot.size),
        *(lot.purchase.decimal(), lot.purchase.currency, lot.value_left.decimal()),
        *(lot.expires_at, lot.supplier, lot.imported_at),
    )


class LotFilters(NamedTuple):
    """Which lots the address asks for."""

    slug: str
    product_id: int | None
    sold_out: bool
    state: State
    sort: str

    async def page(
        self, conn: Connection, before: int | None, after: tuple[datetime | None, int] | None, size: int
    ) -> list[LotLine]:
        """Some of them, in the order of their age behind a lot, or of their expiry behind one."""
        if self.sold_out:
            slug = self.slug or None
            return await vault.list_lots(
                conn,
                slug=slug,
                state=self.state,
                sold_out=True,
                before=before,
                limit=size,
                oldest=self.sort == "added",
            )
        turned = self.sort == "-expires"
        return await shelves.by_expiry(
            conn, self.state, product_id=self.product_id, after=after, size=size, last_first=turned
        )


async def _wanted(conn: Connection, visit: Visit) -> LotFilters:
    slug = picked(visit.query.get("slug"))
    product_id = await _product(conn, slug) if slug else None
    if slug and product_id is None:
        visit.problems["slug"] = "There is no such product."
    sold_out, sort = visit.query.get("sold_out") == "yes", visit.query.get("sort")
    sort = chosen(sort, {"added"}, "-added") if sold_out else chosen(sort, {"expires"}, "expires")
    return LotFilters(slug, product_id, sold_out, visit.state, sort)


async def late(visit: Visit) -> Response:
    """Codes that came when no line wanted them any more (OP-46)."""
    path, sort = "/console/late-codes", chosen(visit.query.get("sort"), {"placed"}, "-placed")
    async with visit.pool.acquire() as conn:
        before = await before_of(conn, visit)
        found = await _late(conn, visit, before, PAGE_SIZE + 1)
        page = found[:PAGE_SIZE]
        left = await records.left_of(conn, [one.id for one in page])
        names = await product_names(conn, [one.slug for one in page])
    return render(
        "console/late.html",
        visit,
        rows=[(one, names.get(one.slug, one.slug), left.get(one.id, 0)) for one in page],
        sort=sort,
        first=qualified(path, {"sort": sort}) if before else "",
        after=qualified(path, {"sort": sort, "before": page[-1].id}) if len(found) > PAGE_SIZE else "",
    )


async def late_file(visit: Visit) -> Response:
    """The same as a file."""
    return await sheet(visit, "late-codes", LATE_COLUMNS, _late_rows(visit), title="Late codes")


async def _late_rows(visit: Visit) -> AsyncIterator[list[Row]]:
    before = None
    for _ in range(FILE_ROWS_MAX // records.PAGE_MAX):
        async with visit.pool.acquire() as conn:
            found = await _late(conn, visit, before, records.PAGE_MAX)
            left = await records.left_of(conn, [one.id for one in found])
        yield [
            (
                *(
                    one.slug,
                    one.supplier,
                    one.spare,
                    None if one.spare_cost is None else one.spare_cost.decimal(),
                ),
                *(one.cost_currency, left.get(one.id, 0), one.placed_at, str(one.id)),
            )
            for one in found
        ]
        if len(found) < records.PAGE_MAX:
            return
        before = found[-1]


async def _late(conn: Connection, visit: Visit, before: Record | None, limit: int) -> list[Record]:
    return await records.by_age(
        conn,
        problem=PurchaseProblem.LATE,
        state=visit.state,
        before=before,
        limit=limit,
        oldest=visit.query.get("sort") == "placed",
    )


async def _product(conn: Connection, slug: str) -> int | None:
    listing = (await catalogue.current(conn, [slug])).get(slug) if is_slug(slug) else None
    return None if listing is None else listing.version.product_id


def _warning(lot: LotLine, now: datetime) -> tuple[str, str]:
    """How to mark a lot, and what to say."""
    if lot.left == 0:
        return "", "Sold out"
    if lot.expires_at is None or lot.expires_at > now + SOON:
        return "", ""
    if lot.expires_at <= now:
        return "bad", "Expired"
    days = (lot.expires_at - now).days
    return "warn", "Today" if days == 0 else f"In {days} day{'s' if days > 1 else ''}"


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
