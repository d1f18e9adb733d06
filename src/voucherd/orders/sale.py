"""What a sale is decided on: orders, their wallets and the shelves they sell from, locked in one round trip."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from voucherd.db import Tx
from voucherd.limits import spend_store
from voucherd.limits.spending import SpendKey
from voucherd.orders import reading, wait_store
from voucherd.orders.caches import OrderCaches
from voucherd.orders.model import Order
from voucherd.orders.rules.decide import Finalise
from voucherd.orders.rules.ruling import CompanyStanding, Facts
from voucherd.orders.shop_book import MOMENT, Moment
from voucherd.statements import BIGINT, ENUM, INT, WORD, RowSet, statement
from voucherd.vault import shelf
from voucherd.vault.model import Shelf
from voucherd.wallet.ledger import Wallet

_ASKED: Final = RowSet("a", id=BIGINT, owner=INT)
_WALLETS: Final = RowSet("p", company_id=INT, currency=WORD, state=ENUM)

# Orders before wallets before lots, each in the order of their ids: the columns of a row are worked out from left to
# right, and two batches that locked in two orders would wait for each other. Every look-up has one index to go by: an
# order is found by its id alone, and its owner is compared afterwards, because an index of the owner's orders would be
# a walk through its whole past. NO KEY: a claim of work that points at an order need not wait for a call.
_LOCK: Final = statement(
    f"""
    SELECT {MOMENT},
        ARRAY(SELECT (o.id, o.version) FROM {_ASKED} JOIN orders o ON o.id = a.id AND o.company_id + 0 = a.owner
              ORDER BY o.id FOR NO KEY UPDATE OF o),
        ARRAY(SELECT (w.company_id, w.currency, w.state, w.id, w.balance_minor, w.held_minor, w.seq)
              FROM {_WALLETS}
              JOIN wallet w ON w.company_id = p.company_id AND w.currency = p.currency AND w.state = p.state
              ORDER BY w.id FOR UPDATE OF w),
        {shelf.LOCK_LOTS}
    """,  # noqa: S608 - Constants only.
    _ASKED,
    _WALLETS,
    shelf.SHELVES,
)


async def load(
    tx: Tx, caches: OrderCaches, commands: Sequence[Finalise], spend_keys: Collection[SpendKey]
) -> Facts:
    """Lock what these commands would change, and read what they are decided on."""
    order_ids, owners = reading.owned(commands)
    orders = await _expected(tx, caches, order_ids, owners)
    wallets = {(order.company_id, order.payment_currency, order.id & 1) for order in orders.values()}
    shelves = wanted(orders.values())
    row = await tx.fetchrow(
        _LOCK,
        *_ASKED.values((), id=list(orders), owner=[order.company_id for order in orders.values()]),
        *_wallet_values(wallets),
        *shelf.values(shelves),
    )
    assert row is not None
    *seen, locked, wallet_rows, lots = row
    moment = Moment(*seen)
    versions = dict(locked)
    moved = [number for number, version in versions.items() if orders[number].version != version]
    if moved:
        # Somebody else was at them before they were locked.
        orders |= await reading.heads(tx, moved, caches.versions)
    facts = Facts(moment.now, caches.windows, {number: orders[number] for number in versions})
    by_owner = {
        (company, currency, state): Wallet(*wallet) for company, currency, state, *wallet in wallet_rows
    }
    facts.wallets = {wallet.id: wallet for wallet in by_owner.values()}
    for order in facts.orders.values():
        wallet = by_owner.get((order.company_id, order.payment_currency, order.id & 1))
        if wallet is not None:
            facts.wallet_of_order[order.id] = wallet.id
    facts.shelves = shelf.by_shelf(shelves, lots)
    if spend_keys:
        facts.spent = await spend_store.lock(tx, spend_keys)
    await _load_shop(tx, facts, moment, caches)
    await load_offers(tx, facts, shelves, caches)
    return facts


async def _expected(
    tx: Tx, caches: OrderCaches, order_ids: Sequence[int], owners: Sequence[int]
) -> dict[int, Order]:
    """The orders as they probably still are: as they were created here, or as they are read now."""
    orders: dict[int, Order] = {}
    unknown: list[tuple[int, int]] = []
    for order_id, owner in zip(order_ids, owners, strict=True):
        order = caches.recent.take(order_id)
        if order is not None and order.company_id == owner:
            orders[order_id] = order
        else:
            unknown.append((order_id, owner))
    if unknown:
        ids, theirs = zip(*unknown, strict=True)
        orders |= await reading.heads(tx, ids, caches.versions, owners=theirs)
    return orders


def wanted(orders: Iterable[Order]) -> dict[Shelf, int]:
    """How many codes the orders want of each shelf."""
    found: dict[Shelf, int] = {}
    for order in orders:
        for item in order.items:
            key = (*item.shelf, order.id & 1)
            found[key] = found.get(key, 0) + item.amount
    return found


def _wallet_values(wallets: Collection[tuple[int, str, int]]) -> list[Any]:
    companies, currencies, states = zip(*wallets, strict=True) if wallets else ((), (), ())
    return _WALLETS.values((), company_id=companies, currency=currencies, state=states)


async def _load_shop(tx: Tx, facts: Facts, moment: Moment, caches: OrderCaches) -> None:
    """Who may buy, and what is no longer for sale."""
    known = caches.shop.at(moment)
    orders = facts.orders.values()
    company_ids = {order.company_id for order in orders}
    companies = await known.companies(tx, company_ids)
    facts.standing = {
        number: CompanyStanding(companies[number].active, companies[number].verified)
        for number in company_ids
    }
    product_ids = {item.version.product_id for order in orders for item in order.items}
    for_sale = await known.for_sale(tx, product_ids)
    facts.withdrawn = {number for number in product_ids if not for_sale[number]}


async def load_offers(tx: Tx, facts: Facts, shelves: Mapping[Shelf, int], caches: OrderCaches) -> None:
    """Who waits at the shelves already, and who else has what they may lack."""
    # Only what may be delivered later can have a queue, and the sandbox has no shelf to queue for.
    patient = {
        (*item.shelf, 0)
        for order in facts.orders.values()
        if not order.id & 1
        for item in order.items
        if item.version.async_delivery
    }
    if patient:
        facts.queued = await wait_store.queued(tx, patient)
    elsewhere = await caches.offers.sold_elsewhere(tx, shelves)
    for key in elsewhere:
        facts.shelves[key] = [lot for lot in facts.shelves[key] if not lot.generated]
    lacking = [key for key in elsewhere if sum(lot.left for lot in facts.shelves[key]) < shelves[key]]
    facts.offers = {key: [] for key in elsewhere} | await caches.offers.look(tx, lacking)
