"""Which class of error an answer is: by the code of its problem, or else by its status."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

import httpx
import msgspec
from msgspec import Struct

from voucherd_client.errors import (
    ApiError,
    BadRequest,
    Conflict,
    DoneButUnseen,
    Forbidden,
    Gone,
    NotFound,
    NotPaid,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)

TEXT_CHARS_MAX: Final = 300
"""So much is shown of an answer that is no problem of the service's, such as a proxy's page."""
_AGAIN: Final = frozenset({408, 429, 500, 502, 503, 504})
"""What is tried again where the answer does not say: it did not come from the service, or not in full."""

_BY_STATUS: Final[dict[int, type[ApiError]]] = {
    401: Unauthorized,
    402: NotPaid,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    429: TooManyRequests,
}


def _classes(kind: type[ApiError]) -> list[type[ApiError]]:
    return [kind, *(one for child in kind.__subclasses__() for one in _classes(child))]


BY_CODE: Final = {code: kind for kind in _classes(ApiError) for code in kind.__dict__.get("codes", ())}
"""The class of each code that the service has."""


class Problem(Struct, rename="camel"):
    """An error as the service tells it (RFC 9457)."""

    detail: str
    code: str
    retryable: bool = False
    request_id: str | None = None
    field: str | None = None


_problem: Final = msgspec.json.Decoder(Problem).decode


def class_of(status: int, code: str | None) -> type[ApiError]:
    """The class of a refusal; one with a code that is not known here is of the class of its status."""
    found = None if code is None else BY_CODE.get(code)
    if found is not None:
        return found
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return Unavailable if status >= 500 else BadRequest if status >= 400 else ApiError


def refusal(answer: httpx.Response) -> ApiError:
    """What an answer that is no success says."""
    retry_after_s = _retry_after_s(answer.headers.get("retry-after"))
    if "application/problem+json" in answer.headers.get("content-type", ""):
        with contextlib.suppress(msgspec.MsgspecError):
            said = _problem(answer.content)
            return class_of(answer.status_code, said.code)(
                said.detail,
                status=answer.status_code,
                code=said.code,
                field=said.field,
                # What was done under a key is shown under it, too, when the call is repeated.
                retryable=said.retryable or said.code in DoneButUnseen.codes,
                retry_after_s=retry_after_s,
                request_id=said.request_id,
            )
    return class_of(answer.status_code, None)(
        answer.text.strip()[:TEXT_CHARS_MAX] or answer.reason_phrase,
        status=answer.status_code,
        retryable=answer.status_code in _AGAIN,
        retry_after_s=retry_after_s,
        request_id=answer.headers.get("x-request-id"),
    )


def _retry_after_s(text: str | None) -> float | None:
    """The seconds of a `Retry-After`, which may also be a date; None where it says nothing that can be read."""
    if text is None:
        return None
    if text.isascii() and text.isdigit() and len(text) <= 9:
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return max((at - datetime.now(UTC)).total_seconds(), 0.0)
