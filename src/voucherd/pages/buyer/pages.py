"""The pages of the buyer's portal, on one screen."""

from __future__ import annotations

from typing import Final

from voucherd.pages.buyer import alerts, cart, catalogue, checkout, codes, links, live, orders, overview
from voucherd.pages.buyer.account_pages import PAGES as ACCOUNT
from voucherd.pages.page import Audience, Page
from voucherd.people.roles import Right

_BUYER: Final = Audience.COMPANY
_VIEW, _PLACE, _CODES = Right.ORDERS_VIEW, Right.ORDERS_PLACE, Right.CODES_VIEW

PAGES: Final[tuple[Page, ...]] = (
    Page("GET", "/portal", overview.overview, _BUYER),
    Page("GET", "/portal/catalogue", catalogue.catalogue, _BUYER, _VIEW),
    Page("GET", "/portal/catalogue/{slug}", catalogue.product, _BUYER, _VIEW),
    Page("GET", "/portal/cart", cart.cart, _BUYER, _PLACE),
    Page("POST", "/portal/cart/add", cart.add, _BUYER, _PLACE),
    Page("POST", "/portal/cart/change", cart.change, _BUYER, _PLACE),
    Page("POST", "/portal/cart/order", checkout.order, _BUYER, _PLACE),
    Page("GET", "/portal/orders", orders.orders, _BUYER, _VIEW),
    Page("GET", "/portal/orders/{trx}", orders.order, _BUYER, _VIEW),
    Page("GET", "/portal/orders/{trx}/live", live.live, _BUYER, _VIEW),
    Page("POST", "/portal/orders/{trx}/confirm", checkout.confirm, _BUYER, _PLACE),
    Page("POST", "/portal/orders/{trx}/reopen", checkout.reopen, _BUYER, _PLACE),
    Page("POST", "/portal/orders/{trx}/again", checkout.again, _BUYER, _PLACE),
    Page("GET", "/portal/orders/{trx}/cancel", orders.cancel_page, _BUYER, _PLACE),
    Page("POST", "/portal/orders/{trx}/cancel", orders.cancel, _BUYER, _PLACE),
    Page("GET", "/portal/orders/{trx}/links", links.links, _BUYER, _VIEW),
    Page("POST", "/portal/orders/{trx}/links", links.set_pin, _BUYER, _PLACE),
    Page("POST", "/portal/orders/{trx}/codes", codes.show, _BUYER, _CODES),
    Page("POST", "/portal/orders/{trx}/download", codes.download, _BUYER, _CODES),
    Page("GET", "/portal/alerts", alerts.alerts, _BUYER, Right.WALLET_VIEW),
    Page("POST", "/portal/alerts", alerts.set_alert, _BUYER, _PLACE),
    *ACCOUNT,
)
