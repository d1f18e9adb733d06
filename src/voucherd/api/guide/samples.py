"""A call as a program, in each language of the docs: the same request as curl, Python, TypeScript and PHP. Pure."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw, Struct

from voucherd.api.openapi.markup import indented
from voucherd.api.openapi.reference import ReferenceOperation
from voucherd.api.operations.orders import SLUG
from voucherd.storefront.service import SampleProduct

LINE_CHARS_MAX: Final = 70
"""A value that fits into so many characters stays on one line."""
WAIT_S: Final = 40
"""How long a client waits for Confirm and Resolve; the guide proposes it."""


class Language(NamedTuple):
    """One of the languages in which the docs show calls."""

    id: str
    title: str


LANGUAGES: Final = (
    Language("curl", "curl"),
    Language("python", "Python"),
    Language("typescript", "TypeScript"),
    Language("php", "PHP"),
)


EXAMPLE_PRODUCT: Final = SampleProduct(SLUG, "brightbean")
"""What the samples order where nothing is for sale."""


YESTERDAY: Final = "{yesterday}"
"""Stands for the date of yesterday, which is put in when a page is served: a moment must not lie too far back."""


FINISHED: Final = ("X-Sandbox-Outcome", "finished")
"""What samples send where chance decides otherwise."""


class SampleCall(Struct, frozen=True):
    """A request with all that it holds but the key."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: Raw | None = None
    answer: str = "json"
    """`json`, `text` where it may be something else, or `nothing` where there is no body."""
    slow: bool = False
    """Whether its answer may take longer than clients wait by themselves."""

    @property
    def value(self) -> Any:
        """The body, as a program would hold it."""
        return None if self.body is None else msgspec.json.decode(self.body)


def call_of(operation: ReferenceOperation, url: str, product: SampleProduct) -> SampleCall:
    """The call of an operation, with the examples of the document for all that it must have."""
    part = operation.described
    path, query, headers = operation.path, [], []
    for parameter in part.get("parameters", ()):
        example = str(parameter.get("example", ""))
        if parameter["in"] == "path":
            known = {"slug": product.brand_slug if "/brand/" in path else product.slug}
            path = path.replace("{" + parameter["name"] + "}", known.get(parameter["name"], example))
        elif parameter["in"] == "query" and parameter.get("required"):
            query.append(f"{parameter['name']}={YESTERDAY if parameter['name'] == 'since' else example}")
        elif (parameter["name"], example) == FINISHED:
            headers.append((parameter["name"], example))
    body = None
    if "requestBody" in part:
        (one,) = part["requestBody"]["content"]["application/json"]["examples"].values()
        body = Raw(bytes(one["value"]).replace(SLUG.encode(), product.slug.encode()))
    good = [answer.get("content", {}) for status, answer in part["responses"].items() if int(status) < 300]
    reads = "text" if any(good) else "nothing"
    if all("application/json" in content for content in good):
        reads = "json"
    return SampleCall(
        operation.method,
        url + path + ("?" + "&".join(query) if query else ""),
        tuple(headers),
        body,
        reads,
        slow=bool(headers),
    )


def samples_of(call: SampleCall) -> dict[str, str]:
    """The call in every language, by the language's id."""
    return {"curl": _curl(call), "python": _python(call), "typescript": _typescript(call), "php": _php(call)}


def _curl(call: SampleCall) -> str:
    method = "" if call.method == "GET" else f" -X {call.method}"
    lines = [f'curl{method} "{call.url}"', '  -H "Authorization: Bearer $KEY"']
    lines += [f"  -H '{name}: {value}'" for name, value in call.headers]
    if call.body is not None:
        lines += ["  -H 'Content-Type: application/json'", f"  -d '{indented(call.body)}'"]
    return " \\\n".join(lines)


def _python(call: SampleCall) -> str:
    headers = ['"Authorization": f"Bearer {os.environ[\'KEY\']}"']
    headers += [f'"{name}": "{value}"' for name, value in call.headers]
    lines = ["import os", "", "import httpx", "", f"answer = httpx.{call.method.lower()}("]
    lines += [f'    "{call.url}",', f"    headers={{{', '.join(headers)}}},"]
    if call.body is not None:
        lines.append(f"    json={_literal(call.value, _PYTHON, 1)},")
    if call.slow:
        lines.append(f"    timeout={WAIT_S},")
    shown = {"json": "answer.json()", "text": "answer.text", "nothing": "answer.status_code"}[call.answer]
    return "\n".join([*lines, ")", f"print({shown})"])


def _typescript(call: SampleCall) -> str:
    headers = ["Authorization: `Bearer ${process.env.KEY}`"]
    headers += [f'"{name}": "{value}"' for name, value in call.headers]
    if call.body is not None:
        headers.append('"Content-Type": "application/json"')
    lines = [f'const answer = await fetch("{call.url}", {{']
    if call.method != "GET":
        lines.append(f'  method: "{call.method}",')
    lines.append(f"  headers: {{ {', '.join(headers)} }},")
    if call.body is not None:
        value = re.sub(r'(?m)^( *)"(\w+)":', r"\1\2:", indented(call.body)).replace("\n", "\n  ")
        lines.append(f"  body: JSON.stringify({value}),")
    shown = {"json": "await answer.json()", "text": "await answer.text()", "nothing": "answer.status"}
    return "\n".join([*lines, "});", f"console.log({shown[call.answer]});"])


def _php(call: SampleCall) -> str:
    headers = ['"Authorization: Bearer " . getenv("KEY")']
    headers += [f'"{name}: {value}"' for name, value in call.headers]
    if call.body is not None:
        headers.append('"Content-Type: application/json"')
    lines = ["<?php", '$context = stream_context_create(["http" => [']
    lines += [f'    "method" => "{call.method}",', f'    "header" => [{", ".join(headers)}],']
    if call.body is not None:
        lines.append(f'    "content" => json_encode({_literal(call.value, _PHP, 1)}),')
    lines += ['    "ignore_errors" => true,', "]]);"]
    lines.append(f'$answer = file_get_contents("{call.url}", false, $context);')
    shown = {
        "json": "print_r(json_decode($answer, true));",
        "text": "echo $answer;",
        "nothing": "echo $http_response_header[0];",
    }
    return "\n".join([*lines, shown[call.answer]])


class _Marks(NamedTuple):
    """How a language writes values."""

    opened: str
    closed: str
    pair: str
    words: dict[bool | None, str]


_PYTHON: Final = _Marks("{", "}", ": ", {True: "True", False: "False", None: "None"})
_PHP: Final = _Marks("[", "]", " => ", {True: "true", False: "false", None: "null"})


def _literal(value: Any, marks: _Marks, depth: int) -> str:
    """A value as the language writes it, on one line where it fits."""
    if value is None or isinstance(value, bool):
        return marks.words[value]
    if isinstance(value, dict):
        opened, closed = marks.opened, marks.closed
        entries = [f'"{name}"{marks.pair}{_literal(one, marks, depth + 1)}' for name, one in value.items()]
    elif isinstance(value, list):
        opened, closed = "[", "]"
        entries = [_literal(one, marks, depth + 1) for one in value]
    else:
        return msgspec.json.encode(value).decode().replace("$", "\\$" if marks is _PHP else "$")
    short = opened + ", ".join(entries) + closed
    if len(short) <= LINE_CHARS_MAX and "\n" not in short:
        return short
    indent = "\n" + "    " * (depth + 1)
    return opened + indent + ("," + indent).join(entries) + ",\n" + "    " * depth + closed
