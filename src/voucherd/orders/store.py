"""The orders' tables. A fixed number of statements, however many orders: arrays in, rows out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta
from typing import Final, Protocol
from uuid import UUID

from msgspec import Struct, field

from voucherd.catalogue.cache import VersionCache
from voucherd.catalogue.price_book import PriceBook
from voucherd.db import Connection, Tx
from voucherd.ids import State
from voucherd.limits import spend_store
from voucherd.limits.spending import SpendKey
from voucherd.orders import wait_store
from voucherd.orders.model import Order
from voucherd.orders.reading import COLUMNS, OWNED, WANTED, assemble, with_outcomes
from voucherd.orders.rules.ruling import CompanyStanding, Facts, Ruling, Windows
from voucherd.orders.rules.states import Payment
from voucherd.settings import Settings
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
    picker,
    statement,
)
from voucherd.suppliers.offer_book import OfferBook
from voucherd.vault import reveals, shelf
from voucherd.vault.model import Reveal, Shelf
from voucherd.wallet import store as wallet_store

NOWHERE: Final = -1
"""The number of no order: a made-up trx takes as long to refuse as the trx of another company."""


class OrderCommand(Protocol):
    """A call about an order, if it is one."""

    @property
    def order_id(self) -> int | None:
        """The order."""

    @property
    def company_id(self) -> int:
        """Whose it has to be."""

    @property
    def state(self) -> State:
        """Where it has to be."""


def owned(asked: Iterable[OrderCommand]) -> tuple[list[int], list[int]]:
    """The orders that are asked for, each once, and the companies that must own them."""
    pairs = {
        (
            NOWHERE if one.order_id is None or one.order_id & 1 != one.state else one.order_id,
            one.company_id,
        )
        for one in asked
    }
    return [order_id for order_id, _ in pairs], [company_id for _, company_id in pairs]


class OrderCaches(Struct, frozen=True):
    """The windows that orders are decided by, and what this process has read before and need not read again."""

    windows: Windows
    versions: VersionCache = field(default_factory=VersionCache)
    offers: OfferBook = field(default_factory=OfferBook)
    prices: PriceBook = field(default_factory=PriceBook)

    @classmethod
    def empty(cls, settings: Settings) -> OrderCaches:
        """Caches that know nothing yet."""
        delivery, resolve = settings.delivery_window_s, settings.resolve_limit_s
        return cls(Windows(timedelta(seconds=delivery), timedelta(seconds=resolve)))


_LOCKED: Final = [*COLUMNS, "now()", "c.active", "c.verified", "p.id", "p.active", "w.id"]
_NOW: Final = _LOCKED.index("now()")
_facts_of: Final = picker(
    _LOCKED, "o.id", "o.company_id", "c.active", "c.verified", "p.id", "p.active", "w.id"
)


def _locking(*, owned: bool) -> str:
    # NO KEY: a claim of work that points at an order (a foreign key) need not wait for a call that changes it.
    # The joins name what the decision needs of other nouns (may the company buy, is the product for sale, which
    # wallet pays), so that one round trip locks the orders and tells it all.
    return f"""
        SELECT {", ".join(_LOCKED)}
        FROM orders o {OWNED if owned else ""}
        JOIN company c ON c.id = o.company_id
        JOIN order_item i ON i.order_id = o.id
        JOIN product_version v ON v.id = i.version_id
        JOIN product p ON p.id = v.product_id
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
    with_lines: bool = False,
    with_shelves: bool = True,
    spend_keys: Collection[SpendKey] = (),
    bought_by: UUID | None = None,
) -> Facts:
    """Lock the orders, then their wallets, the shelves they sell from, and their waits, each in id order.

    With `owners`, one for each order, only those that are theirs.
    `with_lines` for decisions about orders that were finalised before, `with_shelves` for those that sell,
    `spend_keys` for those whose spending is limited. `bought_by` for what comes of one purchase: only its own waits of
    an order that is paid are looked at, because there may be thousands of others; an unpaid order is decided about as a
    whole.
    """
    if owners is not None:
        rows = await tx.fetch(_LOCK_OWN, order_ids, owners)
    else:
        rows = await tx.fetch(_LOCK, order_ids) if order_ids else []
    if not rows:
        return Facts(await tx.fetchval("SELECT now()"), caches.windows, {})
    orders = await assemble(tx, rows, caches.versions)
    if with_lines:
        orders = await with_outcomes(tx, orders)
    facts = Facts(rows[0][_NOW], caches.windows, orders)
    for row in rows:
        order_id, company_id, active, verified, product_id, for_sale, wallet_id = _facts_of(row)
        facts.standing[company_id] = CompanyStanding(active, verified)
        if not for_sale:
            facts.withdrawn.add(product_id)
        if wallet_id is not None:
            facts.wallet_of_order[order_id] = wallet_id
    if facts.wallet_of_order:
        facts.wallets = await wallet_store.lock(tx, list(set(facts.wallet_of_order.values())))
    if spend_keys:
        facts.spent = await spend_store.lock(tx, spend_keys)
    if with_shelves:
        await _load_shelves(tx, facts, caches.offers)
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
    )
    INSERT INTO event (at, company_id, state, type, order_id, seq)
    SELECT now(), e.company_id, (e.order_id & 1)::smallint, e.type, e.order_id, e.seq FROM {_HAPPENED}
    """,  # noqa: S608 - Constants only.
    _CHANGED,
    _SETTLED,
    _HAPPENED,
    shelf.CURSORS,
    wallet_store.ENTRIES,
    reveals.REVEALS,
)


async def save(tx: Tx, ruling: Ruling, shown: Sequence[Reveal] = ()) -> None:
    """Store a ruling: lots, money, orders, outcomes and events in one statement, however many orders.

    In the same statement goes to whom codes will be shown right after it.
    """
    if ruling.orders:
        outcomes = [outcome for _, outcome in ruling.outcomes]
        await tx.execute(
            _SAVE,
            *_CHANGED.values(list(ruling.orders.values())),
            *_SETTLED.values(outcomes, order_id=[order_id for order_id, _ in ruling.outcomes]),
            *_HAPPENED.values(ruling.events),
            *shelf.CURSORS.values((), id=ruling.cursors, cursor=ruling.cursors.values()),
            *wallet_store.ENTRIES.values(ruling.entries),
            *reveals.values(shown),
        )
    if ruling.spent:
        await spend_store.save(tx, ruling.spent)
    if ruling.waits or ruling.waits_over or ruling.waits_moved:
        await wait_store.save(tx, ruling.waits, ruling.waits_over, ruling.waits_moved)


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
