"""Archiving: a closed month is written to files, read back, and only then taken out of the tables.

It may stop at any point, and the next run goes on. A month that is not noted in the database is written anew. One that
is noted is removed by small transactions: each reads its orders from a file and from the tables, locked, and removes
those that are the same.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from voucherd import trail
from voucherd.actors import Actor
from voucherd.archive import store
from voucherd.archive.files import (
    FILE_ORDERS_MAX,
    GROUP_ORDERS,
    MonthWriter,
    OpenedFile,
    refuse_without_library,
)
from voucherd.archive.model import (
    FORMAT,
    ArchivedRow,
    ArchiveFile,
    ArchiveRefused,
    Progress,
    folder_of,
    months_back,
    next_month,
    start_of,
)
from voucherd.db import Connection, within

REMOVE_MAX: Final = 1_000
"""Orders that one transaction takes out of the tables."""


class Archived(Struct, frozen=True):
    """What a run did with a month."""

    month: date
    orders: int
    """In its files."""
    removed: int
    """That left the tables in this run."""


async def closed_months(conn: Connection, before: date | None, months_kept: int) -> list[date]:
    """The months that may be archived and are not, oldest first; refused if one of them is too young or not closed."""
    until = await latest(conn, before, months_kept)
    known = {one.month: one for one in await store.months(conn)}
    under_way = [one.month for one in known.values() if one.removed_at is None]
    first = await store.oldest(conn, start_of(until))
    found = [] if first is None else _months(first.date().replace(day=1), until)
    fresh = [month for month in found if month not in known and await store.has_closed(conn, month)]
    for month in fresh:
        if count := await store.open_orders(conn, month):
            raise ArchiveRefused(f"{folder_of(month)} is not closed: {count:,} of its orders are not over")
    return sorted(under_way + fresh)


async def latest(conn: Connection, before: date | None, months_kept: int) -> date:
    """The day before which everything may be archived; refused if somebody wishes for a later one."""
    found = months_back(await store.today(conn), months_kept)
    if before is not None and (before.day != 1 or before > found):
        raise ArchiveRefused(
            f"{before} is not the first day of a month up to {found}: the last {months_kept} whole months stay "
            "(VOUCHERD_ARCHIVE_MONTHS)"
        )
    return found if before is None else before


def _months(first: date, until: date) -> list[date]:
    found = []
    while first < until:
        found.append(first)
        first = next_month(first)
    return found


async def archive(
    conn: Connection, actor: Actor, folder: Path, months: list[date], progress: Progress
) -> list[Archived]:
    """Bring these months into the archive, one after the other; what each run did with them."""
    refuse_without_library()
    if not await store.be_alone(conn):
        raise ArchiveRefused("another run of the archive is under way")
    done = []
    for month in months:
        files = await store.files(conn, month)
        if not any(one.month == month for one in await store.months(conn)):
            files = await _write_month(conn, actor, folder, month, progress)
        removed = await _remove_month(conn, actor, folder, month, files, progress)
        done.append(Archived(month, sum(one.orders for one in files), removed))
    return done


async def _write_month(
    conn: Connection, actor: Actor, folder: Path, month: date, progress: Progress
) -> list[ArchiveFile]:
    """Write the files, read them back, and note the month."""
    writer = MonthWriter(folder, month)
    sums = Sums()
    day = month
    while day < next_month(month):
        ids = await store.numbers(conn, day)
        for start in range(0, len(ids), FILE_ORDERS_MAX):
            await _write_file(conn, writer, day, ids[start : start + FILE_ORDERS_MAX], sums)
            progress(f"writing {folder_of(month)}", sums.orders, sums.orders)
        day += timedelta(days=1)
    facts = {
        "format": FORMAT,
        "schema": await conn.fetchval("SELECT max(version) FROM schema_migration"),
        "month": folder_of(month),
        "orders": sums.orders,
        "wallets": sums.listed(),
    }
    writer.finish(facts)
    if (again := read_back(folder, writer.files)).facts() != sums.facts():
        raise ArchiveRefused(f"{writer.folder} does not hold what was written: {again.facts()}")
    async with within(conn) as tx:
        await store.note_month(tx, month, sums.last_at or start_of(month), writer.files)
        detail = {"orders": sums.orders, "files": len(writer.files)}
        await trail.record(tx, actor, "archive.write", f"month {folder_of(month)}", detail)
    return writer.files


async def _write_file(conn: Connection, writer: MonthWriter, day: date, ids: list[int], sums: Sums) -> None:
    writer.begin(day)
    for start in range(0, len(ids), GROUP_ORDERS):
        rows = await store.read(conn, ids[start : start + GROUP_ORDERS])
        writer.add(rows)
        sums.add(rows)
    writer.end()


async def _remove_month(
    conn: Connection, actor: Actor, folder: Path, month: date, files: list[ArchiveFile], progress: Progress
) -> int:
    """Take the orders of the files out of the tables, those that are in both and the same."""
    removed = seen = 0
    total = sum(one.orders for one in files)
    for file in files:
        for rows in OpenedFile(folder, file).rows():
            for start in range(0, len(rows), REMOVE_MAX):
                some = rows[start : start + REMOVE_MAX]
                removed += await _remove_some(conn, month, some)
                seen += len(some)
                progress(f"removing {folder_of(month)}", seen, total)
    async with within(conn) as tx:
        await store.note_removed(tx, month)
        await trail.record(
            tx,
            actor,
            "archive.remove",
            f"month {folder_of(month)}",
            {"orders": removed, "kept": total - removed},
        )
    return removed


async def _remove_some(conn: Connection, month: date, rows: list[ArchivedRow]) -> int:
    filed = {row["id"]: row for row in rows}
    async with within(conn) as tx:
        stored = await store.read(tx, list(filed), lock=True)
        same = [row["id"] for row in stored if filed[row["id"]] == row]
        return await store.remove(tx, month, same) if same else 0


class Sums:
    """What orders add up to: how many, and what each wallet was charged and refunded."""

    def __init__(self) -> None:
        self.orders = 0
        self.last_at: datetime | None = None
        self._wallets: dict[tuple[int, int, str], list[int]] = {}

    def add(self, rows: list[ArchivedRow]) -> None:
        """Count these, too."""
        for row in rows:
            wallet = self._wallets.setdefault(
                (row["company_id"], row["id"] & 1, row["payment_currency"]), [0, 0, 0]
            )
            wallet[0] += 1
            wallet[1] += row["charged_minor"]
            wallet[2] += row["refunded_minor"]
            moments = [row["updated_at"], *(outcome["at"] for outcome in row["outcomes"])]
            self.last_at = max(moments if self.last_at is None else [*moments, self.last_at])
        self.orders += len(rows)

    def listed(self) -> list[dict[str, Any]]:
        """The wallets, for the manifest."""
        return [
            {
                "company": company,
                "state": state,
                "currency": currency,
                "orders": orders,
                "chargedMinor": charged,
                "refundedMinor": refunded,
            }
            for (company, state, currency), (orders, charged, refunded) in sorted(self._wallets.items())
        ]

    def facts(self) -> dict[str, Any]:
        """All of it, to be compared."""
        return {"orders": self.orders, "lastAt": self.last_at, "wallets": self.listed()}


def read_back(folder: Path, files: list[ArchiveFile]) -> Sums:
    """What the files hold, read from the disk; refused if one is not what was written."""
    sums = Sums()
    for file in files:
        count = 0
        for rows in OpenedFile(folder, file).rows():
            sums.add(rows)
            count += len(rows)
        if count != file.orders:
            raise ArchiveRefused(f"{file.place} has {count} orders, not {file.orders}")
    return sums
