"""The way of a page's request: path, session, audience, right, form, handler; and errors become pages too."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import AsyncIterator, Coroutine
from typing import Final, NamedTuple
from urllib.parse import quote, urlsplit

import structlog

from voucherd.approvals.model import ApprovalNotFound
from voucherd.batcher import BatcherFull
from voucherd.catalogue.logos import BrandNotFound
from voucherd.catalogue.price_deeds import NothingSaid
from voucherd.catalogue.pricing import NoVatRate
from voucherd.catalogue.rate_deeds import NoMargin, VatRateNotFound
from voucherd.catalogue.store import UnknownProduct
from voucherd.db import UNAVAILABLE, OutcomeUnknown
from voucherd.http import HTML, NO_SNIFFING, TEXT, HttpError, Request, Response
from voucherd.keys.callers import Forbidden
from voucherd.keys.store import KeyNotFound
from voucherd.limits.throttle import TooManyTries
from voucherd.orders.answers import StoredUnseen
from voucherd.orders.rules.refusals import BadInput, OrderNotFound
from voucherd.pages import routes
from voucherd.pages.forms import FormReader, read_query
from voucherd.pages.page import BODY_BYTES_MAX, SLOW_TIMES, Audience, Page
from voucherd.pages.render import render
from voucherd.pages.visit import Visit, cookie, device_cookie_name, missing, see_other, session_cookie_name
from voucherd.people import sessions
from voucherd.people.members import PersonNotFound
from voucherd.people.roles import Right
from voucherd.people.users import PasswordChecksBusy as PasswordsBusy
from voucherd.server.bounds import LATE, LATE_WRITE
from voucherd.services import Services
from voucherd.suppliers.store import UnknownSupplier
from voucherd.webhooks.endpoints import EndpointNotFound

logger = structlog.get_logger(__name__)

POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = (
    (b"content-security-policy", POLICY),
    NO_SNIFFING,
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)
STRICT_TRANSPORT: Final = (b"strict-transport-security", b"max-age=31536000; includeSubDomains")
ACCOUNT: Final = "/account"
"""Where people look after themselves: whoever owes a second factor gets no further."""
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
LOOK_EVERY_S: Final = 0.5
"""How often the sender of a live page looks whether its visitor may still see it."""
_VISITOR: Final = re.compile(r"[0-9a-f]{64}")
_OWN_LINK: Final = re.compile(rb' (href|action|src|formaction|data-live)="/(?!/)')

_LATE: Final = "It took too long, and may be done all the same. Look before you try again."
_WORDS: Final = {
    400: ("That did not work", "What was sent could not be understood. Go back and try again."),
    403: ("Not for you", "You may not do this. Whoever manages your team can give you the right to."),
    404: ("Nothing here", "This page does not exist, or it is not yours to see."),
    410: ("Too late", "This link leads nowhere any more."),
    405: ("Nothing here", "This address can't be used that way."),
    429: ("Too many tries", "Wait a little before you try again."),
    413: ("Too large", "What was sent is larger than this page takes."),
    500: ("Something broke", "It is our fault, and it has been written down. Try again in a moment."),
    503: ("One moment, please", "The service is busy or starting. Try again in a few seconds."),
}


class _Entrance(NamedTuple):
    """A visitor who was let in, to which page, and the form that is being read."""

    page: Page
    visit: Visit
    form: FormReader | None


class Site:
    """Answers every path outside the API."""

    def __init__(self, services: Services) -> None:
        self.services = services
        parts = urlsplit(services.settings.public_url)
        self._secure = parts.scheme == "https"
        self._root = parts.path.rstrip("/")
        self._origin = f"{parts.scheme}://{parts.netloc}".lower()
        self._visitor_name = "__Host-visitor" if self._secure else "visitor"

    def body_bytes_max(self, request: Request) -> int:
        """How large the body of a request may be: known before it is read."""
        found = routes.match(request.path)
        page = None if found is None else found[0].get(request.method)
        return BODY_BYTES_MAX if page is None else page.body_bytes_max

    async def admit(self, request: Request) -> Response | None:
        """Judge session, audience, right and origin before a form is read; what it refuses is the answer."""
        visit = Visit(request, self.services)
        refusal = await self._tried(visit, self._judge(visit))
        return None if refusal is None else self._finished(visit, refusal)

    async def answer(self, request: Request) -> Response:
        """The page; it never raises."""
        if request.admission is None:
            refusal = await self.admit(request)
            if refusal is not None:
                return refusal
        admission: _Entrance = request.admission
        page, visit, form = admission
        request.admission = request.reader = None
        response = await self._tried(visit, self._handle(page, visit, form))
        assert response is not None
        return self._finished(visit, response)

    async def _tried(self, visit: Visit, work: Coroutine[None, None, Response | None]) -> Response | None:
        """What comes of the work; whatever goes wrong becomes a page."""
        request = visit.request
        try:
            response = await work
        except HttpError as problem:
            response = self._problem(visit, problem)
        except MISSING:
            response = self._problem(visit, missing())
        except (OrderNotFound, BadInput) as refusal:
            status = 404 if isinstance(refusal, OrderNotFound) else 400
            response = self._problem(visit, HttpError(status, "refused", ""))
        except Forbidden:
            response = self._problem(visit, HttpError(403, "forbidden", ""))
        except NoVatRate as refused:
            response = self._problem(visit, HttpError(400, "no_vat_rate", f"Your company: {refused}."))
        except StoredUnseen:
            text = "It is done, but can't be shown just now. Look at your orders before you try again."
            response = self._problem(visit, HttpError(503, "done_but_unseen", text))
        except OutcomeUnknown as error:
            logger.error("outcome_unknown", request_id=request.id, error=repr(error.__cause__))
            response = self._problem(
                visit, HttpError(503, LATE_WRITE.code, _LATE, headers=LATE_WRITE.headers)
            )
        except TooManyTries as refused:
            text = f"Too many tries in vain. Wait {refused.wait_s} seconds, then try again."
            retry = (b"retry-after", str(refused.wait_s).encode())
            response = self._problem(visit, HttpError(429, "too_many_tries", text, headers=[retry]))
        except (BatcherFull, PasswordsBusy, *UNAVAILABLE) as error:
            logger.error("page_unavailable", request_id=request.id, error=repr(error))
            response = self._problem(
                visit, HttpError(503, "unavailable", "", headers=[(b"retry-after", b"1")])
            )
        except Exception:
            logger.exception("page_failed", request_id=request.id, method=request.method, path=request.path)
            response = self._problem(visit, HttpError(500, "internal_error", ""))
        return response

    def refuse(self, request: Request, problem: HttpError) -> Response:
        """The page for a request that was refused before it was read, or while it was."""
        visit = Visit(request, self.services) if request.admission is None else request.admission.visit
        request.admission = request.reader = None
        if problem.code == LATE.code:
            said = "" if request.method == "GET" else _LATE
            problem = HttpError(problem.status, problem.code, said, headers=problem.headers)
        return self._finished(visit, self._problem(visit, problem))

    async def _judge(self, visit: Visit) -> Response | None:
        """Find the page and let the visitor in; None if a form, or the page itself, may follow."""
        request = visit.request
        found = routes.match(request.path)
        if found is None:
            raise missing()
        methods, visit.parameters, request.route = found
        page = methods.get(request.method)
        if page is None:
            allow = ", ".join(sorted({*methods, "HEAD"} if "GET" in methods else methods)).encode()
            raise HttpError(405, "method_not_allowed", "method not allowed", headers=[(b"allow", allow)])
        if page.slow or page.body_bytes_max > BODY_BYTES_MAX:
            request.limit_s = SLOW_TIMES * self.services.settings.answer_limit_s
        by_link = page.audience is Audience.LINK
        if not by_link:
            await self._recognise(visit)
        visit.query = read_query(request)
        elsewhere = self._admit(page, visit)
        if elsewhere is not None:
            return elsewhere
        form = None
        if request.method == "POST":
            self._refuse_foreign(visit)
            form = FormReader(request, None if by_link else visit.csrf)
        request.admission, request.reader = _Entrance(page, visit, form), form
        return None

    async def _handle(self, page: Page, visit: Visit, form: FormReader | None) -> Response:
        """Do what the page does, for a visitor who may still do so when the form is whole."""
        request = visit.request
        if form is not None:
            if request.body:
                form.write(request.body)
            visit.form, visit.files = form.finish()
            if request.took_long and page.audience is not Audience.LINK:
                await self._recognise(visit)
                self._admit(page, visit)
        response = await page.handler(visit)
        await self._remember(visit, response)
        if response.endless:
            assert not isinstance(response.body, bytes)
            response.body = self._while_admitted(page, visit, response.body)
        return response

    async def _while_admitted(
        self, page: Page, visit: Visit, body: AsyncIterator[bytes]
    ) -> AsyncIterator[bytes]:
        """What a live page tells, until its visitor signs out, is deactivated or loses the right to it."""
        session, clock = visit.session, asyncio.get_running_loop().time
        assert session is not None, "only whoever signed in gets live pages"
        looked_at = clock()
        coming: asyncio.Future[bytes | None] | None = None
        try:
            while True:
                coming = coming or asyncio.ensure_future(_next(body))
                await asyncio.wait([coming], timeout=max(0.0, looked_at + LOOK_EVERY_S - clock()))
                if clock() >= looked_at + LOOK_EVERY_S:
                    if not await sessions.still_may(self.services.pool, session, page.right):
                        return
                    looked_at = clock()
                if coming.done():
                    part, coming = coming.result(), None
                    if part is None:
                        return
                    yield part
        finally:
            if coming is not None:
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)
            await Response(200, body).close()

    async def _recognise(self, visit: Visit) -> None:
        """Load the session, if the browser has one."""
        cookies = _cookies(visit.request)
        token = cookies.get(session_cookie_name(self.services.settings))
        if token:
            visit.session = await sessions.find(self.services.pool, token)
        visit.device = cookies.get(device_cookie_name(self.services.settings), "")
        visitor = cookies.get(self._visitor_name, "")
        visit.visitor = visitor if _VISITOR.fullmatch(visitor) else ""
        if not visit.visitor:
            visit.visitor = secrets.token_hex(32)
            visit.cookies.append(cookie(self._visitor_name, visit.visitor, secure=self._secure))

    def _admit(self, page: Page, visit: Visit) -> Response | None:
        """Let only those in for whom the page is; the rest is refused, or sent to sign in first."""
        if page.audience in (Audience.PUBLIC, Audience.LINK):
            return None
        person = visit.person
        if person is None:
            if visit.request.method != "GET":
                raise HttpError(403, "signed_out", "You are signed out. Sign in, then try again.")
            wanted = visit.request.path + (
                "?" + visit.request.query.decode("latin-1") if visit.request.query else ""
            )
            return see_other("/sign-in?next=" + quote(wanted, safe="/"))
        if self._owes_second_factor(visit) and not page.path.startswith(ACCOUNT):
            if visit.request.method != "GET":
                raise HttpError(403, "second_factor", "Set up a second factor first.")
            return see_other(ACCOUNT)
        of_company = person.company is not None
        if page.audience is not Audience.SIGNED_IN and of_company is not (page.audience is Audience.COMPANY):
            raise missing()
        if not person.may(page.right):
            raise HttpError(403, "forbidden", _missing(page.right))
        return None

    def _owes_second_factor(self, visit: Visit) -> bool:
        """Whether this person has to set one up before anything else."""
        session = visit.session
        if session is None or session.strong_at is not None:
            return False
        if session.person.company is None:
            return self.services.settings.operator_second_factor
        return session.asked

    def _refuse_foreign(self, visit: Visit) -> None:
        """A form that another site sends is refused before it is read; its csrf field would tell, too."""
        headers = visit.request.headers
        site = headers.get(b"sec-fetch-site", b"none")
        origin = headers.get(b"origin", b"null").decode("latin-1").lower()
        host = headers.get(b"host", b"").decode("latin-1").lower()
        ours = origin in ("null", self._origin) or urlsplit(origin).netloc == host
        if site not in (b"none", b"same-origin") or not ours:
            raise HttpError(403, "foreign_form", "This form came from another site.")

    async def _remember(self, visit: Visit, response: Response) -> None:
        """Keep what is to be said on the next page, and forget what was said on this one."""
        session = visit.session
        if session is None:
            return
        if visit.told is not None:
            await sessions.leave_flash(self.services.pool, session.key, visit.told)
        elif session.flash is not None and visit.flash_shown and response.status == 200:
            await sessions.leave_flash(self.services.pool, session.key, None)

    def _problem(self, visit: Visit, problem: HttpError) -> Response:
        """What went wrong, as a page for people and as a line for programs."""
        title, text = _WORDS.get(problem.status, _WORDS[400])
        said = (
            problem.text
            if problem.text and " " in problem.text and problem.status not in (404, 405)
            else text
        )
        if b"text/html" not in visit.request.headers.get(b"accept", b""):
            line = problem.text or title.lower()
            return Response(problem.status, line.encode(), TEXT, list(problem.headers))
        response = render("problem.html", visit, status=problem.status, title=title, text=said)
        response.headers += problem.headers
        return response

    def _finished(self, visit: Visit, response: Response) -> Response:
        response.headers += HEADERS
        if self._secure:
            response.headers.append(STRICT_TRANSPORT)
        if visit.session is not None or not visit.forms_shown:
            visit.cookies = [one for one in visit.cookies if not one.startswith(self._visitor_name.encode())]
        response.headers += [(b"set-cookie", one) for one in visit.cookies]
        if self._root:
            self._lead_home(response)
        return response

    def _lead_home(self, response: Response) -> None:
        """Behind a proxy that serves us under a path of its own, our links begin with that path."""
        root = self._root.encode()
        response.headers = [
            (name, root + value if name == b"location" and value.startswith(b"/") else value)
            for name, value in response.headers
        ]
        if response.content_type == HTML and isinstance(response.body, bytes):
            # No text of others can look like this: in it every quote is written as an entity.
            response.body = _OWN_LINK.sub(rb' \1="' + root + b"/", response.body)


async def _next(body: AsyncIterator[bytes]) -> bytes | None:
    """The next part, None at the end."""
    return await anext(body, None)


def _missing(right: Right | None) -> str:
    return f"You need the right “{right}” for this. Whoever manages your team can give it to you."


def _cookies(request: Request) -> dict[str, str]:
    pairs = (one.partition("=") for one in request.headers.get(b"cookie", b"").decode("latin-1").split(";"))
    return {name.strip(): value.strip() for name, _, value in pairs}
