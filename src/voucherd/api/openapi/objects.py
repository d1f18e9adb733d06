"""The objects of the docs: which schemas they show, in which order, and where."""

from __future__ import annotations

import re
from typing import Final

from voucherd.api.wire.events import DATA

OBJECTS: Final = (
    ("create-body", "Create body", ("CreateBody",)),
    ("create-item", "Create item", ("CreateItem",)),
    ("order", "Order", ("ExtendedOrder", "ShortOrder")),
    ("item", "Item", ("ExtendedItem", "ShortItem")),
    ("quoted-order", "Quote", ("QuotedOrder",)),
    ("quoted-item", "Item of a quote", ("QuotedItem",)),
    ("product", "Product", ("Product",)),
    ("short-line", "Order line, short", ("ShortLine", "ShortLineWithCode", "ShortLineWithoutCode")),
    (
        "extended-line",
        "Order line, extended",
        ("ExtendedLine", "UnfinishedLine", "FinishedLine", "BareLine"),
    ),
    ("product-description", "Product description", ("ProductDescription",)),
    ("offer", "Offer", ("Offer",)),
    ("page", "Page of orders", ("ExtendedOrderPage", "ShortOrderPage")),
    ("page-metadata", "Page metadata", ("PageMetadata",)),
    ("pagination", "Pagination", ("Pagination",)),
    ("line-page", "Page of lines", ("LinePage",)),
    ("account", "Account", ("Account",)),
    ("account-entry", "Account entry", ("AccountEntry",)),
    ("account-entry-page", "Page of account entries", ("AccountEntryPage",)),
    ("walk-metadata", "Walk metadata", ("WalkMetadata",)),
    ("catalogue-product", "Product for sale", ("CatalogueProduct",)),
    ("face-value-range", "Range of face values", ("FaceValueRange",)),
    ("product-page", "Page of products", ("ProductPage",)),
    ("product-change", "Change of a product", ("ProductChange",)),
    ("product-change-page", "Page of changes", ("ProductChangePage",)),
    ("feed-metadata", "Feed metadata", ("FeedMetadata",)),
    ("brand", "Brand", ("Brand",)),
    ("brand-page", "Page of brands", ("BrandPage",)),
    ("category", "Category", ("Category",)),
    ("category-list", "List of categories", ("CategoryList",)),
    ("webhook", "Webhook", ("Webhook",)),
    ("webhook-list", "List of webhooks", ("WebhookList",)),
    ("webhook-list-metadata", "Metadata of webhooks", ("WebhookListMetadata",)),
    ("webhook-delivery", "Delivery", ("WebhookDelivery",)),
    ("webhook-attempt", "Attempt", ("WebhookAttempt",)),
    ("webhook-delivery-page", "Page of deliveries", ("WebhookDeliveryPage",)),
    ("queued-event", "Queued event", ("QueuedEvent",)),
    ("queued-events", "Queued events", ("QueuedEvents",)),
    ("webhook-body", "Webhook body", ("WebhookBody",)),
    ("webhook-changes", "Webhook changes", ("WebhookChanges",)),
    ("rotate-body", "Rotate body", ("RotateBody",)),
    ("replay-body", "Replay body", ("ReplayBody",)),
    ("api-key", "API key", ("ApiKey",)),
    ("api-key-page", "Page of keys", ("ApiKeyPage",)),
    ("key-body", "Key body", ("KeyBody",)),
    ("key-rotation", "Key rotation", ("KeyRotation",)),
    ("fx-rate", "Exchange rate", ("FxRate",)),
    ("fx-pair", "Exchange rate in other names", ("FxPair",)),
    ("fx-rate-list", "List of exchange rates", ("FxRateList",)),
    ("list-metadata", "List metadata", ("ListMetadata",)),
    ("event", "Event", ("Event", *DATA)),
    ("order-event-data", "Data of an order's event", ("OrderEventData",)),
    ("top-up-event-data", "Data of a top-up", ("TopUpEventData",)),
    ("low-balance-event-data", "Data of a low balance", ("LowBalanceEventData",)),
    ("product-event-data", "Data of a product's change", ("ProductEventData",)),
    ("key-rotated-event-data", "Data of a key's rotation", ("KeyRotatedEventData",)),
    ("webhook-disabled-event-data", "Data of a disabled webhook", ("WebhookDisabledEventData",)),
    ("ping-event-data", "Data of a ping", ("PingEventData",)),
    ("event-page", "Page of events", ("EventPage",)),
    ("event-metadata", "Event metadata", ("EventMetadata",)),
    ("top-up-body", "Top-up body", ("TopUpBody",)),
    ("sandbox-clock", "Sandbox clock", ("SandboxClock",)),
    ("advance-body", "Advance body", ("AdvanceBody",)),
    ("advanced-clock", "Clock after a step", ("AdvancedClock",)),
    ("trigger-body", "Trigger body", ("TriggerBody",)),
    ("triggered-event", "Triggered event", ("TriggeredEvent",)),
    ("logged-request", "Logged request", ("LoggedRequest",)),
    ("logged-request-detail", "Logged request with bodies", ("LoggedRequestDetail",)),
    ("logged-request-page", "Page of logged requests", ("LoggedRequestPage",)),
    ("redemption", "Redemption", ("Redemption",)),
    ("redemption-body", "Redemption body", ("RedemptionBody",)),
    ("problem", "Problem", ("Problem",)),
)
"""The schemas, in the order in which they are best read; two that differ only in what they nest are one object."""

PLACES: Final = {schema: (anchor, title) for anchor, title, names in OBJECTS for schema in names}
WORD_ENDS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def object_place(schema: str) -> tuple[str, str]:
    """The last part of the address of an object's page, and its title."""
    spaced = WORD_ENDS.sub(" ", schema)
    return PLACES.get(schema) or (spaced.replace(" ", "-").lower(), spaced.capitalize())
