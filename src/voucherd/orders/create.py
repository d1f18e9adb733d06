"""Create and Quote: a price and availability check. Nothing is charged, nothing delivered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import structlog
from msgspec import Struct

from voucherd import traces
from voucherd.catalogue.pricing import PLAIN, ExchangeRates, oldest_day
from voucherd.catalogue.products import Listing
from voucherd.db import Connection, nothing_stored, within
from voucherd.idempotency import store as idempotency
from voucherd.ids import ORDER_BLOCK_SIZE, State
from voucherd.money import RATE_ONE, Money, in_eur
from voucherd.orders import store
from voucherd.orders.caches import OrderCaches
from voucherd.orders.confirm import effects_of
from voucherd.orders.model import Order
from voucherd.orders.rules import cart
from voucherd.orders.rules.cart import Buyer, Create, SalesPolicy, Shop
from voucherd.orders.rules.refusals import BadInput, OffersNotAvailable, Refusal
from voucherd.orders.shop_book import MOMENT, Moment
from voucherd.statements import statement
from voucherd.suppliers.offer_book import OfferBook
from voucherd.vault import shelf
from voucherd.vault import store as vault
from voucherd.vault.model import Shelf, lasts, unmade_lot
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
        with traces.step("load"):
            shop = await load(conn, commands, caches, policy)
            await numbers.reserve(conn, len(commands))
        with traces.step("decide"):
            answers = cart.place(shop, commands, numbers.take)
    orders = [answer for answer in answers if isinstance(answer, Order)]
    effects = effects_of(commands, answers)
    urls, delays = _urls_of(commands, answers), _delays_of(commands, answers)
    with traces.step("save"):
        if effects or urls or delays:
            async with within(conn, of_a_batch=True):
                await store.insert(conn, orders)
                await idempotency.name_effects(conn, effects)
                await per_order.note(conn, urls)
                await per_order.delay(conn, delays)
        elif orders:
            await store.insert(conn, orders)
    caches.recent.keep(orders)
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


def _delays_of(commands: Sequence[Create], answers: Sequence[Order | Refusal]) -> list[tuple[int, int]]:
    return [
        (answer.id, command.webhook_delay_s)
        for command, answer in zip(commands, answers, strict=True)
        if command.webhook_delay_s and isinstance(answer, Order)
    ]


_LOOK: Final = statement(f"SELECT {MOMENT}, {shelf.LOOK_LOTS}", shelf.SHELVES)


async def load(
    conn: Connection,
    commands: Sequence[Create],
    caches: OrderCaches,
    policy: SalesPolicy,
    *,
    stocking: bool = True,
) -> Shop:
    """What these carts' prices depend on; without `stocking` nothing is written."""
    wanted = _wanted(caches.shop.facts.listings, commands)
    *seen, lots = await conn.fetchrow(_LOOK, *shelf.values(wanted))  # type: ignore[misc]
    moment = Moment(*seen)
    facts = caches.shop.at(moment)
    company_ids = {command.company_id for command in commands}
    slugs = {line.slug for command in commands for line in command.cart}
    companies = await facts.companies(conn, company_ids)
    listings = await facts.products(conn, slugs)
    if (known := _wanted(listings, commands)) != wanted:
        # A product that was not known, or is another one now, has another shelf.
        wanted = known
        *_, lots = await conn.fetchrow(_LOOK, *shelf.values(wanted))  # type: ignore[misc]
    terms = await caches.shop.price_lists.terms(
        conn,
        (
            (command.company_id, listings[line.slug].version)
            for command in commands
            for line in command.cart
            if line.slug in listings
        ),
        moment.prices,
    )
    currencies = {command.payment_currency for command in commands}
    for slug in slugs & listings.keys():
        version = listings[slug].version
        currencies |= {version.face_currency, version.price_currency or version.face_currency}
    currencies.update(one.price_currency for one in terms.values() if one.price_currency is not None)
    buyers = [companies[company_id] for company_id in company_ids]
    await facts.know_rates(conn, currencies, {buyer.country for buyer in buyers})
    exchange = PLAIN
    if len(currencies) > 1:
        margins = await caches.shop.price_lists.margins(conn, moment.prices)
        exchange = ExchangeRates(facts.rate_days, oldest_day(moment.now, policy.fx_age_max), margins)
    shop = Shop(
        now=moment.now,
        window=policy.window,
        operator_country=policy.country,
        buyers={buyer.id: Buyer(buyer.active, buyer.country, buyer.vat_number) for buyer in buyers},
        listings={slug: listings[slug] for slug in slugs & listings.keys()},
        rates=facts.rates,
        vat_rates=facts.vat_rates,
        exchange=exchange,
        terms=terms,
        margin_min_bp=policy.margin_min_bp,
        # Whether a rate of exchange is too old depends on the time, so those prices are worked out anew.
        units=facts.units() if exchange is PLAIN else {},
        shelves=shelf.by_shelf(wanted, lots),
    )
    await _load_offers(conn, shop, caches.offers, stocking=stocking)
    return shop


async def _load_offers(conn: Connection, shop: Shop, offers: OfferBook, *, stocking: bool) -> None:
    """What suppliers can serve of the shelves.

    A sandbox shelf is stocked when it is first looked at (OP-49), unless a sandbox supplier sells its product.
    """
    elsewhere = await offers.sold_elsewhere(conn, shop.shelves)
    bare = {
        key
        for key, lots in shop.shelves.items()
        if key[2] == State.SANDBOX and not lasts(lots, shop.now) and key not in elsewhere
    }
    if bare and not stocking:
        shop.shelves |= {key: [unmade_lot(*key[:2])] for key in bare if not shop.shelves[key]}
    elif bare:
        async with conn.transaction():
            for product_id, face_minor, _ in sorted(bare):
                await vault.ensure_generated_lot(conn, product_id, face_minor, Money(0, "EUR"), RATE_ONE)
        shop.shelves |= await shelf.look(conn, bare)
    for key in elsewhere:
        shop.shelves[key] = [lot for lot in shop.shelves[key] if not lot.generated]
    if elsewhere:
        shop.offers = await offers.look(conn, elsewhere)


def _wanted(listings: Mapping[str, Listing], commands: Sequence[Create]) -> set[Shelf]:
    """The shelves that the carts would be served from."""
    wanted: set[Shelf] = set()
    for command in commands:
        for at, line in enumerate(command.cart):
            listing = listings.get(line.slug)
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
