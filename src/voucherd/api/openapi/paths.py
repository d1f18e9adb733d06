"""The operations of the document: one for every route and version, each with all that can come of it."""

from __future__ import annotations

from itertools import groupby
from typing import Any, Final

from msgspec import UNSET

from voucherd.api import query
from voucherd.api.errors import Op
from voucherd.api.openapi import problems
from voucherd.api.openapi.examples import Examples, examples, listed
from voucherd.api.openapi.problems import REQUEST_ID, DescribedProblem
from voucherd.api.openapi.schemas import REF, schema_of
from voucherd.api.operations import OPERATIONS, SECTION_OF
from voucherd.api.operations.model import DescribedAnswer, Operation
from voucherd.api.operations.orders import TRX
from voucherd.api.routes import MAIN, Route
from voucherd.idempotency.model import KEPT_DAYS, KEY_CHARS_MAX
from voucherd.keys.key_text import RATE_LIMIT_DEFAULT, Scope
from voucherd.limits.rate_limits import Taken, policy, standing

Part = dict[str, Any]

_JSON: Final = "application/json"
_PROBLEM_JSON: Final = "application/problem+json"

_IDEMPOTENCY_KEY: Final = query.in_header(
    "Idempotency-Key",
    "Any text of your own, one for each thing that you want done, such as a UUID. Sent again with the same request "
    f"within {KEPT_DAYS} days it does nothing, and gets the first answer again with `Idempotent-Replayed: true`.",
    "0b5e2f6c-5f0e-4f8e-9d0c-6b1f2a3c4d5e",
    minLength=1,
    maxLength=KEY_CHARS_MAX,
    pattern="^[ -~]+$",
)


def operation(route: Route, version: str, public_url: str, body_bytes_max: int) -> Part:
    """One route in one version."""
    said = OPERATIONS[route.op]
    id_ = operation_id(route.op, version)
    shown = examples(public_url)[id_]
    part: Part = {
        "operationId": id_,
        "tags": [SECTION_OF[route.op]],
        "summary": said.title,
        "description": f"{said.text}\n\n{_needs(route.scopes)}",
        "security": [{"ApiKey": [scope.value for scope in route.scopes]}],
    }
    parameters = [*said.parameters, *([_IDEMPOTENCY_KEY] if route.writes else [])]
    if parameters:
        part["parameters"] = [parameter.described for parameter in parameters]
    if said.body is not None:
        part["requestBody"] = _body(said, shown)
    good = {str(answer.status): _answer(answer, version, shown) for answer in said.answers}
    if route.writes:
        for answer in good.values():
            answer["headers"] |= _headers("Idempotent-Replayed")
    part["responses"] = good | _failures(route, body_bytes_max)
    return part


def _needs(scopes: tuple[Scope, ...]) -> str:
    named = " and ".join(f"`{scope.value}`" for scope in scopes)
    return f"Needs the scope{'s' if len(scopes) > 1 else ''} {named}."


def operation_id(op: Op, version: str) -> str:
    """The operation's name; in other versions than the main one it tells which."""
    if version == MAIN:
        return OPERATIONS[op].id
    return OPERATIONS[op].id + (version if version.isalpha() else "V" + version.replace(".", ""))


def _body(said: Operation, shown: Examples) -> Part:
    assert shown.body is not UNSET, "A test compares the examples with the operations."
    content = {"schema": schema_of(said.body), "examples": listed({"body": shown.body})}
    return {"required": said.body_required, "content": {_JSON: content}}


def _answer(answer: DescribedAnswer, version: str, shown: Examples) -> Part:
    headers = _headers("X-Request-Id", "RateLimit", "RateLimit-Policy")
    part: Part = {"description": answer.words, "headers": headers}
    if answer.status == 201:
        headers |= _headers("Location")
    if "text/csv" in shown.texts:
        headers |= _headers("Content-Disposition")
    content: Part = {
        media: {"schema": {"type": "string"}, "examples": listed(some)} for media, some in shown.texts.items()
    }
    if answer.shape is not None:
        content = {_JSON: {"schema": _shape(answer, version), "examples": listed(shown.answers)}} | content
    if content:
        part["content"] = content
    return part


def _shape(answer: DescribedAnswer, version: str) -> Part:
    if isinstance(answer.shape, tuple):
        return schema_of(answer.shape[version != MAIN])
    return schema_of(answer.shape)


def _failures(route: Route, body_bytes_max: int) -> Part:
    own = problems.of_operation(route.op, body_bytes_max)
    if route.writes:
        own = sorted([*problems.REPEATED, *own], key=lambda problem: problem.status)
    if not any(problem.status == problems.NOT_A_PARAMETER.status for problem in own):
        own = [problems.NOT_A_PARAMETER, *own]
    shared = {str(p.status): {"$ref": f"#/components/responses/{p.status}"} for p in problems.ANYWHERE}
    return dict(sorted((failures(own) | shared).items()))


def failures(found: list[DescribedProblem]) -> Part:
    """These problems, which are sorted, by status."""
    return {
        str(status): _failure(status, list(group)) for status, group in groupby(found, lambda p: p.status)
    }


_ALSO: Final = {
    401: ("WWW-Authenticate",),
    409: ("Retry-After",),
    429: ("Retry-After",),
    503: ("Retry-After",),
}
_UNCOUNTED: Final = (401, 413, 500, 503)
"""Answers that are given before a call is counted, or after counting it became moot."""


def _failure(status: int, found: list[DescribedProblem]) -> Part:
    """All problems of one status: plain text, or RFC 9457 for clients that ask for it."""
    counted = () if status in _UNCOUNTED else ("RateLimit", "RateLimit-Policy")
    return {
        "description": " ".join(dict.fromkeys(problem.when for problem in found)),
        "headers": _headers("X-Request-Id", *counted, *_ALSO.get(status, ())),
        # The typed form stands first: generators of clients take the first that they can read.
        "content": {
            _PROBLEM_JSON: {
                "schema": {"$ref": REF + "Problem"},
                "examples": {p.code: {"summary": p.when, "value": p.body} for p in found},
            },
            "text/plain": {
                "schema": {"type": "string"},
                "examples": {p.code: {"summary": p.when, "value": p.text} for p in found},
            },
        },
    }


def _headers(*names: str) -> Part:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _header(words: str, example: str | int, kind: str = "string") -> Part:
    return {"description": words, "schema": {"type": kind}, "example": example}


HEADERS: Final[dict[str, Part]] = {
    "X-Request-Id": _header("Names the call in our logs: quote it when you ask about one.", REQUEST_ID),
    "RateLimit-Policy": _header(
        "The quota of the key (`q`) and its window in seconds (`w`).", policy(RATE_LIMIT_DEFAULT).decode()
    ),
    "RateLimit": _header(
        "What remains of the quota (`r`) and the seconds until it is restored (`t`).",
        standing(Taken(True, RATE_LIMIT_DEFAULT - 2, 58)).decode(),
    ),
    "Idempotent-Replayed": _header("There, and `true`, if this is the answer to an earlier request.", "true"),
    "Retry-After": _header("Seconds to wait before the next attempt.", 1, "integer"),
    "Location": _header("The path of what was made.", f"/api/{MAIN}/order/{TRX.example}"),
    "Content-Disposition": _header("The name of the file. Only with CSV.", 'attachment; filename="….csv"'),
    "WWW-Authenticate": _header("How to authenticate.", 'Bearer error="invalid_token"'),
}
