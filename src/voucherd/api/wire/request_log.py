"""The shapes of the request log."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from voucherd.api.wire.fields import Count, KeyId, Moment, doc
from voucherd.api.wire.shapes import WalkedPage
from voucherd.clock import written
from voucherd.ids import Identifiers
from voucherd.request_log.redaction import KEPT_CHARS_MAX
from voucherd.request_log.store import Answered

_KEPT = f"without codes, keys, secrets and links, the first {KEPT_CHARS_MAX:,} characters"


class LoggedRequest(Struct):
    """A call of one of your keys, without its bodies."""

    requestId: Annotated[str, doc("`X-Request-Id` of its answer.")]
    dateCreated: Annotated[Moment, doc("When it was answered.")]
    method: Annotated[str, doc("The method.")]
    path: Annotated[str, doc("The path, with the query.")]
    httpStatus: Annotated[int, doc("The status of the answer.", minimum=100, maximum=999)]
    durationMs: Annotated[Count, doc("How long it took, in milliseconds.")]
    keyId: Annotated[KeyId, doc("The id of the key that made it.")]


class LoggedRequestDetail(LoggedRequest):
    """A call of one of your keys."""

    requestBody: Annotated[
        str | None, doc(f"What was sent: {_KEPT}. Null for a key that may not make such calls.")
    ]
    responseBody: Annotated[
        str | None, doc(f"What was answered: {_KEPT}. Null for a key that may not make such calls.")
    ]


class LoggedRequestPage(Struct):
    """A page of calls."""

    data: Annotated[list[LoggedRequest], doc("The calls, newest first.")]
    metadata: WalkedPage


def logged(ids: Identifiers, call: Answered) -> LoggedRequest:
    """A call as clients see it in a list."""
    return LoggedRequest(*_head(ids, call))


def detail(ids: Identifiers, call: Answered, *, bodies: bool) -> LoggedRequestDetail:
    """A call as clients see it by itself."""
    request, answer = (call.request, call.answer) if bodies else (None, None)
    return LoggedRequestDetail(*_head(ids, call), request, answer)


def _head(ids: Identifiers, call: Answered) -> tuple[str, str, str, str, int, int, str]:
    return (
        call.request_id,
        written(call.at),
        call.method,
        call.path,
        call.status,
        call.ms,
        ids.key(call.key_id),
    )
