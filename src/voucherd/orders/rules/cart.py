"""The decision behind Create: what a cart costs and whether it can be sold. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TypeAlias

from msgspec import Struct, field

from voucherd.catalogue.pricing import (
    BP_ONE,
    PLAIN,
    ExchangeRates,
    NoRate,
    NoVatRate,
    PriceTooLarge,
    RateTooOld,
    UnitPrice,
    price_unit,
    vat_bp,
)
from voucherd.catalogue.products import Listing, ProductVersion
from voucherd.catalogue.terms import PriceTerms
from voucherd.idempotency.model import Ticket
from voucherd.ids import State
from voucherd.money import MINOR_MAX, BadAmount, Money, digits, plain, to_minor, worth
from voucherd.orders.model import OFFERS_SHOWN_MAX, Item, Order
from voucherd.orders.rules.refusals import BadInput, CompanyNotActive, Loss, OffersNotAvailable, Refusal
from voucherd.orders.rules.states import Payment, Status
from voucherd.suppliers.offers import Offer
from voucherd.vault.model import Lot, Shelf


class CartLine(Struct, frozen=True):
    """One product of a cart."""

    slug: str
    amount: int
    face_value: Decimal | None = None


class Create(Struct, frozen=True):
    """Ask for a price and keep it."""

    company_id: int
    state: State
    type: int
    cart: tuple[CartLine, ...]
    payment_currency: str
    reference: str | None = None
    ticket: Ticket | None = None
    webhook_url: str | None = None
    """Where its events go beside the company's endpoints (OP-54)."""
    webhook_delay_s: int = 0
    """In the sandbox: how late its events are to be sent (OP-145)."""
    withdrawn: bool = False
    """In the sandbox: refuse the cart as if nothing in it were for sale any more (OP-145)."""


class Buyer(Struct, frozen=True):
    """What a price depends on in a company."""

    active: bool
    country: str
    vat_number: str | None


class SalesPolicy(Struct, frozen=True):
    """What the operator chose for all prices."""

    window: timedelta
    """How long a price is kept."""
    country: str
    fx_age_max: timedelta = timedelta(0)
    """Zero lets exchange rates be of any age."""
    margin_min_bp: int = -BP_ONE
    """What a price must be above its cost, as a share of the cost; -100% lets it be anything."""


UnitKey: TypeAlias = tuple[int, int, str, int, PriceTerms | None]
"""All that the price of one code depends on, where rates and margins stay: version, face, currency, VAT, terms."""


class Shop(Struct):
    """What was for sale when the cart was looked at."""

    now: datetime
    window: timedelta
    operator_country: str
    buyers: dict[int, Buyer]
    listings: dict[str, Listing]
    rates: dict[str, int]
    vat_rates: dict[str, int]
    exchange: ExchangeRates = PLAIN
    terms: dict[tuple[int, int], PriceTerms] = field(default_factory=dict)
    """What companies pay for products instead of the catalogue's price."""
    margin_min_bp: int = -BP_ONE
    units: dict[UnitKey, UnitPrice] = field(default_factory=dict)
    """Prices that were worked out before, by the same rates and margins."""
    shelves: dict[Shelf, list[Lot]] = field(default_factory=dict)
    offers: dict[Shelf, list[Offer]] = field(default_factory=dict)
    """What suppliers can serve of the shelves."""


def face_of(product: ProductVersion, line: CartLine, at: int) -> int:
    """The face value that is asked for, in minor units (OP-10)."""
    fixed = product.face_minor
    if fixed is not None and (line.face_value is None or line.face_value == _own_face(product, fixed)):
        return fixed
    name = f"items[{at}].faceValue"
    if not product.is_variable:
        raise BadInput(name, "is not allowed for a product with a fixed face value")
    if line.face_value is None:
        raise BadInput(name, "is required for a product with a variable face value")
    try:
        minor = to_minor(line.face_value, product.face_currency)
    except BadAmount as bad:
        raise BadInput(name, str(bad)) from None
    if not product.accepts_face(minor):
        low, high = (
            Money(edge or 0, product.face_currency)
            for edge in (product.face_min_minor, product.face_max_minor)
        )
        raise BadInput(name, f"must be between {low} and {high}")
    return minor


def _own_face(product: ProductVersion, fixed: int) -> Decimal:
    return Decimal(plain(fixed, digits(product.face_currency)))


def place(shop: Shop, commands: Sequence[Create], next_id: Callable[[State], int]) -> list[Order | Refusal]:
    """An order for every cart that can be sold, a refusal for the rest."""
    answers: list[Order | Refusal] = []
    prices = _BatchPrices(shop)
    for command in commands:
        try:
            answers.append(_place(prices, command, next_id))
        except Refusal as refusal:
            answers.append(refusal)
    return answers


class _Availability(Struct, frozen=True):
    """What can be had of a shelf: how much, and the best offers as an order keeps them."""

    left: int
    offers: tuple[int, ...]
    cost: int | None
    """What one code of the best offer costs us, in EUR, to compare; None where there is no offer."""


class _BatchPrices:
    """What the carts of one batch share: most of them ask for the same few things."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self._availabilities: dict[Shelf, _Availability] = {}
        self._units: dict[tuple[UnitKey, State], tuple[UnitPrice, Loss | None]] = {}

    def availability(self, shelf: Shelf) -> _Availability:
        """What this shelf offers."""
        found = self._availabilities.get(shelf)
        if found is None:
            lots, offers = self.shop.shelves[shelf], self.shop.offers.get(shelf, ())
            ranked = _ranked(lots, offers)
            best = tuple(number for _, _, *pair in ranked[:OFFERS_SHOWN_MAX] for number in pair)
            left, cost = sum(offer[-1] for offer in ranked), ranked[0][0] if ranked else None
            found = self._availabilities[shelf] = _Availability(left, best, cost)
        return found

    def unit(
        self,
        product: ProductVersion,
        face_minor: int,
        command: Create,
        rate_bp: int,
        terms: PriceTerms | None,
    ) -> tuple[UnitPrice, Loss | None]:
        """The price of one code, and the loss if it would be one."""
        currency, state = command.payment_currency, command.state
        key = (product.version_id, face_minor, currency, rate_bp, terms)
        found = self._units.get((key, state))
        if found is None:
            unit = self.shop.units.get(key)
            if unit is None:
                unit = self.shop.units[key] = price_unit(
                    product,
                    face_minor,
                    payment_currency=currency,
                    rates=self.shop.rates,
                    vat_bp=rate_bp,
                    exchange=self.shop.exchange,
                    terms=terms,
                )
            found = self._units[key, state] = unit, self._loss(product, unit, state)
        return found

    def _loss(self, product: ProductVersion, unit: UnitPrice, state: State) -> Loss | None:
        """Whether it would sell for less than its best offer costs, before VAT and in EUR (OP-73)."""
        cost = self.availability((product.product_id, unit.face_minor, state)).cost
        if state is not State.LIVE or cost is None or self.shop.listings[product.slug].allow_loss:
            return None  # Sandbox costs are play.
        price = worth(unit.price_minor, unit.price_currency, unit.price_fx_e8)
        enough = price * BP_ONE >= cost * (BP_ONE + self.shop.margin_min_bp)
        return None if enough else Loss(product.slug, product.name, price, cost)


def _ranked(lots: Sequence[Lot], offers: Sequence[Offer]) -> list[tuple[int, int, int, int]]:
    """What each offer costs in EUR, its number and its stock, cheapest first; of equal ones our own shelf is first."""
    return sorted(
        [(lot.cost, 0, lot.id, lot.left) for lot in lots]
        + [(offer.cost, 1, -offer.quote_id, offer.stock) for offer in offers]
    )


def _place(prices: _BatchPrices, command: Create, next_id: Callable[[State], int]) -> Order:
    shop = prices.shop
    buyer = shop.buyers[command.company_id]
    if not buyer.active:
        raise CompanyNotActive
    faces = _faces(shop, command)
    _refuse_unavailable(prices, command, faces)
    units = _price_cart(prices, command, faces, buyer)
    items: list[Item] = []
    first_line = price_minor = vat_minor = 0
    for (product, unit), line in zip(units, command.cart, strict=True):
        available = prices.availability((product.product_id, unit.face_minor, command.state))
        items.append(Item(len(items), product, line.amount, first_line, unit, available.offers))
        first_line += line.amount
        price_minor += unit.pay_price_minor * line.amount
        vat_minor += unit.pay_vat_minor * line.amount
    if price_minor + vat_minor > MINOR_MAX:
        raise BadInput("items", f"the total must be at most {Money(MINOR_MAX, command.payment_currency)}")
    return Order(
        id=next_id(command.state),
        company_id=command.company_id,
        type=command.type,
        status=Status.CREATED,
        payment_status=Payment.UNPAID,
        payment_currency=command.payment_currency,
        payment_fx_e8=shop.rates[command.payment_currency],
        price_minor=price_minor,
        vat_minor=vat_minor,
        charged_minor=0,
        refunded_minor=0,
        held_minor=0,
        lines=first_line,
        lines_finished=0,
        lines_cancelled=0,
        resolving=False,
        cancelling=False,
        downloaded=False,
        version=1,
        created_at=shop.now,
        expires_at=shop.now + shop.window,
        updated_at=shop.now,
        deadline_at=None,
        reference=command.reference,
        items=tuple(items),
    )


def _faces(shop: Shop, command: Create) -> list[int]:
    """The face value of each line (0 for an unknown slug); input is refused before anything is said about offers."""
    return [
        face_of(shop.listings[line.slug].version, line, at) if line.slug in shop.listings else 0
        for at, line in enumerate(command.cart)
    ]


def _refuse_unavailable(prices: _BatchPrices, command: Create, faces: Sequence[int]) -> None:
    """Refuse what is unknown, withdrawn, or has less stock than asked and can't be delivered later (OP-21)."""
    shop = prices.shop
    wanted: dict[Shelf, int] = {}
    missing: set[str] = set()
    left: dict[str, int] = {}
    for line, face_minor in zip(command.cart, faces, strict=True):
        listing = shop.listings.get(line.slug)
        if listing is None or not listing.active or command.withdrawn:
            missing.add(line.slug)
            continue
        shelf = (listing.version.product_id, face_minor, command.state)
        wanted[shelf] = wanted.get(shelf, 0) + line.amount
        if not listing.version.async_delivery and wanted[shelf] > prices.availability(shelf).left:
            missing.add(line.slug)
            left[line.slug] = prices.availability(shelf).left
    if missing:
        # Names, or slugs where there is none, in the order of the request.
        listings = shop.listings
        slugs = [line.slug for line in command.cart if line.slug in missing]
        names = [listings[slug].version.name if slug in listings else slug for slug in slugs]
        raise OffersNotAvailable(tuple(dict.fromkeys(names)), left=left)


def _price_cart(
    prices: _BatchPrices, command: Create, faces: Sequence[int], buyer: Buyer
) -> list[tuple[ProductVersion, UnitPrice]]:
    """The price of one unit of each line; refused where one would be a loss."""
    shop = prices.shop
    try:
        rate_bp = vat_bp(buyer.country, buyer.vat_number, shop.operator_country, shop.vat_rates)
    except NoVatRate as missing:
        raise BadInput("company", str(missing)) from None
    units, losses = [], []
    for line, face_minor in zip(command.cart, faces, strict=True):
        product = shop.listings[line.slug].version
        try:
            terms = shop.terms.get((command.company_id, product.product_id)) if shop.terms else None
            unit, loss = prices.unit(product, face_minor, command, rate_bp, terms)
            units.append((product, unit))
            if loss is not None:
                losses.append(loss)
        except NoRate as missing:
            raise BadInput("paymentCurrency", f"there is no exchange rate for {missing.currency}") from None
        except RateTooOld as old:
            raise BadInput("paymentCurrency", str(old)) from None
        except PriceTooLarge as large:
            raise BadInput("items", str(large)) from None
    if losses:
        found = tuple(dict.fromkeys(losses))
        raise OffersNotAvailable(tuple(dict.fromkeys(loss.name for loss in found)), found)
    return units
