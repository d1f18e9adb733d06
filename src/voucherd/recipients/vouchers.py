"""What a recipient sees of one line: the voucher behind a link, when it was seen first, and its code (OP-57)."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Any, Final

import asyncpg
from msgspec import Struct

from voucherd import trail
from voucherd.actors import Actor
from voucherd.archive.reader import ArchiveReader
from voucherd.db import Connection, Pool, Tx
from voucherd.ids import State, state_of
from voucherd.money import Money
from voucherd.orders.rules.states import Status


class VoucherStatus(Enum):
    """What can be done with a voucher."""

    READY = "ready"
    PENDING = "pending"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    RETURNED = "returned"


class Voucher(Struct, frozen=True):
    """One line as its recipient sees it, without its code."""

    order_id: int
    company_id: int
    line: int
    standing: VoucherStatus
    brand: str
    brand_slug: str
    logo: str | None
    """The name of the brand's logo."""
    product: str
    product_type: str
    region: str
    face: Money
    expires_at: datetime | None
    instructions: str
    terms: str
    has_pin: bool
    link_viewed: bool
    place: tuple[int, int] | None
    """The lot and the position in it where the code lies."""
    archived: bool
    """Whether its order has left the tables."""

    @property
    def state(self) -> State:
        """Live, or sandbox: a voucher for tests."""
        return state_of(self.order_id)


# How to redeem is told as it is known today, because shops change their ways; the terms are those it was sold under.
_LOOK: Final = """
    SELECT o.status, o.company_id, u.line_from, u.lot_id, u.seq_from, l.expires_at, l.expires_at <= now(),
           b.name, b.slug, logo.name, v.name, v.product_type, v.region, i.face_minor, v.face_currency,
           coalesce(newest.redeem_instructions, v.redeem_instructions, ''), coalesce(v.terms, ''),
           pin.order_id IS NOT NULL, seen.link_viewed_at IS NOT NULL, seen.returned_at IS NOT NULL
    FROM {order}
    JOIN product_version v ON v.id = i.version_id
    JOIN product p ON p.id = v.product_id
    JOIN product_version newest ON newest.id = p.version_id
    JOIN brand b ON b.id = v.brand_id
    LEFT JOIN brand_logo logo ON logo.brand_id = b.id
    LEFT JOIN lot l ON l.id = u.lot_id
    LEFT JOIN order_pin pin ON pin.order_id = o.id
    LEFT JOIN {views} seen ON seen.order_id = o.id AND seen.line = $2
    WHERE o.id = $1
"""
_IN_TABLES: Final = _LOOK.format(
    order="""orders o
    JOIN order_item i ON i.order_id = o.id AND i.first_line <= $2 AND i.first_line + i.amount > $2
    LEFT JOIN outcome u ON u.order_id = o.id AND u.line_from <= $2 AND u.line_to > $2""",
    views="line_view",
)
_IN_ARCHIVE: Final = _LOOK.format(
    order="""(SELECT $1::bigint AS id, $3::smallint AS status, $4::int AS company_id) o
    CROSS JOIN (SELECT $5::int AS version_id, $6::bigint AS face_minor) i
    CROSS JOIN (SELECT $7::int AS line_from, $8::bigint AS lot_id, $9::int AS seq_from) u""",
    views="archived_view",
)


async def look(
    conn: Connection | Pool, order_id: int, line: int, archive: ArchiveReader | None = None
) -> Voucher | None:
    """The voucher of this line; None where there is no such line, or nobody was ever given its link."""
    row = await conn.fetchrow(_IN_TABLES, order_id, line)
    if row is not None or archive is None:
        return _voucher(row, order_id, line, archived=False)
    return _voucher(await _from(archive, conn, order_id, line), order_id, line, archived=True)


async def _from(
    archive: ArchiveReader, conn: Connection | Pool, order_id: int, line: int
) -> asyncpg.Record | None:
    """The line of an order that has left the tables."""
    order = await archive.find(conn, order_id)
    if order is None or not 0 <= line < order["lines"]:
        return None
    item = next(one for one in order["items"] if 0 <= line - one["first_line"] < one["amount"])
    outcome: dict[str, Any] = next(
        (one for one in order["outcomes"] if one["line_from"] <= line < one["line_to"]), {}
    )
    return await conn.fetchrow(
        _IN_ARCHIVE,
        order_id,
        line,
        order["status"],
        order["company_id"],
        item["version_id"],
        item["face_minor"],
        *(outcome.get(name) for name in ("line_from", "lot_id", "seq_from")),
    )


def _voucher(row: asyncpg.Record | None, order_id: int, line: int, *, archived: bool) -> Voucher | None:
    if row is None or row[0] in (Status.CREATED, Status.DELETED):
        return None
    _, company_id, line_from, lot_id, seq_from, expires_at, expired = row[:7]
    brand, brand_slug, logo, product, product_type, region, face_minor, currency = row[7:15]
    if line_from is None:
        standing = VoucherStatus.PENDING
    elif lot_id is None:
        standing = VoucherStatus.CANCELLED
    elif row[-1]:
        standing = VoucherStatus.RETURNED
    else:
        standing = VoucherStatus.EXPIRED if expired else VoucherStatus.READY
    instructions, terms, has_pin, link_viewed, _ = row[15:]
    return Voucher(
        order_id,
        company_id,
        line,
        standing,
        brand,
        brand_slug,
        logo,
        product,
        product_type,
        region,
        Money(face_minor, currency),
        expires_at,
        instructions,
        terms,
        has_pin,
        link_viewed,
        None if lot_id is None else (lot_id, seq_from + line - line_from),
        archived,
    )


def _views(voucher: Voucher) -> str:
    """Where it is written what recipients saw, and by which columns: a view of the archive names its company."""
    table = "archived_view" if voucher.archived else "line_view"
    return f"{table} AS seen (order_id, line{', company_id' if voucher.archived else ''}"


def _of(voucher: Voucher, *dates: str) -> str:
    """The row to be written; none for an order that left the tables since it was looked at."""
    if voucher.archived:
        return f"SELECT $1::bigint, $2::int, {voucher.company_id:d}, {', '.join(dates)}"
    return f"SELECT own.id, $2::int, {', '.join(dates)} FROM (SELECT id FROM orders WHERE id = $1 FOR KEY SHARE) own"  # noqa: S608 - Ours.


async def note_opened(conn: Connection, voucher: Voucher) -> None:
    """Write down that the link was opened, if it is the first time; a line without a code has no link yet."""
    if voucher.place is None or voucher.link_viewed:
        return
    await conn.execute(
        f"""
        INSERT INTO {_views(voucher)}, link_viewed_at) {_of(voucher, "now()")}
        ON CONFLICT (order_id, line) DO UPDATE SET link_viewed_at = now() WHERE seen.link_viewed_at IS NULL
        """,
        voucher.order_id,
        voucher.line,
    )


async def note_shown(tx: Tx, voucher: Voucher) -> None:
    """Write down that the code is shown, if it is the first time."""
    # A request that opened the link may have begun after this transaction did, and still be first with its row.
    await tx.execute(
        f"""
        INSERT INTO {_views(voucher)}, link_viewed_at, voucher_viewed_at)
        {_of(voucher, "now()", "now()")}
        ON CONFLICT (order_id, line) DO UPDATE
        SET link_viewed_at = coalesce(seen.link_viewed_at, now()),
            voucher_viewed_at = greatest(now(), seen.link_viewed_at)
        WHERE seen.voucher_viewed_at IS NULL
        """,  # noqa: S608 - Constants and a number of ours.
        voucher.order_id,
        voucher.line,
    )


class NoCode(Exception):
    """The line has no code that could be taken back, or there is no such line."""


class LeftForArchive(Exception):
    """The order left the tables since it was looked at: look again."""


async def take_back(tx: Tx, actor: Actor, trx: str, voucher: Voucher | None) -> datetime:
    """Write down that the line's code was taken back; when, which is the first time that it was said."""
    if voucher is None or voucher.place is None:
        raise NoCode
    order_id, line = voucher.order_id, voucher.line
    first = await tx.fetchval(
        f"""
        INSERT INTO {_views(voucher)}, returned_at) {_of(voucher, "now()")}
        ON CONFLICT (order_id, line) DO UPDATE SET returned_at = now() WHERE seen.returned_at IS NULL
        RETURNING true
        """,
        order_id,
        line,
    )
    if first:
        detail = {"line": line + 1}
        await trail.record(tx, actor, "order.return", f"order {trx}", detail, state=state_of(order_id))
    at: datetime | None = await tx.fetchval(
        f"SELECT returned_at FROM {'archived_view' if voucher.archived else 'line_view'}"  # noqa: S608 - Ours.
        " WHERE order_id = $1 AND line = $2",
        order_id,
        line,
    )
    if at is None:
        raise LeftForArchive
    return at
