"""The cart: what is about to be bought, and what it costs now."""

from __future__ import annotations

from typing import Any, Final

from voucherd import clock
from voucherd.catalogue import logos
from voucherd.db import transaction
from voucherd.http import Response
from voucherd.ids import LINES_MAX
from voucherd.money import DIGITS, BadAmount, Money, to_minor
from voucherd.orders import carts
from voucherd.orders.model import AMOUNT_MAX, ITEMS_MAX, REFERENCE_CHARS_MAX
from voucherd.orders.rules.cart import Create
from voucherd.orders.rules.refusals import BadInput, Refusal
from voucherd.pages.buyer import words
from voucherd.pages.buyer.balances import Funds, purses_of
from voucherd.pages.buyer.catalogue import payment_currency, product_page
from voucherd.pages.buyer.prices import rates_of, vat_note, vat_of
from voucherd.pages.buyer.quoting import PORTAL, QuotedLine, quote_lines
from voucherd.pages.forms import whole
from voucherd.pages.render import render
from voucherd.pages.visit import Visit, own_address, see_other
from voucherd.storefront.service import Shopper
from voucherd.words import Words

_LIST: Final = "/portal/catalogue"


async def add(visit: Visit) -> Response:
    """Put a product into the cart: from its page, or right from the catalogue, where the visitor stays."""
    slug, back = visit.form.get("slug"), visit.form.get("back")
    shown = await visit.services.storefront.find(Shopper(visit.company, visit.state), slug)
    if shown is None:
        return await product_page(visit, slug)  # Which says that it is not there.
    problems = visit.problems
    amount = read_amount(visit.form.get("amount"))
    if amount is None:
        problems["amount"] = visit.words.text("Between 1 and {most}", most=visit.words.number(AMOUNT_MAX))
    face_minor = 0
    if shown.version.is_variable:
        try:
            face_minor = to_minor(visit.form.get("face"), shown.version.face_currency)
        except BadAmount:
            face_minor = -1
        if not shown.version.accepts_face(face_minor):
            problems["face"] = visit.words.text("Choose a value between the two")
    if problems or amount is None:
        return await product_page(visit, slug)
    me = visit.someone.id
    before = await carts.read(visit.pool, me, visit.state)
    currency = await payment_currency(visit, before)
    try:
        async with transaction(visit.pool) as tx:
            await carts.choose_currency(tx, me, visit.state, currency)
            await carts.add(tx, me, visit.state, slug, face_minor, amount)
    except carts.CartFull:
        problems["amount"] = visit.words.text("An order has at most {most} products.", most=ITEMS_MAX)
        return await product_page(visit, slug)
    stays = own_address(back) and (back == _LIST or back.startswith(f"{_LIST}?"))
    text = visit.words.text(
        "{amount} × {product} is in your cart.",
        amount=visit.words.number(amount),
        product=shown.version.name,
    )
    return visit.go(back if stays else "/portal/cart", text)


async def cart(visit: Visit, refusal: Refusal | None = None) -> Response:
    """The cart with its price, as it would be fixed now; lines that can't be had are marked, the rest has its price."""
    found = await carts.read(visit.pool, visit.someone.id, visit.state)
    currency = await payment_currency(visit, found)
    quoted = await quote_lines(visit, [item.line for item in found.items], currency)
    problem = refusal or next((one.refusal for one in quoted if one.of_all), None)
    purses = await purses_of(visit)
    purse = next((one for one in purses if one.currency == currency), None)
    return render(
        "buyer/cart.html",
        visit,
        status=422 if refusal is not None else None,
        cart=found,
        lines=[
            _line(visit.words, item, one, currency) for item, one in zip(found.items, quoted, strict=True)
        ],
        logos=await logos.logos_of(visit.pool, {item.brand_slug for item in found.items}),
        currency=currency,
        currency_options=[(one, one) for one in sorted({currency, *(one.currency for one in purses)})],
        purse=purse,
        **await _costs(visit, quoted, purse, currency),
        problem=None if problem is None else words.said(visit.words, problem),
        reference=visit.form.get("reference"),
        reference_max=REFERENCE_CHARS_MAX,
        amount_max=AMOUNT_MAX,
    )


def _line(speak: Words, item: carts.CartItem, quoted: QuotedLine, currency: str) -> dict[str, Any]:
    """One line as the page shows it."""
    return {
        "item": item,
        "name": _name(item),
        "quoted": quoted,
        "sum": Money(quoted.sum_minor, currency),
        "single": None if quoted.item is None else Money(quoted.item.unit_charge_minor, currency),
        "problem": "" if quoted.refusal is None or quoted.of_all else words.line_problem(speak, quoted),
    }


async def _costs(
    visit: Visit, quoted: list[QuotedLine], purse: Funds | None, currency: str
) -> dict[str, Any]:
    """The price in its parts, of all that can be had: before VAT, at which rates, VAT, and in all."""
    items = [one.item for one in quoted if one.item is not None]
    vat = await vat_of(visit, clock.now().date())
    net = sum(item.unit.pay_price_minor * item.amount for item in items)
    total = sum(item.unit_charge_minor * item.amount for item in items)
    available = 0 if purse is None else purse.available.minor
    notes = [
        vat_note(visit.words, vat, item.version.vat_category, item.unit.turnover_minor) for item in items
    ]
    return {
        "codes": sum(item.amount for item in items),
        "net": Money(net, currency),
        "vat": Money(total - net, currency),
        "vat_percent": vat.percent if vat.bp and total > net else "",
        "vat_notes": [note for note in dict.fromkeys(notes) if note],
        "total": Money(total, currency),
        "rates": rates_of([item.unit for item in items], currency),
        "short": Money(total - available, currency) if total > available else None,
        "ready": bool(items) and len(items) == len(quoted),
        "stuck": sum(1 for one in quoted if one.item is None and not one.of_all),
    }


async def change(visit: Visit) -> Response:
    """Have more or fewer of what is in the cart, take what is left of it, or pay with another currency."""
    me, state = visit.someone.id, visit.state
    currency = visit.form.get("currency").upper()
    wanted = await _wanted(visit)
    async with transaction(visit.pool) as tx:
        found = await carts.read(tx, me, state)
        if currency in DIGITS:
            await carts.choose_currency(tx, me, state, currency)
        for item in found.items:
            amount = wanted.get(_name(item))
            if amount is not None and amount != item.amount:
                await carts.change(tx, me, state, item.product_id, item.face_minor, amount)
    return see_other("/portal/cart")


async def _wanted(visit: Visit) -> dict[str, int | None]:
    """How many of each line the form asks for, by the line's name."""
    found = await carts.read(visit.pool, visit.someone.id, visit.state)
    names = [_name(item) for item in found.items]
    wanted = {name: read_amount(visit.form.get(f"amount-{name}"), 0) for name in names}
    if "fix" in visit.form:
        currency = await payment_currency(visit, found)
        quoted = await quote_lines(visit, [item.line for item in found.items], currency)
        wanted |= {
            name: one.left
            for name, one in zip(names, quoted, strict=True)
            if one.item is None and not one.of_all
        }
    taken, _, count = visit.form.get("take").rpartition(":")
    if taken in names:
        wanted[taken] = read_amount(count, 0)
    if visit.form.get("remove") in names:
        wanted[visit.form.get("remove")] = 0
    return wanted


def _name(item: carts.CartItem) -> str:
    """What a line of the cart is called in its form."""
    return f"{item.product_id}-{item.face_minor}"


def asked(visit: Visit, filled: carts.Cart, currency: str, reference: str | None = None) -> Create:
    """What Create is asked for."""
    if filled.codes > LINES_MAX:
        raise BadInput("items", f"must have at most {LINES_MAX} codes")
    lines = tuple(item.line for item in filled.items)
    return Create(visit.company_id, visit.state, PORTAL, lines, currency, reference)


def read_amount(text: str, least: int = 1) -> int | None:
    """How many codes are wanted; None for what is no such number."""
    return whole(text, least, AMOUNT_MAX)
