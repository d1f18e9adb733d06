"""The operations on all but orders: money, events, webhooks, keys, the catalogue."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from voucherd.api import (
    accounts,
    catalogue_requests,
    events,
    key_requests,
    query,
    webhook_requests,
)
from voucherd.api.errors import Op
from voucherd.api.operations.model import DescribedAnswer, Operation
from voucherd.api.operations.orders import SLUG
from voucherd.api.wire import catalogue, keys, shapes, webhooks
from voucherd.api.wire.events import Event, EventPage
from voucherd.events.feed import KEPT
from voucherd.events.listeners import HEARTBEAT_S
from voucherd.events.streams import STREAMS_OF_KEY_MAX
from voucherd.keys.grants import KEYS_MAX

_ACCOUNT: Final = replace(
    query.in_path("currency", "ISO 4217 code of the account, in upper or lower case.", "EUR"),
    schema=accounts.CURRENCY.schema,
)
_WEBHOOK_ID: Final = query.in_path("id", "The id of the endpoint.", "wh_3NFPBFCAJY4242E3S9NSJB028W")
_EVENT_ID: Final = query.in_path("id", "The id of the event.", "evt_62XX8RJAM7KN6YYWY5G4SBJZR4")
_TOLD_ID: Final = query.in_path(
    "id", "The id of the event: `webhook-id` of its deliveries.", "evt_033J10V76MA9JTDJ5AHVP77Y62"
)
_KEY_ID: Final = query.in_path("id", "The id of the key.", "key_1RSS3386B3HAXYN8K6K04TY0GY")

_WEBHOOK: Final = (DescribedAnswer(200, "The endpoint.", webhooks.Webhook),)
_KEY: Final = (DescribedAnswer(200, "The key.", keys.ApiKey),)


MONEY: Final[dict[Op, Operation]] = {
    Op.ACCOUNTS: Operation(
        "findAccounts",
        "Find accounts",
        "Your company's balances in the key's own state, one for each currency in which there ever was money.",
        (DescribedAnswer(200, "The balances, by currency.", list[shapes.Account]),),
        (accounts.CURRENCY,),
    ),
    Op.STATEMENT: Operation(
        "findAccountEntries",
        "Find account entries",
        "The statement of one account: every movement with the balance after it, newest first. The chain has no "
        "gap: `seq` counts by one, and each `balanceAfter` is the one before plus `amount`, each `heldAfter` the "
        "one before plus `holdAmount`. The last `balanceAfter` is the balance.\n\n"
        "Walk by `cursor`: it costs the same at any depth, and new movements do not shift it. A page of a rare "
        "`kind` may hold fewer movements than `limit`, or none: go on until `nextCursor` is null.\n\n"
        "With `Accept: text/csv` or `format=csv` the answer is all that the filters let through, as one file. A "
        "`reference` that a spreadsheet could take for a formula has an apostrophe before it there.",
        (DescribedAnswer(200, "A page of movements, or all of them as CSV.", shapes.AccountEntryPage),),
        (_ACCOUNT, *accounts.STATEMENT),
    ),
}
EVENTS: Final[dict[Op, Operation]] = {
    Op.EVENTS: Operation(
        "findEvents",
        "Find events",
        f"What happened to your orders, your balance and the catalogue, oldest first. Events are kept for {KEPT.days} "
        "days. Go on with `nextCursor`, also after the last page: nothing is missed and nothing comes twice. A page "
        "may hold fewer events than `limit`, or none, while `more` is true. The events of one order come in the order "
        "of their `seq`.",
        (DescribedAnswer(200, "A page of events.", EventPage),),
        events.PAGE,
    ),
    Op.EVENT: Operation(
        "findEvent",
        "Find event",
        "One event, exactly as it was told before.",
        (DescribedAnswer(200, "The event.", Event),),
        (_EVENT_ID,),
    ),
    Op.EVENT_STREAM: Operation(
        "streamEvents",
        "Stream events",
        "Events as they happen, as server-sent events: `data` is the same JSON as in Find event, `event` its type, and "
        "`id` the place from which to go on. Any client of server-sent events comes back by itself after a break and "
        f"misses nothing. After {HEARTBEAT_S:.0f} seconds without an event a comment shows that the line is alive.\n\n"
        "A stream counts once for the rate limit, and ends when its key is revoked. A client that does not read is cut "
        f"off. A key may have {STREAMS_OF_KEY_MAX} streams open in each process of the service; more are refused with "
        "`429`, `too many streams of this key are open`.",
        (DescribedAnswer(200, "A stream without an end."),),
        events.STREAM,
    ),
}
WEBHOOKS: Final[dict[Op, Operation]] = {
    Op.WEBHOOKS: Operation(
        "findWebhooks",
        "Find all webhooks",
        "The endpoints of your company in the key's own state, oldest first: 20 at most.",
        (DescribedAnswer(200, "The endpoints.", webhooks.WebhookList),),
    ),
    Op.ADD_WEBHOOK: Operation(
        "addWebhook",
        "Add webhook",
        "Makes an endpoint. From now on its events are sent there, signed as Standard Webhooks describes, with the "
        "secret in the answer, which is shown this once. A delivery counts as made when it is answered with 2xx "
        "within 15 seconds; otherwise it is tried again for three days.\n\n"
        "With `perOrder` and without `url` it is the endpoint for addresses that single orders name in "
        "`webhookUrl` of Create.",
        (DescribedAnswer(201, "The endpoint.", webhooks.Webhook),),
        (),
        webhook_requests.WebhookBody,
    ),
    Op.WEBHOOK: Operation(
        "findWebhook",
        "Find webhook",
        "One endpoint, without its secret.",
        _WEBHOOK,
        (_WEBHOOK_ID,),
    ),
    Op.CHANGE_WEBHOOK: Operation(
        "changeWebhook",
        "Change webhook",
        "Changes what is sent and leaves the rest. An endpoint that is enabled again goes on with what still waits; "
        "recover it for what happened meanwhile.",
        _WEBHOOK,
        (_WEBHOOK_ID,),
        webhook_requests.WebhookChanges,
    ),
    Op.REMOVE_WEBHOOK: Operation(
        "removeWebhook",
        "Remove webhook",
        "Removes an endpoint, what waits for it, and its log.",
        (DescribedAnswer(204, "It is gone."),),
        (_WEBHOOK_ID,),
    ),
    Op.ROTATE_WEBHOOK: Operation(
        "rotateWebhook",
        "Rotate webhook",
        "Gives the endpoint a new secret, which is shown this once. For the overlap of your choice deliveries carry "
        "a signature with each of both, so that you can change over without missing any. Without an overlap "
        "(0 seconds) the old secret ends at once.",
        (DescribedAnswer(200, "With its new secret.", webhooks.Webhook),),
        (_WEBHOOK_ID,),
        webhook_requests.RotateBody,
        body_required=False,
    ),
    Op.DELIVERIES: Operation(
        "findDeliveries",
        "Find deliveries",
        "What was sent to an endpoint in the last 30 days, newest events first: the message, each attempt with its "
        "answer, and when it is tried next.",
        (DescribedAnswer(200, "A page of deliveries.", webhooks.WebhookDeliveryPage),),
        (_WEBHOOK_ID, *webhook_requests.DELIVERIES),
    ),
    Op.TEST_WEBHOOK: Operation(
        "testWebhook",
        "Test webhook",
        "Sends a `ping` to one endpoint, whatever types it asked for. The log tells what came of it.",
        (DescribedAnswer(202, "It is on its way.", webhooks.QueuedEvent),),
        (_WEBHOOK_ID,),
    ),
    Op.RECOVER_WEBHOOK: Operation(
        "recoverWebhook",
        "Recover webhook",
        "Sends everything since a moment that the endpoint wants and did not get: what failed for good, and what "
        "happened while it was disabled. What was delivered is not sent again.",
        (DescribedAnswer(202, "It is on its way.", webhooks.QueuedEvents),),
        (_WEBHOOK_ID, webhook_requests.SINCE),
    ),
    Op.REPLAY_EVENT: Operation(
        "replayEvent",
        "Replay event",
        "Sends an event once more, with the same `webhook-id`: to one endpoint, or to all that are enabled and want "
        "its type.",
        (DescribedAnswer(202, "It is on its way.", webhooks.QueuedEvents),),
        (_TOLD_ID,),
        webhook_requests.ReplayBody,
        body_required=False,
    ),
}
KEYS: Final[dict[Op, Operation]] = {
    Op.KEYS: Operation(
        "findKeys",
        "Find all keys",
        "The keys of your company in the calling key's own state, newest first, those that can no longer be used "
        "included. Keys themselves are never shown again.",
        (DescribedAnswer(200, "A page of keys.", keys.ApiKeyPage),),
        key_requests.PAGE,
    ),
    Op.ADD_KEY: Operation(
        "addKey",
        "Add key",
        "Makes a key of your company in the calling key's own state. The key is in the answer, this once. What you do "
        "not send is as with the calling key, except that the new one may make no keys; and it can not be given more "
        "than the calling key has itself: scopes, networks, rate limit, limits of spending, expiry. What it spends "
        "counts for the limits of the calling key, too, and it ends with it. "
        f"A company has at most {KEYS_MAX} keys in each state that can be used.",
        (DescribedAnswer(201, "The key.", keys.ApiKey),),
        (),
        key_requests.KeyBody,
    ),
    Op.KEY: Operation("findKey", "Find key", "One key, without the key itself.", _KEY, (_KEY_ID,)),
    Op.CHANGE_KEY: Operation(
        "changeKey",
        "Change key",
        "Changes what is sent and leaves the rest; nothing can be set beyond what the calling key has itself. A key "
        "that may do more than the calling one, or that it was made with, can not be changed by it. Keys that were "
        "made with the changed one lose the scopes and the time that it loses. It holds everywhere within a second. "
        "A key that can no longer be used, or was replaced, stays as it is.",
        _KEY,
        (_KEY_ID,),
        key_requests.KeyBody,
    ),
    Op.REVOKE_KEY: Operation(
        "revokeKey",
        "Revoke key",
        "Ends a key's life, for good and everywhere within a second, and that of the keys that were made with it "
        "unless you keep them. The calling key may end its own, but none that may do more than it, or that it was "
        "made with.",
        (DescribedAnswer(204, "It is revoked."),),
        (_KEY_ID, *key_requests.REVOCATION),
    ),
    Op.ROTATE_KEY: Operation(
        "rotateKey",
        "Rotate key",
        "Makes a key like this one, which is in the answer, this once, and lets the old one expire after the overlap "
        "of your choice. Both can be used until then, and share the limits of a day. Keys that were made with the old "
        "one belong to the new one. The event `key.rotated` tells it. A key that may do more than the calling one, or "
        "that it was made with, can not be rotated by it.",
        (DescribedAnswer(201, "The new key.", keys.ApiKey),),
        (_KEY_ID,),
        key_requests.KeyRotation,
        body_required=False,
    ),
}
CATALOGUE: Final[dict[Op, Operation]] = {
    Op.PRODUCTS: Operation(
        "findProducts",
        "Find all products",
        "The products that are for sale, with the prices and the VAT of your company, a page at a time. Use `page` for "
        "a list that people leaf through, and `cursor` to walk through all: its cost is the same at any depth; the "
        "totals are left out then. A cursor belongs to its `sortBy` and `sortOrder`.",
        (DescribedAnswer(200, "A page of products.", catalogue.ProductPage),),
        catalogue_requests.FIND_ALL,
    ),
    Op.PRODUCT: Operation(
        "findProduct",
        "Find product",
        "One product that is for sale.",
        (DescribedAnswer(200, "The product.", catalogue.CatalogueProduct),),
        (query.in_path("slug", "The product's slug.", SLUG), *catalogue_requests.FIND),
    ),
    Op.PRODUCT_CHANGES: Operation(
        "findProductChanges",
        "Find product changes",
        "Every change of a product that is for sale, in order and without a gap, each with the product as it stood "
        "after it: `activation` (it came up for sale, or ceased to be: `isActive`), `price`, `content` and, with a "
        "live key, `stock`. Keep `nextCursor` and pass it as `since` of the next call; while nothing is new you get "
        "an empty page and the same cursor.\n\n"
        "Without `since` the feed begins with the first product ever, so that a copy of the catalogue can be made "
        "from it alone. `since=now` gives only the cursor of the present: ask for it first, then walk through Find "
        "all products, then follow the feed. Exchange rates are no changes of products; see Find exchange rates.",
        (DescribedAnswer(200, "A page of changes.", catalogue.ProductChangePage),),
        catalogue_requests.CHANGES,
    ),
    Op.BRANDS: Operation(
        "findBrands",
        "Find all brands",
        "The brands that have something for sale, by slug, a page at a time.",
        (DescribedAnswer(200, "A page of brands.", catalogue.BrandPage),),
        catalogue_requests.BRANDS,
    ),
    Op.BRAND: Operation(
        "findBrand",
        "Find brand",
        "One brand that has something for sale.",
        (DescribedAnswer(200, "The brand.", catalogue.Brand),),
        (query.in_path("slug", "The brand's slug.", "brightbean"),),
    ),
    Op.CATEGORIES: Operation(
        "findCategories",
        "Find all categories",
        "The categories that have something for sale, by slug, in one piece.",
        (DescribedAnswer(200, "All categories.", catalogue.CategoryList),),
    ),
    Op.FX_RATES: Operation(
        "findFxRates",
        "Find exchange rates",
        "The exchange rates that Create works with today: what one unit of each currency is worth in EUR.",
        (DescribedAnswer(200, "All rates.", catalogue.FxRateList),),
    ),
}
