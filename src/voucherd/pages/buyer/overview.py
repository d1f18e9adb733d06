"""The first page that a company's people see."""

from __future__ import annotations

from typing import Final

from voucherd.http import Response
from voucherd.orders import carts
from voucherd.orders.find import OrderFilters
from voucherd.pages.buyer.catalogue import logos_for, look, payment_currency, priced
from voucherd.pages.buyer.funds import purses_of
from voucherd.pages.buyer.orders import row
from voucherd.pages.render import render
from voucherd.pages.visit import Visit
from voucherd.people.roles import Right
from voucherd.storefront import listing
from voucherd.storefront.listing import ProductOrder
from voucherd.storefront.sorting import Sort

ORDERS_SHOWN: Final = 6
PRODUCTS_SHOWN: Final = 6


async def overview(visit: Visit) -> Response:
    """Balances, what is under way, and what to do next."""
    found = await visit.services.orders.browse(
        visit.company_id, visit.state, OrderFilters(), size=ORDERS_SHOWN
    )
    pending = await visit.services.orders.count_pending(visit.company_id, visit.state)
    cart = await carts.read(visit.pool, visit.someone.id, visit.state)
    currency = await payment_currency(visit, cart)
    window = await look(visit, currency, listing.ProductFilters(stocked=True), ProductOrder(Sort.BRAND))
    # One product of each brand, the first of each: a dictionary keeps the last.
    brands = {shown.version.brand_slug: shown for shown in reversed(window.products)}
    products = list(reversed(brands.values()))[:PRODUCTS_SHOWN]
    purses = await purses_of(visit)
    return render(
        "buyer/overview.html",
        visit,
        purses=purses,
        low=[purse for purse in purses if purse.low],
        rows=[row(visit.services, one) for one in found.orders],
        pending=pending,
        cart=cart,
        products=products,
        logos=await logos_for(visit.services, products),
        priced=priced,
        currency=currency,
        may_buy=visit.may(Right.ORDERS_PLACE),
    )
