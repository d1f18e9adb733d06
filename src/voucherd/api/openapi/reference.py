"""The document as the docs show it: an operation in all its versions, and objects as rows of fields."""

from __future__ import annotations

from typing import Any, Final

from markupsafe import Markup, escape
from msgspec import Struct

from voucherd.api.openapi.markup import pretty, prose
from voucherd.api.openapi.objects import OBJECTS, PLACES, WORD_ENDS, object_place
from voucherd.api.openapi.schemas import REF
from voucherd.api.operations import SECTION_OF
from voucherd.api.routes import MAIN, ROUTES, Route

Part = dict[str, Any]

_FILES: Final = {"text/csv": "CSV", "text/event-stream": "server-sent events"}


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
    section: str
    method: str
    path: str
    """In the version that is shown first."""
    paths: tuple[str, ...]
    words: Markup
    parameters: tuple[Row, ...]
    request: tuple[Object, ...]
    """The body that it takes, and the objects in it."""
    answers: tuple[DocumentedAnswer, ...]
    answer_fields: Object | None
    failures: tuple[Failure, ...]
    samples: tuple[Sample, ...]
    described: Part
    """The operation as the document has it, in that version."""

    @property
    def page(self) -> str:
        """Where the docs tell of it."""
        return f"/docs/reference/{self.anchor}"


def operations(document: Part) -> list[ReferenceOperation]:
    """Every operation, in the order of the routes."""
    return [_operation(document, route) for route in ROUTES]


def objects(document: Part) -> list[Object]:
    """Every object, in reading order; one that the list does not name comes last."""
    schemas = document["components"]["schemas"]
    known = [next((name for name in names if name in schemas), None) for *_, names in OBJECTS]
    return [
        _object(document, name) for name in (*known, *sorted(set(schemas) - set(PLACES))) if name is not None
    ]


def any_failures(document: Part) -> list[Failure]:
    """What any call can meet."""
    responses = document["components"]["responses"]
    return [row for status, part in responses.items() for row in _failures(status, part)]


def _object(document: Part, name: str) -> Object:
    schemas = document["components"]["schemas"]
    rows = _fields(_joined(schemas, schemas[name]))
    return Object(*object_place(name), schemas[name]["description"], tuple(rows))


def _joined(schemas: Part, schema: Part) -> Part:
    """All forms of an object as one: a field may be all that it may be in any of them."""
    if "oneOf" not in schema:
        return schema
    forms = [schemas[form["$ref"].removeprefix(REF)] for form in schema["oneOf"]]
    fields: dict[str, list[Part]] = {}
    for form in forms:
        for name, field in form["properties"].items():
            fields.setdefault(name, []).append(field)
    required = [name for name in fields if all(name in form["required"] for form in forms)]
    return {"properties": {name: _union(of) for name, of in fields.items()}, "required": required}


def _union(fields: list[Part]) -> Part:
    """What one of these fields may be."""
    first = fields[0]
    if "$ref" in first:
        return {"description": first["description"], "anyOf": [{"$ref": field["$ref"]} for field in fields]}
    words = [
        word for field in fields for word in field.get("enum", (field["const"],) if "const" in field else ())
    ]
    types = [one for field in fields for one in _types(field)]
    return first | {"type": list(dict.fromkeys(types))} | ({"enum": sorted(set(words))} if words else {})


def _operation(document: Part, route: Route) -> ReferenceOperation:
    parts = {
        version: document["paths"][f"/api/{version}/{route.path}"][route.method.lower()]
        for version in sorted(route.versions, key=lambda version: version != MAIN)
    }
    version, part = next(iter(parts.items()))
    body = part.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    return ReferenceOperation(
        anchor=WORD_ENDS.sub("-", part["operationId"]).lower(),
        title=part["summary"],
        section=SECTION_OF[route.op],
        method=route.method,
        path=f"/api/{version}/{route.path}",
        paths=tuple(f"/api/{version}/{route.path}" for version in sorted(route.versions)),
        words=prose(part["description"]),
        parameters=tuple(_parameter(one) for one in part.get("parameters", ())),
        request=tuple(_object(document, name) for name in _named(document, body)),
        answers=tuple(_answers(parts)),
        answer_fields=_answer_fields(document, part),
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
        described=part,
    )


def _named(document: Part, schema: Part | None) -> list[str]:
    """The names of the objects in a schema, and of those in them."""
    found: list[str] = []
    left = [schema]
    while left:
        one = left.pop(0)
        if not isinstance(one, dict):
            left += one if isinstance(one, list) else []
        elif "$ref" in one:
            name = one["$ref"].removeprefix(REF)
            if name not in found:
                found.append(name)
                left.append(document["components"]["schemas"][name])
        else:
            left += one.values()
    return found


def _answer_fields(document: Part, part: Part) -> Object | None:
    """The fields of what is answered, or of each of its entries where it is a list."""
    answer = next(iter(part["responses"].values()))
    schema = answer.get("content", {}).get("application/json", {}).get("schema", {})
    names = _named(document, schema.get("items", schema))
    return _object(document, names[0]) if names else None


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
        anchor, title = object_place(schema["$ref"].removeprefix(REF))
        return Markup('<a href="/docs/objects/{}">{}</a>').format(anchor, title)
    if "anyOf" in schema:
        return Markup(" or ").join(dict.fromkeys(_kind(option) for option in schema["anyOf"]))
    if schema["type"] == "array":
        return Markup("array of {}").format(_kind(schema["items"]))
    return Markup(" or ").join(
        escape(schema.get("format", kind) if kind == "string" else kind) for kind in _types(schema)
    )


def _types(schema: Part) -> list[str]:
    return schema["type"] if isinstance(schema["type"], list) else [schema["type"]]


def _rules(schema: Part) -> tuple[str, ...]:
    """The limits of a value in words."""
    rules = []
    options = (schema, schema.get("items", {}), *schema.get("anyOf", ()))
    words = [word for option in options for word in option.get("enum", ()) if word is not None]
    if words:
        rules.append("one of " + ", ".join(words))
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
