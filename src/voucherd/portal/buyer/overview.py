"""The first page that a company's people see."""

from __future__ import annotations

from typing import Final

from voucherd.access.roles import Right
from voucherd.http import Response
from voucherd.orders import carts
from voucherd.orders.find import Filters
from voucherd.portal.buyer.catalogue import logos_for, look, payment_currency, priced
from voucherd.portal.buyer.orders import row
from voucherd.portal.buyer.purse import purses_of
from voucherd.portal.house import House
from voucherd.portal.render import render
from voucherd.portal.visit import Visit
from voucherd.storefront import listing
from voucherd.storefront.listing import Order
from voucherd.storefront.sorting import Sort

ORDERS_SHOWN: Final = 6
PRODUCTS_SHOWN: Final = 6


async def overview(house: House, visit: Visit) -> Response:
    """Balances, what is under way, and what to do next."""
    found = await house.desk.browse(visit.company_id, visit.state, Filters(), size=ORDERS_SHOWN)
    pending = await house.desk.count_pending(visit.company_id, visit.state)
    cart = await carts.read(house.pool, visit.someone.id, visit.state)
    currency = await payment_currency(house, visit, cart)
    window = await look(house, visit, currency, listing.Filters(stocked=True), Order(Sort.BRAND))
    # One product of each brand, the first of each: a dictionary keeps the last.
    brands = {shown.version.brand_slug: shown for shown in reversed(window.products)}
    products = list(reversed(brands.values()))[:PRODUCTS_SHOWN]
    purses = await purses_of(house, visit)
    return render(
        "buyer/overview.html",
        visit,
        purses=purses,
        low=[purse for purse in purses if purse.low],
        rows=[row(house, one) for one in found.orders],
        pending=pending,
        cart=cart,
        products=products,
        logos=await logos_for(house, products),
        priced=priced,
        currency=currency,
        may_buy=visit.may(Right.ORDERS_PLACE),
    )
