"""The errors of every operation: read off the table of refusals, or kept as examples.

The few that are written in the middle of a request's way are repeated here, and tests compare them with what the
service says.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct

from voucherd.api import errors, events
from voucherd.api.errors import CODES, REFUSALS, Op
from voucherd.api.openapi.examples import examples
from voucherd.api.operations import OPERATIONS
from voucherd.http import HttpError
from voucherd.idempotency.model import KEY_CHARS_MAX
from voucherd.orders.rules.refusals import BadInput
from voucherd.server import bounds
from voucherd.server.bounds import LATE_WRITE

REQUEST_ID: Final = "req_5f2b8c0e9a7100000001"
_NAME: Final = "Brightbean Coffee 25 EUR"


class DescribedProblem(Struct, frozen=True):
    """One thing that can go wrong, as a client hears it."""

    status: int
    code: str
    text: str
    when: str
    retryable: bool = False
    field: str | None = None

    @property
    def body(self) -> dict[str, Any]:
        """The same in the form of RFC 9457, made by the function that makes every other."""
        made = errors.problem(
            self.status, self.code, self.text, REQUEST_ID, field=self.field, retryable=self.retryable
        )
        body: dict[str, Any] = msgspec.to_builtins(made)
        return body


def _of(problem: HttpError, when: str) -> DescribedProblem:
    """A problem of HTTP itself, with what has happened."""
    return DescribedProblem(problem.status, problem.code, problem.text, when, problem.retryable)


NOT_JSON: Final = DescribedProblem(400, "not_json", "the body is not valid JSON", "The body is not JSON.")
NOT_THE_TYPE: Final = DescribedProblem(
    415,
    "unsupported_media_type",
    "content type must be application/json",
    "The body's content type is not `application/json`.",
)
_TOO_OLD: Final = DescribedProblem(
    410, events.TOO_OLD_CODE, events.TOO_OLD, "What followed the cursor is no longer kept."
)


def of_operation(op: Op, body_bytes_max: int) -> list[DescribedProblem]:
    """What this operation can refuse, by status; what any call can meet is in `ANYWHERE`."""
    operation = OPERATIONS[op]
    told = [
        DescribedProblem(status, CODES[kind], text.format(names=_NAME, name=_NAME), errors.when(op, kind))
        for (owner, kind), (status, text) in REFUSALS.items()
        if owner is op
    ]
    refused = examples()[operation.id].refused
    if refused is not UNSET:
        told.append(DescribedProblem(400, CODES[BadInput], refused.text, refused.when, field=refused.field))
    if op in (Op.EVENTS, Op.EVENT_STREAM):
        told.append(_TOO_OLD)
    if operation.body is not None:
        too_large = f"the body must be at most {body_bytes_max} bytes"
        told += [
            NOT_JSON,
            DescribedProblem(413, "body_too_large", too_large, "The body is too large."),
            NOT_THE_TYPE,
        ]
    return sorted(told, key=lambda problem: problem.status)


NOT_A_PARAMETER: Final = DescribedProblem(
    400,
    CODES[BadInput],
    "colour: is not a parameter of this call",
    "The query has a parameter that the call does not have.",
    field="colour",
)
"""What any call can meet; told where a call refuses nothing else with this status."""

REPEATED: Final = (
    DescribedProblem(
        400,
        "bad_input",
        f"Idempotency-Key: must be 1 to {KEY_CHARS_MAX} printable ASCII characters",
        "The `Idempotency-Key` is empty, too long or not printable.",
    ),
    DescribedProblem(
        409,
        "idempotency_key_in_use",
        "the first request with this Idempotency-Key is still running",
        "The first request with the same `Idempotency-Key` has no answer yet.",
        retryable=True,
    ),
    DescribedProblem(
        422,
        "idempotency_key_reused",
        "this Idempotency-Key was used for another request",
        "The `Idempotency-Key` was used for another request.",
    ),
)
"""What a request with an `Idempotency-Key` meets, above all one that was sent before (OP-28)."""

ANYWHERE: Final = (
    DescribedProblem(401, "unauthorized", "unauthorized", "There is no API key, or none that is valid."),
    DescribedProblem(
        403, "forbidden", "forbidden", "The key lacks the scope, or may not be used from this address."
    ),
    DescribedProblem(
        429,
        "too_many_failures",
        "too many requests without a valid key",
        "Too many calls without a valid key came from your address. Wait for `Retry-After` seconds.",
        retryable=True,
    ),
    DescribedProblem(
        429,
        "rate_limit_exceeded",
        "rate limit exceeded",
        "The key made more calls than it may. Wait for `Retry-After` seconds.",
        retryable=True,
    ),
    DescribedProblem(500, "internal_error", "internal error", "Something broke on our side.", retryable=True),
    DescribedProblem(
        503,
        "unavailable",
        "service unavailable",
        "The database is away. Wait for `Retry-After` seconds.",
        retryable=True,
    ),
    DescribedProblem(
        503,
        "busy",
        "too many requests are waiting",
        "The service is full. Wait for `Retry-After` seconds.",
        retryable=True,
    ),
    DescribedProblem(
        503,
        LATE_WRITE.code,
        LATE_WRITE.text,
        "The answer took too long. What a call changes may be done or not: find the order, or send the same call with "
        "the same `Idempotency-Key`.",
        retryable=True,
    ),
)
"""What any call can meet."""

OF_HTTP: Final = (
    _of(bounds.UNREADABLE, "What was sent is no HTTP request."),
    _of(bounds.AMBIGUOUS, "A header that may be there once, such as `Authorization`, is there twice."),
    _of(bounds.NO_HOST, "The request is HTTP/1.1 and has no `Host`."),
    _of(bounds.MANY_CHUNKS, "The body comes in very many small chunks."),
    _of(bounds.OTHER_CODING, "The body has a `Transfer-Encoding` other than `chunked`."),
    _of(bounds.LONG_URL, "The address is too long."),
    _of(bounds.LARGE_HEAD, "There are too many headers, or they are too large."),
    _of(bounds.SLOW, "Head or body of the request took too long to arrive."),
    _of(bounds.PIPELINED, "Too many calls were sent on one connection before the first was answered."),
    _of(bounds.FULL, "There are too many connections, or too many of yours."),
    DescribedProblem(
        429,
        "too_much_at_once",
        "too much is being sent at once from this address",
        "The bodies that are on their way from your address are too large together. Wait for `Retry-After` seconds.",
        retryable=True,
    ),
    DescribedProblem(
        429,
        "too_many_streams",
        "too many streams of this key are open",
        "The key has as many streams of events open as it may have.",
    ),
    DescribedProblem(
        503,
        "done_but_unseen",
        "done, but it can not be shown now: find the order",
        "What was asked for is done, but the database could not be read afterwards. Find the order.",
    ),
)
"""What a call seldom meets: the rules of HTTP itself, and a database that goes away in the wrong moment."""

OFF_THE_MAP: Final = (
    DescribedProblem(404, "no_such_path", "not found", "There is no such path, or not in this version."),
    DescribedProblem(
        405,
        "method_not_allowed",
        "method not allowed",
        "The path exists, but not with this method; see `Allow`.",
    ),
)
"""What a call to no operation meets."""
