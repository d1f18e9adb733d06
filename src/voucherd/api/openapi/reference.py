"""The document as the docs page shows it: operations in one section for all versions, objects as rows of fields."""

from __future__ import annotations

import html
import re
from typing import Any, Final

import msgspec
from markupsafe import Markup, escape
from msgspec import Raw, Struct

from voucherd.api.errors import Op
from voucherd.api.openapi.paths import MAIN_VERSION
from voucherd.api.openapi.problems import OFF_THE_MAP
from voucherd.api.openapi.schemas import REF
from voucherd.api.routes import ROUTES, Route

Part = dict[str, Any]

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

_FILES: Final = {"text/csv": "CSV", "text/event-stream": "server-sent events"}
_PLACES: Final = {
    schema: (anchor, title) for anchor, title, names in (*REQUEST_OBJECTS, *OBJECTS) for schema in names
}


class Row(Struct, frozen=True):
    """One field or parameter."""

    name: str
    kind: Markup
    words: Markup
    rules: tuple[str, ...] = ()
    where: str = ""
    required: bool = True


class Object(Struct, frozen=True):
    """One kind of thing that is sent."""

    anchor: str
    title: str
    words: str
    rows: tuple[Row, ...]


class Sample(Struct, frozen=True):
    """An example of a body."""

    title: str
    body: Markup


class DocumentedAnswer(Struct, frozen=True):
    """One good answer of an operation, in all versions."""

    status: str
    words: Markup
    kind: Markup


class Failure(Struct, frozen=True):
    """One way in which an operation is refused."""

    status: str
    text: str
    code: str
    when: Markup


class ReferenceOperation(Struct, frozen=True):
    """One operation in all its versions."""

    anchor: str
    title: str
    method: str
    paths: tuple[str, ...]
    words: Markup
    parameters: tuple[Row, ...]
    request: tuple[Object, ...]
    answers: tuple[DocumentedAnswer, ...]
    failures: tuple[Failure, ...]
    samples: tuple[Sample, ...]
    curl: str


def operations(document: Part) -> list[ReferenceOperation]:
    """Every operation, in the order of the routes."""
    return [_operation(document, route) for route in ROUTES]


def objects(document: Part, kinds: tuple[tuple[str, str, tuple[str, ...]], ...] = OBJECTS) -> list[Object]:
    """These objects, in reading order."""
    schemas = document["components"]["schemas"]
    return [
        Object(anchor, title, schemas[names[0]]["description"], tuple(_fields(schemas[names[0]])))
        for anchor, title, names in kinds
    ]


def any_failures(document: Part) -> list[Failure]:
    """What any call can meet, and what a call to no operation meets."""
    responses = document["components"]["responses"]
    met = [row for status, part in responses.items() for row in _failures(status, part)]
    met += [Failure(str(p.status), p.text, p.code, prose(p.when, inline=True)) for p in OFF_THE_MAP]
    return sorted(met, key=lambda failure: failure.status)


def _operation(document: Part, route: Route) -> ReferenceOperation:
    parts = {
        version: document["paths"][f"/api/{version}/{route.path}"][route.method.lower()]
        for version in sorted(route.versions, key=lambda version: version != MAIN_VERSION)
    }
    version, part = next(iter(parts.items()))
    return ReferenceOperation(
        anchor=re.sub(r"(?<=[a-z])(?=[A-Z])", "-", part["operationId"]).lower(),
        title=part["summary"],
        method=route.method,
        paths=tuple(f"/api/{version}/{route.path}" for version in sorted(route.versions)),
        words=prose(part["description"]),
        parameters=tuple(_parameter(one) for one in part.get("parameters", ())),
        # Quote takes the same body: shown once, beside Create.
        request=tuple(objects(document, REQUEST_OBJECTS) if route.op is Op.CREATE else ()),
        answers=tuple(_answers(parts)),
        failures=tuple(
            row
            for status, one in part["responses"].items()
            if "$ref" not in one
            for row in _failures(status, one)
        ),
        samples=tuple(
            sample
            for version, one in _distinct(parts).items()
            for answer in one["responses"].values()
            for sample in _samples(version, answer.get("content", {}))
        ),
        curl=_curl(route, version, part),
    )


def _distinct(parts: dict[str, Part]) -> dict[str, Part]:
    """One version for each shape, under the names of all versions that have it."""
    by_shape: dict[str, list[str]] = {}
    for version, part in parts.items():
        content = next(iter(part["responses"].values())).get("content", {})
        by_shape.setdefault(str([one["schema"] for one in content.values()]), []).append(version)
    return {" and ".join(versions): parts[versions[0]] for versions in by_shape.values()}


def _answers(parts: dict[str, Part]) -> list[DocumentedAnswer]:
    answers = []
    for status, answer in next(iter(parts.values()))["responses"].items():
        if int(status) >= 300:
            continue
        kinds = [
            escape(_FILES[media]) if media in _FILES else _kind(content["schema"])
            for media, content in answer.get("content", {}).items()
        ]
        kind = Markup(" or ").join(kinds) if kinds else Markup("no body")
        answers.append(DocumentedAnswer(status, prose(answer["description"], inline=True), kind))
    return answers


def _failures(status: str, part: Part) -> list[Failure]:
    if "text/plain" not in part.get("content", {}):
        return []
    examples = part["content"]["text/plain"]["examples"]
    return [
        Failure(status, one["value"], code, prose(one["summary"], inline=True))
        for code, one in examples.items()
    ]


def _samples(version: str, contents: Part) -> list[Sample]:
    """The examples of the good answers; those of errors are in their table."""
    return [
        Sample(f"{version}: {one['summary']}", show(one["value"]))
        for media, show in (("application/json", pretty), *((media, escape) for media in _FILES))
        for one in contents.get(media, {}).get("examples", {}).values()
    ]


def _curl(route: Route, version: str, part: Part) -> str:
    """The call as a command; the address and the key stand in variables, as the guide sets them."""
    path = f"/api/{version}/{route.path}"
    for parameter in part.get("parameters", ()):
        if parameter["in"] == "path":
            path = path.replace("{" + parameter["name"] + "}", parameter["example"])
    method = "" if route.method == "GET" else f" -X {route.method}"
    lines = [f'curl{method} "$URL{path}"', '  -H "Authorization: Bearer $KEY"']
    if "requestBody" in part:
        (example,) = part["requestBody"]["content"]["application/json"]["examples"].values()
        lines += ["  -H 'Content-Type: application/json'", f"  -d '{_indented(example['value'])}'"]
    return " \\\n".join(lines)


def _parameter(part: Part) -> Row:
    schema = part["schema"]
    return Row(
        part["name"],
        _kind(schema),
        # What follows the first paragraph is in the guide.
        prose(part["description"].partition("\n\n")[0], inline=True),
        _rules(schema),
        part["in"],
        part.get("required", False),
    )


def _fields(schema: Part) -> list[Row]:
    required = schema.get("required", ())
    return [
        Row(
            name,
            _kind(field),
            prose(field.get("description", ""), inline=True),
            _rules(field),
            required=name in required,
        )
        for name, field in schema["properties"].items()
    ]


def _kind(schema: Part) -> Markup:
    """The type of a value in words, with links to objects."""
    if "$ref" in schema:
        anchor, title = _PLACES[schema["$ref"].removeprefix(REF)]
        return Markup('<a href="#{}">{}</a>').format(anchor, title)
    if "anyOf" in schema:
        return Markup(" or ").join(_kind(option) for option in schema["anyOf"])
    if schema["type"] == "array":
        return Markup("array of {}").format(_kind(schema["items"]))
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return Markup(" or ").join(
        escape(schema.get("format", kind) if kind == "string" else kind) for kind in kinds
    )


def _rules(schema: Part) -> tuple[str, ...]:
    """The limits of a value in words."""
    rules = []
    words = schema.get("enum") or schema.get("items", {}).get("enum")
    if words:
        rules.append("one of " + ", ".join(f"{word}" for word in words if word is not None))
    for least, most, unit in (
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " elements"),
    ):
        if least in schema and most in schema:
            rules.append(f"{schema[least]:,} to {schema[most]:,}{unit}")
        elif most in schema:
            rules.append(f"at most {schema[most]:,}{unit}")
    if schema.get("default") is not None:
        rules.append(f"default {schema['default']}")
    return tuple(rules)


def prose(text: str, *, inline: bool = False) -> Markup:
    """Our descriptions as HTML: paragraphs, lists and code are all they use."""
    escaped = html.escape(text, quote=False)
    marked = Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped))  # noqa: S704 - Escaped above.
    if inline:
        return marked
    blocks = []
    for block in marked.split("\n\n"):
        if block.startswith("- "):
            entries = Markup("").join(Markup("<li>{}</li>").format(line[2:]) for line in block.split("\n"))
            blocks.append(Markup("<ul>{}</ul>").format(entries))
        else:
            blocks.append(Markup("<p>{}</p>").format(block))
    return Markup("").join(blocks)


def pretty(body: Raw) -> Markup:
    """JSON, indented, digits untouched, with its keys marked."""
    # Quotes need no escaping between tags, and half of JSON is quotes.
    escaped = html.escape(_indented(body), quote=False)
    return Markup(re.sub(r'(?m)^( *)("\w+"):', r"\1<b>\2</b>:", escaped))  # noqa: S704 - Escaped above.


def _indented(body: Raw) -> str:
    return msgspec.json.format(bytes(body), indent=2).decode()
