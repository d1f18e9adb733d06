"""What goes wrong, as a page for people and as a line for programs."""

from __future__ import annotations

from typing import Final

import structlog

from voucherd.approvals.model import ApprovalNotFound
from voucherd.batcher import BatcherFull
from voucherd.catalogue.logos import BrandNotFound
from voucherd.catalogue.price_deeds import NothingSaid
from voucherd.catalogue.pricing import NoVatRate
from voucherd.catalogue.rate_deeds import NoMargin, VatRateNotFound
from voucherd.catalogue.store import UnknownProduct
from voucherd.db import UNAVAILABLE, OutcomeUnknown
from voucherd.http import TEXT, HttpError, Response
from voucherd.keys.callers import Forbidden
from voucherd.keys.store import KeyNotFound
from voucherd.limits.throttle import TooManyTries
from voucherd.orders.answers import StoredUnseen
from voucherd.orders.rules.refusals import BadInput, OrderNotFound
from voucherd.pages.render import render
from voucherd.pages.visit import Visit, missing
from voucherd.people.members import PersonNotFound
from voucherd.people.users import PasswordChecksBusy
from voucherd.server.bounds import LATE_WRITE
from voucherd.suppliers.store import UnknownSupplier
from voucherd.webhooks.endpoints import EndpointNotFound
from voucherd.words import Words, phrase

logger = structlog.get_logger(__name__)

MISSING: Final = (
    ApprovalNotFound,
    BrandNotFound,
    EndpointNotFound,
    KeyNotFound,
    NoMargin,
    NothingSaid,
    PersonNotFound,
    UnknownProduct,
    UnknownSupplier,
    VatRateNotFound,
)
"""The path or the form names a thing that is not there, or not the visitor's."""
LATE: Final = phrase("It took too long, and may be done all the same. Look before you try again.")
_WORDS: Final = {
    400: (phrase("That did not work"), phrase("The form could not be read. Go back and try again.")),
    403: (
        phrase("You may not do this"),
        phrase("Your role does not let you do this. Someone who manages your team can change that."),
    ),
    404: (
        phrase("Page not found"),
        phrase("This page does not exist, or it belongs to somebody else. Check the address."),
    ),
    405: (phrase("Page not found"), phrase("This address can't be used that way.")),
    410: (phrase("This link has expired"), phrase("It was used before, or it is too old.")),
    413: (phrase("Too large"), phrase("What you sent is larger than this page takes.")),
    415: (phrase("That did not work"), phrase("The form could not be read. Go back and try again.")),
    429: (phrase("Too many tries"), phrase("Wait a little before you try again.")),
    500: (
        phrase("Something went wrong"),
        phrase("The mistake is ours, and it was written down. Try again in a moment."),
    ),
    503: (
        phrase("One moment, please"),
        phrase("The service is busy or starting. Try again in a few seconds."),
    ),
}


def problem_of(visit: Visit, error: Exception) -> HttpError:
    """What to answer when this was raised."""
    request = visit.request
    match error:
        case HttpError():
            problem = error
        case OrderNotFound() | BadInput():
            problem = HttpError(404 if isinstance(error, OrderNotFound) else 400, "refused", "")
        case Forbidden():
            problem = HttpError(403, "forbidden", "")
        case NoVatRate():
            problem = HttpError(400, "no_vat_rate", f"Your company: {error}.")
        case StoredUnseen():
            text = phrase(
                "It is done, but can't be shown just now. Look at your orders before you try again."
            )
            problem = HttpError(503, "done_but_unseen", text)
        case OutcomeUnknown():
            logger.error("outcome_unknown", request_id=request.id, error=repr(error.__cause__))
            problem = HttpError(503, LATE_WRITE.code, LATE, headers=LATE_WRITE.headers)
        case TooManyTries():
            retry = (b"retry-after", str(error.wait_s).encode())
            problem = HttpError(429, "too_many_tries", too_many(visit.words, error), headers=[retry])
        case _ if isinstance(error, MISSING):
            problem = missing()
        case _ if isinstance(error, (BatcherFull, PasswordChecksBusy, *UNAVAILABLE)):
            logger.error("page_unavailable", request_id=request.id, error=repr(error))
            problem = HttpError(503, "unavailable", "", headers=[(b"retry-after", b"1")])
        case _:
            about = {"request_id": request.id, "method": request.method, "path": request.path}
            logger.error("page_failed", **about, exc_info=error)
            problem = HttpError(500, "internal_error", "")
    return problem


def too_many(words: Words, refused: TooManyTries) -> str:
    """What to say to who has tried too often."""
    if refused.wait_s < 120:
        return words.plural(
            "Too many tries. Wait {count} second, then try again.",
            "Too many tries. Wait {count} seconds, then try again.",
            refused.wait_s,
        )
    return words.plural(
        "Too many tries. Wait {count} minute, then try again.",
        "Too many tries. Wait {count} minutes, then try again.",
        -(-refused.wait_s // 60),
    )


def problem_page(visit: Visit, problem: HttpError) -> Response:
    """What went wrong, in the reader's words where it is for a browser."""
    title, text = _WORDS.get(problem.status, _WORDS[400])
    if b"text/html" not in visit.request.headers.get(b"accept", b""):
        line = problem.text or title.lower()
        return Response(problem.status, line.encode(), TEXT, list(problem.headers))
    own = " " in problem.text and problem.status not in (404, 405)
    words = visit.words
    response = render(
        "problem.html",
        visit,
        status=problem.status,
        title=words.find(title),
        text=words.find(problem.text if own else text),
    )
    response.headers += problem.headers
    return response
