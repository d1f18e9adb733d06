"""The schemas of the document, made from the structs that the service reads and writes and the words on them."""

from __future__ import annotations

import re
from typing import Any, Final, get_args, get_origin

import msgspec

from voucherd.api.errors import Problem
from voucherd.api.operations import OPERATIONS
from voucherd.api.wire.shapes import ProductDescription

Schema = dict[str, Any]

REF: Final = "#/components/schemas/"


def schema_of(shape: Any) -> Schema:
    """The shape, or a list of it, as a part of the document that refers to its schema."""
    if get_origin(shape) is list:
        return {"type": "array", "items": schema_of(*get_args(shape))}
    return {"$ref": REF + shape.__name__}


def schemas() -> dict[str, Schema]:
    """Every schema by its name."""
    shapes: list[Any] = [ProductDescription, Problem]
    for operation in OPERATIONS.values():
        shapes += [operation.body] if operation.body else []
        for answer in operation.answers:
            shapes += answer.shape if isinstance(answer.shape, tuple) else [answer.shape]
    _, made = msgspec.json.schema_components(shapes, ref_template=REF + "{name}")
    for schema in made.values():
        schema["description"] = _without_citations(schema["description"])
        schema["properties"] = {name: _plain(field) for name, field in schema["properties"].items()}
    _tie_extended_fields(made["ExtendedLine"])
    return dict(sorted(made.items()))


def _without_citations(words: str) -> str:
    """The words without our own ids of decisions, which mean nothing to a client."""
    return re.sub(r"\s*\(OP-[0-9]+\)", "", words)


def _plain(schema: Schema) -> Schema:
    """A field that may be null, with null as one more type, which readers find easier to read."""
    options = schema.get("anyOf", ())
    if not options or not all(option.get("type", "array") != "array" for option in options):
        return schema
    plain = {name: rule for name, rule in schema.items() if name != "anyOf"}
    for option in options:
        plain |= option
    plain["type"] = [option["type"] for option in options]
    if "enum" in plain:
        plain["enum"] = [*plain["enum"], None]
    return plain


def _tie_extended_fields(schema: Schema) -> None:
    """Say that a line is whole, or has its tag and status alone (OP-05)."""
    bare = ["tag", "status"]
    schema["dependentRequired"] = {"id": [name for name in schema["required"] if name not in (*bare, "id")]}
    schema["required"] = bare
