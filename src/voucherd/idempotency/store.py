"""The table of requests that may be sent again (OP-28).

A row is claimed before the work, named in the transaction of its effect, and answered after it. Who finds it claimed
and not answered knows that somebody is at it; when that claim has run out, or its process is gone, the row tells
whether the effect is there. Each claim raises the fence: whoever lost the row to another can neither name an effect
nor answer any more, so a process that froze and wakes up does no harm (OP-112).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from voucherd.db import Pool, Tx
from voucherd.heartbeat import GONE_S, THERE
from voucherd.idempotency.model import KEPT_DAYS, Claim, ClaimResult, KnownRequest, Ticket, TicketTaken

LEASE_S: Final = 15.0
"""A claim lasts so long unless it is renewed, or its process is gone before."""
SWEEP_MAX: Final = 5_000


_CLAIM: Final = f"""
    WITH asked AS (
        SELECT * FROM unnest($1::int[], $2::smallint[], $3::bytea[], $4::bytea[], $5::bigint[])
                      AS a (company_id, state, key, request, asked_by)
    ), taken AS (
        INSERT INTO idempotency AS i (company_id, state, key, request, asked_by, held_by, running_until)
        SELECT *, $6, now() + make_interval(secs => $7) FROM asked ORDER BY company_id, state, key
        ON CONFLICT (company_id, state, key)
        DO UPDATE SET running_until = excluded.running_until, held_by = excluded.held_by, fence = i.fence + 1
        WHERE i.answer IS NULL AND i.request = excluded.request
          AND coalesce(i.asked_by, excluded.asked_by) = excluded.asked_by
          AND (i.running_until <= now() OR (i.held_by <> excluded.held_by AND NOT {THERE.format("i.held_by", "$8")}))
        RETURNING i.company_id, i.state, i.key, i.order_id, i.fence
    )
    SELECT a.company_id, a.state, a.key, t.fence, coalesce(t.order_id, i.order_id) AS order_id,
           coalesce(i.asked_by <> a.asked_by, false) AS is_foreign,
           i.request IS DISTINCT FROM a.request AND i.key IS NOT NULL AS other, i.answer
    FROM asked a LEFT JOIN taken t USING (company_id, state, key) LEFT JOIN idempotency i USING (company_id, state, key)
"""  # noqa: S608 - Constants only.


async def claim(pool: Pool, claims: Sequence[Claim], process: UUID) -> list[KnownRequest]:
    """What each of these requests of a process is to do; of two with one key the first goes first."""
    first: dict[Ticket, Claim] = {}
    for one in claims:
        first.setdefault(one.ticket, one)
    asked = list(first.values())
    rows = await pool.fetch(
        _CLAIM,
        *_columns([one.ticket for one in asked]),
        [one.request for one in asked],
        [one.asked_by for one in asked],
        process,
        LEASE_S,
        GONE_S,
    )
    told = {Ticket(row[0], row[1], row[2]): _told(*tuple(row)[3:]) for row in rows}
    return [_for(one, first[one.ticket], told[one.ticket]) for one in claims]


def _columns(tickets: Sequence[Ticket]) -> tuple[list[int], list[int], list[bytes]]:
    return (
        [ticket.company_id for ticket in tickets],
        [ticket.state for ticket in tickets],
        [ticket.key for ticket in tickets],
    )


def _told(
    fence: int | None, order_id: int | None, foreign: bool, other: bool, answer: bytes | None
) -> KnownRequest:
    if fence is not None:
        return KnownRequest(ClaimResult.GO if order_id is None else ClaimResult.DONE, order_id, fence=fence)
    if foreign:
        return KnownRequest(ClaimResult.FOREIGN)
    if other:
        return KnownRequest(ClaimResult.OTHER)
    # A row that is not to be seen yet was made in this very moment.
    return _answered(answer)


def _answered(answer: bytes | None) -> KnownRequest:
    """What somebody is told whose ticket is another call's: its answer, or that there is none yet."""
    return KnownRequest(ClaimResult.WAIT if answer is None else ClaimResult.ANSWERED, answer=answer)


def _for(one: Claim, first: Claim, told: KnownRequest) -> KnownRequest:
    """What a claim is told that is in one batch with another of the same key."""
    if one.asked_by != first.asked_by:
        # It asks again with a ticket of its own, or finds by itself that the first one's was nobody's.
        return KnownRequest(ClaimResult.FOREIGN)
    if one is first or told.turn in {ClaimResult.ANSWERED, ClaimResult.OTHER, ClaimResult.FOREIGN}:
        return told
    return KnownRequest(ClaimResult.WAIT if one.request == first.request else ClaimResult.OTHER)


async def renew(pool: Pool, tickets: Sequence[Ticket]) -> None:
    """Hold on to these claims for as long again; those that were lost stay lost, and one that is locked is at work."""
    await pool.execute(
        """
        UPDATE idempotency i SET running_until = now() + make_interval(secs => $5)
        FROM (SELECT company_id, state, key
              FROM unnest($1::int[], $2::smallint[], $3::bytea[], $4::int[]) AS h (company_id, state, key, held)
              JOIN idempotency USING (company_id, state, key)
              WHERE fence = held AND answer IS NULL FOR UPDATE OF idempotency SKIP LOCKED) AS mine
        WHERE i.company_id = mine.company_id AND i.state = mine.state AND i.key = mine.key
        """,
        *_columns(tickets),
        [ticket.fence for ticket in tickets],
        LEASE_S,
    )


async def name_effects(tx: Tx, effects: Sequence[tuple[Ticket, int]]) -> None:
    """Say which order each ticket has changed, in the transaction that changes it; undone if one is lost."""
    # In the order in which claims lock them, so that neither waits for the other in vain.
    effects = sorted(effects, key=_place)
    done = await tx.execute(
        """
        UPDATE idempotency i SET order_id = e.order_id
        FROM unnest($1::int[], $2::smallint[], $3::bytea[], $4::int[], $5::bigint[])
             AS e (company_id, state, key, fence, order_id)
        WHERE i.company_id = e.company_id AND i.state = e.state AND i.key = e.key AND i.fence = e.fence
          AND i.order_id IS NULL AND i.answer IS NULL
        """,
        *_columns([ticket for ticket, _ in effects]),
        [ticket.fence for ticket, _ in effects],
        [order_id for _, order_id in effects],
    )
    if int(done.rpartition(" ")[2]) < len(effects):
        raise TicketTaken


def _place(one: tuple[Ticket, Any]) -> tuple[int, int, bytes]:
    return one[0].company_id, one[0].state, one[0].key


async def named(tx: Tx, tickets: Sequence[Ticket]) -> list[int | None]:
    """The order that each of these has changed, by whichever claim."""
    rows = await tx.fetch(
        """
        SELECT i.order_id
        FROM unnest($1::int[], $2::smallint[], $3::bytea[]) WITH ORDINALITY AS t (company_id, state, key, at)
        LEFT JOIN idempotency i USING (company_id, state, key) ORDER BY t.at
        """,
        *_columns(tickets),
    )
    return [row[0] for row in rows]


async def keep(pool: Pool, answers: Sequence[tuple[Ticket, bytes | None]]) -> dict[Ticket, KnownRequest]:
    """Keep these answers for repeated requests; without an answer (None) the next one may go at once.

    What comes back is for those whose ticket is another call's by now: its answer, or that there is none yet.
    """
    answers = sorted(answers, key=_place)
    rows = await pool.fetch(
        """
        UPDATE idempotency i SET answer = a.answer, running_until = now()
        FROM unnest($1::int[], $2::smallint[], $3::bytea[], $4::int[], $5::bytea[])
             AS a (company_id, state, key, fence, answer)
        WHERE i.company_id = a.company_id AND i.state = a.state AND i.key = a.key AND i.fence = a.fence
          AND i.answer IS NULL
        RETURNING i.company_id, i.state, i.key, i.fence
        """,
        *_columns([ticket for ticket, _ in answers]),
        [ticket.fence for ticket, _ in answers],
        [answer for _, answer in answers],
    )
    kept = {Ticket(*row) for row in rows}
    missing = [ticket for ticket, _ in answers if ticket not in kept]
    return await _lost(pool, missing) if missing else {}


async def _lost(pool: Pool, tickets: Sequence[Ticket]) -> dict[Ticket, KnownRequest]:
    """Those that are another call's. An answer that was kept with its effect is the ticket's own."""
    rows = await pool.fetch(
        """
        SELECT i.fence, i.answer
        FROM unnest($1::int[], $2::smallint[], $3::bytea[]) WITH ORDINALITY AS t (company_id, state, key, at)
        LEFT JOIN idempotency i USING (company_id, state, key) ORDER BY t.at
        """,
        *_columns(tickets),
    )
    return {
        ticket: _answered(answer)
        for ticket, (fence, answer) in zip(tickets, rows, strict=True)
        if fence != ticket.fence
    }


async def keep_with(tx: Tx, ticket: Ticket, answer: bytes) -> None:
    """Keep an answer in the transaction of its effect; if the ticket is somebody else's by now, undo both."""
    found = await tx.fetchval(
        """
        UPDATE idempotency SET answer = $5, running_until = now()
        WHERE company_id = $1 AND state = $2 AND key = $3 AND fence = $4 AND answer IS NULL RETURNING true
        """,
        ticket.company_id,
        ticket.state,
        ticket.key,
        ticket.fence,
        answer,
    )
    if not found:
        raise TicketTaken


async def sweep(pool: Pool) -> int:
    """Forget requests that are older than 30 days; how many."""
    gone = await pool.execute(
        """
        DELETE FROM idempotency WHERE (company_id, state, key) IN (
            SELECT company_id, state, key FROM idempotency
            WHERE began_at < now() - make_interval(days => $1) ORDER BY began_at LIMIT $2)
        """,
        KEPT_DAYS,
        SWEEP_MAX,
    )
    return int(gone.rpartition(" ")[2])
