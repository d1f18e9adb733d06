"""The pages of the buyer's portal, on one screen."""

from __future__ import annotations

from typing import Final

from voucherd.pages import guide
from voucherd.pages.buyer import (
    balances,
    cart,
    catalogue,
    checkout,
    codes,
    keys,
    links,
    orders,
    webhooks,
)
from voucherd.pages.page import Audience, Page
from voucherd.people.roles import Right

_BUYER: Final = Audience.COMPANY
_WALLET, _KEYS, _HOOKS = Right.WALLET_VIEW, Right.KEYS_MANAGE, Right.WEBHOOKS_MANAGE
_VIEW, _PLACE, _CODES = Right.ORDERS_VIEW, Right.ORDERS_PLACE, Right.CODES_VIEW

PAGES: Final[tuple[Page, ...]] = (
    Page("GET", "/portal", orders.overview, _BUYER),
    Page("GET", "/portal/catalogue", catalogue.catalogue, _BUYER, _VIEW),
    Page("GET", "/portal/catalogue/{slug}", catalogue.product, _BUYER, _VIEW),
    Page("GET", "/portal/cart", cart.cart, _BUYER, _PLACE),
    Page("POST", "/portal/cart/add", cart.add, _BUYER, _PLACE),
    Page("POST", "/portal/cart/change", cart.change, _BUYER, _PLACE),
    Page("POST", "/portal/cart/order", checkout.order, _BUYER, _PLACE),
    Page("GET", "/portal/orders", orders.orders, _BUYER, _VIEW),
    Page("GET", "/portal/orders/{trx}", orders.order, _BUYER, _VIEW),
    Page("GET", "/portal/orders/{trx}/live", orders.live, _BUYER, _VIEW),
    Page("POST", "/portal/orders/{trx}/confirm", checkout.confirm, _BUYER, _PLACE),
    Page("POST", "/portal/orders/{trx}/reopen", checkout.reopen, _BUYER, _PLACE),
    Page("POST", "/portal/orders/{trx}/again", checkout.again, _BUYER, _PLACE),
    Page("GET", "/portal/orders/{trx}/cancel", orders.cancel_page, _BUYER, _PLACE),
    Page("POST", "/portal/orders/{trx}/cancel", orders.cancel, _BUYER, _PLACE),
    Page("GET", "/portal/orders/{trx}/links", links.links, _BUYER, _VIEW),
    Page("POST", "/portal/orders/{trx}/links", links.set_pin, _BUYER, _PLACE),
    Page("POST", "/portal/orders/{trx}/codes", codes.show, _BUYER, _CODES),
    Page("POST", "/portal/orders/{trx}/download", codes.download, _BUYER, _CODES),
    Page("GET", "/portal/alerts", balances.alerts, _BUYER, Right.WALLET_VIEW),
    Page("POST", "/portal/alerts", balances.set_alert, _BUYER, _PLACE),
    Page("GET", "/portal/balances", balances.balances, _BUYER, _WALLET),
    Page("GET", "/portal/balances/{currency}", balances.statement, _BUYER, _WALLET),
    Page("GET", "/portal/balances/{currency}/statement.csv", balances.download, _BUYER, _WALLET),
    Page("GET", "/portal/keys", keys.keys, _BUYER, _KEYS),
    Page("GET", "/portal/keys/new", keys.new_key, _BUYER, _KEYS),
    Page("POST", "/portal/keys", keys.add, _BUYER, _KEYS),
    Page("POST", "/portal/keys/{key}/rotate", keys.rotate, _BUYER, _KEYS),
    Page("POST", "/portal/keys/{key}/revoke", keys.revoke, _BUYER, _KEYS),
    Page("POST", "/portal/guide-key", guide.with_key, _BUYER, _KEYS),
    Page("GET", "/portal/webhooks", webhooks.webhooks, _BUYER, _HOOKS),
    Page("GET", "/portal/webhooks/new", webhooks.new_webhook, _BUYER, _HOOKS),
    Page("POST", "/portal/webhooks", webhooks.add, _BUYER, _HOOKS),
    Page("GET", "/portal/webhooks/{webhook}", webhooks.webhook, _BUYER, _HOOKS),
    Page("POST", "/portal/webhooks/{webhook}", webhooks.change, _BUYER, _HOOKS),
    Page("POST", "/portal/webhooks/{webhook}/remove", webhooks.remove, _BUYER, _HOOKS),
    Page("POST", "/portal/webhooks/{webhook}/rotate", webhooks.rotate, _BUYER, _HOOKS),
    Page("POST", "/portal/webhooks/{webhook}/test", webhooks.ping, _BUYER, _HOOKS),
    Page("POST", "/portal/webhooks/{webhook}/recover", webhooks.recover, _BUYER, _HOOKS),
    Page("POST", "/portal/webhooks/{webhook}/replay/{event}", webhooks.replay, _BUYER, _HOOKS),
)
