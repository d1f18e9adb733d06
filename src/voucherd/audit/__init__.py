"""The audit: every invariant of the books, checked on the live database with set-based SQL.

The constraints and triggers of the schema refuse most of what is looked for here. The audit trusts none of them: it
is for the day on which one was dropped, a backup was half restored, or a row was repaired by hand.

`audit` looks at every row and writes nothing. `audit_since` looks at what changed since it was last run, and marks how
far it came if all is well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from voucherd.actors import Actor
from voucherd.audit import codes, money, orders, purchases, since
from voucherd.audit.model import Check
from voucherd.audit.since import AuditMark
from voucherd.db import Connection
from voucherd.trail import archived
from voucherd.trail.chain import Head
from voucherd.trail.verification import BlockSource, verify
from voucherd.vault.seal import SealBroken, Sealer

ROWS_SHOWN_MAX: Final = 20
CHECK_S_MAX: Final = 3_600.0

CHECKS: Final[tuple[Check, ...]] = (*money.CHECKS, *orders.CHECKS, *codes.CHECKS, *purchases.CHECKS)
CHAIN: Final = "trail"
SEALS: Final = "seals"

Progress = Callable[[str, int, int], None]
"""Told the name of the check that begins, how many are done and how many there are."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A broken invariant, and some of the rows that break it."""

    check: str
    promise: str
    rows: list[dict[str, Any]]
    more: bool
    """Whether there are more rows than these."""

    def __str__(self) -> str:
        return f"{self.check}: {self.promise}: {self.rows}{' …' if self.more else ''}"


class AuditUnderWay(Exception):
    """Another run of the audit is about to move the marks."""

    def __init__(self) -> None:
        super().__init__("another audit since the last one is under way")


@dataclass(frozen=True, slots=True)
class AuditSince:
    """What a run since the last one found."""

    findings: list[Finding]
    mark: AuditMark | None
    """Where it went on; None if it had to look at everything."""
    orders: int | None
    """The orders that it looked at, where those were not all."""
    marked: bool
    """Whether the next run goes on from here."""


async def audit(
    conn: Connection,
    sealer: Sealer | None = None,
    *,
    noted: Sequence[Head] = (),
    progress: Progress | None = None,
    archive: BlockSource | None = None,
) -> list[Finding]:
    """The faults of the books: none, if all is well.

    Without a sealer no code is opened, nor a keyed block checked; without an archive no block that is in it.
    """
    # One snapshot for all checks: sales go on meanwhile, and a sale is in all of it or in none.
    async with conn.transaction(isolation="repeatable_read", readonly=True):
        await _take_time(conn)
        return await findings_of(conn, None, sealer, noted, progress, archive)


async def audit_since(
    conn: Connection,
    actor: Actor,
    sealer: Sealer | None = None,
    *,
    noted: Sequence[Head] = (),
    progress: Progress | None = None,
    archive: BlockSource | None = None,
) -> AuditSince:
    """The faults of what changed since the last run of this kind that found none; of everything, if there was none."""
    names = check_names(with_seals=False)
    # Before the snapshot, which therefore has every event up to this one.
    event_id = await conn.fetchval("SELECT settled_id FROM settle_events()")
    async with conn.transaction(isolation="repeatable_read"):
        await _take_time(conn)
        if not await conn.fetchval(
            "SELECT pg_try_advisory_xact_lock(hashtextextended('voucherd/audit/' || current_schema(), 0))"
        ):
            raise AuditUnderWay
        mark = await since.marked(conn, names)
        orders = None if mark is None else await since.gather(conn, mark)
        findings = await findings_of(conn, mark, sealer, noted, progress, archive)
        # Without the key no block of the trail was checked, nor without the archive those that are in it, so the next
        # run must not take them for checked.
        unread = mark is None and archive is None and await archived.count(conn) > 0
        well = not findings and sealer is not None and not unread
        if well:
            await since.move_marks(conn, actor, names, event_id)
    return AuditSince(findings, mark, orders, well)


async def _take_time(conn: Connection) -> None:
    """For the rest of the transaction: more memory and more time than a sale has."""
    await conn.execute(f"SET LOCAL work_mem = '64MB'; SET LOCAL statement_timeout = '{CHECK_S_MAX:.0f}s'")


async def findings_of(
    conn: Connection,
    mark: AuditMark | None,
    sealer: Sealer | None = None,
    noted: Sequence[Head] = (),
    progress: Progress | None = None,
    archive: BlockSource | None = None,
) -> list[Finding]:
    """The faults in this transaction's snapshot: of what was gathered since the mark, or of everything."""
    told = progress or (lambda _name, _done, _total: None)
    names = check_names(with_seals=sealer is not None)
    findings: list[Finding] = []
    for done, check in enumerate(CHECKS):
        told(check.name, done, len(names))
        parts, sql = ("", check.sql) if mark is None else since.narrowed(check, mark)
        rows = await conn.fetch(f"{parts} {_bounded(sql)}", timeout=CHECK_S_MAX)
        _note(findings, check.name, check.promise, [dict(row) for row in rows])
    told(CHAIN, len(CHECKS), len(names))
    checked = [] if mark is None else mark.heads
    flaws = await broken_chain(conn, sealer, [*noted, *checked], ROWS_SHOWN_MAX + 1, checked, archive)
    _note(findings, CHAIN, "no row of the audit trail was changed", flaws)
    if sealer is not None:
        told(SEALS, len(CHECKS) + 1, len(names))
        broken = await broken_seals(conn, sealer)
        _note(findings, SEALS, "the master key opens what is in the vault", broken)
    return findings


def check_names(*, with_seals: bool) -> list[str]:
    """Every check by name, in the order in which they run."""
    return [check.name for check in CHECKS] + [CHAIN] + ([SEALS] if with_seals else [])


def _bounded(sql: str) -> str:
    return f"SELECT * FROM ({sql}) broken LIMIT {ROWS_SHOWN_MAX + 1}"  # noqa: S608 - Constants of ours.


def _note(findings: list[Finding], name: str, promise: str, rows: Sequence[dict[str, Any]]) -> None:
    if rows:
        shown = list(rows[:ROWS_SHOWN_MAX])
        findings.append(Finding(name, promise, shown, more=len(rows) > ROWS_SHOWN_MAX))


async def broken_chain(
    conn: Connection,
    sealer: Sealer | None,
    noted: Sequence[Head],
    flaws_max: int,
    checked: Sequence[Head] = (),
    archive: BlockSource | None = None,
) -> list[dict[str, Any]]:
    """The faults of the trail behind the heads that were checked before, up to so many."""
    found: list[dict[str, Any]] = []
    key = None if sealer is None else sealer.trail_key
    async for flaw in verify(conn, key, noted, checked, archive):
        found.append(msgspec.to_builtins(flaw))
        if len(found) >= flaws_max:
            break
    return found


LOTS_OPENED_MAX: Final = 500

# Of each lot the next code to be sold and one by chance: what was swapped or restored from elsewhere is a whole lot.
_SAMPLE: Final = """
    SELECT c.lot_id, c.seq, c.sealed
    FROM (SELECT id, size, cursor FROM lot WHERE NOT generated ORDER BY random() LIMIT $1) l
    CROSS JOIN LATERAL (
        SELECT DISTINCT seq FROM (VALUES (least(l.cursor, l.size - 1)), (floor(random() * l.size)::int)) AS p (seq)) p
    JOIN code c ON c.lot_id = l.id AND c.seq = p.seq
"""


async def broken_seals(conn: Connection, sealer: Sealer) -> list[dict[str, Any]]:
    """The places of the sample whose code can't be opened."""
    broken = []
    for lot_id, seq, sealed in await conn.fetch(_SAMPLE, LOTS_OPENED_MAX):
        try:
            sealer.open(lot_id, seq, sealed)
        except SealBroken:
            broken.append({"lot_id": lot_id, "seq": seq})
    return broken
