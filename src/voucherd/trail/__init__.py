"""The audit trail: who did what, from where. A row is written in the transaction of the deed, and never changes.

Writing costs an insert and waits for nobody; `trail.chain` seals the rows afterwards. What a row tells is for people
to read later: no key, password, code or other secret may be in its detail.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Final

import msgspec
from msgspec import Struct

from voucherd.actors import Actor, ActorKind, Address, TrailEntry
from voucherd.db import Connection, Pool, Tx
from voucherd.ids import State

PAGE_MAX: Final = 1_000
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


async def page(
    conn: Connection,
    *,
    company_id: int | None = None,
    actor: str | None = None,
    action: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    before: int | None = None,
    limit: int = PAGE_MAX,
) -> list[TrailRow]:
    """What was done, newest first, `before` the last one of the page before; an action names all below it, too."""
    rows = await conn.fetch(
        """
        SELECT id, at, actor_kind, actor_id, actor, action, subject, company_id, state, host(address) AS address,
               request_id, detail
        FROM trail
        WHERE ($1::int IS NULL OR company_id = $1) AND ($2::text IS NULL OR strpos(actor, $2) > 0)
          AND ($3::text IS NULL OR action = $3 OR starts_with(action, $3 || '.'))
          AND ($4::timestamptz IS NULL OR at >= $4) AND ($5::bigint IS NULL OR id < $5)
          AND ($6::timestamptz IS NULL OR at < $6)
        ORDER BY id DESC LIMIT $7
        """,
        company_id,
        actor,
        action,
        since,
        before,
        until,
        min(limit, PAGE_MAX),
    )
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
