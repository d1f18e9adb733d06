"""The schemas of the document, made from the structs that the service reads and writes and the words on them.

They are written for generators of clients, too (OP-149): a union where a shape has several forms, and no defaults,
which generators take for fields that must be sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, get_args, get_origin

import msgspec

from voucherd.api.errors import Problem
from voucherd.api.operations import OPERATIONS
from voucherd.api.wire import events
from voucherd.api.wire.shapes import UNTIL, ProductDescription

Schema = dict[str, Any]

REF: Final = "#/components/schemas/"


def schema_of(shape: Any) -> Schema:
    """The shape, or a list of it, as a part of the document that refers to its schema."""
    if get_origin(shape) is list:
        return {"type": "array", "items": schema_of(*get_args(shape))}
    return {"$ref": REF + shape.__name__}


def schemas() -> dict[str, Schema]:
    """Every schema by its name."""
    shapes: list[Any] = [ProductDescription, Problem, *(data for *_, data in events.DATA.values())]
    for operation in OPERATIONS.values():
        shapes += [operation.body] if operation.body else []
        for answer in operation.answers:
            shapes += answer.shape if isinstance(answer.shape, tuple) else [answer.shape]
    _, made = msgspec.json.schema_components(shapes, ref_template=REF + "{name}")
    for schema in made.values():
        schema["description"] = _without_citations(schema["description"])
        schema["properties"] = {name: _plain(name, field) for name, field in schema["properties"].items()}
    made |= _extended_lines(made) | _short_lines(made) | _events(made)
    return dict(sorted(made.items()))


def _without_citations(words: str) -> str:
    """The words without our own ids of decisions, which mean nothing to a client."""
    return re.sub(r"\s*\(OP-[0-9]+\)", "", words)


def _plain(name: str, schema: Schema) -> Schema:
    """A field without its default, and with null as one more type, which readers find easier to read."""
    plain = {rule: value for rule, value in schema.items() if rule not in ("anyOf", "default")}
    options = schema.get("anyOf", ())
    if not all(option.get("type", "array") != "array" for option in options):
        return plain | {"anyOf": options}
    for option in options:
        plain |= option
    if options:
        plain["type"] = [option["type"] for option in options]
    if options and "enum" in plain:
        # Generators make one class of a list of words, and several of a list that null is in.
        words = {"title": name[0].upper() + name[1:], "type": "string", "enum": plain["enum"]}
        return {"description": plain["description"], "anyOf": [words, {"type": "null"}]}
    return plain


# ── shapes of several forms ───────────────────────────────────────────────────────────────────────────────

_WITHHELD: Final = "Null if the key may not read codes."
"""When a field of a finished line is null that is null until then (OP-59)."""
_UNFINISHED: Final = ("pending", "cancelled")


def _one_of(schema: Schema, names: Iterable[str]) -> Schema:
    return {
        "title": schema["title"],
        "description": schema["description"],
        "oneOf": [{"$ref": REF + name} for name in names],
    }


def _form(title: str, words: str, properties: Schema, **rules: Any) -> Schema:
    return {"title": title, "description": words, "type": "object", "properties": properties, **rules}


def _extended_lines(made: dict[str, Schema]) -> dict[str, Schema]:
    """A finished line, one that is not, and one that has its tag and status alone (OP-05)."""
    line = made["ExtendedLine"]
    fields, required = line["properties"], line["required"]
    finished = {
        name: field | {"description": field["description"].replace(UNTIL, _WITHHELD)}
        for name, field in fields.items()
    }
    unfinished = fields | {"status": fields["status"] | {"enum": _UNFINISHED}}
    return {
        "FinishedLine": _form(
            "FinishedLine",
            "A finished line of version 1.03: it has its code.",
            finished | {"status": _finished(fields)},
            required=required,
        ),
        "UnfinishedLine": _form(
            "UnfinishedLine",
            "A line of version 1.03 that is pending or cancelled: it has no code.",
            unfinished,
            required=required,
        ),
        "BareLine": _bare(
            "BareLine",
            "A line of version 1.03 that is pending or cancelled, as Confirm and Resolve show it.",
            unfinished,
        ),
        "ExtendedLine": _one_of(line, ("FinishedLine", "UnfinishedLine", "BareLine")),
    }


def _short_lines(made: dict[str, Schema]) -> dict[str, Schema]:
    """A line with its code, and one without it, which has its tag and status alone."""
    line = made["ShortLine"]
    fields = line["properties"]
    return {
        "ShortLineWithCode": _form(
            "ShortLineWithCode",
            "A finished line of versions 1.00 and Next, with its code.",
            fields | {"status": _finished(fields)},
            required=["tag", "status", "voucherCode", "voucherSerial"],
        ),
        "ShortLineWithoutCode": _bare(
            "ShortLineWithoutCode",
            "A line of versions 1.00 and Next without its code: it is not finished, or the key may not read codes.",
            fields,
        ),
        "ShortLine": _one_of(line, ("ShortLineWithCode", "ShortLineWithoutCode")),
    }


def _finished(fields: Schema) -> Schema:
    return {"description": fields["status"]["description"], "type": "string", "const": "finished"}


def _bare(title: str, words: str, fields: Schema) -> Schema:
    bare = ["tag", "status"]
    # Nothing beside them, or a whole line would be a bare one as well.
    return _form(
        title, words, {name: fields[name] for name in bare}, required=bare, additionalProperties=False
    )


def _events(made: dict[str, Schema]) -> dict[str, Schema]:
    """An event of each type with the data of that type."""
    event = made["Event"]
    forms = {
        name: _form(
            name,
            words,
            event["properties"]
            | {
                "type": {"description": "What happened.", "type": "string", "enum": types},
                "data": {
                    "description": "What it happened to. Never a code.",
                    "$ref": REF + data.__name__,
                },
            },
            required=event["required"],
        )
        for name, (words, types, data) in events.DATA.items()
    }
    return forms | {"Event": _one_of(event, forms)}
