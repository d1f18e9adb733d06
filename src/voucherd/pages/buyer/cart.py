"""The cart: what is about to be bought, and what it costs now."""

from __future__ import annotations

import re
from typing import Any, Final

from voucherd.catalogue.pricing import UnitPrice
from voucherd.db import transaction
from voucherd.http import Response
from voucherd.ids import LINES_MAX
from voucherd.money import DIGITS, BadAmount, Money, digits, divide_half_up, plain, to_minor
from voucherd.orders import carts
from voucherd.orders.create import Quote
from voucherd.orders.model import AMOUNT_MAX, REFERENCE_CHARS_MAX
from voucherd.orders.rules.cart import Create
from voucherd.orders.rules.refusals import BadInput, Refusal
from voucherd.pages.buyer import words
from voucherd.pages.buyer.balances import Funds, purses_of
from voucherd.pages.buyer.catalogue import payment_currency, product_page
from voucherd.pages.forms import whole
from voucherd.pages.render import render
from voucherd.pages.visit import Visit, see_other
from voucherd.storefront.service import Shopper

PORTAL: Final = 1
"""The type of an order that was made here (orders.model.TYPES)."""
RATE_SHOWN_DIGITS: Final = 4
_ITEM: Final = re.compile(r"items\[(\d+)\]")
_AMOUNT_RULE: Final = f"Between 1 and {AMOUNT_MAX:,}".replace(",", "\u202f")


async def add(visit: Visit) -> Response:
    """Put a product into the cart."""
    slug = visit.form.get("slug")
    shown = await visit.services.storefront.find(Shopper(visit.company, visit.state), slug)
    if shown is None:
        return await product_page(visit, slug)  # Which says that it is not there.
    problems = visit.problems
    amount = read_amount(visit.form.get("amount"))
    if amount is None:
        problems["amount"] = _AMOUNT_RULE
    face_minor = 0
    if shown.version.is_variable:
        try:
            face_minor = to_minor(visit.form.get("face"), shown.version.face_currency)
        except BadAmount:
            face_minor = -1
        if not shown.version.accepts_face(face_minor):
            problems["face"] = "Pick a value between the two"
    if problems or amount is None:
        return await product_page(visit, slug)
    me = visit.someone.id
    before = await carts.read(visit.pool, me, visit.state)
    currency = await payment_currency(visit, before)
    try:
        async with transaction(visit.pool) as tx:
            await carts.choose_currency(tx, me, visit.state, currency)
            await carts.add(tx, me, visit.state, slug, face_minor, amount)
    except carts.CartFull as full:
        problems["amount"] = f"{full}."
        return await product_page(visit, slug)
    return visit.go("/portal/cart", f"{amount} × {shown.version.name} is in your cart.")


async def cart(visit: Visit, refusal: Refusal | None = None) -> Response:
    """The cart with its price, as it would be fixed now; or with what stands in the way of an order."""
    found = await carts.read(visit.pool, visit.someone.id, visit.state)
    currency = await payment_currency(visit, found)
    quote: Quote | None = None
    problem = refusal
    if found.items:
        try:
            quote = await visit.services.orders.quote(asked(visit, found, currency))
        except Refusal as refused:
            problem = problem or refused
    purses = await purses_of(visit)
    purse = next((one for one in purses if one.currency == currency), None)
    return render(
        "buyer/cart.html",
        visit,
        status=422 if refusal is not None else 200,
        cart=found,
        quote=quote,
        currency=currency,
        currency_options=[(one, one) for one in sorted({currency, *(one.currency for one in purses)})],
        purse=purse,
        **_costs(quote, purse, currency),
        problem=None if problem is None else words.said(problem),
        wrong=_wrong_item(problem),
        reference=visit.form.get("reference"),
        reference_max=REFERENCE_CHARS_MAX,
        amount_max=AMOUNT_MAX,
    )


def _rate(unit: UnitPrice, currency: str) -> str:
    """About what one unit of the price's currency costs in the currency of payment, the operator's margin included."""
    paid = unit.pay_price_minor * 10 ** (digits(unit.price_currency) + RATE_SHOWN_DIGITS)
    rate = divide_half_up(paid, unit.price_minor * 10 ** digits(currency))
    return plain(rate, RATE_SHOWN_DIGITS)


def _costs(quote: Quote | None, purse: Funds | None, currency: str) -> dict[str, Any]:
    """The price in its parts: before VAT, at which rates, VAT, and in all."""
    if quote is None:
        return {}
    order = quote.order
    rates = {
        item.unit.price_currency: _rate(item.unit, currency)
        for item in order.items
        if item.unit.price_currency != currency
    }
    return {
        "net": Money(order.price_minor, currency),
        "vat": Money(order.vat_minor, currency),
        "total": Money(order.total_minor, currency),
        "rates": sorted(rates.items()),
        "sums": [Money(item.unit_charge_minor * item.amount, currency) for item in order.items],
        "short": purse is None or purse.available.minor < order.total_minor,
    }


async def change(visit: Visit) -> Response:
    """Have more or fewer of what is in the cart, or pay with another currency."""
    me, state = visit.someone.id, visit.state
    currency = visit.form.get("currency").upper()
    async with transaction(visit.pool) as tx:
        found = await carts.read(tx, me, state)
        if currency in DIGITS:
            await carts.choose_currency(tx, me, state, currency)
        for item in found.items:
            name = f"{item.product_id}-{item.face_minor}"
            amount = (
                0 if visit.form.get("remove") == name else read_amount(visit.form.get(f"amount-{name}"), 0)
            )
            if amount is not None and amount != item.amount:
                await carts.change(tx, me, state, item.product_id, item.face_minor, amount)
    return see_other("/portal/cart")


def asked(visit: Visit, filled: carts.Cart, currency: str, reference: str | None = None) -> Create:
    """What Create is asked for."""
    if filled.codes > LINES_MAX:
        raise BadInput("items", f"must have at most {LINES_MAX} codes")
    lines = tuple(item.line for item in filled.items)
    return Create(visit.company_id, visit.state, PORTAL, lines, currency, reference)


def read_amount(text: str, least: int = 1) -> int | None:
    """How many codes are wanted; None for what is no such number."""
    return whole(text, least, AMOUNT_MAX)


def _wrong_item(problem: Refusal | None) -> int | None:
    """Which product of the cart something is wrong with, if it is one."""
    found = _ITEM.match(problem.field) if isinstance(problem, BadInput) else None
    return None if found is None else int(found[1])
