"""The objects of the docs page: each with its anchor, its title, and the schemas that it shows."""

from __future__ import annotations

from typing import Final

REQUEST_OBJECTS: Final = (
    ("create-body", "Create body", ("CreateBody",)),
    ("create-item", "Create item", ("CreateItem",)),
)
"""What Create takes; shown beside it."""

OBJECTS: Final = (
    ("order", "Order", ("ExtendedOrder", "ShortOrder")),
    ("item", "Item", ("ExtendedItem", "ShortItem")),
    ("quoted-order", "Quote", ("QuotedOrder",)),
    ("quoted-item", "Item of a quote", ("QuotedItem",)),
    ("product", "Product", ("Product",)),
    ("short-line", "Order line, short", ("ShortLine",)),
    ("extended-line", "Order line, extended", ("ExtendedLine",)),
    ("product-description", "Product description", ("ProductDescription",)),
    ("offer", "Offer", ("Offer",)),
    ("page", "Page of orders", ("ExtendedOrderPage", "ShortOrderPage")),
    ("page-metadata", "Page metadata", ("PageMetadata",)),
    ("line-page", "Page of lines", ("LinePage",)),
    ("account", "Account", ("Account",)),
    ("account-entry", "Account entry", ("AccountEntry",)),
    ("account-entry-page", "Page of account entries", ("AccountEntryPage",)),
    ("walk-metadata", "Walk metadata", ("WalkMetadata",)),
    ("catalogue-product", "Product for sale", ("CatalogueProduct",)),
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
    ("fx-rate-list", "List of exchange rates", ("FxRateList",)),
    ("list-metadata", "List metadata", ("ListMetadata",)),
    ("event", "Event", ("Event",)),
    ("event-page", "Page of events", ("EventPage",)),
    ("event-metadata", "Event metadata", ("EventMetadata",)),
    ("redemption", "Redemption", ("Redemption",)),
    ("redemption-body", "Redemption body", ("RedemptionBody",)),
    ("problem", "Problem", ("Problem",)),
)
"""The schemas, in the order in which they are best read; two that differ only in what they nest are one object."""
