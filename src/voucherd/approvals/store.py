"""Approvals: requests of one person that another one allows (OP-93). Their table is written here alone.

The noun that owns the change makes it: `orders.consent` confirms the order, `wallet.deeds` moves the money. Both mark
the approval in the same transaction, under the lock that `lock` takes, so it is carried out once or not at all.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from voucherd.approvals.model import (
    AlreadyProposed,
    Approval,
    ApprovalClosed,
    ApprovalKind,
    ApprovalNotFound,
    ApprovalStatus,
    Consent,
    refuse,
)
from voucherd.db import Connection, Pool, Tx
from voucherd.ids import State
from voucherd.money import Money

MONEY_LIFE: Final = timedelta(days=14)
"""So long a proposed payment waits for a second person; an order's request lasts as long as its price."""
NOTE_CHARACTERS_MAX: Final = 500


def rows_of(source: str) -> str:
    """A statement for the requests of this source, as `approval_of` reads them."""
    return f"""
        SELECT a.id, a.kind, a.company_id, a.state, a.order_id, a.amount_minor, a.currency, a.reference, a.note,
               a.requested_by, a.requested_at, a.ends_at, a.status, a.decided_at,
               a.status = 0 AND a.ends_at <= now() AS over, c.name, r.email, d.email,
               r.name, d.name
        FROM {source} a JOIN company c ON c.id = a.company_id JOIN app_user r ON r.id = a.requested_by
        LEFT JOIN app_user d ON d.id = a.decided_by
    """  # noqa: S608 - Constants only.


ROWS: Final = rows_of("approval")


async def ask_for_order(
    tx: Tx,
    *,
    company_id: int,
    order_id: int,
    state: State,
    total: Money,
    requested_by: int,
    ends_at: datetime,
    note: str = "",
) -> tuple[int, bool]:
    """The id of the order's open request, and whether it is a new one."""
    made = await tx.fetchval(
        """
        INSERT INTO approval (kind, company_id, state, order_id, amount_minor, currency, note, requested_by, ends_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (order_id) WHERE status = 0 DO NOTHING RETURNING id
        """,
        int(ApprovalKind.ORDER),
        company_id,
        int(state),
        order_id,
        total.minor,
        total.currency,
        note[:NOTE_CHARACTERS_MAX],
        requested_by,
        ends_at,
    )
    if made is not None:
        return int(made), True
    return int(
        await tx.fetchval("SELECT id FROM approval WHERE order_id = $1 AND status = 0", order_id)
    ), False


async def propose(
    tx: Tx,
    kind: ApprovalKind,
    *,
    company_id: int,
    state: State,
    money: Money,
    reference: str,
    requested_by: int,
    note: str = "",
) -> int:
    """The id of a new request to move money; refused while the same one is open."""
    assert kind is not ApprovalKind.ORDER, "an order has a request of its own kind"
    await tx.execute(
        """
        UPDATE approval SET status = 3, decided_at = now()
        WHERE company_id = $1 AND state = $2 AND currency = $3 AND reference = $4 AND status = 0 AND ends_at <= now()
        """,
        company_id,
        int(state),
        money.currency,
        reference,
    )
    made = await tx.fetchval(
        """
        INSERT INTO approval (kind, company_id, state, amount_minor, currency, reference, note, requested_by, ends_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, now() + $9::interval)
        ON CONFLICT (company_id, state, currency, reference) WHERE status = 0 AND kind <> 1 DO NOTHING RETURNING id
        """,
        int(kind),
        company_id,
        int(state),
        money.minor,
        money.currency,
        reference,
        note[:NOTE_CHARACTERS_MAX],
        requested_by,
        MONEY_LIFE,
    )
    if made is None:
        raise AlreadyProposed
    return int(made)


async def lock(tx: Tx, numbers: Collection[int]) -> dict[int, Approval]:
    """These requests as they are now, locked in the order of their ids until the transaction ends."""
    rows = await tx.fetch(
        f"{ROWS} WHERE a.id = ANY($1::bigint[]) ORDER BY a.id FOR UPDATE OF a", sorted(numbers)
    )
    return {row[0]: approval_of(row) for row in rows}


async def decide(tx: Tx, decisions: Sequence[tuple[int, int]], status: ApprovalStatus) -> None:
    """Write down who decided what (request, person); the caller holds the locks and has refused what it must."""
    await tx.executemany(
        "UPDATE approval SET status = $3, decided_by = $2, decided_at = now() WHERE id = $1",
        [(number, person, int(status)) for number, person in decisions],
    )


async def grant(tx: Tx, consents: Sequence[Consent]) -> None:
    """Write down what was allowed, by whom, in the transaction that carries it out."""
    await decide(tx, [(one.number, one.by) for one in consents], ApprovalStatus.APPROVED)


async def reject(tx: Tx, number: int, company_id: int | None, decided_by: int) -> Approval:
    """Say no; the request is closed and nothing else happens. None is the operator's, for requests about money."""
    found = (await lock(tx, [number])).get(number)
    approval = refuse(_within(found, company_id), decided_by)
    await decide(tx, [(number, decided_by)], ApprovalStatus.REJECTED)
    return approval


async def withdraw(tx: Tx, number: int, company_id: int | None, by: int) -> Approval:
    """Take one's own request back; refused for anybody else."""
    found = _within((await lock(tx, [number])).get(number), company_id)
    if found is None or found.requested_by != by:
        raise ApprovalNotFound
    if not found.open:
        raise ApprovalClosed
    await end(tx, number)
    return found


async def end(tx: Tx, number: int) -> None:
    """Close a request that nobody decided about; the caller holds its lock."""
    await tx.execute("UPDATE approval SET status = 3, decided_at = now() WHERE id = $1", number)


async def find(connection: Connection | Pool, number: int, company_id: int | None) -> Approval:
    """One request: of this company's orders, or of the operator's about money for None."""
    row = await connection.fetchrow(f"{ROWS} WHERE a.id = $1", number)
    found = _within(None if row is None else approval_of(row), company_id)
    if found is None:
        raise ApprovalNotFound
    return found


def _within(approval: Approval | None, company_id: int | None) -> Approval | None:
    """The request, if it is one that this company's people, or the operator's, decide about."""
    if approval is None or (approval.kind is ApprovalKind.ORDER) != (company_id is not None):
        return None
    return None if company_id is not None and approval.company_id != company_id else approval


def approval_of(row: Any) -> Approval:
    """The request in a row of `ROWS`."""
    values = list(row)
    values[1], values[3], values[12] = ApprovalKind(row[1]), State(row[3]), ApprovalStatus(row[12])
    return Approval(*values)
