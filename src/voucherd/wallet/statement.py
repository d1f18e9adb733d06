"""Statements: a wallet's movements, page by page, at a cost that does not depend on how many there are.

Movements are numbered without a gap and never change, so a page is an unbroken part of the chain wherever a reader goes
on, and everything up to a number that was once seen is a snapshot for good: no transaction needs to stay open for it.
A wallet's times rise with its numbers, because an entry takes its time when the wallet is locked, and never one before
that of the entry before it; so the ends of a period are found by halving, with the key alone. Programs before 0.2.0
wrote what a clock said that was set back, so each movement of a period is looked at as well.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from voucherd.db import Connection, Pool, as_tenant, tenant
from voucherd.ids import State, state_of
from voucherd.replica import Behind, ReadPool
from voucherd.statements import Where
from voucherd.wallet.ledger import EntryKind
from voucherd.wallet.store import Balance, balances

FILE_PAGE: Final = 500
"""Movements that are in memory at once while a whole statement is written."""

SCAN_MAX: Final = 20_000
"""Movements that one page looks at for those of a kind. The page is short then, and the next goes on behind it."""

INDEXED: Final = frozenset({EntryKind.TOP_UP, EntryKind.REFUND, EntryKind.CORRECTION})
"""The kinds that are few among the others, and have an index."""

_COLUMNS: Final = (
    "seq, at, kind, amount_minor, hold_minor, balance_after_minor, held_after_minor, order_id, reference"
)
_BALANCES_AT: Final = """
    SELECT coalesce((SELECT balance_after_minor FROM entry WHERE wallet_id = $1 AND seq = found.low),
                    (SELECT balance_minor FROM archived_ledger WHERE wallet_id = $1), 0)
    FROM unnest($3::timestamptz[]) WITH ORDINALITY AS wanted (moment, at) CROSS JOIN LATERAL (
        WITH RECURSIVE halving (low, high) AS (
            SELECT coalesce((SELECT seq FROM archived_ledger WHERE wallet_id = $1), 0), $2::bigint + 1
            UNION ALL
            SELECT CASE WHEN e.at >= wanted.moment THEN h.low ELSE h.middle END,
                   CASE WHEN e.at >= wanted.moment THEN h.middle ELSE h.high END
            FROM (SELECT low, high, (low + high) / 2 AS middle FROM halving WHERE high - low > 1) h
            CROSS JOIN LATERAL (SELECT at FROM entry WHERE wallet_id = $1 AND seq = h.middle LIMIT 1) e)
        SELECT low FROM halving WHERE high - low <= 1) found
    ORDER BY wanted.at
"""
_KINDS: Final = {int(kind): kind for kind in EntryKind}


class StatementLine(Struct, frozen=True):
    """One movement of a statement."""

    seq: int
    at: datetime
    kind: EntryKind
    amount_minor: int
    hold_minor: int
    balance_after_minor: int
    held_after_minor: int
    order_id: int | None
    reference: str | None


class StatementFilters(Struct, frozen=True):
    """Which movements are asked for, and from which end."""

    date_from: datetime | None = None
    date_to: datetime | None = None
    kinds: frozenset[EntryKind] = frozenset()
    order_id: int | None = None
    oldest_first: bool = False


class WalletAccount(Struct, frozen=True):
    """A wallet by its id, and the number of its last movement."""

    wallet_id: int
    currency: str
    last_seq: int
    company_id: int


class Part(Struct, frozen=True):
    """A page of movements, and the number to go on behind; None at the end."""

    lines: list[StatementLine]
    after: int | None


class _Span(Struct, frozen=True):
    """The numbers from `low` up to, not including, `high`."""

    low: int
    high: int


class Statements:
    """Reads balances and statements; a connection is held for one page at a time."""

    def __init__(self, pool: Pool, lists: ReadPool | None = None) -> None:
        self._pool = pool
        self._lists = ReadPool(pool) if lists is None else lists

    async def balances(self, company_id: int, state: State) -> list[Balance]:
        """The company's balances."""
        async with tenant(self._pool, company_id, state) as conn:
            return await balances(conn, company_id, state)

    async def account(self, company_id: int, currency: str, state: State) -> WalletAccount | None:
        """The company's account, as far as it has come by now."""

        async def found(conn: Connection) -> WalletAccount | None:
            async with as_tenant(conn, company_id, state):
                return await find(conn, company_id, currency, state)

        return await self._lists.read(found)

    async def page(
        self, account: WalletAccount, filters: StatementFilters, *, after: int | None, size: int
    ) -> Part:
        """One page."""

        async def found(conn: Connection) -> Part:
            await _refuse_behind(conn, account)
            return await page(conn, account, filters, after=after, size=size)

        return await self._lists.read(found)

    async def balances_at(self, account: WalletAccount, moments: Sequence[datetime]) -> list[int]:
        """The balance just before each of these moments, in minor units; found by halving, like a period's ends."""

        async def found(conn: Connection) -> list[int]:
            await _refuse_behind(conn, account)
            rows = await conn.fetch(_BALANCES_AT, account.wallet_id, account.last_seq, list(moments))
            return [row[0] for row in rows]

        return await self._lists.read(found)

    async def whole(
        self, account: WalletAccount, filters: StatementFilters
    ) -> AsyncIterator[list[StatementLine]]:
        """All movements up to the account's last, a handful at a time, as fast as the reader takes them."""
        after: int | None = None
        while True:
            part = await self.page(account, filters, after=after, size=FILE_PAGE)
            yield part.lines
            if part.after is None:
                return
            after = part.after


async def _refuse_behind(conn: Connection, account: WalletAccount) -> None:
    """Leave it to the primary where a standby has not come as far as the account was seen to be."""
    seq = await conn.fetchval("SELECT seq FROM wallet WHERE id = $1", account.wallet_id)
    if seq is None or seq < account.last_seq:
        raise Behind(f"wallet {account.wallet_id} at {seq}, not at {account.last_seq}")


async def find(conn: Connection, company_id: int, currency: str, state: State) -> WalletAccount | None:
    """The company's account in this currency and state."""
    row = await conn.fetchrow(
        "SELECT id, currency, seq, company_id FROM wallet WHERE company_id = $1 AND currency = $2 AND state = $3",
        company_id,
        currency,
        int(state),
    )
    return None if row is None else WalletAccount(*row)


async def page(
    conn: Connection, account: WalletAccount, filters: StatementFilters, *, after: int | None, size: int
) -> Part:
    """The next movements behind `after`, newest first unless the filters say otherwise."""
    span = await _span(conn, account, filters, after)
    scanned = span
    if not (filters.kinds and filters.kinds <= INDEXED) and filters.order_id is None:
        scanned = _shortened(span, oldest_first=filters.oldest_first)
    async with as_tenant(conn, account.company_id, state_of(account.wallet_id)):
        if filters.order_id is not None:
            rows = await _of_order(conn, account, filters, span, size + 1)
        elif filters.kinds and filters.kinds <= INDEXED:
            rows = await _of_indexed_kinds(conn, account, filters, span, size + 1)
        else:
            rows = await _in_order(conn, account, filters, scanned, size + 1)
    lines = [StatementLine(row[0], row[1], _KINDS[row[2]], *row[3:]) for row in rows]
    if len(lines) > size:
        return Part(lines[:size], lines[size - 1].seq)
    if scanned == span:
        return Part(lines, None)
    return Part(lines, scanned.high - 1 if filters.oldest_first else scanned.low)


async def _span(
    conn: Connection, account: WalletAccount, filters: StatementFilters, after: int | None
) -> _Span:
    """The numbers that are still to be looked at."""
    # A statement begins behind the movements that are in the archive: up to there it would have gaps.
    archived = await conn.fetchval(
        "SELECT coalesce((SELECT seq FROM archived_ledger WHERE wallet_id = $1), 0)", account.wallet_id
    )
    low, high = archived + 1, account.last_seq + 1
    if filters.date_from is not None:
        low = await _first(conn, account, ">=", filters.date_from, archived)
    if filters.date_to is not None:
        high = await _first(conn, account, ">", filters.date_to, archived)
    if after is not None and filters.oldest_first:
        low = max(low, after + 1)
    elif after is not None:
        high = min(high, after)
    return _Span(low, max(low, high))


def _shortened(span: _Span, *, oldest_first: bool) -> _Span:
    """What one page may look at of it."""
    if oldest_first:
        return _Span(span.low, min(span.high, span.low + SCAN_MAX))
    return _Span(max(span.low, span.high - SCAN_MAX), span.high)


async def _first(
    conn: Connection, account: WalletAccount, beyond: str, moment: datetime, archived: int
) -> int:
    """The number of the first movement beyond this moment; one more than the last if there is none."""
    return int(
        await conn.fetchval(
            f"""
            WITH RECURSIVE halving (low, high) AS (
                SELECT $4::bigint, $2::bigint + 1
                UNION ALL
                SELECT CASE WHEN e.at {beyond} $3 THEN h.low ELSE h.middle END,
                       CASE WHEN e.at {beyond} $3 THEN h.middle ELSE h.high END
                FROM (SELECT low, high, (low + high) / 2 AS middle FROM halving WHERE high - low > 1) h
                CROSS JOIN LATERAL (SELECT at FROM entry WHERE wallet_id = $1 AND seq = h.middle LIMIT 1) e)
            SELECT high FROM halving WHERE high - low <= 1
            """,  # noqa: S608 - One of two comparisons of ours.
            account.wallet_id,
            account.last_seq,
            moment,
            archived,
        )
    )


async def _in_order(
    conn: Connection, account: WalletAccount, filters: StatementFilters, span: _Span, limit: int
) -> Sequence[Any]:
    """Along the key; a kind without an index is picked out on the way."""
    wanted = _wanted(account, span, limit, filters)
    wanted.also("kind = ANY(:kinds::smallint[])", kinds=_numbers(filters.kinds) or None)
    return await conn.fetch(
        f"SELECT {_COLUMNS} FROM entry WHERE {wanted} ORDER BY seq {_direction(filters)} LIMIT $4",  # noqa: S608 - Ours.
        *wanted.values,
    )


async def _of_indexed_kinds(
    conn: Connection, account: WalletAccount, filters: StatementFilters, span: _Span, limit: int
) -> Sequence[Any]:
    """The few first of each kind, then the few first of those."""
    order = f"ORDER BY seq {_direction(filters)} LIMIT $4"
    wanted = _wanted(account, span, limit, filters)
    kinds = wanted.parameter(_numbers(filters.kinds))
    return await conn.fetch(
        f"""
        SELECT {_COLUMNS} FROM unnest({kinds}::smallint[]) AS one (kind_wanted) CROSS JOIN LATERAL (
            SELECT {_COLUMNS} FROM entry
            WHERE {wanted} AND kind = kind_wanted AND kind IN (1, 3, 6) {order}) e
        {order}
        """,  # noqa: S608 - Constants of ours.
        *wanted.values,
    )


async def _of_order(
    conn: Connection, account: WalletAccount, filters: StatementFilters, span: _Span, limit: int
) -> Sequence[Any]:
    """The movements of one order are a handful: all of them are found first, so that no plan walks the wallet."""
    wanted = _wanted(account, span, limit, filters)
    wanted.also("kind = ANY(:kinds::smallint[])", kinds=_numbers(filters.kinds) or None)
    order_id = wanted.parameter(filters.order_id)
    return await conn.fetch(
        f"""
        WITH own AS MATERIALIZED (SELECT wallet_id, {_COLUMNS} FROM entry WHERE order_id = {order_id})
        SELECT {_COLUMNS} FROM own WHERE {wanted} ORDER BY seq {_direction(filters)} LIMIT $4
        """,  # noqa: S608 - Constants of ours.
        *wanted.values,
    )


def _wanted(account: WalletAccount, span: _Span, limit: int, filters: StatementFilters) -> Where:
    """The conditions on a movement of the account; the limit is the fourth of their parameters."""
    where = Where("wallet_id = $1", "seq >= $2", "seq < $3")
    where.values = [account.wallet_id, span.low, span.high, limit]
    where.also("at >= :date_from", date_from=filters.date_from)
    where.also("at <= :date_to", date_to=filters.date_to)
    return where


def _direction(filters: StatementFilters) -> str:
    return "ASC" if filters.oldest_first else "DESC"


def _numbers(kinds: frozenset[EntryKind]) -> list[int]:
    return sorted(int(kind) for kind in kinds)
