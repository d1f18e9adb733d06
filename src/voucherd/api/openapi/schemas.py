"""The schemas of the document: made from the types that the service reads and writes, with the words of `fields`."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from voucherd.api.key_requests import KeyBody, KeyRotation
from voucherd.api.openapi.fields import FIELDS
from voucherd.api.redemption import RedemptionBody
from voucherd.api.requests import CreateBody, CreateItem
from voucherd.api.webhook_requests import ReplayBody, RotateBody, WebhookBody, WebhookChanges
from voucherd.api.wire import catalogue, keys, webhooks
from voucherd.api.wire.events import EventPage
from voucherd.api.wire.numbers import Number
from voucherd.api.wire.quote import QuotedOrder
from voucherd.api.wire.shapes import (
    Account,
    AccountEntryPage,
    ExtendedOrderPage,
    LinePage,
    ProductDescription,
    Redemption,
    ShortOrderPage,
)

Schema = dict[str, Any]

REF: Final = "#/components/schemas/"

PROBLEM: Final[Schema] = {
    "title": "Problem",
    "description": "An error in the form of RFC 9457, for clients that send `Accept: application/problem+json`.",
    "type": "object",
    "properties": {
        "type": {"type": "string", "description": "Always `about:blank`.", "const": "about:blank"},
        "title": {"type": "string", "description": "The message, as in the plain form."},
        "status": {"type": "integer", "description": "The HTTP status.", "minimum": 400, "maximum": 599},
        "detail": {"type": "string", "description": "The message again."},
        "code": {"type": "string", "description": "A stable name for the kind of error; decide by this."},
        "retryable": {"type": "boolean", "description": "Whether the same call may succeed later."},
        "requestId": {"type": "string", "description": "The same as the header `X-Request-Id`."},
        "field": {"type": "string", "description": "The field that breaks a rule. Only with `bad_input`."},
    },
    "required": ["type", "title", "status", "detail", "code", "retryable", "requestId"],
}


def schemas() -> dict[str, Schema]:
    """Every schema by its name."""
    item = _documentable(CreateItem, {})
    body = _documentable(CreateBody, {list[CreateItem]: list[item]})  # type: ignore[valid-type]
    _, made = msgspec.json.schema_components(
        [
            body,
            ExtendedOrderPage,
            ShortOrderPage,
            QuotedOrder,
            ProductDescription,
            Account,
            AccountEntryPage,
            LinePage,
            *catalogue.DOCUMENTED,
            *webhooks.DOCUMENTED,
            WebhookBody,
            WebhookChanges,
            RotateBody,
            ReplayBody,
            EventPage,
            *keys.DOCUMENTED,
            _documentable(KeyBody, {}),
            KeyRotation,
            RedemptionBody,
            Redemption,
        ],
        ref_template=REF + "{name}",
    )
    for name, schema in made.items():
        schema["description"] = _without_citations(schema["description"])
        for field, (words, rules) in FIELDS[name].items():
            schema["properties"][field] = _described(schema["properties"][field], words, rules)
    _tie_extended_fields(made["ExtendedLine"])
    return dict(sorted((made | {"Problem": PROBLEM}).items()))


def _documentable(struct: type[Struct], types: dict[Any, Any]) -> type[Struct]:
    """The struct with its raw numbers as numbers, because a default of no bytes has no form in a schema."""
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for field in msgspec.structs.fields(struct):
        kind = types.get(field.type, field.type)
        if kind is Raw:
            fields.append((field.encode_name, Number | UnsetType | None, UNSET))
        elif field.required:
            fields.append((field.encode_name, kind))
        else:
            fields.append((field.encode_name, kind, field.default))
    return msgspec.defstruct(struct.__name__, fields, namespace={"__doc__": struct.__doc__})


def _without_citations(words: str) -> str:
    """The words without our own ids of decisions, which mean nothing to a client."""
    return re.sub(r"\s*\(OP-[0-9]+\)", "", words)


def _described(schema: Schema, words: str, rules: Schema) -> Schema:
    """The field's schema with its meaning and rules; null is one more type, which readers find easier to read."""
    options = schema.pop("anyOf", None)
    if options and all("type" in option for option in options) and "array" not in str(options):
        schema |= {"type": [option["type"] for option in options]}
    elif options:
        schema["anyOf"] = options
    if "enum" in rules and "null" in schema.get("type", ()):
        rules = rules | {"enum": [*rules["enum"], None]}
    return {**schema, **rules, "description": words}


def _tie_extended_fields(schema: Schema) -> None:
    """Say that the fields of an extended line come together: all of them, or only tag and status (OP-05)."""
    others = [name for name in schema["properties"] if name not in schema["required"]]
    schema["dependentRequired"] = {"id": [name for name in others if name != "id"]}
