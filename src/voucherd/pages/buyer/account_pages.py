"""The buyer's pages about money, keys and webhooks."""

from __future__ import annotations

from typing import Final

from voucherd.pages import guide
from voucherd.pages.buyer import balances, keys, webhooks
from voucherd.pages.page import Audience, Page
from voucherd.people.roles import Right

_BUYER: Final = Audience.COMPANY
_WALLET, _KEYS, _HOOKS = Right.WALLET_VIEW, Right.KEYS_MANAGE, Right.WEBHOOKS_MANAGE

PAGES: Final[tuple[Page, ...]] = (
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
