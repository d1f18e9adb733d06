"""The table of requests that may be sent again (OP-28).

A row is claimed before the work, named in the transaction of its effect, and answered after it. Who finds it claimed
and not answered knows that somebody is at it; when that claim has run out, the row tells whether the effect is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from voucherd.db import Pool, Tx
from voucherd.idempotency.model import KEPT_DAYS, Claim, ClaimResult, KnownRequest, Ticket, TicketTaken

SWEEP_MAX: Final = 5_000


_CLAIM: Final = """
    WITH asked AS (
        SELECT * FROM unnest($1::int[], $2::smallint[], $3::bytea[], $4::bytea[], $6::bigint[])
                      AS a (company_id, state, key, request, asked_by)
    ), taken AS (
        INSERT INTO idempotency AS i (company_id, state, key, request, asked_by, running_until)
        SELECT *, now() + make_interval(secs => $5) FROM asked ORDER BY company_id, state, key
        ON CONFLICT (company_id, state, key) DO UPDATE SET running_until = excluded.running_until
        WHERE i.answer IS NULL AND i.running_until <= now() AND i.request = excluded.request
          AND coalesce(i.asked_by, excluded.asked_by) = excluded.asked_by
        RETURNING i.company_id, i.state, i.key, i.order_id
    )
    SELECT a.company_id, a.state, a.key, t.key IS NOT NULL AS mine, coalesce(t.order_id, i.order_id) AS order_id,
           coalesce(i.asked_by <> a.asked_by, false) AS is_foreign,
           i.request IS DISTINCT FROM a.request AND i.key IS NOT NULL AS other, i.answer
    FROM asked a LEFT JOIN taken t USING (company_id, state, key) LEFT JOIN idempotency i USING (company_id, state, key)
"""


async def claim(pool: Pool, claims: Sequence[Claim], lease_s: float) -> list[KnownRequest]:
    """What each of these requests is to do; of two with one key the first goes first."""
    first: dict[Ticket, Claim] = {}
    for one in claims:
        first.setdefault(one.ticket, one)
    asked = list(first.values())
    rows = await pool.fetch(
        _CLAIM,
        [one.ticket.company_id for one in asked],
        [one.ticket.state for one in asked],
        [one.ticket.key for one in asked],
        [one.request for one in asked],
        lease_s,
        [one.asked_by for one in asked],
    )
    told = {Ticket(row[0], row[1], row[2]): _told(*tuple(row)[3:]) for row in rows}
    return [_for(one, first[one.ticket], told[one.ticket]) for one in claims]


def _told(mine: bool, order_id: int | None, foreign: bool, other: bool, answer: bytes | None) -> KnownRequest:
    if mine:
        return KnownRequest(ClaimResult.GO) if order_id is None else KnownRequest(ClaimResult.DONE, order_id)
    if foreign:
        return KnownRequest(ClaimResult.FOREIGN)
    if other:
        return KnownRequest(ClaimResult.OTHER)
    # A row that is not to be seen yet was made in this very moment.
    return (
        KnownRequest(ClaimResult.WAIT)
        if answer is None
        else KnownRequest(ClaimResult.ANSWERED, answer=answer)
    )


def _for(one: Claim, first: Claim, told: KnownRequest) -> KnownRequest:
    """What a claim is told that is in one batch with another of the same key."""
    if one.asked_by != first.asked_by:
        # It asks again with a ticket of its own, or finds by itself that the first one's was nobody's.
        return KnownRequest(ClaimResult.FOREIGN)
    if one is first or told.turn in {ClaimResult.ANSWERED, ClaimResult.OTHER, ClaimResult.FOREIGN}:
        return told
    return KnownRequest(ClaimResult.WAIT if one.request == first.request else ClaimResult.OTHER)


async def name_effects(tx: Tx, effects: Sequence[tuple[Ticket, int]]) -> None:
    """Say which order each ticket has changed, in the transaction that changes it."""
    await tx.execute(
        """
        UPDATE idempotency i SET order_id = e.order_id
        FROM unnest($1::int[], $2::smallint[], $3::bytea[], $4::bigint[]) AS e (company_id, state, key, order_id)
        WHERE i.company_id = e.company_id AND i.state = e.state AND i.key = e.key AND i.order_id IS NULL
        """,
        [ticket.company_id for ticket, _ in effects],
        [ticket.state for ticket, _ in effects],
        [ticket.key for ticket, _ in effects],
        [order_id for _, order_id in effects],
    )


async def keep(pool: Pool, answers: Sequence[tuple[Ticket, bytes | None]]) -> None:
    """Keep these answers for repeated requests; without an answer (None) the next one may go at once."""
    await pool.execute(
        """
        UPDATE idempotency i SET answer = a.answer, running_until = now()
        FROM unnest($1::int[], $2::smallint[], $3::bytea[], $4::bytea[]) AS a (company_id, state, key, answer)
        WHERE i.company_id = a.company_id AND i.state = a.state AND i.key = a.key AND i.answer IS NULL
        """,
        [ticket.company_id for ticket, _ in answers],
        [ticket.state for ticket, _ in answers],
        [ticket.key for ticket, _ in answers],
        [answer for _, answer in answers],
    )


async def keep_with(tx: Tx, ticket: Ticket, answer: bytes) -> None:
    """Keep an answer in the transaction of its effect; if the ticket is somebody else's by now, undo both."""
    found = await tx.fetchval(
        """
        UPDATE idempotency SET answer = $4, running_until = now()
        WHERE company_id = $1 AND state = $2 AND key = $3 AND answer IS NULL RETURNING true
        """,
        ticket.company_id,
        ticket.state,
        ticket.key,
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
