"""The handlers of the catalogue: products for sale, their prices and their changes. No rule lives here."""

from __future__ import annotations

from decimal import Decimal

from msgspec import Struct

from voucherd.api import catalogue_requests as requests
from voucherd.api.errors import NoSuchBrand, ProductNotFound
from voucherd.api.handlers import Call
from voucherd.api.wire import catalogue as wire
from voucherd.api.wire.shapes import place_of
from voucherd.api.wire.templates import encode
from voucherd.catalogue.fx import BASE
from voucherd.catalogue.pricing import NoRate
from voucherd.http import JSON, Response
from voucherd.orders.rules.refusals import BadInput
from voucherd.services import Services
from voucherd.storefront.service import Shopper


async def find_products(services: Services, call: Call) -> Response:
    """Find all products."""
    asked = requests.find_all(call.request, services.ids)
    visitor, page = _visitor(call, asked.payment_currency, asked.filters.face_value), asked.page
    try:
        found = await services.storefront.find_all(
            visitor, asked.filters, asked.order, size=page.size, skip=page.skip, after=asked.after
        )
    except NoRate as missing:
        raise _no_rate(missing) from None
    cursor = None if found.next is None else requests.place_cursor(services.ids, found.next, asked.order)
    data = [wire.product(shown, asked.payment_currency) for shown in found.products]
    return _json(wire.ProductPage(data, *place_of(page.size, page.skip, cursor, found.total)))


async def find_product(services: Services, call: Call) -> Response:
    """Find one product."""
    asked = requests.find(call.request)
    visitor = _visitor(call, asked.payment_currency, asked.face_value)
    try:
        shown = await services.storefront.find(visitor, call.parameter)
    except NoRate as missing:
        raise _no_rate(missing) from None
    if shown is None:
        raise ProductNotFound
    return _json(wire.product(shown, asked.payment_currency))


async def find_changes(services: Services, call: Call) -> Response:
    """The feed of changes."""
    asked = requests.changes(call.request, services.ids)
    try:
        feed = await services.storefront.changes(
            _visitor(call, asked.payment_currency), asked.after, asked.size
        )
    except NoRate as missing:
        raise _no_rate(missing) from None
    data = [wire.change(told, asked.payment_currency) for told in feed.changes]
    return _json(
        wire.ProductChangePage(data, wire.FeedMetadata(requests.number_cursor(services.ids, feed.last)))
    )


async def find_brands(services: Services, call: Call) -> Response:
    """Find all brands."""
    page, after = requests.brands(call.request, services.ids)
    found = await services.storefront.brands(size=page.size, skip=page.skip, after_slug=after)
    cursor = requests.slug_cursor(services.ids, found.brands[-1].slug) if found.more else None
    data = [wire.brand(group) for group in found.brands]
    return _json(wire.BrandPage(data, *place_of(page.size, page.skip, cursor, found.total)))


async def find_brand(services: Services, call: Call) -> Response:
    """Find one brand."""
    group = await services.storefront.brand(call.parameter)
    if group is None:
        raise NoSuchBrand
    return _json(wire.brand(group))


async def find_categories(services: Services, _call: Call) -> Response:
    """Find all categories."""
    data = [wire.category(group) for group in await services.storefront.categories()]
    return _json(wire.CategoryList(data, wire.ListMetadata(len(data))))


async def find_rates(services: Services, _call: Call) -> Response:
    """Find all exchange rates."""
    found = await services.storefront.rates()
    data = [wire.fx_rate(rate, BASE) for rate in found]
    return _json(wire.FxRateList(data, wire.ListMetadata(len(data)), wire.fx_pairs(found, BASE)))


def _visitor(call: Call, payment_currency: str | None, face_value: Decimal | None = None) -> Shopper:
    return Shopper(call.caller.company, call.caller.state, payment_currency, face_value)


def _no_rate(missing: NoRate) -> BadInput:
    return BadInput("paymentCurrency", f"there is no exchange rate for {missing.currency}")


def _json(body: Struct) -> Response:
    return Response(200, encode(body), JSON)
