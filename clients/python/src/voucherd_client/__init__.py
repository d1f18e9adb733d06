"""The client of voucherd, the order service for prepaid codes."""

from voucherd_client import errors
from voucherd_client.client import AsyncClient, Client
from voucherd_client.engine import VERSION
from voucherd_client.errors import (
    ApiError,
    NoAnswer,
    NotGenuine,
    StillPending,
    UnreadableAnswer,
    VoucherdError,
)
from voucherd_client.shapes.accounts import Account, AccountEntry
from voucherd_client.shapes.catalogue import Brand, Category, FxRate, Product, ProductChange
from voucherd_client.shapes.events import Event, Webhook, WebhookDelivery
from voucherd_client.shapes.keys import ApiKey
from voucherd_client.shapes.orders import CartItem, Item, Line, Order, Quote
from voucherd_client.shapes.pages import Page
from voucherd_client.shapes.words import LineStatus, OrderStatus, State
from voucherd_client.signatures import verify_signature, verify_webhook
from voucherd_client.steps import Retries

__version__ = VERSION

__all__ = [
    "Account",
    "AccountEntry",
    "ApiError",
    "ApiKey",
    "AsyncClient",
    "Brand",
    "CartItem",
    "Category",
    "Client",
    "Event",
    "FxRate",
    "Item",
    "Line",
    "LineStatus",
    "NoAnswer",
    "NotGenuine",
    "Order",
    "OrderStatus",
    "Page",
    "Product",
    "ProductChange",
    "Quote",
    "Retries",
    "State",
    "StillPending",
    "UnreadableAnswer",
    "VoucherdError",
    "Webhook",
    "WebhookDelivery",
    "__version__",
    "errors",
    "verify_signature",
    "verify_webhook",
]
