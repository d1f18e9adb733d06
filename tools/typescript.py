"""`make client-types`: the types, methods and errors of the TypeScript client, written from the OpenAPI document.

Numbers become `Decimal`, because a binary float loses cents. Which fields of an answer they are is written down for
each answer, since JSON itself does not say; a name that is a number in one place of an answer and something else in
another would be read wrongly, so it is refused here.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from voucherd.api.openapi import document
from voucherd.settings import Settings

FOLDER: Final = Path(__file__).parents[1] / "clients" / "typescript" / "src" / "generated"
WIDTH: Final = 120
REF: Final = "#/components/schemas/"
VERSION: Final = "/api/1.03/"
JSON: Final = "application/json"
CSV: Final = "text/csv"
PROBLEM: Final = "application/problem+json"
SERIALISED: Final = "ProductDescription"
"""A shape that no answer has as such: it comes as text inside of a line."""
PLACES: Final = ("page", "offset", "cursor")
"""Where in a list to go on: iterators take care of that themselves."""
_HEAD: Final = (
    "// Written by tools/typescript.py from the OpenAPI document; `make client-types` writes it anew.\n"
)

Part = dict[str, Any]


def written() -> dict[str, str]:
    """The text of each file by its name."""
    whole: Part = msgspec.json.decode(msgspec.json.encode(document(None, Settings().body_bytes_max)))
    return {"types.ts": _types(whole), "api.ts": _api(whole), "problems.ts": _problems(whole)}


# ── types ─────────────────────────────────────────────────────────────────────────────────────────────────


def _types(whole: Part) -> str:
    schemas = whole["components"]["schemas"]
    parts = [_HEAD, 'import type { Decimal } from "../decimal.js";\n']
    for name, schema in schemas.items():
        words = _comment(schema["description"], "")
        if "oneOf" in schema:
            parts.append(f"{words}export type {name} = {_type(schema)};\n")
        else:
            parts.append(f"{words}export interface {name} {{\n{_fields(schema)}}}\n")
    return "\n".join(parts)


def _fields(schema: Part) -> str:
    return "".join(
        _field(name, field, field.get("description", ""), name in schema.get("required", ()))
        for name, field in schema["properties"].items()
    )


def _field(name: str, schema: Part, words: str, required: bool) -> str:
    kind = _type(schema)
    return _comment(words, "  ") + (
        f"  {name}: {kind};\n" if required else f"  {name}?: {kind} | undefined;\n"
    )


def _type(schema: Part) -> str:
    """The schema as a type."""
    options = schema.get("oneOf") or schema.get("anyOf")
    if options:
        return " | ".join(_type(option) for option in options)
    if "$ref" in schema:
        return str(schema["$ref"].removeprefix(REF))
    words = [schema["const"]] if "const" in schema else schema.get("enum")
    if words:
        return " | ".join(f'"{word}"' for word in words)
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return " | ".join(_plain(kind, schema) for kind in kinds)


def _plain(kind: str, schema: Part) -> str:
    match kind:
        case "number":
            return "Decimal"
        case "integer":
            return "number"
        case "array":
            items = _type(schema["items"])
            return f"({items})[]" if " " in items else f"{items}[]"
        case "object":
            values = schema.get("additionalProperties")
            return f"Record<string, {_type(values) if values else 'unknown'}>"
        case _:
            return kind


def _comment(words: str, indent: str) -> str:
    text = " ".join(words.partition("\n\n- ")[0].split()).replace("*/", "* /")
    if not text:
        return ""
    if len(text) <= WIDTH - len(indent) - 7:
        return f"{indent}/** {text} */\n"
    lines = textwrap.wrap(text, WIDTH - len(indent) - 3, break_long_words=False, break_on_hyphens=False)
    return f"{indent}/**\n" + "".join(f"{indent} * {line}\n" for line in lines) + f"{indent} */\n"


# ── which fields are decimals ─────────────────────────────────────────────────────────────────────────────


def _kinds(schemas: Part, schema: Part, seen: set[str]) -> Iterator[tuple[str, str]]:
    """Every field of a shape and of all in it, with what it is: a decimal or anything else."""
    for option in (*schema.get("oneOf", ()), *schema.get("anyOf", ())):
        yield from _kinds(schemas, option, seen)
    if schema.get("type") == "array":
        yield from _kinds(schemas, schema["items"], seen)
    name = schema.get("$ref", "").removeprefix(REF)
    if name and name not in seen:
        seen.add(name)
        yield from _kinds(schemas, schemas[name], seen)
    for field, one in schema.get("properties", {}).items():
        yield from ((field, "decimal" if kind == "number" else "other") for kind in _types_in(one) - {"null"})
        yield from _kinds(schemas, one, seen)


def _types_in(field: Part) -> set[str]:
    """The types of a field, or of what a list holds."""
    options = (*field.get("oneOf", ()), *field.get("anyOf", ()))
    if options:
        return {kind for option in options for kind in _types_in(option)}
    if field.get("type") == "array":
        return _types_in(field["items"])
    told = field.get("type", "object")
    return set(told) if isinstance(told, list) else {told}


def decimals(schemas: Part, name: str) -> list[str]:
    """The names of the fields of this shape, and of all in it, that are decimals."""
    kinds = set(_kinds(schemas, {"$ref": REF + name}, set()))
    found = sorted(field for field, kind in kinds if kind == "decimal")
    doubtful = [field for field in found if (field, "other") in kinds]
    assert not doubtful, f"{name} has a decimal and another field of one name: {', '.join(doubtful)}"
    return found


# ── methods ───────────────────────────────────────────────────────────────────────────────────────────────


def _api(whole: Part) -> str:
    operations = [
        (path, method.upper(), part)
        for path, item in whole["paths"].items()
        if path.startswith(VERSION)
        for method, part in item.items()
        if "text/event-stream" not in _content(_good(part)[0])
    ]
    schemas = whole["components"]["schemas"]
    queries = "".join(_query(part) for *_, part in operations)
    methods = "\n".join(_methods(schemas, *one) for one in operations)
    answers = {_answer(part)[1] for *_, part in operations} - {""}
    tables = "".join(_table(schemas, name) for name in sorted(answers | {"Event", SERIALISED}))
    shapes = [
        name for name in schemas if re.search(rf"\b{name}\b", re.sub(r"DECIMALS\.\w+", "", queries + methods))
    ]
    imports = "".join(f"  {name},\n" for name in shapes)
    return f"""{_HEAD}
import {{ decimals }} from "../json.js";
import {{ walk }} from "../paging.js";
import type {{ Call, CallOptions }} from "../transport.js";
import type {{ Decimal }} from "../decimal.js";
import type {{
{imports}}} from "./types.js";

/** The fields of each answer that are decimals. */
export const DECIMALS = {{
{tables}}} as const;
{queries}
/** One method for every operation of the API, under the name that the document gives it. */
export abstract class Api {{
  /** Sends a call, as often as it takes, and reads its answer. */
  protected abstract call<T>(call: Call, options?: CallOptions): Promise<T>;

{methods}}}
"""


def _table(schemas: Part, name: str) -> str:
    fields = "".join(f'    "{field}",\n' for field in decimals(schemas, name))
    return f"  {name}: decimals([\n{fields}  ]),\n" if fields else ""


def _good(part: Part) -> list[Part]:
    return [answer for status, answer in part["responses"].items() if int(status) < 300]


def _content(answer: Part) -> Part:
    content: Part = answer.get("content", {})
    return content


def _body(part: Part) -> str:
    content = _content(part.get("requestBody", {}))
    return _type(content[JSON]["schema"]) if content else ""


def _answer(part: Part) -> tuple[str, str]:
    """The type of an operation's answer, and the shape whose decimals it has."""
    shapes = [_content(answer)[JSON]["schema"] for answer in _good(part) if JSON in _content(answer)]
    if not shapes:
        return ("string" if CSV in _content(_good(part)[0]) else "void"), ""
    kind = _type(shapes[0])
    without = any(not _content(answer) for answer in _good(part))
    return kind + (" | null" if without else ""), kind.removesuffix("[]")


def _parameters(part: Part, place: str) -> list[Part]:
    return [one for one in part.get("parameters", ()) if one["in"] == place]


def _query_parameters(part: Part) -> list[Part]:
    # The form of an answer is the method's: each returns one.
    return [one for one in _parameters(part, "query") if one["name"] != "format"]


def _query_name(part: Part) -> str:
    return str(part["operationId"][0].upper() + part["operationId"][1:] + "Query")


def _query(part: Part) -> str:
    parameters = _query_parameters(part)
    if not parameters:
        return ""
    fields = "".join(
        _field(one["name"], one["schema"], one["description"], one.get("required", False))
        for one in parameters
    )
    return f"\n/** What {part['summary']} can be asked for. */\nexport interface {_query_name(part)} {{\n{fields}}}\n"


def _methods(schemas: Part, path: str, method: str, part: Part) -> str:
    """The method of an operation, and what else there is of it: all pages of a list, a file."""
    kind, shape = _answer(part)
    accepts = CSV if kind == "string" else ""
    exact = shape if shape and decimals(schemas, shape) else ""
    made = _method(path, method, part, part["operationId"], kind, exact, accepts)
    if shape and CSV in _content(_good(part)[0]):
        made += "\n" + _method(path, method, part, part["operationId"] + "AsCsv", "string", "", CSV)
    if any(one["name"] == "cursor" for one in _query_parameters(part)):
        made += "\n" + _iterator(schemas, path, part, shape)
    return made


def _path_names(path: str) -> list[str]:
    return re.findall(r"{(\w+)}", path)


def _arguments(path: str, part: Part) -> list[str]:
    found = [f"{name}: string" for name in _path_names(path)]
    if _body(part):
        body = part["requestBody"]["required"]
        found.append(f"body: {_body(part)}" + ("" if body else " = {}"))
    parameters = _query_parameters(part)
    if parameters:
        needed = any(one.get("required") for one in parameters)
        found.append(f"query: {_query_name(part)}" + ("" if needed else " = {}"))
    return [*found, "options?: CallOptions"]


def _method(path: str, method: str, part: Part, name: str, kind: str, shape: str, accepts: str) -> str:
    filled = re.sub(r"{(\w+)}", r"${encodeURIComponent(\1)}", path)
    call = [f'method: "{method}"', f"path: `{filled}`"]
    call += ["body"] if _body(part) else []
    call += ["query"] if _query_parameters(part) else []
    call += [f"decimals: DECIMALS.{shape}"] if shape else []
    call += [f'accepts: "{accepts}"'] if accepts else []
    if any(one["name"] == "Idempotency-Key" for one in _parameters(part, "header")):
        call.append("writes: true")
    arguments = ", ".join(_arguments(path, part))
    return (
        _comment(f"{part['summary']}. {part['description'].partition(chr(10))[0]}", "  ")
        + f"  {name}({arguments}): Promise<{kind}> {{\n"
        + "    return this.call(\n      {\n"
        + "".join(f"        {one},\n" for one in call)
        + "      },\n      options,\n    );\n  }\n"
    )


def _iterator(schemas: Part, path: str, part: Part, shape: str) -> str:
    """A method that walks through all pages of a list."""
    item = _type(schemas[shape]["properties"]["data"]["items"])
    name = "all" + part["operationId"].removeprefix("find")
    places = " | ".join(f'"{one["name"]}"' for one in _query_parameters(part) if one["name"] in PLACES)
    names = _path_names(path)
    arguments = [f"{one}: string" for one in names]
    arguments += [f"query: Omit<{_query_name(part)}, {places}> = {{}}", "options?: CallOptions"]
    handed = ", ".join([*names, "{ ...query, cursor }", "options"])
    return (
        _comment(f"{part['summary']}: all of them, page by page as they are read.", "  ")
        + f"  {name}({', '.join(arguments)}): AsyncGenerator<{item}, void, undefined> {{\n"
        + f"    return walk((cursor) => this.{part['operationId']}({handed}));\n  }}\n"
    )


# ── errors ────────────────────────────────────────────────────────────────────────────────────────────────


def _problems(whole: Part) -> str:
    """A class for each code, with what has happened."""
    answers = [*whole["components"]["responses"].values()]
    answers += [
        answer
        for item in whole["paths"].values()
        for part in item.values()
        for answer in part["responses"].values()
    ]
    told: dict[str, dict[str, None]] = {}
    for answer in answers:
        for code, one in _content(answer).get(PROBLEM, {}).get("examples", {}).items():
            told.setdefault(code, {})[one["summary"]] = None
    classes = "".join(
        f"\n{_comment(next(iter(when)), '')}export class {_class_name(code)} extends VoucherdError {{\n"
        f'  override readonly name = "{_class_name(code)}";\n}}\n'
        for code, when in sorted(told.items())
    )
    table = "".join(f"  {code}: {_class_name(code)},\n" for code in sorted(told))
    return f"""{_HEAD}
import {{ VoucherdError }} from "../errors.js";
{classes}
/** The class of each code; a code that is not here is a plain VoucherdError. */
export const ERRORS: Readonly<Record<string, typeof VoucherdError>> = {{
{table}}};
"""


def _class_name(code: str) -> str:
    return "".join(word.capitalize() for word in code.removesuffix("_error").split("_")) + "Error"


def main() -> None:
    """Write the files."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in written().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
