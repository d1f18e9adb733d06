"""Sessions: who is behind a browser. Only this file touches the table `session`.

The browser keeps a random token; the table keeps its hash, so what is read from the table opens nothing.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import asyncpg

from voucherd.companies.model import Company
from voucherd.db import Connection, Pool, Tx
from voucherd.ids import State
from voucherd.people.roles import Right, rights_of

IDLE_MAX: Final = timedelta(hours=12)
AGE_MAX: Final = timedelta(days=14)
PENDING_MAX: Final = timedelta(minutes=10)
"""How long a password waits for its second factor."""
SEEN_EVERY: Final = timedelta(minutes=1)
"""A session's last use is written down this often, not at every page."""
TOKEN_BYTES: Final = 32
AGENT_CHARACTERS_MAX: Final = 300
ADDRESS_CHARACTERS_MAX: Final = 100
FLASH_CHARACTERS_MAX: Final = 500
SWEEP_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class Person:
    """Someone who signed in; without a company one of the operator's own."""

    id: int
    email: str
    name: str
    role: str
    company: Company | None
    rights: frozenset[Right]
    language: str = ""
    """As the person chose; empty where the browser decides."""
    time_zone: str = ""

    def may(self, right: Right | None) -> bool:
        """Whether the person has this right; None is a right that everybody has."""
        return right is None or right in self.rights


@dataclass(frozen=True, slots=True)
class Flash:
    """What the next page says once."""

    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class Session:
    """A browser in which somebody signed in."""

    key: bytes = field(repr=False)
    person: Person
    csrf: bytes = field(repr=False)
    pending: bool
    strong_at: datetime | None
    asked: bool
    """The company asks its people for a second factor."""
    waiting: int
    """How many requests of others wait for this person's yes or no, if he may say it."""
    in_cart: int
    """How many codes are in the person's cart."""
    flash: Flash | None
    address: str
    created_at: datetime
    seen_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Browser:
    """Where somebody signs in from, as the list of one's own sessions shows it."""

    address: str
    agent: str


def key_of(token: str) -> bytes:
    """The hash of a token, which is stored in its place."""
    return hashlib.sha256(token.encode()).digest()


async def begin(
    tx: Tx,
    user_id: int,
    browser: Browser,
    *,
    pending: bool = False,
    strong: bool = False,
) -> str:
    """A new session; its token goes to the browser and is kept nowhere else."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    await tx.execute(
        "INSERT INTO session (key, user_id, state, csrf, pending, strong_at, address, agent, expires_at)"
        # The state is for the program before this one, which knew no sandbox in addresses.
        " VALUES ($1, $2, 0, $3, $4, CASE WHEN $5 THEN now() END, $6, $7, now() + $8)",
        key_of(token),
        user_id,
        secrets.token_bytes(32),
        pending,
        strong,
        browser.address[:ADDRESS_CHARACTERS_MAX],
        browser.agent[:AGENT_CHARACTERS_MAX],
        PENDING_MAX if pending else AGE_MAX,
    )
    return token


async def find(pool: Pool, token: str, state: State = State.LIVE) -> Session | None:
    """The session of this token with its person and company, if all three may still be used.

    The state is the one whose waiting requests are counted.
    """
    row = await pool.fetchrow(
        "SELECT s.key, s.csrf, s.pending, s.strong_at, s.flash, s.flash_kind, s.address,"
        " s.created_at, s.seen_at, s.expires_at, now() - s.seen_at > $3 AS stale,"
        " u.id AS user_id, u.email, u.name AS user_name, u.role, u.language, u.time_zone,"
        " c.id AS company_id, c.name AS company_name, c.country, c.vat_number, c.active, c.verified, c.expose_costs,"
        " c.spend_order_eur_minor, c.spend_day_eur_minor, coalesce(c.second_factor, false) AS asked,"
        " (SELECT count(*) FROM approval a WHERE a.status = 0 AND a.ends_at > now() AND a.requested_by <> u.id"
        " AND CASE WHEN c.id IS NULL THEN a.kind <> 1"
        " ELSE a.kind = 1 AND a.company_id = c.id AND a.state = $4 END) AS waiting,"
        " (SELECT coalesce(sum(i.amount), 0) FROM cart_item i WHERE i.user_id = u.id AND i.state = $4) AS in_cart"
        " FROM session s JOIN app_user u ON u.id = s.user_id LEFT JOIN company c ON c.id = u.company_id"
        " WHERE s.key = $1 AND s.expires_at > now() AND s.seen_at > now() - $2::interval"
        " AND u.active AND coalesce(c.active, true)",
        key_of(token),
        IDLE_MAX,
        SEEN_EVERY,
        int(state),
    )
    if row is None:
        return None
    if row["stale"]:
        await pool.execute("UPDATE session SET seen_at = now() WHERE key = $1", row["key"])
    return _session(row)


async def still_may(pool: Pool, session: Session, right: Right | None) -> bool:
    """Whether a session that was found before may still be used, by a person who still has this right."""
    role = await pool.fetchval(
        "SELECT u.role FROM session s JOIN app_user u ON u.id = s.user_id LEFT JOIN company c ON c.id = u.company_id"
        " WHERE s.key = $1 AND NOT s.pending AND s.expires_at > now() AND s.seen_at > now() - $2::interval"
        " AND u.active AND coalesce(c.active, true)",
        session.key,
        IDLE_MAX,
    )
    return role is not None and (
        right is None or right in rights_of(role, of_company=session.person.company is not None)
    )


async def end(pool: Pool | Tx, key: bytes) -> None:
    """Sign this browser out."""
    await pool.execute("DELETE FROM session WHERE key = $1", key)


async def end_others(tx: Tx, user_id: int, key: bytes | None) -> None:
    """Sign the person out everywhere but here (None: here too)."""
    await tx.execute("DELETE FROM session WHERE user_id = $1 AND key IS DISTINCT FROM $2", user_id, key)


async def of_user(connection: Connection | Pool, user_id: int) -> list[asyncpg.Record]:
    """Where the person is signed in, the latest first."""
    return await connection.fetch(
        "SELECT key, address, agent, created_at, seen_at, strong_at FROM session"
        " WHERE user_id = $1 AND NOT pending AND expires_at > now() AND seen_at > now() - $2::interval"
        " ORDER BY seen_at DESC, key",
        user_id,
        IDLE_MAX,
    )


async def leave_flash(pool: Pool | Tx, key: bytes, flash: Flash | None) -> None:
    """What the next page of this session says once; None says nothing more."""
    text = None if flash is None else flash.text[:FLASH_CHARACTERS_MAX]
    kind = None if flash is None else flash.kind
    await pool.execute("UPDATE session SET flash = $2, flash_kind = $3 WHERE key = $1", key, text, kind)


async def sweep(tx: Tx) -> None:
    """Remove some sessions that are over; every sign-in does, so there are never many."""
    await tx.execute(
        "DELETE FROM session WHERE key IN (SELECT key FROM session WHERE expires_at < now()"
        " ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED)",
        SWEEP_MAX,
    )


def _session(row: asyncpg.Record) -> Session:
    company = None
    if row["company_id"] is not None:
        company = Company(
            row["company_id"],
            row["company_name"],
            row["country"],
            row["vat_number"],
            row["active"],
            row["verified"],
            row["expose_costs"],
            row["spend_order_eur_minor"],
            row["spend_day_eur_minor"],
        )
    rights = rights_of(row["role"], of_company=company is not None)
    return Session(
        key=row["key"],
        person=Person(
            row["user_id"],
            row["email"],
            row["user_name"],
            row["role"],
            company,
            rights,
            row["language"] or "",
            row["time_zone"] or "",
        ),
        csrf=row["csrf"],
        pending=row["pending"],
        strong_at=row["strong_at"],
        asked=row["asked"],
        waiting=row["waiting"] if rights & {Right.ORDERS_APPROVE, Right.MONEY_APPROVE} else 0,
        in_cart=row["in_cart"],
        flash=None if row["flash"] is None else Flash(row["flash"], row["flash_kind"]),
        address=row["address"],
        created_at=row["created_at"],
        seen_at=row["seen_at"],
        expires_at=row["expires_at"],
    )
