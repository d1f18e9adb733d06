"""The orders' tables. A fixed number of statements, however many orders: arrays in, rows out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final
from uuid import UUID

import asyncpg
from msgspec import Struct, field
from msgspec.structs import replace

from voucherd.catalogue import store as catalogue
from voucherd.catalogue.cache import VersionCache
from voucherd.catalogue.price_book import PriceBook
from voucherd.catalogue.pricing import UnitPrice
from voucherd.catalogue.products import ProductVersion
from voucherd.db import Connection, Tx, numbers, sparse_numbers, words
from voucherd.limits import spend_store
from voucherd.limits.spending import SpendKey
from voucherd.orders import wait_store
from voucherd.orders.model import INLINE_LINES_MAX, Item, Order, Outcome, Viewed
from voucherd.orders.rules.ruling import CompanyStanding, Facts, Ruling, Windows
from voucherd.orders.rules.states import Payment, Status
from voucherd.suppliers.offer_book import OfferBook
from voucherd.vault import reveals, shelf
from voucherd.vault.model import Reveal, Shelf
from voucherd.wallet import store as wallet_store

STATUSES: Final = tuple(Status)
PAYMENTS: Final = tuple(Payment)

_ORDER_COLUMNS = """
    o.id, o.company_id, o.type, o.status, o.payment_status, o.payment_currency, o.payment_fx_e8, o.price_minor,
    o.vat_minor, o.charged_minor, o.refunded_minor, o.held_minor, o.lines, o.lines_finished, o.lines_cancelled,
    o.resolving, o.cancelling, o.downloaded, o.version, o.created_at, o.expires_at, o.updated_at, o.deadline_at,
    o.reference
"""
_ORDER_WIDTH: Final = 24
_ITEM_COLUMNS = """
    i.item_no, i.version_id, i.amount, i.first_line, i.offers, i.face_minor, i.face_fx_e8, i.price_currency,
    i.price_fx_e8, i.price_minor, i.vat_minor, i.turnover_minor, o.payment_fx_e8, i.pay_price_minor, i.pay_vat_minor,
    i.pay_turnover_minor
"""
_ITEM_WIDTH: Final = 16

# NO KEY: a claim of work that points at an order (a foreign key) need not wait for whoever changes it.
# The joins name what the decision needs of other nouns (may the company buy, is the product for sale, which wallet
# pays), so that one round trip locks the orders and tells it all.
_LOCK = f"""
    SELECT {_ORDER_COLUMNS}, {_ITEM_COLUMNS}, now(), c.active, c.verified, p.id, p.active, w.id
    FROM orders o
    JOIN company c ON c.id = o.company_id
    JOIN order_item i ON i.order_id = o.id
    JOIN product_version v ON v.id = i.version_id
    JOIN product p ON p.id = v.product_id
    LEFT JOIN wallet w ON w.company_id = o.company_id AND w.currency = o.payment_currency AND w.state = (o.id & 1)
    WHERE o.id = ANY($1::bigint[])
    ORDER BY o.id, i.item_no
    FOR NO KEY UPDATE OF o
"""  # noqa: S608 - Constants only.

_READ = f"""
    SELECT {_ORDER_COLUMNS}, {_ITEM_COLUMNS}
    FROM orders o JOIN order_item i ON i.order_id = o.id
    WHERE o.id = ANY($1::bigint[])
    ORDER BY o.id, i.item_no
"""  # noqa: S608 - Constants only.


_WANTED: Final = "WHERE o.id = ANY($1::bigint[])"
_OWNED: Final = (
    "JOIN unnest($1::bigint[], $2::int[]) AS a (id, owner) ON o.id = a.id AND o.company_id = a.owner"
)
# For a company's own calls: an order of another company is not so much as looked at, let alone locked.
_LOCK_OWN: Final = _LOCK.replace(_WANTED, "").replace("FROM orders o\n", f"FROM orders o {_OWNED}\n")
_READ_OWN: Final = _READ.replace(_WANTED, "").replace("FROM orders o ", f"FROM orders o {_OWNED} ")


class Memory(Struct, frozen=True):
    """What a process remembers between one load and the next."""

    windows: Windows
    versions: VersionCache = field(default_factory=VersionCache)
    offers: OfferBook = field(default_factory=OfferBook)
    prices: PriceBook = field(default_factory=PriceBook)


async def load(
    tx: Tx,
    order_ids: Collection[int],
    memory: Memory,
    *,
    owners: Sequence[int] | None = None,
    with_lines: bool = False,
    with_shelves: bool = True,
    purses: Collection[SpendKey] = (),
    bought_by: UUID | None = None,
) -> Facts:
    """Lock the orders, then their wallets, the shelves they sell from, and their waits, each in id order.

    With `owners`, one for each order, only those that are theirs.
    `with_lines` for decisions about orders that were finalised before, `with_shelves` for those that sell, `purses` for
    those whose spending is limited. `bought_by` for what comes of one purchase: only its own waits of an order that is
    paid are looked at, because there may be thousands of others; what is not paid yet is decided about as a whole.
    """
    if owners is not None:
        rows = await tx.fetch(_LOCK_OWN, order_ids, owners)
    else:
        rows = await tx.fetch(_LOCK, order_ids) if order_ids else []
    if not rows:
        return Facts(await tx.fetchval("SELECT now()"), memory.windows, {})
    orders = await _assemble(tx, rows, memory.versions)
    if with_lines:
        orders = await _with_outcomes(tx, orders)
    tail = _ORDER_WIDTH + _ITEM_WIDTH
    facts = Facts(rows[0][tail], memory.windows, orders)
    for row in rows:
        facts.standing[row[1]] = CompanyStanding(row[tail + 1], row[tail + 2])
        if not row[tail + 4]:
            facts.withdrawn.add(row[tail + 3])
        if row[tail + 5] is not None:
            facts.purses[row[0]] = row[tail + 5]
    if facts.purses:
        facts.wallets = await wallet_store.lock(tx, list(set(facts.purses.values())))
    if purses:
        facts.spent = await spend_store.lock(tx, purses)
    if with_shelves:
        await _load_shelves(tx, facts, memory.offers)
    if with_lines:
        partly = [o.id for o in orders.values() if bought_by and o.payment_status is not Payment.UNPAID]
        facts.waits = await wait_store.lock(tx, list(orders.keys() - partly))
        if bought_by is not None and partly:
            facts.waits |= await wait_store.lock_bought(tx, partly, bought_by)
    return facts


async def _load_shelves(tx: Tx, facts: Facts, offers: OfferBook) -> None:
    """Lock the shelves that the orders sell from, and see who else has what they may lack."""
    orders = facts.orders.values()
    wanted: dict[Shelf, int] = {}
    for order in orders:
        for item in order.items:
            key = (*item.shelf, order.id & 1)
            wanted[key] = wanted.get(key, 0) + item.amount
    facts.shelves = await shelf.lock(tx, wanted)
    # Only what may be delivered later can have a queue, and the sandbox has no shelf to queue for.
    patient = {
        (*item.shelf, 0) for o in orders if not o.id & 1 for item in o.items if item.version.async_delivery
    }
    if patient:
        facts.queued = await wait_store.queued(tx, patient)
    elsewhere = await offers.sold_elsewhere(tx, wanted)
    for key in elsewhere:
        facts.shelves[key] = [lot for lot in facts.shelves[key] if not lot.generated]
    lacking = [key for key in elsewhere if sum(lot.left for lot in facts.shelves[key]) < wanted[key]]
    facts.offers = {key: [] for key in elsewhere} | await offers.look(tx, lacking)


# The server plans a statement anew whenever it is run under other policies than the last time. So tenants have texts of
# their own, and a page of orders does not slow down the next Find on its connection.
_TENANTS = "-- A tenant's."


async def read(
    conn: Connection,
    order_ids: Sequence[int],
    cache: VersionCache,
    *,
    owners: Sequence[int] | None = None,
    as_tenant: bool = False,
) -> dict[int, Order]:
    """The orders, each as it stood at one moment, with all that became of its lines; with `owners` only theirs."""
    if not order_ids:
        return {}
    mark = _TENANTS if as_tenant else ""
    orders = await _read(conn, order_ids, cache, mark, owners)
    moved = [order.id for order in orders.values() if not _is_whole(order)]
    if moved:
        # They moved between the look at the order and the look at its lines, which is rare: one snapshot shows both.
        async with conn.transaction(isolation="repeatable_read", readonly=True):
            orders |= await _read(conn, moved, cache, mark)
    return orders


async def _read(
    conn: Connection,
    order_ids: Sequence[int],
    cache: VersionCache,
    mark: str,
    owners: Sequence[int] | None = None,
) -> dict[int, Order]:
    if owners is None:
        rows = await conn.fetch(_READ + mark, order_ids)
    else:
        rows = await conn.fetch(_READ_OWN + mark, order_ids, owners)
    orders = await _assemble(conn, rows, cache)
    return await _with_outcomes(conn, orders, mark)


def _is_whole(order: Order) -> bool:
    """Whether the order counts as many lines as it shows."""
    finished = cancelled = 0
    for outcome in order.outcomes:
        if outcome.lot_id is None:
            cancelled += outcome.count
        else:
            finished += outcome.count
    return finished == order.lines_finished and cancelled == order.lines_cancelled


async def _assemble(
    conn: Connection, rows: Sequence[asyncpg.Record], cache: VersionCache
) -> dict[int, Order]:
    versions = await catalogue.versions(conn, {row[_ORDER_WIDTH + 1] for row in rows}, cache)
    orders: dict[int, Order] = {}
    items: list[Item] = []
    for at, row in enumerate(rows):
        values = tuple(row)
        items.append(_item(values[_ORDER_WIDTH : _ORDER_WIDTH + _ITEM_WIDTH], versions))
        if at + 1 == len(rows) or rows[at + 1][0] != values[0]:
            words = (*values[:3], STATUSES[values[3]], PAYMENTS[values[4]], *values[5:_ORDER_WIDTH])
            orders[values[0]] = Order(*words, items=tuple(items))  # type: ignore[misc]
            items = []
    return orders


def _item(values: tuple[Any, ...], versions: dict[int, ProductVersion]) -> Item:
    item_no, version_id, amount, first_line, offers, *unit = values
    return Item(item_no, versions[version_id], amount, first_line, UnitPrice(*unit), tuple(offers))


# What was viewed comes with the outcomes, so that it costs no round trip; of an order with many lines only whether
# anything was, because those lines are shown a few at a time.
_OUTCOMES = """
    SELECT order_id, line_from AS line, line_to, lot_id, seq_from,
           NULL::timestamptz, NULL::timestamptz, NULL::timestamptz
    FROM outcome WHERE order_id = ANY($1::bigint[])
    UNION ALL
    SELECT order_id, line, NULL, NULL, NULL, link_viewed_at, voucher_viewed_at, returned_at
    FROM line_view WHERE order_id = ANY($2::bigint[])
    UNION ALL
    SELECT o.id, v.line, NULL, NULL, NULL, v.link_viewed_at, v.voucher_viewed_at, v.returned_at
    FROM unnest($3::bigint[]) AS o (id)
    CROSS JOIN LATERAL (SELECT * FROM line_view WHERE order_id = o.id ORDER BY line LIMIT 1) v
    ORDER BY order_id, line
"""


async def _with_outcomes(conn: Connection, orders: dict[int, Order], mark: str = "") -> dict[int, Order]:
    touched = [order.id for order in orders.values() if order.lines_finished or order.lines_cancelled]
    if not touched:
        return orders
    delivered = [order for order in orders.values() if order.lines_finished]
    rows = await conn.fetch(
        _OUTCOMES + mark,
        touched,
        [order.id for order in delivered if order.lines <= INLINE_LINES_MAX],
        [order.id for order in delivered if order.lines > INLINE_LINES_MAX],
    )
    grouped: dict[int, tuple[list[Outcome], list[Viewed]]] = {number: ([], []) for number in touched}
    for order_id, line, line_to, lot_id, seq_from, *dates in rows:
        made, seen = grouped[order_id]
        if line_to is None:
            seen.append(Viewed(line, *dates))
        else:
            made.append(Outcome(line, line_to, lot_id, seq_from))
    return orders | {
        number: replace(orders[number], outcomes=tuple(made), views=tuple(seen))
        for number, (made, seen) in grouped.items()
    }


async def views(conn: Connection, order_id: int, line_from: int, line_to: int) -> tuple[Viewed, ...]:
    """What recipients saw of these lines of an order."""
    rows = await conn.fetch(
        """
        SELECT line, link_viewed_at, voucher_viewed_at, returned_at FROM line_view
        WHERE order_id = $1 AND line >= $2 AND line < $3 ORDER BY line
        """,
        order_id,
        line_from,
        line_to,
    )
    return tuple([Viewed(*row) for row in rows])


_SAVE = f"""
    WITH sold AS ({shelf.move_sql(22)}), booked AS ({wallet_store.entries_sql(24)}),
    shown AS ({reveals.insert_sql(34)}), moved AS (
        UPDATE orders o
        SET status = n.status, payment_status = n.payment_status, charged_minor = n.charged_minor,
            refunded_minor = n.refunded_minor, held_minor = n.held_minor, lines_finished = n.lines_finished,
            lines_cancelled = n.lines_cancelled, resolving = n.resolving, cancelling = n.cancelling,
            version = n.version, deadline_at = n.deadline_at, updated_at = now()
        FROM unnest($1::text::bigint[], $2::text::smallint[], $3::text::smallint[], $4::text::bigint[],
                    $5::text::bigint[], $6::text::bigint[], $7::text::int[], $8::text::int[], $9::text::int[]::bool[],
                    $10::text::int[]::bool[], $11::text::int[], $12::timestamptz[])
             AS n (id, status, payment_status, charged_minor, refunded_minor, held_minor, lines_finished,
                   lines_cancelled, resolving, cancelling, version, deadline_at)
        WHERE o.id = n.id
    ), settled AS (
        INSERT INTO outcome (order_id, line_from, line_to, lot_id, seq_from, at)
        SELECT *, now() FROM unnest($13::text::bigint[], $14::text::int[], $15::text::int[], $16::text::bigint[],
                                    $17::text::int[])
    )
    INSERT INTO event (at, company_id, state, type, order_id, seq)
    SELECT now(), e.company_id, (e.order_id & 1)::smallint, e.type, e.order_id, e.seq
    FROM unnest($18::text::bigint[], $19::text::int[], $20::text::text[], $21::text::int[])
         AS e (order_id, company_id, type, seq)
"""  # noqa: S608 - Constants only.


async def save(tx: Tx, ruling: Ruling, shown: Sequence[Reveal] = ()) -> None:
    """Store a ruling: lots, money, orders, outcomes and events in one statement, however many orders.

    In the same statement goes to whom codes will be shown right after it.
    """
    if ruling.orders:
        await _save_orders(tx, ruling, shown)
    if ruling.spent:
        await spend_store.save(tx, ruling.spent)
    if ruling.waits or ruling.waits_over or ruling.waits_moved:
        await wait_store.save(tx, ruling.waits, ruling.waits_over, ruling.waits_moved)


async def _save_orders(tx: Tx, ruling: Ruling, shown: Sequence[Reveal]) -> None:
    orders = list(ruling.orders.values())
    # A shorter list is filled up with NULL, and an order that ended at once has no deadline.
    deadlines = [o.deadline_at for o in orders] if any(o.deadline_at for o in orders) else []
    await tx.execute(
        _SAVE,
        numbers([o.id for o in orders]),
        numbers([int(o.status) for o in orders]),
        numbers([int(o.payment_status) for o in orders]),
        numbers([o.charged_minor for o in orders]),
        numbers([o.refunded_minor for o in orders]),
        numbers([o.held_minor for o in orders]),
        numbers([o.lines_finished for o in orders]),
        numbers([o.lines_cancelled for o in orders]),
        numbers([int(o.resolving) for o in orders]),
        numbers([int(o.cancelling) for o in orders]),
        numbers([o.version for o in orders]),
        deadlines,
        numbers([order_id for order_id, _ in ruling.outcomes]),
        numbers([outcome.line_from for _, outcome in ruling.outcomes]),
        numbers([outcome.line_to for _, outcome in ruling.outcomes]),
        sparse_numbers([outcome.lot_id for _, outcome in ruling.outcomes]),
        sparse_numbers([outcome.seq_from for _, outcome in ruling.outcomes]),
        numbers([e.order_id for e in ruling.events]),
        numbers([e.company_id for e in ruling.events]),
        words([e.type for e in ruling.events]),
        numbers([e.seq for e in ruling.events]),
        *shelf.move_values(ruling.cursors),
        *wallet_store.entries_values(ruling.entries),
        *reveals.insert_values(shown),
    )


_INSERT = """
    WITH placed AS (
        INSERT INTO orders (id, company_id, type, status, payment_currency, payment_fx_e8, price_minor, vat_minor,
                            lines, created_at, expires_at, updated_at, reference)
        SELECT n.id, n.company_id, n.type, 0, n.currency, n.fx, n.price, n.vat, n.lines, $9, $10, $9, n.reference
        FROM unnest($1::text::bigint[], $2::text::int[], $3::text::smallint[], $4::text::text[], $5::text::bigint[],
                    $6::text::bigint[], $7::text::bigint[], $8::text::int[], $11::text[])
             AS n (id, company_id, type, currency, fx, price, vat, lines, reference)
    ), listed AS (
        INSERT INTO order_item (order_id, item_no, version_id, amount, first_line, face_minor, face_fx_e8,
                                price_currency, price_fx_e8, price_minor, vat_minor, turnover_minor,
                                pay_price_minor, pay_vat_minor, pay_turnover_minor, offers)
        SELECT order_id, item_no, version_id, amount, first_line, face_minor, face_fx_e8, price_currency, price_fx_e8,
               price_minor, vat_minor, turnover_minor, pay_price_minor, pay_vat_minor, pay_turnover_minor,
               coalesce(string_to_array(offers, ' '), '{}')::bigint[]
        FROM unnest($12::text::bigint[], $13::text::smallint[], $14::text::int[], $15::text::int[], $16::text::int[],
                    $17::text::bigint[], $18::text::bigint[], $19::text::text[], $20::text::bigint[],
                    $21::text::bigint[], $22::text::bigint[], $23::text::bigint[], $24::text::bigint[],
                    $25::text::bigint[], $26::text::bigint[], string_to_array($27::text, ','))
             AS n (order_id, item_no, version_id, amount, first_line, face_minor, face_fx_e8, price_currency,
                   price_fx_e8, price_minor, vat_minor, turnover_minor, pay_price_minor, pay_vat_minor,
                   pay_turnover_minor, offers)
    )
    INSERT INTO event (at, company_id, state, type, order_id, seq)
    SELECT $9, n.company_id, (n.id & 1)::smallint, 'order.created', n.id, 1
    FROM unnest($1::text::bigint[], $2::text::int[]) AS n (id, company_id)
"""


async def insert(conn: Connection, orders: Sequence[Order]) -> None:
    """Write new orders of one moment, their items and events: one statement, so one transaction."""
    items = [(order.id, item) for order in orders for item in order.items]
    units = [item.unit for _, item in items]
    await conn.execute(
        _INSERT,
        numbers([o.id for o in orders]),
        numbers([o.company_id for o in orders]),
        numbers([o.type for o in orders]),
        words([o.payment_currency for o in orders]),
        numbers([o.payment_fx_e8 for o in orders]),
        numbers([o.price_minor for o in orders]),
        numbers([o.vat_minor for o in orders]),
        numbers([o.lines for o in orders]),
        orders[0].created_at,
        orders[0].expires_at,
        [o.reference for o in orders] if any(o.reference is not None for o in orders) else [],
        numbers([number for number, _ in items]),
        numbers([item.item_no for _, item in items]),
        numbers([item.version.version_id for _, item in items]),
        numbers([item.amount for _, item in items]),
        numbers([item.first_line for _, item in items]),
        numbers([unit.face_minor for unit in units]),
        numbers([unit.face_fx_e8 for unit in units]),
        words([unit.price_currency for unit in units]),
        numbers([unit.price_fx_e8 for unit in units]),
        numbers([unit.price_minor for unit in units]),
        numbers([unit.vat_minor for unit in units]),
        numbers([unit.turnover_minor for unit in units]),
        numbers([unit.pay_price_minor for unit in units]),
        numbers([unit.pay_vat_minor for unit in units]),
        numbers([unit.pay_turnover_minor for unit in units]),
        ",".join([" ".join(map(str, item.offers)) for _, item in items]),
    )
