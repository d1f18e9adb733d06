"""The wallet's tables. Only `statement` reads them too, and nothing else but the joins that name a wallet's id."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from voucherd.db import Connection, Tx
from voucherd.ids import State
from voucherd.money import Money
from voucherd.statements import BIGINT, BIGINT_OR_NULL, ENUM, TEXT, RowSet, statement
from voucherd.wallet.ledger import EntryKind, LedgerEntry, Wallet, post


class Balance(Struct, frozen=True):
    """A wallet as people see it."""

    wallet_id: int
    company_id: int
    currency: str
    state: State
    balance_minor: int
    held_minor: int


class ReferenceReused(ValueError):
    """The same top-up reference came with another amount."""

    def __init__(self, reference: str, first: Money) -> None:
        super().__init__(f"reference {reference!r} was used before, for {first}")


async def lock(tx: Tx, wallet_ids: Sequence[int]) -> dict[int, Wallet]:
    """The wallets as they are now, locked in the order of their ids until the transaction ends."""
    rows = await tx.fetch(
        "SELECT id, balance_minor, held_minor, seq FROM wallet WHERE id = ANY($1::bigint[]) ORDER BY id FOR UPDATE",
        wallet_ids,
    )
    return {row[0]: Wallet(*row) for row in rows}


ENTRIES: Final = RowSet(
    "entered",
    wallet_id=BIGINT,
    seq=BIGINT,
    kind=ENUM,
    amount_minor=BIGINT,
    vat_minor=BIGINT,
    hold_minor=BIGINT,
    balance_after_minor=BIGINT,
    held_after_minor=BIGINT,
    order_id=BIGINT_OR_NULL,
    reference=TEXT,
)
# Their wallet is locked by now, so a later number has a later time; a transaction's own time may be older than that of
# one it waited for, and statements of a period need the two to agree. A clock that was set back, or that of another
# server that took over, must not undo that: then the last time is written again until the clock has come so far.
INSERT_ENTRIES: Final = f"""
    INSERT INTO entry ({ENTRIES.names}, at)
    SELECT entered.*, greatest(clock_timestamp(), (
        SELECT max(e.at) FROM (
            SELECT entered.wallet_id, min(entered.seq) AS seq FROM {ENTRIES.only("wallet_id", "seq")}
            GROUP BY entered.wallet_id) first
        CROSS JOIN LATERAL (SELECT at FROM entry WHERE wallet_id = first.wallet_id AND seq = first.seq - 1) e))
    FROM {ENTRIES}
"""  # noqa: S608 - Constants only.
"""Write entries, as part of a larger statement: the database carries the balances and refuses a break in the chain."""
_APPEND: Final = statement(INSERT_ENTRIES, ENTRIES)


async def append(tx: Tx, entries: Sequence[LedgerEntry]) -> None:
    """Write entries by themselves."""
    await tx.execute(_APPEND, *ENTRIES.values(entries))


async def ensure(tx: Tx, company_id: int, currency: str, state: State) -> int:
    """The id of the company's wallet in that currency and state, made if there is none."""
    await tx.execute(
        """
        INSERT INTO wallet (id, company_id, currency, state)
        SELECT nextval('wallet_number') * 2 + $3, $1, $2, $3
        WHERE NOT EXISTS (SELECT FROM wallet WHERE company_id = $1 AND currency = $2 AND state = $3)
        ON CONFLICT (company_id, currency, state) DO NOTHING
        """,
        company_id,
        currency,
        int(state),
    )
    wallet_id = await tx.fetchval(
        "SELECT id FROM wallet WHERE company_id = $1 AND currency = $2 AND state = $3",
        company_id,
        currency,
        int(state),
    )
    return int(wallet_id)


async def top_up(tx: Tx, company_id: int, state: State, money: Money, reference: str) -> bool:
    """Add money to a wallet. False if this reference was booked before: a repeated reference tops up once."""
    wallet_id = await ensure(tx, company_id, money.currency, state)
    wallet = (await lock(tx, [wallet_id]))[wallet_id]
    first = await tx.fetchval(
        "SELECT amount_minor FROM entry WHERE wallet_id = $1 AND reference = $2 AND kind = 1",
        wallet_id,
        reference,
    )
    if first is not None:
        if first != money.minor:
            raise ReferenceReused(reference, Money(first, money.currency))
        return False
    _, entry = post(wallet, EntryKind.TOP_UP, amount_minor=money.minor, reference=reference)
    await append(tx, [entry])
    return True


async def correct(tx: Tx, company_id: int, state: State, money: Money, reference: str) -> None:
    """Move a wallet up or down by hand; refused if that would overdraw it."""
    wallet_id = await ensure(tx, company_id, money.currency, state)
    wallet = (await lock(tx, [wallet_id]))[wallet_id]
    _, entry = post(wallet, EntryKind.CORRECTION, amount_minor=money.minor, reference=reference)
    await append(tx, [entry])


async def balances(conn: Connection, company_id: int, state: State | None = None) -> list[Balance]:
    """The company's wallets."""
    rows = await conn.fetch(
        """
        SELECT id, company_id, currency, state, balance_minor, held_minor FROM wallet
        WHERE company_id = $1 AND ($2::smallint IS NULL OR state = $2) ORDER BY state, currency
        """,
        company_id,
        None if state is None else int(state),
    )
    return [Balance(r[0], r[1], r[2], State(r[3]), r[4], r[5]) for r in rows]


async def usual_currency(conn: Connection, state: State) -> str:
    """The currency in which most companies have money; EUR while nobody has any."""
    found = await conn.fetchval(
        "SELECT currency FROM wallet WHERE state = $1 GROUP BY currency ORDER BY count(*) DESC, currency LIMIT 1",
        int(state),
    )
    return found or "EUR"


async def balances_of(conn: Connection, company_ids: Collection[int], state: State) -> dict[int, list[Money]]:
    """What each of these companies has, by company; of one without a wallet there is nothing."""
    rows = await conn.fetch(
        "SELECT company_id, balance_minor, currency FROM wallet"
        " WHERE company_id = ANY($1::int[]) AND state = $2 ORDER BY company_id, currency",
        list(company_ids),
        int(state),
    )
    found: dict[int, list[Money]] = {}
    for company_id, minor, currency in rows:
        found.setdefault(company_id, []).append(Money(minor, currency))
    return found


class Movement(Struct, frozen=True):
    """One entry of an order's."""

    at: datetime
    kind: EntryKind
    amount: Money
    hold: Money
    balance_after: Money


async def movements(conn: Connection, order_id: int, limit: int) -> list[Movement]:
    """The entries of an order, oldest first."""
    rows = await conn.fetch(
        """
        SELECT e.at, e.kind, e.amount_minor, e.hold_minor, e.balance_after_minor, w.currency
        FROM entry e JOIN wallet w ON w.id = e.wallet_id WHERE e.order_id = $1 ORDER BY e.seq LIMIT $2
        """,
        order_id,
        limit,
    )
    return [
        Movement(row[0], EntryKind(row[1]), *(Money(minor, row[5]) for minor in tuple(row)[2:5]))
        for row in rows
    ]
