"""Every path, version and operation on one screen (OP-04). Any other pair of operation and version: 404."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from voucherd.api import (
    accounts,
    catalogue,
    events,
    handlers,
    keys,
    order_parts,
    request_log,
    sandbox,
    webhooks,
)
from voucherd.api.errors import Op
from voucherd.api.handlers import Handler
from voucherd.keys.key_text import Scope
from voucherd.router import Router


class Route(Struct, frozen=True):
    """One operation on one path."""

    method: str
    path: str
    versions: tuple[str, ...]
    """Those that differ, or that clients should use; the OpenAPI document describes these."""
    op: Op
    scope: Scope
    handler: Handler
    also: Scope | None = None
    """One more scope that the operation needs."""

    @property
    def writes(self) -> bool:
        """Whether it changes anything, so that an Idempotency-Key is honoured (OP-28)."""
        return self.method != "GET" and self.op is not Op.QUOTE

    @property
    def served(self) -> tuple[str, ...]:
        """Every version of its path: its own, and those that are served as one of them (OP-04)."""
        resource = self.path.partition("/")[0]
        alike = [LIKE_MAIN, *(ALL if resource in SHARED else ())] if MAIN in self.versions else []
        return tuple(dict.fromkeys([*self.versions, *alike]))

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """All that a key needs."""
        return (self.scope,) if self.also is None else (self.scope, self.also)


MAIN: Final = "1.03"
"""The version that has every operation."""
LIKE_MAIN: Final = "1.02"
"""Served as the main one, operation by operation: existing clients ask for it."""
ALL: Final = ("1.00", MAIN, "Next")
SHARED: Final = ("account", "brand", "product")
"""Resources with one shape in all versions."""
_OWN: Final = (MAIN,)
"""Where resources of our own are."""

ROUTES: Final = (
    Route("POST", "order", _OWN, Op.CREATE, Scope.ORDERS_WRITE, handlers.create),
    Route("POST", "order/quote", _OWN, Op.QUOTE, Scope.CATALOGUE_READ, handlers.quote),
    Route("GET", "order", ALL, Op.FIND_ALL, Scope.ORDERS_READ, handlers.find_all),
    Route("GET", "order/{trx}", ALL, Op.FIND, Scope.ORDERS_READ, handlers.find),
    Route("GET", "order/{trx}/line", _OWN, Op.LINES, Scope.ORDERS_READ, order_parts.lines, Scope.CODES_READ),
    Route("GET", "order/{trx}/codes.csv", _OWN, Op.CODES, Scope.CODES_READ, order_parts.codes),
    Route("PATCH", "order/{trx}/redemption", _OWN, Op.PROTECT, Scope.ORDERS_WRITE, order_parts.protect),
    Route("PATCH", "order/confirm/{trx}", (MAIN, "1.00"), Op.CONFIRM, Scope.ORDERS_WRITE, handlers.confirm),
    Route("PATCH", "order/resolve/{trx}", (MAIN, "Next"), Op.RESOLVE, Scope.ORDERS_WRITE, handlers.resolve),
    Route("PATCH", "order/cancel/{trx}", _OWN, Op.CANCEL, Scope.ORDERS_WRITE, handlers.cancel),
    Route("GET", "account", _OWN, Op.ACCOUNTS, Scope.WALLET_READ, accounts.accounts),
    Route("GET", "account/{currency}/entry", _OWN, Op.STATEMENT, Scope.WALLET_READ, accounts.statement),
    Route("GET", "product", _OWN, Op.PRODUCTS, Scope.CATALOGUE_READ, catalogue.find_products),
    Route("GET", "product/{slug}", _OWN, Op.PRODUCT, Scope.CATALOGUE_READ, catalogue.find_product),
    Route("GET", "product/changes", _OWN, Op.PRODUCT_CHANGES, Scope.CATALOGUE_READ, catalogue.find_changes),
    Route("GET", "brand", _OWN, Op.BRANDS, Scope.CATALOGUE_READ, catalogue.find_brands),
    Route("GET", "brand/{slug}", _OWN, Op.BRAND, Scope.CATALOGUE_READ, catalogue.find_brand),
    Route("GET", "category", _OWN, Op.CATEGORIES, Scope.CATALOGUE_READ, catalogue.find_categories),
    Route("GET", "webhook", _OWN, Op.WEBHOOKS, Scope.WEBHOOKS_WRITE, webhooks.find_all),
    Route("POST", "webhook", _OWN, Op.ADD_WEBHOOK, Scope.WEBHOOKS_WRITE, webhooks.add),
    Route("GET", "webhook/{id}", _OWN, Op.WEBHOOK, Scope.WEBHOOKS_WRITE, webhooks.find),
    Route("PATCH", "webhook/{id}", _OWN, Op.CHANGE_WEBHOOK, Scope.WEBHOOKS_WRITE, webhooks.change),
    Route("DELETE", "webhook/{id}", _OWN, Op.REMOVE_WEBHOOK, Scope.WEBHOOKS_WRITE, webhooks.remove),
    Route("POST", "webhook/{id}/rotate", _OWN, Op.ROTATE_WEBHOOK, Scope.WEBHOOKS_WRITE, webhooks.rotate),
    Route(
        "GET", "webhook/{id}/delivery", _OWN, Op.DELIVERIES, Scope.WEBHOOKS_WRITE, webhooks.find_deliveries
    ),
    Route("POST", "webhook/{id}/test", _OWN, Op.TEST_WEBHOOK, Scope.WEBHOOKS_WRITE, webhooks.test),
    Route("POST", "webhook/{id}/recover", _OWN, Op.RECOVER_WEBHOOK, Scope.WEBHOOKS_WRITE, webhooks.recover),
    Route("POST", "event/{id}/replay", _OWN, Op.REPLAY_EVENT, Scope.WEBHOOKS_WRITE, webhooks.replay),
    Route("GET", "fx-rate", _OWN, Op.FX_RATES, Scope.CATALOGUE_READ, catalogue.find_rates),
    Route("GET", "event", _OWN, Op.EVENTS, Scope.EVENTS_READ, events.find_events),
    Route("GET", "event/{id}", _OWN, Op.EVENT, Scope.EVENTS_READ, events.find_event),
    Route("GET", "event/stream", _OWN, Op.EVENT_STREAM, Scope.EVENTS_READ, events.stream),
    Route("GET", "key", _OWN, Op.KEYS, Scope.KEYS_WRITE, keys.find_all),
    Route("POST", "key", _OWN, Op.ADD_KEY, Scope.KEYS_WRITE, keys.add),
    Route("GET", "key/{id}", _OWN, Op.KEY, Scope.KEYS_WRITE, keys.find),
    Route("PATCH", "key/{id}", _OWN, Op.CHANGE_KEY, Scope.KEYS_WRITE, keys.change),
    Route("DELETE", "key/{id}", _OWN, Op.REVOKE_KEY, Scope.KEYS_WRITE, keys.revoke),
    Route("POST", "key/{id}/rotate", _OWN, Op.ROTATE_KEY, Scope.KEYS_WRITE, keys.rotate),
    Route("POST", "sandbox/top-up", _OWN, Op.PLAY_MONEY, Scope.ORDERS_WRITE, sandbox.top_up),
    Route("GET", "sandbox/clock", _OWN, Op.CLOCK, Scope.ORDERS_READ, sandbox.clock),
    Route("POST", "sandbox/clock/advance", _OWN, Op.ADVANCE_CLOCK, Scope.ORDERS_WRITE, sandbox.advance),
    Route("POST", "sandbox/clock/reset", _OWN, Op.RESET_CLOCK, Scope.ORDERS_WRITE, sandbox.reset),
    Route("GET", "request", _OWN, Op.REQUESTS, Scope.EVENTS_READ, request_log.find_all),
    Route("GET", "request/{id}", _OWN, Op.REQUEST, Scope.EVENTS_READ, request_log.find),
    Route("POST", "event/trigger", _OWN, Op.TRIGGER_EVENT, Scope.ORDERS_WRITE, sandbox.trigger),
)


PREFIX: Final = "/api/"


def table(routes: Iterable[Route]) -> Iterator[tuple[str, str, tuple[Route, str]]]:
    """Each operation at each of its paths, for the router."""
    for route in routes:
        for version in route.served:
            yield route.method, f"{PREFIX}{version}/{route.path}", (route, version)


match: Final = Router(table(ROUTES)).match
