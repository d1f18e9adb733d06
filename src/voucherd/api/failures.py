"""The answer to a request that could not be served: each exception that may reach the API, and its words."""

from __future__ import annotations

from typing import Final

import structlog

from voucherd.api import errors
from voucherd.batcher import BatcherFull
from voucherd.catalogue.pricing import NoVatRate
from voucherd.db import UNAVAILABLE, OutcomeUnknown
from voucherd.http import HttpError, Request, Response
from voucherd.idempotency.model import TicketTaken
from voucherd.keys.callers import Forbidden, Unauthorized
from voucherd.limits.strangers import TooManyStrangers
from voucherd.orders.answers import StoredUnseen
from voucherd.server.bounds import LATE_WRITE

IN_USE: Final = (
    "idempotency_key_in_use",
    "the first request with this Idempotency-Key is still running",
)
_RETRY_SOON: Final = [(b"retry-after", b"1")]

logger = structlog.get_logger(__name__)


def failed(request: Request, error: Exception) -> Response:  # noqa: PLR0911 - One for each thing that can go wrong.
    """The answer to this exception; one that nobody foresaw is logged with its traceback."""
    match error:
        case HttpError():
            return errors.http_error(request, error)
        case Unauthorized() | Forbidden():
            return errors.turned_away(request, error)
        case TicketTaken():
            return errors.error(request, 409, *IN_USE, headers=_RETRY_SOON, retryable=True)
        case TooManyStrangers():
            return errors.http_error(request, _too_many_strangers(error))
        case NoVatRate():
            return errors.error(request, 400, "bad_input", f"company: {error}")
        case BatcherFull():
            return _unavailable(request, "busy", "too many requests are waiting")
        case StoredUnseen():
            # Not retryable: it is done, and a second Confirm would be refused. Find tells what became of it.
            return errors.error(
                request, 503, "done_but_unseen", "done, but it can not be shown now: find the order"
            )
        case OutcomeUnknown():
            logger.error("outcome_unknown", request_id=request.id, error=repr(error.__cause__))
            return errors.http_error(request, LATE_WRITE)
    if isinstance(error, UNAVAILABLE):
        logger.error("database_unavailable", request_id=request.id, error=repr(error))
        return _unavailable(request, "unavailable", "service unavailable")
    logger.error(
        "request_failed", request_id=request.id, method=request.method, path=request.path, exc_info=error
    )
    return errors.error(request, 500, "internal_error", "internal error", retryable=True)


def _unavailable(request: Request, code: str, text: str) -> Response:
    return errors.error(request, 503, code, text, headers=_RETRY_SOON, retryable=True)


def _too_many_strangers(reason: TooManyStrangers) -> HttpError:
    return HttpError(
        429,
        "too_many_failures",
        "too many requests without a valid key",
        headers=[(b"retry-after", b"%d" % reason.wait_s)],
        retryable=True,
    )
