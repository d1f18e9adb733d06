"""Whose turn it is to be sent to, and what is written down afterwards. Any number of senders may ask at once.

An endpoint is taken as a whole, for a lease, by moving its place in the queue ahead; those that have waited longest
come first. What was sent is written down in one transaction for all endpoints that are done by then.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import asyncpg
from msgspec import Struct

from voucherd.db import Connection, Pool, Tx
from voucherd.events import kinds, log
from voucherd.ids import State
from voucherd.vault.seal import SealBroken, Sealer
from voucherd.webhooks import letters as webhook_letters
from voucherd.webhooks import retries
from voucherd.webhooks.endpoints import Keyring, keyring
from voucherd.webhooks.messages import MessageFormat
from voucherd.webhooks.post import PostOutcome

LEASE: Final = timedelta(seconds=10)
"""How long an endpoint is out of reach after its sender died; a living one renews it."""
DELIVERIES_MAX: Final = 64
"""Of one endpoint at a time."""
SLOW_MS: Final = 2_000
"""An answer that takes longer makes an endpoint wait with the slow ones."""

WAITING, DELIVERED, FAILED = 0, 1, 2

_chance: Final = random.SystemRandom().random


class Delivery(Struct, frozen=True):
    """One event that is due at one endpoint."""

    event_id: int
    type: str
    url: str | None
    tries: int


class DeliveryClaim(Struct, frozen=True):
    """An endpoint that this sender holds, with the deliveries due there."""

    webhook_id: int
    company_id: int
    state: State
    fence: int
    failures: int
    slow: bool
    url: str | None
    format: MessageFormat
    description: str
    keys: Keyring | None
    """None: its secret can't be opened, and nothing can be sent."""
    deliveries: tuple[Delivery, ...]


class Sent(Struct, frozen=True):
    """One attempt and what came of it."""

    delivery: Delivery
    url: str
    sent_at: datetime
    outcome: PostOutcome


class SendReport(Struct):
    """What a sender did with a claim, in the order in which the answers came."""

    claim: DeliveryClaim
    sent: list[Sent]


async def claim(pool: Pool, sealer: Sealer, *, slow: bool, endpoints_max: int) -> list[DeliveryClaim]:
    """Take endpoints that have something due: the slow ones, or the others."""
    async with pool.acquire() as conn:
        taken = await conn.fetch(
            """
            UPDATE webhook_queue q SET next_at = now() + $3::interval, leased = true, fence = q.fence + 1
            WHERE webhook_id = ANY(ARRAY(
                SELECT webhook_id FROM webhook_queue WHERE slow = $1 AND next_at <= now()
                ORDER BY next_at LIMIT $2 FOR UPDATE SKIP LOCKED))
            RETURNING q.webhook_id, q.fence, q.failures
            """,
            slow,
            endpoints_max,
            LEASE,
        )
        if not taken:
            return []
        # A statement of its own: it sees what was written before the endpoint was free to be taken.
        return await _read(conn, sealer, taken, slow=slow)


async def _read(
    conn: Connection, sealer: Sealer, taken: Sequence[asyncpg.Record], *, slow: bool
) -> list[DeliveryClaim]:
    numbers = [row["webhook_id"] for row in taken]
    endpoints = await conn.fetch(
        """
        SELECT id, company_id, state, url, format, description, secret, headers,
               CASE WHEN old_until > now() THEN old_secret END AS old_secret
        FROM webhook WHERE id = ANY($1::bigint[])
        """,
        numbers,
    )
    due = await conn.fetch(
        """
        SELECT d.webhook_id, d.event_id, d.type, d.url, d.tries
        FROM unnest($1::bigint[], $2::int[]) AS mine (id, most)
        CROSS JOIN LATERAL (
            SELECT * FROM webhook_delivery d WHERE d.webhook_id = mine.id AND d.status = 0 AND d.next_at <= now()
            ORDER BY d.next_at, d.event_id LIMIT mine.most) d
        """,
        numbers,
        [1 if row["failures"] else DELIVERIES_MAX for row in taken],
    )
    found: dict[int, list[Delivery]] = {}
    for row in due:
        found.setdefault(row["webhook_id"], []).append(
            Delivery(row["event_id"], row["type"], row["url"], row["tries"])
        )
    about = {row["id"]: row for row in endpoints}
    return [
        DeliveryClaim(
            number,
            about[number]["company_id"],
            State(about[number]["state"]),
            row["fence"],
            row["failures"],
            slow,
            about[number]["url"],
            MessageFormat(about[number]["format"]),
            about[number]["description"],
            _opened(sealer, about[number]),
            tuple(found.get(number, ())),
        )
        for row in taken
        if (number := row["webhook_id"]) in about
    ]


def _opened(sealer: Sealer, row: asyncpg.Record) -> Keyring | None:
    try:
        return keyring(sealer, row)
    except SealBroken:
        return None


async def renew(pool: Pool, claims: Sequence[DeliveryClaim]) -> None:
    """Hold on to what is still being sent to."""
    await pool.execute(
        """
        UPDATE webhook_queue SET next_at = now() + $3::interval
        WHERE webhook_id = ANY(ARRAY(
            SELECT q.webhook_id FROM unnest($1::bigint[], $2::bigint[]) AS mine (id, fence)
            JOIN webhook_queue q ON q.webhook_id = mine.id AND q.fence = mine.fence AND q.leased
            FOR UPDATE OF q SKIP LOCKED))
        """,
        [one.webhook_id for one in claims],
        [one.fence for one in claims],
        LEASE,
    )


async def record(pool: Pool, reports: Sequence[SendReport]) -> None:
    """Write down what was sent, and let go of the endpoints; disable those that are gone or fail for days."""
    numbers = sorted(report.claim.webhook_id for report in reports)
    async with pool.acquire() as conn, conn.transaction():
        await conn.execute(
            "SELECT FROM webhook_queue WHERE webhook_id = ANY($1::bigint[]) ORDER BY webhook_id FOR UPDATE",
            numbers,
        )
        await _record_attempts(conn, reports)
        failing = await _release(conn, reports)
        gone = {report.claim.webhook_id for report in reports if _is_gone(report)}
        for report in reports:
            number = report.claim.webhook_id
            if number in gone:
                await _disable(conn, report.claim, "gone")
            elif number in failing:
                await _disable(conn, report.claim, "failing")


def _is_gone(report: SendReport) -> bool:
    """Whether the endpoint wants nothing any more. The address of one order speaks for that order only."""
    return report.claim.url is not None and any(sent.outcome.gone for sent in report.sent)


async def _record_attempts(tx: Tx, reports: Sequence[SendReport]) -> None:
    rows = [(report.claim, sent) for report in reports for sent in report.sent]
    if not rows:
        return
    ends = [_end(sent) for _, sent in rows]
    await tx.execute(
        """
        WITH told AS (
            SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::float8[], $5::timestamptz[], $6::int[],
                                 $7::text[], $8::smallint[], $9::text[], $10::text[], $11::text[])
                 AS told (webhook_id, event_id, status, pause_s, sent_at, ms, url, http, error, head, body)
        ), done AS (
            -- Somebody whose lease ran out may have sent it too: once delivered, it stays delivered.
            UPDATE webhook_delivery d
            SET attempts = d.attempts + 1, tries = d.tries + 1,
                status = CASE WHEN t.status = 1 OR d.status = 0 THEN t.status ELSE d.status END,
                next_at = CASE WHEN t.status = 0 AND d.status = 0 THEN now() + make_interval(secs => t.pause_s) END
            FROM told t WHERE d.webhook_id = t.webhook_id AND d.event_id = t.event_id
            RETURNING d.webhook_id, d.event_id, d.attempts
        )
        INSERT INTO webhook_attempt (webhook_id, event_id, number, sent_at, ms, url, http, error, head, body)
        SELECT t.webhook_id, t.event_id, d.attempts, t.sent_at, t.ms, t.url, t.http, t.error, t.head, t.body
        FROM told t JOIN done d ON d.webhook_id = t.webhook_id AND d.event_id = t.event_id
        """,
        [one.webhook_id for one, _ in rows],
        [sent.delivery.event_id for _, sent in rows],
        [status for status, _ in ends],
        [pause for _, pause in ends],
        [sent.sent_at for _, sent in rows],
        [sent.outcome.ms for _, sent in rows],
        [sent.url for _, sent in rows],
        [sent.outcome.status for _, sent in rows],
        [sent.outcome.error for _, sent in rows],
        [sent.outcome.head for _, sent in rows],
        [sent.outcome.body for _, sent in rows],
    )


def _end(sent: Sent) -> tuple[int, float | None]:
    """What becomes of a delivery: its status, and the pause before the next attempt if there is one."""
    if sent.outcome.delivered:
        return DELIVERED, None
    if sent.outcome.gone:
        return FAILED, None
    pause = retries.pause_s(sent.delivery.tries + 1, _chance())
    return (FAILED, None) if pause is None else (WAITING, pause)


async def _release(tx: Tx, reports: Sequence[SendReport]) -> set[int]:
    """Put endpoints back to where their next delivery is due; those that have failed for too long."""
    standing = [_standing(report) for report in reports]
    rows = await tx.fetch(
        """
        UPDATE webhook_queue q
        SET leased = false, slow = r.slow, failures = r.failures,
            failing_since = CASE WHEN r.failures = 0 THEN NULL WHEN r.anew THEN now()
                                 ELSE coalesce(q.failing_since, now()) END,
            next_at = (SELECT greatest(d.next_at, now() + make_interval(secs => r.rest_s)) FROM webhook_delivery d
                       WHERE d.webhook_id = q.webhook_id AND d.status = 0 ORDER BY d.next_at LIMIT 1)
        FROM unnest($1::bigint[], $2::bigint[], $3::int[], $4::bool[], $5::bool[], $6::float8[])
             AS r (id, fence, failures, anew, slow, rest_s)
        WHERE q.webhook_id = r.id AND q.fence = r.fence
        RETURNING q.webhook_id, q.failing_since < now() - $7::interval AS too_long
        """,
        [report.claim.webhook_id for report in reports],
        [report.claim.fence for report in reports],
        [failures for failures, _, _ in standing],
        [anew for _, anew, _ in standing],
        [slow for _, _, slow in standing],
        [retries.rest_s(failures) for failures, _, _ in standing],
        retries.DISABLED_AFTER,
    )
    return {row["webhook_id"] for row in rows if row["too_long"]}


def _standing(report: SendReport) -> tuple[int, bool, bool]:
    """How often the endpoint failed in a row, whether a success came before that, and whether it is slow."""
    outcomes = [sent.outcome for sent in report.sent]
    if not outcomes:
        return report.claim.failures, False, report.claim.slow
    slow = any(one.ms > SLOW_MS for one in outcomes)
    if report.claim.url is None:
        # Many addresses: none speaks for the others.
        return 0, False, slow
    failures, anew = report.claim.failures, False
    for one in outcomes:
        failures, anew = (0, True) if one.delivered else (failures + 1, anew)
    return failures, anew, slow or failures > 0


async def _disable(tx: Tx, claimed: DeliveryClaim, reason: str) -> None:
    """Stop sending there, and say so: in the log, and to the people of the company."""
    url = await tx.fetchval(
        """
        UPDATE webhook SET enabled = false, disabled_reason = $2, updated_at = now()
        WHERE id = $1 AND enabled RETURNING url
        """,
        claimed.webhook_id,
        reason,
    )
    if url is None:
        return
    await tx.execute("UPDATE webhook_queue SET next_at = NULL WHERE webhook_id = $1", claimed.webhook_id)
    data = {"webhook": claimed.webhook_id, "url": url, "reason": reason}
    await log.append(
        tx, kinds.WEBHOOK_DISABLED, company_id=claimed.company_id, state=int(claimed.state), data=data
    )
    await webhook_letters.tell_disabled(tx, claimed.company_id, claimed.state, url, reason)
