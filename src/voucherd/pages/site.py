"""The way of a page's request: path, session, audience, right, form, handler; and errors become pages too."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import AsyncIterator, Coroutine
from typing import Final, NamedTuple
from urllib.parse import quote, urlsplit

import structlog

from voucherd.http import NO_SNIFFING, HttpError, Request, Response
from voucherd.pages import addresses, problems, routes
from voucherd.pages.forms import FormReader, read_query
from voucherd.pages.page import BODY_BYTES_MAX, SLOW_TIMES, Audience, Page
from voucherd.pages.people import security
from voucherd.pages.problems import problem_of, problem_page
from voucherd.pages.render import render
from voucherd.pages.roles import REFUSALS
from voucherd.pages.visit import (
    Visit,
    cookie,
    cookies_of,
    device_cookie_name,
    missing,
    own_address,
    see_other,
    session_cookie_name,
)
from voucherd.people import sessions
from voucherd.people.roles import Right
from voucherd.people.sessions import Person
from voucherd.server.bounds import LATE
from voucherd.services import Services
from voucherd.words import SOURCE, ZONE, Words, phrase, pick, zones

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
ENGLISH_ONLY: Final = frozenset({"console", "set-up"})
"""Pages of the operator, by the first part of their address."""
ZONE_COOKIE: Final = "zone"
"""The browser's own time zone, which a script of the pages writes down."""
ACCOUNT: Final = "/account"
"""Where people look after themselves: whoever owes a second factor gets no further."""
SECOND_FACTOR: Final = "/console/set-up/second-factor"
LOOK_EVERY_S: Final = 0.5
"""How often the sender of a live page looks whether its visitor may still see it."""
SUBJECT_CHARS_MAX: Final = 200
"""Of what a question is about, as its form names it."""
_VISITOR: Final = re.compile(r"[0-9a-f]{64}")


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
        found = routes.match(addresses.split(request.path)[1])
        page = None if found is None else found[0].get(request.method)
        return BODY_BYTES_MAX if page is None else page.body_bytes_max

    async def admit(self, request: Request) -> Response | None:
        """Judge session, audience, right and origin before a form is read; what it refuses is the answer."""
        visit = self._visit(request)
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
        try:
            return await work
        except Exception as error:  # noqa: BLE001 - It is logged where it becomes words.
            return problem_page(visit, problem_of(visit, error))

    def refuse(self, request: Request, problem: HttpError) -> Response:
        """The page for a request that was refused before it was read, or while it was."""
        visit = self._visit(request) if request.admission is None else request.admission.visit
        request.admission = request.reader = None
        if problem.code == LATE.code:
            said = "" if request.method == "GET" else problems.LATE
            problem = HttpError(problem.status, problem.code, said, headers=problem.headers)
        return self._finished(visit, problem_page(visit, problem))

    def _visit(self, request: Request) -> Visit:
        state, path = addresses.split(request.path)
        return Visit(request, self.services, state, path, _words(request, path))

    async def _judge(self, visit: Visit) -> Response | None:
        """Find the page and let the visitor in; None if a form, or the page itself, may follow."""
        request = visit.request
        found = routes.match(visit.path)
        if found is None:
            # Whoever is signed in keeps the navigation, so the session is looked at here, too.
            await self._recognise(visit)
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
            if _asks(page, visit):
                return _question(page, visit)
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
        cookies = cookies_of(visit.request)
        token = cookies.get(session_cookie_name(self.services.settings))
        if token:
            visit.session = await sessions.find(self.services.pool, token, visit.state)
        visit.words = _words(visit.request, visit.path, visit.person)
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
                raise HttpError(403, "signed_out", phrase("You are signed out. Sign in, then try again."))
            wanted = visit.request.path + (
                "?" + visit.request.query.decode("latin-1") if visit.request.query else ""
            )
            return see_other("/sign-in?next=" + quote(wanted, safe="/"))
        if self._owes_second_factor(visit) and not page.path.startswith((ACCOUNT, SECOND_FACTOR)):
            if visit.request.method != "GET":
                raise HttpError(403, "second_factor", phrase("Set up a second factor first."))
            return see_other(security.PATH)
        of_company = person.company is not None
        if page.audience is not Audience.SIGNED_IN and of_company is not (page.audience is Audience.COMPANY):
            raise missing()
        if not person.may(page.right):
            raise HttpError(403, "forbidden", _refusal(visit, page.right))
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
            raise HttpError(403, "foreign_form", phrase("This form came from another site."))

    async def _remember(self, visit: Visit, response: Response) -> None:
        """Keep what is to be said on the next page, and forget what was said on this one."""
        session = visit.session
        if session is None:
            return
        if visit.told is not None:
            await sessions.leave_flash(self.services.pool, session.key, visit.told)
        elif session.flash is not None and visit.flash_shown and response.status == 200:
            await sessions.leave_flash(self.services.pool, session.key, None)

    def _finished(self, visit: Visit, response: Response) -> Response:
        response.headers += HEADERS
        if self._secure:
            response.headers.append(STRICT_TRANSPORT)
        if visit.session is not None or not visit.forms_shown:
            visit.cookies = [one for one in visit.cookies if not one.startswith(self._visitor_name.encode())]
        response.headers += [(b"set-cookie", one) for one in visit.cookies]
        addresses.lead(response, visit.state, self._root)
        return response


def _asks(page: Page, visit: Visit) -> bool:
    """Whether the person has yet to say that this deed is meant."""
    if not page.asks or visit.form.get("sure") == "yes":
        return False
    return page.asks_if is None or visit.form.get(page.asks_if[0]) == page.asks_if[1]


def _question(page: Page, visit: Visit) -> Response:
    """The page that asks first; its form holds everything that was sent."""
    back = visit.form.get("back")
    return render(
        "sure.html",
        visit,
        question=page.asks,
        button=page.sure,
        subject=visit.form.get("subject")[:SUBJECT_CHARS_MAX],
        back=back if own_address(back) else "/",
        sent=[(name, value) for name in visit.form if name != "csrf" for value in visit.form.all(name)],
    )


async def _next(body: AsyncIterator[bytes]) -> bytes | None:
    """The next part, None at the end."""
    return await anext(body, None)


def _refusal(visit: Visit, right: Right | None) -> str:
    assert right is not None, "everybody has no right at all"
    change = visit.words.text("Someone who manages your team can change that.")
    return f"{visit.words.text(REFUSALS[right])} {change}"


def _words(request: Request, path: str, person: Person | None = None) -> Words:
    """How to speak to a visitor: as the person chose, else as the browser likes it; the console speaks English."""
    zone = (
        cookies_of(request).get(ZONE_COOKIE, "")
        if person is None or not person.time_zone
        else person.time_zone
    )
    if path.partition("/")[2].partition("/")[0] in ENGLISH_ONLY:
        language = SOURCE
    else:
        accepted = request.headers.get(b"accept-language", b"").decode("latin-1")
        language = pick("" if person is None else person.language, accepted)
    return Words(language, zone if zone in zones() else ZONE)
