"""The orders' tables. A fixed number of statements, however many orders: arrays in, rows out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, TypeAlias
from uuid import UUID

from voucherd.db import Connection, Tx
from voucherd.ids import State
from voucherd.limits import spend_store
from voucherd.orders import sale, wait_store
from voucherd.orders.caches import OrderCaches
from voucherd.orders.model import Order, Outcome
from voucherd.orders.reading import COLUMNS, ID, OWNED, WANTED, assemble, with_outcomes
from voucherd.orders.rules.ruling import Facts, Ruling
from voucherd.orders.rules.states import Payment
from voucherd.statements import (
    BIGINT,
    BIGINT_OR_NULL,
    ENUM,
    FLAG,
    INT,
    INT_OR_NULL,
    MOMENT,
    NUMBER_LIST,
    SMALLINT,
    TEXT,
    WORD,
    RowSet,
    statement,
)
from voucherd.vault import reveals, shelf
from voucherd.vault import store as vault
from voucherd.vault.model import Reveal
from voucherd.vault.store import Range
from voucherd.wallet import store as wallet_store

SealedCodes: TypeAlias = dict[Range, list[bytes]]
"""Codes as the vault keeps them, by where they lie."""

_LOCKED: Final = [*COLUMNS, "now()", "w.id"]
_NOW, _WALLET = _LOCKED.index("now()"), _LOCKED.index("w.id")


def _locking(*, owned: bool) -> str:
    # NO KEY: a claim of work that points at an order (a foreign key) need not wait for a call that changes it.
    return f"""
        SELECT {", ".join(_LOCKED)}
        FROM orders o {OWNED if owned else ""}
        JOIN order_item i ON i.order_id = o.id
        LEFT JOIN wallet w ON w.company_id = o.company_id AND w.currency = o.payment_currency AND w.state = (o.id & 1)
        {"" if owned else WANTED}
        ORDER BY o.id, i.item_no
        FOR NO KEY UPDATE OF o
    """  # noqa: S608 - Constants only.


_LOCK: Final = _locking(owned=False)
_LOCK_OWN: Final = _locking(owned=True)


async def load(
    tx: Tx,
    order_ids: Collection[int],
    caches: OrderCaches,
    *,
    owners: Sequence[int] | None = None,
    with_shelves: bool = False,
    bought_by: UUID | None = None,
) -> Facts:
    """Lock orders that were finalised before, then their wallets, shelves and waits, each in id order.

    With `owners`, one for each order, only those that are theirs. `with_shelves` for decisions that sell. `bought_by`
    for what comes of one purchase: only its own waits of an order that is paid are looked at, because there may be
    thousands of others; an unpaid order is decided about as a whole.
    """
    if owners is not None:
        rows = await tx.fetch(_LOCK_OWN, order_ids, owners)
    else:
        rows = await tx.fetch(_LOCK, order_ids) if order_ids else []
    if not rows:
        return Facts(await tx.fetchval("SELECT now()"), caches.windows, {})
    orders = await with_outcomes(tx, await assemble(tx, rows, caches.versions))
    facts = Facts(rows[0][_NOW], caches.windows, orders)
    facts.wallet_of_order = {row[ID]: row[_WALLET] for row in rows if row[_WALLET] is not None}
    if facts.wallet_of_order:
        facts.wallets = await wallet_store.lock(tx, list(set(facts.wallet_of_order.values())))
    if with_shelves:
        wanted = sale.wanted(orders.values())
        facts.shelves = await shelf.lock(tx, wanted)
        await sale.load_offers(tx, facts, wanted, caches)
    partly = [o.id for o in orders.values() if bought_by and o.payment_status is not Payment.UNPAID]
    facts.waits = await wait_store.lock(tx, list(orders.keys() - partly))
    if bought_by is not None and partly:
        facts.waits |= await wait_store.lock_bought(tx, partly, bought_by)
    return facts


_CHANGED: Final = RowSet(
    "n",
    id=BIGINT,
    status=ENUM,
    payment_status=ENUM,
    charged_minor=BIGINT,
    refunded_minor=BIGINT,
    held_minor=BIGINT,
    lines_finished=INT,
    lines_cancelled=INT,
    resolving=FLAG,
    cancelling=FLAG,
    version=INT,
    deadline_at=MOMENT,
)
_SETTLED: Final = RowSet(
    "s", order_id=BIGINT, line_from=INT, line_to=INT, lot_id=BIGINT_OR_NULL, seq_from=INT_OR_NULL
)
_HAPPENED: Final = RowSet("e", order_id=BIGINT, company_id=INT, type=WORD, seq=INT)

SAVED_CODES_MAX: Final = 1_000
"""So many sealed codes come back with the statement that sells them; beyond it they are read afterwards."""

_SAVE: Final = statement(
    f"""
    WITH sold AS ({shelf.MOVE_CURSORS}), booked AS ({wallet_store.INSERT_ENTRIES}), shown AS ({reveals.INSERT}),
    moved AS (
        UPDATE orders o
        SET status = n.status, payment_status = n.payment_status, charged_minor = n.charged_minor,
            refunded_minor = n.refunded_minor, held_minor = n.held_minor, lines_finished = n.lines_finished,
            lines_cancelled = n.lines_cancelled, resolving = n.resolving, cancelling = n.cancelling,
            version = n.version, deadline_at = n.deadline_at, updated_at = now()
        FROM {_CHANGED} WHERE o.id = n.id
    ), settled AS (
        INSERT INTO outcome ({_SETTLED.names}, at) SELECT s.*, now() FROM {_SETTLED}
    ), happened AS (
        INSERT INTO event (at, company_id, state, type, order_id, seq)
        SELECT now(), e.company_id, (e.order_id & 1)::smallint, e.type, e.order_id, e.seq FROM {_HAPPENED}
    )
    {vault.SEALED}
    """,  # noqa: S608 - Constants only.
    _CHANGED,
    _SETTLED,
    _HAPPENED,
    shelf.CURSORS,
    wallet_store.ENTRIES,
    reveals.REVEALS,
    vault.RANGES,
)


async def save(tx: Tx, ruling: Ruling, shown: Sequence[Reveal] = ()) -> SealedCodes:
    """Store a ruling: lots, money, orders, outcomes and events in one statement, however many orders.

    In the same statement goes to whom codes will be shown right after it, and these codes come back, sealed.
    """
    sealed: SealedCodes = {}
    if ruling.orders:
        outcomes = [outcome for _, outcome in ruling.outcomes]
        ranges = _ranges_to_show(outcomes) if shown else []
        rows = await tx.fetch(
            _SAVE,
            *_CHANGED.values(list(ruling.orders.values())),
            *_SETTLED.values(outcomes, order_id=[order_id for order_id, _ in ruling.outcomes]),
            *_HAPPENED.values(ruling.events),
            *shelf.CURSORS.values((), id=ruling.cursors, cursor=ruling.cursors.values()),
            *wallet_store.ENTRIES.values(ruling.entries),
            *reveals.values(shown),
            *vault.range_values(ranges),
        )
        sealed = {one: row[0] for one, row in zip(ranges, rows, strict=True)}
    if ruling.spent:
        await spend_store.save(tx, ruling.spent)
    if ruling.waits or ruling.waits_over or ruling.waits_moved:
        await wait_store.save(tx, ruling.waits, ruling.waits_over, ruling.waits_moved)
    return sealed


def _ranges_to_show(outcomes: Sequence[Outcome]) -> list[Range]:
    """Where the codes lie that are sold now; none if they are too many, or computed (those of the sandbox)."""
    ranges = [
        (one.lot_id, one.seq_from, one.seq_from + one.count)
        for one in outcomes
        if one.lot_id is not None and one.seq_from is not None and not one.lot_id & 1
    ]
    return ranges if sum(end - first for _, first, end in ranges) <= SAVED_CODES_MAX else []


_PLACED: Final = RowSet(
    "n",
    id=BIGINT,
    company_id=INT,
    type=SMALLINT,
    payment_currency=WORD,
    payment_fx_e8=BIGINT,
    price_minor=BIGINT,
    vat_minor=BIGINT,
    lines=INT,
    reference=TEXT,
)
_LISTED: Final = RowSet(
    "i",
    order_id=BIGINT,
    item_no=SMALLINT,
    version_id=INT,
    amount=INT,
    first_line=INT,
    face_minor=BIGINT,
    face_fx_e8=BIGINT,
    price_currency=WORD,
    price_fx_e8=BIGINT,
    price_minor=BIGINT,
    vat_minor=BIGINT,
    turnover_minor=BIGINT,
    pay_price_minor=BIGINT,
    pay_vat_minor=BIGINT,
    pay_turnover_minor=BIGINT,
    offers=NUMBER_LIST,
)

_INSERT: Final = statement(
    f"""
    WITH placed AS (
        INSERT INTO orders ({_PLACED.names}, status, created_at, expires_at, updated_at)
        SELECT n.*, 0, :created_at, :expires_at, :created_at FROM {_PLACED}
    ), listed AS (
        INSERT INTO order_item ({_LISTED.names})
        SELECT order_id, item_no, version_id, amount, first_line, face_minor, face_fx_e8, price_currency, price_fx_e8,
               price_minor, vat_minor, turnover_minor, pay_price_minor, pay_vat_minor, pay_turnover_minor,
               coalesce(string_to_array(offers, ' '), '{{}}')::bigint[]
        FROM {_LISTED}
    )
    INSERT INTO event (at, company_id, state, type, order_id, seq)
    SELECT :created_at, n.company_id, (n.id & 1)::smallint, 'order.created', n.id, 1
    FROM {_PLACED.only("id", "company_id")}
    """,  # noqa: S608 - Constants only.
    "created_at",
    "expires_at",
    _PLACED,
    _LISTED,
)


async def insert(conn: Connection, orders: Sequence[Order]) -> None:
    """Write new orders of one moment, their items and events: one statement, so one transaction."""
    items = [item for order in orders for item in order.items]
    await conn.execute(
        _INSERT,
        orders[0].created_at,
        orders[0].expires_at,
        *_PLACED.values(orders),
        *_LISTED.values(
            [item.unit for item in items],
            order_id=[order.id for order in orders for _ in order.items],
            item_no=[item.item_no for item in items],
            version_id=[item.version.version_id for item in items],
            amount=[item.amount for item in items],
            first_line=[item.first_line for item in items],
            offers=[item.offers for item in items],
        ),
    )


async def mark_downloaded(conn: Connection, order_id: int, company_id: int, state: State) -> None:
    """Note, once, that codes of the order left as a file (OP-56).

    Neither the order's version nor its time moves: who reads a file changes no order.
    """
    await conn.execute(
        "UPDATE orders SET downloaded = true"
        " WHERE id = $1 AND company_id + 0 = $2 AND id % 2 = $3 AND NOT downloaded",
        order_id,
        company_id,
        int(state),
    )
