"""The audit trail: who did what, from where. A row is written in the transaction of the deed, and never changes.

Writing costs an insert and waits for nobody; `trail.chain` seals the rows afterwards. What a row tells is for people
to read later: no key, password, code or other secret may be in its detail.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from voucherd.actors import Actor, ActorKind, Address, TrailEntry
from voucherd.db import Connection, Pool, Tx
from voucherd.ids import State
from voucherd.statements import Where
from voucherd.trail import archived

PAGE_MAX: Final = 1_000
SCAN_MAX: Final = 20_000
"""Deeds that one page looks at where filters may pass over most of them; the next page goes on behind."""
ABOUT_SCAN_MAX: Final = 5_000
"""Deeds of a company among which those about one thing are looked for."""
ID_MAX: Final = 2**63 - 1
LATE_COMMIT_MAX: Final = timedelta(minutes=10)
"""A deed carries the time at which its transaction began: so much later may it stand among the others."""
ACTOR_CHARS_MAX: Final = 300
SUBJECT_CHARS_MAX: Final = 300


class TrailRow(Struct, frozen=True):
    """One deed as it was written down."""

    id: int
    at: datetime
    actor_kind: ActorKind
    actor_id: int | None
    actor: str
    action: str
    subject: str
    company_id: int | None
    state: State | None
    address: str | None
    request_id: str | None
    detail: dict[str, Any] | None


def entry(
    actor: Actor,
    action: str,
    subject: str,
    detail: Mapping[str, Any] | None = None,
    *,
    company_id: int | None = None,
    state: State | None = None,
) -> TrailEntry:
    """The trail's row of a deed; company and state are the actor's own, else those that the deed names."""
    return TrailEntry(
        actor,
        action,
        subject,
        company_id=company_id if actor.company_id is None else actor.company_id,
        state=actor.state if state is None else state,
        address=actor.address,
        request_id=actor.request_id,
        detail=detail,
    )


async def record(
    tx: Tx | Pool,
    actor: Actor,
    action: str,
    subject: str,
    detail: Mapping[str, Any] | None = None,
    *,
    company_id: int | None = None,
    state: State | None = None,
) -> None:
    """Write one deed down, in the transaction that does it."""
    await record_all(tx, [entry(actor, action, subject, detail, company_id=company_id, state=state)])


async def record_all(tx: Tx | Pool, entries: Sequence[TrailEntry]) -> None:
    """Write several deeds down with one statement."""
    await tx.execute(
        """
        INSERT INTO trail (actor_kind, actor_id, actor, action, subject, company_id, state, address, request_id, detail)
        SELECT * FROM unnest($1::smallint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::int[],
                             $7::smallint[], $8::inet[], $9::text[], $10::jsonb[])
        """,
        [entry.actor.kind for entry in entries],
        [entry.actor.id for entry in entries],
        [_plain(entry.actor.name, ACTOR_CHARS_MAX) for entry in entries],
        [entry.action for entry in entries],
        [_plain(entry.subject, SUBJECT_CHARS_MAX) for entry in entries],
        [entry.company_id for entry in entries],
        [entry.state for entry in entries],
        [plain_address(entry.address) for entry in entries],
        [entry.request_id for entry in entries],
        [_detail(entry.detail) for entry in entries],
    )


class TrailPage(NamedTuple):
    """Deeds, and the id behind which more may be found."""

    rows: list[TrailRow]
    before: int | None
    archived_until: datetime | None = None
    """Where the list has its oldest deeds: those up to this moment may be in the archive."""


class TrailFilters(Struct, frozen=True):
    """Which deeds are asked for; an action names all below it, too."""

    company_id: int | None = None
    actor: str | None = None
    people: tuple[int, ...] = ()
    """People whose deeds are asked for, too: those whose name holds what `actor` says."""
    action: str | None = None
    since: datetime | None = None
    until: datetime | None = None


async def page(
    conn: Connection, *, before: int | None = None, limit: int = PAGE_MAX, **filters: Any
) -> TrailPage:
    """What was done, newest first, `before` the last one of the page before, however far back it is."""
    rows: list[TrailRow] = []
    wanted = min(limit, PAGE_MAX)
    while True:
        found = await search(conn, TrailFilters(**filters), before=before, limit=wanted - len(rows))
        rows += found.rows
        before = found.before
        if before is None or len(rows) >= wanted:
            return found._replace(rows=rows)


async def search(
    conn: Connection,
    filters: TrailFilters,
    *,
    before: int | None = None,
    limit: int = PAGE_MAX,
    oldest: bool = False,
) -> TrailPage:
    """A page of deeds behind `before`, newest or oldest first; it may be short although more follow."""
    begins, since = before is None, filters.since
    scanned = Where()
    if filters.company_id is not None:
        # As the index of companies has them, so that the deeds of all are not walked.
        whose = scanned.parameter(filters.company_id)
        scanned.also(f"company_id >= {whose}::int AND company_id <= {whose}::int")
    if before is None and oldest:
        before = 0 if since is None else await _behind(conn, since - 2 * LATE_COMMIT_MAX) - 1
    elif before is None:
        before = ID_MAX if filters.until is None else await _behind(conn, filters.until)
    less, way = (">", "ASC") if oldest else ("<", "DESC")
    scanned.also(f"id {less} :before", before=before)
    order = f"id {way}" if filters.company_id is None else f"company_id {way}, id {way}"
    first = f"SELECT * FROM trail WHERE {scanned} ORDER BY {order}"  # noqa: S608 - Constants only.
    given = list(scanned.values)
    wanted = Where("true")
    wanted.values = scanned.values
    wanted.also(
        "(strpos(actor, :actor) > 0 OR actor_kind IN (0, 1) AND actor_id = ANY(:people::bigint[]))",
        actor=filters.actor,
        people=filters.people,
    )
    wanted.also("(action = :action OR starts_with(action, :action || '.'))", action=filters.action)
    wanted.also("at >= :since", since=filters.since)
    wanted.also("at < :until", until=filters.until)
    found = await conn.fetch(
        f"""
        SELECT id, at, actor_kind, actor_id, actor, action, subject, company_id, state, host(address) AS address,
               request_id, detail
        FROM ({first} LIMIT {SCAN_MAX:d}) first WHERE {wanted} ORDER BY {order} LIMIT {limit + 1:d}
        """,  # noqa: S608 - Constants only.
        *wanted.values,
    )
    rows = found[:limit]
    onward = rows[-1]["id"] if len(found) > limit else None
    if onward is None:
        # The page is short: it ends where it looked last, unless that was everything.
        last = await conn.fetchrow(f"{first} OFFSET {SCAN_MAX - 1:d} LIMIT 1", *given)
        if last is not None and not _is_past(filters, last["at"], oldest=oldest):
            onward = last["id"]
    until = None
    if begins if oldest else onward is None:
        until = await archived.until(conn, "trail")
    if until is not None and since is not None and since > until:
        until = None
    return TrailPage(_rows(rows), onward, until)


def _is_past(filters: TrailFilters, at: datetime, *, oldest: bool) -> bool:
    """Whether no deed behind one of this time can be asked for."""
    if oldest:
        return filters.until is not None and at >= filters.until + LATE_COMMIT_MAX
    return filters.since is not None and at < filters.since - LATE_COMMIT_MAX


async def about(
    conn: Connection, company_id: int, subject: str, since: datetime, until: datetime, limit: int
) -> list[TrailRow]:
    """What was done to one thing of a company in a time, oldest first, of the first `ABOUT_SCAN_MAX` deeds of it."""
    low = await _behind(conn, since - 2 * LATE_COMMIT_MAX)
    high = await _behind(conn, until)
    rows = await conn.fetch(
        """
        SELECT id, at, actor_kind, actor_id, actor, action, subject, company_id, state, host(address) AS address,
               request_id, detail
        FROM (SELECT * FROM trail
              -- As the index of companies has them, so that the deeds of all are not walked.
              WHERE company_id >= $1::int AND company_id <= $1::int AND id >= $2 AND id < $3
              ORDER BY company_id, id LIMIT $6) own
        WHERE subject = $4 AND at >= $5 ORDER BY id LIMIT $7
        """,
        company_id,
        low,
        high,
        subject,
        since,
        ABOUT_SCAN_MAX,
        limit,
    )
    return _rows(rows)


async def _behind(conn: Connection, moment: datetime) -> int:
    """An id behind which no deed is older than this; found by halving, with the key alone."""
    found = await conn.fetchval(
        """
        WITH RECURSIVE half (low, high) AS (
            SELECT coalesce(min(id), 1) - 1, coalesce(max(id), 0) + 1 FROM trail
            UNION ALL
            SELECT CASE WHEN t.at < $1 THEN m.middle ELSE h.low END, CASE WHEN t.at < $1 THEN h.high ELSE m.middle END
            FROM half h CROSS JOIN LATERAL (SELECT (h.low + h.high) / 2 AS middle) m
            LEFT JOIN LATERAL (SELECT at FROM trail WHERE id >= m.middle ORDER BY id LIMIT 1) t ON true
            WHERE h.high - h.low > 1)
        SELECT max(low) + 1 FROM half
        """,
        moment + LATE_COMMIT_MAX,
    )
    return int(found)


def _rows(rows: Sequence[Any]) -> list[TrailRow]:
    return [
        TrailRow(
            row["id"],
            row["at"],
            ActorKind(row["actor_kind"]),
            row["actor_id"],
            row["actor"],
            row["action"],
            row["subject"],
            row["company_id"],
            None if row["state"] is None else State(row["state"]),
            row["address"],
            row["request_id"],
            None if row["detail"] is None else msgspec.json.decode(row["detail"]),
        )
        for row in rows
    ]


@lru_cache(maxsize=4096)
def plain_address(address: Address | None) -> str | None:
    """The address as PostgreSQL reads it; what is none must not keep a row from being written."""
    try:
        return None if address is None else str(ip_address(address)).partition("%")[0]
    except ValueError:
        return None


def _detail(detail: Mapping[str, Any] | None) -> str | None:
    # PostgreSQL's JSON holds no NUL, in whatever way it is written.
    return None if not detail else msgspec.json.encode(detail).decode().replace("\\u0000", "\\ufffd")


def _plain(text: str, chars_max: int) -> str:
    """The text as the column takes it: a deed is not to fail because of a name."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")[:chars_max] or "–"
