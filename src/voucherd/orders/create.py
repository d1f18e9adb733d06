"""Create and Quote: a price and availability check. Nothing is charged, nothing delivered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

import structlog
from msgspec import Struct

from voucherd.catalogue import store as catalogue
from voucherd.catalogue.pricing import PLAIN, ExchangeRates, oldest_day
from voucherd.companies import store as company_store
from voucherd.db import Connection, nothing_stored, within
from voucherd.idempotency import store as idempotency
from voucherd.ids import ORDER_BLOCK_SIZE, State
from voucherd.money import RATE_ONE, Money, in_eur
from voucherd.orders import store
from voucherd.orders.confirm import effects_of
from voucherd.orders.model import Order
from voucherd.orders.rules import cart
from voucherd.orders.rules.cart import Buyer, Create, SalesPolicy, Shop
from voucherd.orders.rules.refusals import BadInput, OffersNotAvailable, Refusal
from voucherd.orders.store import OrderCaches
from voucherd.suppliers.offer_book import OfferBook
from voucherd.vault import shelf
from voucherd.vault import store as vault
from voucherd.vault.model import Shelf, unmade_lot
from voucherd.webhooks import per_order

logger = structlog.get_logger(__name__)


class OrderNumbers:
    """Hands out order ids from blocks that this process took; the lowest bit is the state."""

    def __init__(self) -> None:
        self._next = 0
        self._end = 0

    async def reserve(self, conn: Connection, count: int) -> None:
        """Make sure that `count` ids can be taken without asking again."""
        assert count <= ORDER_BLOCK_SIZE
        if self._end - self._next < count:
            block = await conn.fetchval("SELECT nextval('order_block')")
            self._next = block * ORDER_BLOCK_SIZE
            self._end = self._next + ORDER_BLOCK_SIZE

    def take(self, state: State) -> int:
        """The next id; `reserve` came first."""
        assert self._next < self._end
        number = self._next
        self._next += 1
        return number * 2 + state


class Quote(Struct, frozen=True):
    """The order that Create would make, without a number of its own, and what of it could be delivered at once."""

    order: Order
    at_hand: tuple[bool, ...]
    """For each item, whether all of its codes can be had now."""


class LossLog:
    """Counts sales that were refused for their price; the client hears "not available", the operator the reason."""

    def __init__(self) -> None:
        self.refused = 0

    def note(self, commands: Sequence[Create], answers: Sequence[object]) -> None:
        """Log those among these answers."""
        for command, answer in zip(commands, answers, strict=True):
            if isinstance(answer, OffersNotAvailable) and answer.losses:
                self.refused += 1
                products = [
                    f"{one.slug}: {in_eur(one.price)} for {in_eur(one.cost)}" for one in answer.losses
                ]
                logger.warning("sale_at_a_loss_refused", company_id=command.company_id, products=products)


async def create(
    conn: Connection,
    commands: Sequence[Create],
    numbers: OrderNumbers,
    caches: OrderCaches,
    policy: SalesPolicy,
) -> list[Order | Refusal]:
    """Price every cart and keep the orders that can be sold."""
    with nothing_stored():
        shop = await load(conn, commands, caches, policy)
        await numbers.reserve(conn, len(commands))
        answers = cart.place(shop, commands, numbers.take)
    orders = [answer for answer in answers if isinstance(answer, Order)]
    effects = effects_of(commands, answers)
    urls = _urls_of(commands, answers)
    if effects or urls:
        async with within(conn, of_a_batch=True):
            await store.insert(conn, orders)
            await idempotency.name_effects(conn, effects)
            await per_order.note(conn, urls)
    elif orders:
        await store.insert(conn, orders)
    return answers


async def quote(
    conn: Connection, commands: Sequence[Create], caches: OrderCaches, policy: SalesPolicy
) -> list[Quote | Refusal]:
    """The price of every cart that can be sold; the same refusals as Create's for the rest."""
    shop = await load(conn, commands, caches, policy, stocking=False)
    # No number is taken for a quote, which is not kept: the state alone stands in its place.
    answers = cart.place(shop, commands, int)
    return [
        Quote(answer, _at_hand(shop, answer)) if isinstance(answer, Order) else answer for answer in answers
    ]


def _urls_of(commands: Sequence[Create], answers: Sequence[Order | Refusal]) -> list[tuple[int, str]]:
    return [
        (answer.id, command.webhook_url)
        for command, answer in zip(commands, answers, strict=True)
        if command.webhook_url is not None and isinstance(answer, Order)
    ]


async def load(
    conn: Connection,
    commands: Sequence[Create],
    caches: OrderCaches,
    policy: SalesPolicy,
    *,
    stocking: bool = True,
) -> Shop:
    """What these carts' prices depend on; without `stocking` nothing is written."""
    companies = await company_store.companies(conn, {command.company_id for command in commands})
    listings = await catalogue.current(
        conn, list({line.slug for command in commands for line in command.cart}), caches.versions
    )
    terms = await caches.prices.terms(
        conn,
        (
            (command.company_id, listings[line.slug].version)
            for command in commands
            for line in command.cart
            if line.slug in listings
        ),
    )
    currencies = {command.payment_currency for command in commands}
    for listing in listings.values():
        currencies.add(listing.version.face_currency)
        currencies.add(listing.version.price_currency or listing.version.face_currency)
    currencies.update(one.price_currency for one in terms.values() if one.price_currency is not None)
    now: datetime = await conn.fetchval("SELECT now()")
    rates, days = await catalogue.dated_rates(conn, currencies)
    exchange = PLAIN
    if len(currencies) > 1:
        margins = await caches.prices.margins(conn)
        exchange = ExchangeRates(days, oldest_day(now, policy.fx_age_max), margins)
    shop = Shop(
        now=now,
        window=policy.window,
        operator_country=policy.country,
        buyers={c.id: Buyer(c.active, c.country, c.vat_number) for c in companies.values()},
        listings=listings,
        rates=rates,
        vat_rates=await catalogue.vat_rates(conn, {company.country for company in companies.values()}),
        exchange=exchange,
        terms=terms,
        margin_min_bp=policy.margin_min_bp,
    )
    await _load_shelves(conn, shop, commands, caches.offers, stocking=stocking)
    return shop


async def _load_shelves(
    conn: Connection, shop: Shop, commands: Sequence[Create], offers: OfferBook, *, stocking: bool
) -> None:
    """The lots and offers that could serve the carts.

    A sandbox shelf is stocked when it is first looked at (OP-49), unless a sandbox supplier sells its product.
    """
    wanted = _wanted(shop, commands)
    shop.shelves = await shelf.look(conn, wanted)
    elsewhere = await offers.sold_elsewhere(conn, wanted)
    bare = wanted.difference(elsewhere)
    bare = {key for key in bare if key[2] == State.SANDBOX and not shop.shelves[key]}
    if bare and not stocking:
        shop.shelves |= {key: [unmade_lot(*key[:2])] for key in bare}
    elif bare:
        async with conn.transaction():
            for product_id, face_minor, _ in sorted(bare):
                await vault.ensure_generated_lot(conn, product_id, face_minor, Money(0, "EUR"), RATE_ONE)
        shop.shelves |= await shelf.look(conn, bare)
    for key in elsewhere:
        shop.shelves[key] = [lot for lot in shop.shelves[key] if not lot.generated]
    if elsewhere:
        shop.offers = await offers.look(conn, elsewhere)


def _wanted(shop: Shop, commands: Sequence[Create]) -> set[Shelf]:
    """The shelves that the carts would be served from."""
    wanted: set[Shelf] = set()
    for command in commands:
        for at, line in enumerate(command.cart):
            listing = shop.listings.get(line.slug)
            if listing is not None:
                try:
                    face_minor = cart.face_of(listing.version, line, at)
                except BadInput:
                    continue  # The decision will say so.
                wanted.add((listing.version.product_id, face_minor, int(command.state)))
    return wanted


def _at_hand(shop: Shop, order: Order) -> tuple[bool, ...]:
    """Items of one shelf share its codes, the first in the cart first."""
    wanted: Counter[Shelf] = Counter()
    found = []
    for item in order.items:
        shelf = (*item.shelf, int(order.state))
        wanted[shelf] += item.amount
        found.append(wanted[shelf] <= _left_on(shop, shelf))
    return tuple(found)


def _left_on(shop: Shop, shelf: Shelf) -> int:
    """How many codes can be had of a shelf: our own, and what suppliers say they have."""
    lots, offers = shop.shelves[shelf], shop.offers.get(shelf, ())
    return sum(lot.left for lot in lots) + sum(offer.stock for offer in offers)
