"""Examples of everything but whole orders, made like the answers of the service from a few samples of ours."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from ipaddress import IPv4Network
from typing import Any, Final

from msgspec import Raw
from msgspec.structs import replace

from tests.wire import sample_order as sample
from tests.wire.sample_order import CONFIRMED_AT, CREATED_AT, IDS
from voucherd.api import accounts
from voucherd.api.catalogue_requests import number_cursor
from voucherd.api.order_parts import LINES_PAGE
from voucherd.api.query import PAGE_SIZE
from voucherd.api.wire import catalogue, keys, request_log, sandbox, webhooks
from voucherd.api.wire.events import EventMetadata
from voucherd.api.wire.lines import extended_lines
from voucherd.api.wire.parts import CODES_HEAD, code_rows
from voucherd.api.wire.shapes import AccountEntryPage, Redemption, WalkMetadata, place_of
from voucherd.api.wire.templates import encode
from voucherd.api.wire.view import pieces
from voucherd.catalogue.fx import BASE
from voucherd.catalogue.products import Leaflet
from voucherd.catalogue.store import FxRate
from voucherd.events import kinds
from voucherd.events.feed import Event
from voucherd.events.streams import RETRY_MS
from voucherd.events.wire import written
from voucherd.ids import State
from voucherd.keys.key_text import RATE_LIMIT_DEFAULT, Scope
from voucherd.keys.store import Key
from voucherd.money import RATE_ONE
from voucherd.request_log.store import Answered
from voucherd.sandbox.deeds import Moved
from voucherd.sandbox.store import TestClock
from voucherd.storefront import prices
from voucherd.storefront.groups import BrandGroup, ProductGroup, category_name
from voucherd.storefront.service import ChangedProduct, ShownProduct
from voucherd.wallet import statement_file
from voucherd.wallet.ledger import EntryKind, Wallet, post
from voucherd.wallet.statement import StatementLine
from voucherd.wallet.store import Balance
from voucherd.webhooks.endpoints import Endpoint
from voucherd.webhooks.history import Logged, SendAttempt
from voucherd.webhooks.messages import MessageFormat

_ORDER: Final = sample.sample(in_stock=2)
_WALK: Final = WalkMetadata(PAGE_SIZE, None)
_ONE_PAGE: Final = place_of(PAGE_SIZE, 0, None, 1)


def _json(shown: Any) -> Raw:
    return Raw(encode(shown))


# ── orders in parts ───────────────────────────────────────────────────────────────────────────────────────


def lines(_version: str, public_url: str) -> Raw:
    """A page of the sample order's lines."""
    view = sample.sample_view(public_url)
    shown = [extended_lines(view, piece) for item in _ORDER.items for piece in pieces(view.answer, item)]
    return Raw(b'{"data":[%b],"metadata":%b}' % (b",".join(shown), encode(WalkMetadata(LINES_PAGE, None))))


def codes_file(public_url: str) -> str:
    """The sample order's codes as a file."""
    view = sample.sample_view(public_url)
    rows = [code_rows(view, piece) for item in _ORDER.items for piece in pieces(view.answer, item)]
    return (CODES_HEAD + b"".join(rows)).decode()


PROTECTED: Final = _json(Redemption(trx=sample.trx(), hasPin=True))


# ── money ─────────────────────────────────────────────────────────────────────────────────────────────────


def _movements() -> list[StatementLine]:
    """A top-up and the sample order, newest first."""
    wallet, topped_up = post(
        Wallet(1, 0, 0, 0), EntryKind.TOP_UP, amount_minor=100_000, reference="INV-2026-0007"
    )
    paid_minor, vat_minor = -_ORDER.total_minor, -_ORDER.vat_minor
    _, paid = post(wallet, EntryKind.ORDER, amount_minor=paid_minor, vat_minor=vat_minor, order_id=_ORDER.id)
    return [
        StatementLine(
            entry.seq,
            at,
            entry.kind,
            entry.amount_minor,
            entry.hold_minor,
            entry.balance_after_minor,
            entry.held_after_minor,
            entry.order_id,
            entry.reference,
        )
        for entry, at in ((paid, CONFIRMED_AT), (topped_up, CREATED_AT - timedelta(days=1)))
    ]


_MOVED: Final = _movements()
ACCOUNTS: Final = _json(
    [
        accounts.account(
            Balance(1, 1, "EUR", State.LIVE, _MOVED[0].balance_after_minor, _MOVED[0].held_after_minor)
        )
    ]
)
STATEMENT: Final = _json(AccountEntryPage(accounts.entries(_MOVED, "EUR", IDS), _WALK))
STATEMENT_FILE: Final = statement_file.HEAD + statement_file.rows(_MOVED, "EUR", IDS).decode()


# ── events ────────────────────────────────────────────────────────────────────────────────────────────────

_FIRST: Final = 1_204
_HAPPENED: Final = [
    Event(
        _FIRST + seq,
        at + timedelta(milliseconds=4),
        _ORDER.company_id,
        State.LIVE,
        type_,
        _ORDER.id,
        seq,
        None,
        _ORDER.reference,
    )
    for seq, (type_, at) in enumerate(
        ((kinds.ORDER_CREATED, CREATED_AT), (kinds.ORDER_FINISHED, CONFIRMED_AT)), 1
    )
]
_CREATED, _FINISHED = (written(event, IDS) for event in _HAPPENED)
_BEFORE, _LAST = (IDS.event(event.id) for event in _HAPPENED)
EVENT: Final = Raw(_FINISHED)
EVENT_ID: Final = IDS.event(_FIRST)
EVENT_PAGE: Final = Raw(
    b'{"data":[%b,%b],"metadata":%b}'
    % (_CREATED, _FINISHED, encode(EventMetadata(PAGE_SIZE, _LAST, more=False)))
)
STREAM: Final = (
    f"retry: {RETRY_MS}\nid: {_BEFORE}\n\nid: {_LAST}\nevent: {_HAPPENED[-1].type}\ndata: {_FINISHED.decode()}\n\n"
    f": still here\nid: {_LAST}\n\n"
)


# ── webhooks ──────────────────────────────────────────────────────────────────────────────────────────────

_URL: Final = "https://shop.example.com/hooks/vouchers"
_SECRET: Final = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
_ENDPOINT: Final = Endpoint(
    id=3,
    company_id=_ORDER.company_id,
    state=State.LIVE,
    url=_URL,
    format=MessageFormat.STANDARD,
    types=(kinds.ORDER_CANCELLED, kinds.ORDER_FINISHED),
    description="the webshop",
    enabled=True,
    disabled_reason=None,
    header_names=("x-tenant",),
    old_until=None,
    created_at=CREATED_AT,
    updated_at=CREATED_AT,
    failures=0,
    failing_since=None,
)
_TOLD: Final = replace(_HAPPENED[-1], id=901, at=CONFIRMED_AT, seq=3)
_LOGGED: Final = Logged(
    _ENDPOINT.id,
    _TOLD.id,
    _TOLD.type,
    "delivered",
    None,
    CONFIRMED_AT,
    (SendAttempt(1, CONFIRMED_AT, 84, _URL, 204, None, "Server: nginx", ""),),
)
_ROTATED: Final = replace(_ENDPOINT, old_until=CREATED_AT + timedelta(days=1))
_SHOWN: Final = webhooks.webhook(IDS, _ENDPOINT)

WEBHOOK_ID: Final = IDS.webhook(_ENDPOINT.id)
TOLD_ID: Final = IDS.event(_TOLD.id)
WEBHOOK: Final = _json(_SHOWN)
WEBHOOK_MADE: Final = _json(webhooks.webhook(IDS, _ENDPOINT, _SECRET))
WEBHOOK_ROTATED: Final = _json(webhooks.webhook(IDS, _ROTATED, _SECRET))
WEBHOOK_LIST: Final = _json(webhooks.WebhookList([_SHOWN], webhooks.WebhookListMetadata(1)))
DELIVERIES: Final = _json(
    webhooks.WebhookDeliveryPage([webhooks.delivery(IDS, _LOGGED, _TOLD, _ENDPOINT)], _WALK)
)
PING: Final = _json(webhooks.QueuedEvent(TOLD_ID))
RECOVERED: Final = _json(webhooks.QueuedEvents(12, None))
REPLAYED: Final = _json(webhooks.QueuedEvents(1))
NEW_WEBHOOK: Final = _json({"url": _URL, "eventTypes": _ENDPOINT.types, "description": _ENDPOINT.description})


# ── messages ──────────────────────────────────────────────────────────────────────────────────────────────


def _said(at: int, type_: str) -> Raw:
    """A message of this type, made by the code that makes every other."""
    if type_.startswith("order."):
        told = replace(_TOLD, id=_TOLD.id + at, type=type_, seq=1 if type_ == kinds.ORDER_CREATED else 2)
    else:
        company_id, state = (None, None) if type_ in kinds.FOR_ALL else (_ORDER.company_id, State.LIVE)
        told = Event(_TOLD.id + at, CONFIRMED_AT, company_id, state, type_, None, None, _STORED[type_])
    return Raw(written(told, IDS))


_STORED: Final = {
    kinds.WALLET_TOPPED_UP: '{"currency":"EUR","amount":500.00,"balance":750.00,"reference":"invoice 4711"}',
    kinds.WALLET_LOW_BALANCE: '{"currency":"EUR","availableAmount":99.50,"thresholdAmount":100.00}',
    kinds.PRODUCT_UPDATED: '{"slug":"brightbean-25-eur","active":true,"stocked":false}',
    kinds.KEY_ROTATED: '{"id":12,"replacedBy":13}',
    kinds.WEBHOOK_DISABLED: '{"webhook":3,"url":"https://shop.example.com/hooks/vouchers","reason":"gone"}',
    kinds.PING: '{"message":"Hello from voucherd."}',
}
"""What the log holds of events that are not about an order."""
MESSAGES: Final = {type_: _said(at, type_) for at, type_ in enumerate(sorted(kinds.FOR_COMPANIES))}


# ── keys ──────────────────────────────────────────────────────────────────────────────────────────────────

_TEXT: Final = "vk_live_Zt4Qn1h7Xc9Lw2Rk8Bv6Ys3Mf5Jd0PgAT00000"
_CALLER_ID: Final = 11
_KEY: Final = Key(
    id=12,
    company_id=_ORDER.company_id,
    state=State.LIVE,
    prefix=_TEXT[:14],
    description="the till in Utrecht",
    scopes=frozenset({Scope.ORDERS_READ, Scope.ORDERS_WRITE, Scope.CODES_READ}),
    allow_ips=(IPv4Network("192.0.2.0/24"),),
    rate_limit=RATE_LIMIT_DEFAULT,
    expires_at=CREATED_AT + timedelta(days=365),
    revoked_at=None,
    replaced_by=None,
    created_at=CREATED_AT,
    last_used_at=CONFIRMED_AT,
    spend_order_eur_minor=50_000,
    spend_day_eur_minor=None,
)
_SHOWN_KEY: Final = keys.api_key(IDS, _KEY, CONFIRMED_AT, _CALLER_ID)

KEY_ID: Final = IDS.key(_KEY.id)
KEY: Final = _json(_SHOWN_KEY)
KEY_PAGE: Final = _json(keys.ApiKeyPage([_SHOWN_KEY], _WALK))
KEY_MADE: Final = _json(
    keys.api_key(IDS, dataclasses.replace(_KEY, last_used_at=None), CREATED_AT, _CALLER_ID, _TEXT)
)
NEW_KEY: Final = Raw(
    b'{"description":"the till in Utrecht","scopes":["orders:read","orders:write","codes:read"],'
    b'"allowIps":["192.0.2.0/24"],"spendOrderEur":500.00}'
)


# ── the catalogue ─────────────────────────────────────────────────────────────────────────────────────────

_USD: Final = FxRate("USD", CREATED_AT.date(), 92_319_055, "", CREATED_AT)
_LEAFLET: Final = Leaflet(
    "Show the code at the till of any Brightbean coffee bar.",
    "Not exchangeable for cash.",
    "https://img.example.com/brightbean-25.png",
)


def _product(payment_currency: str | None = None) -> ShownProduct:
    """The sample product, as a Dutch company sees it."""
    product, rates = sample.PRODUCT, {BASE: RATE_ONE, _USD.currency: _USD.eur_e8}
    own, paid = (
        prices.tag(product, product.face_minor, payment_currency=currency, rates=rates, vat_bp=2100)
        for currency in (None, payment_currency)
    )
    return ShownProduct(product, _LEAFLET, True, True, CREATED_AT - timedelta(days=3), own, paid)


_CHANGE: Final = ChangedProduct("price", _product().updated_at, _product())
_BRAND: Final = catalogue.brand(
    BrandGroup(
        *(sample.PRODUCT.brand_slug, sample.PRODUCT.brand_name, 3),
        category=sample.PRODUCT.category,
        redeem_type=sample.PRODUCT.redeem_type,
    )
)
_CATEGORY: Final = catalogue.category(
    ProductGroup(sample.PRODUCT.category, category_name(sample.PRODUCT.category), 12)
)
_ONE: Final = catalogue.ListMetadata(1)

CHANGE: Final = 4_711
BRAND_SLUG: Final = _BRAND.slug
PRODUCT: Final = _json(catalogue.product(_product(), None))
PRODUCTS: Final = _json(catalogue.ProductPage([catalogue.product(_product("USD"), "USD")], *_ONE_PAGE))
CHANGES: Final = _json(
    catalogue.ProductChangePage(
        [catalogue.change(_CHANGE, None)], catalogue.FeedMetadata(number_cursor(IDS, CHANGE))
    )
)
BRAND: Final = _json(_BRAND)
BRANDS: Final = _json(catalogue.BrandPage([_BRAND], *_ONE_PAGE))
CATEGORIES: Final = _json(catalogue.CategoryList([_CATEGORY], _ONE))
RATES: Final = _json(
    catalogue.FxRateList([catalogue.fx_rate(_USD, BASE)], _ONE, catalogue.fx_pairs([_USD], BASE))
)


# ── the sandbox and the request log ───────────────────────────────────────────────────────────────────────

_AHEAD: Final = timedelta(hours=1)
_DAY: Final = timedelta(days=1)
PLAY_MONEY: Final = _json(accounts.account(Balance(3, 1, "EUR", State.SANDBOX, 1_050_000, 0)))
CLOCK: Final = _json(sandbox.clock(TestClock(_AHEAD, CREATED_AT + _AHEAD)))
ADVANCED: Final = _json(sandbox.advanced(Moved(TestClock(_DAY, CREATED_AT + _DAY), 3, 2, 1)))
REAL_TIME: Final = _json(sandbox.clock(TestClock(timedelta(), CREATED_AT)))
TRIGGERED: Final = _json(sandbox.TriggeredEvent(kinds.ORDER_FINISHED, sample.trx()))
_CALL: Final = Answered(
    1,
    State.LIVE,
    CONFIRMED_AT,
    "req_7f3b1c9e04a20000002a",
    7,
    "PATCH",
    f"/api/1.03/order/confirm/{sample.trx()}",
    402,
    12,
    "",
    "insufficient balance",
    412,
)
REQUEST_PAGE: Final = _json(request_log.LoggedRequestPage([request_log.logged(IDS, _CALL)], _WALK))
REQUEST: Final = _json(request_log.detail(IDS, _CALL, bodies=True))
