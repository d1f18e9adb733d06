"""A visit: one request of a page, with everything that is known about who made it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Concatenate, Final, ParamSpec, TypeVar

from markupsafe import Markup, escape
from msgspec import Struct, field

from voucherd.actors import Actor, ActorKind
from voucherd.companies.model import Company
from voucherd.db import Connection, Pool, Tx, transaction
from voucherd.http import HttpError, Request, Response
from voucherd.ids import State
from voucherd.pages.forms import FormFields, Problems, Upload
from voucherd.people.roles import Right
from voucherd.people.sessions import AGE_MAX, Browser, Flash, Person, Session
from voucherd.people.sign_in import Origin
from voucherd.services import Services
from voucherd.settings import Settings
from voucherd.words import ENGLISH, Words

P = ParamSpec("P")
T = TypeVar("T")

DEVICE_KNOWN: Final = timedelta(days=365)
_AN_ADDRESS_OF_OURS: Final = re.compile(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]*")


class Visit(Struct):
    """What a handler gets."""

    request: Request
    services: Services
    state: State = State.LIVE
    """Live or sandbox, as the address says."""
    path: str = ""
    """The address without that, as the table of pages knows it."""
    words: Words = ENGLISH
    """The language and the time zone of whoever looks."""
    parameters: dict[str, str] = field(default_factory=dict)
    query: FormFields = field(default_factory=lambda: FormFields([]))
    form: FormFields = field(default_factory=lambda: FormFields([]))
    files: dict[str, Upload] = field(default_factory=dict)
    problems: Problems = field(default_factory=Problems)
    """A page with problems is drawn again with the form as it was sent."""
    session: Session | None = None
    """Also of someone who still owes the second factor: `person` is None then."""
    visitor: str = ""
    """A random word in a cookie; the forms of people who have not signed in are tied to it."""
    device: str = ""
    """What the browser brings of an earlier sign-in, whatever it says."""
    told: Flash | None = None
    cookies: list[bytes] = field(default_factory=list)
    forms_shown: bool = False
    flash_shown: bool = False

    @property
    def pool(self) -> Pool:
        """The connections to the database."""
        return self.services.pool

    @property
    def person(self) -> Person | None:
        """Who is signed in."""
        return None if self.session is None or self.session.pending else self.session.person

    @property
    def someone(self) -> Person:
        """Who is signed in, on a page that only such people reach."""
        assert self.person is not None, "a page of the public knows nobody"
        return self.person

    @property
    def company(self) -> Company:
        """The company of whoever is signed in, on a page of companies."""
        assert self.someone.company is not None, "the operator's people have no company"
        return self.someone.company

    @property
    def company_id(self) -> int:
        """The company's id: it belongs into every query."""
        return self.company.id

    @property
    def csrf(self) -> str:
        """The word that every form of this visitor has to bring back."""
        self.forms_shown = True
        return self.session.csrf.hex() if self.session is not None else self.visitor

    @property
    def csrf_field(self) -> Markup:
        """The same as a hidden field."""
        return Markup('<input type="hidden" name="csrf" value="{}">').format(escape(self.csrf))

    @property
    def actor(self) -> Actor:
        """Who is signed in, as the trail names people."""
        person = self.someone
        return Actor(
            ActorKind.OPERATOR if person.company is None else ActorKind.PERSON,
            person.email,
            person.id,
            company_id=None if person.company is None else person.company.id,
            state=None if person.company is None else self.state,
            address=self.request.client_ip or None,
            request_id=self.request.id or None,
        )

    @property
    def browser(self) -> Browser:
        """Where the visit comes from."""
        agent = self.request.headers.get(b"user-agent", b"").decode("latin-1")
        return Browser(self.request.client_ip, "".join(c for c in agent if c.isprintable()))

    @property
    def origin(self) -> Origin:
        """Where the visit comes from, as signing in looks at it."""
        before = None if self.session is None else self.session.key
        return Origin(self.browser, self.device or None, before, self.request.id)

    def may(self, right: Right | None) -> bool:
        """Whether whoever is here has this right."""
        return self.person is not None and self.person.may(right)

    def tell(self, text: str, kind: str = "good") -> None:
        """Say this once on the next page: `good`, `bad` or a `note`."""
        assert self.session is not None, "only a session remembers"
        self.told = Flash(text, kind)

    def go(self, path: str, text: str, kind: str = "good") -> Response:
        """Go to a page of ours that says this once."""
        self.tell(text, kind)
        return see_other(path)

    def read(self, name: str, parse: Callable[[str], T]) -> T | None:
        """The value of the form's field; None, and a problem beside the field, if it can't be read."""
        return self.problems.read(name, parse, self.form.get(name))

    def ask(self, name: str, parse: Callable[[str], T]) -> T | None:
        """The same of the address."""
        return self.problems.read(name, parse, self.query.get(name))

    async def look(
        self, query: Callable[Concatenate[Connection, P], Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """The answer of one query."""
        async with self.pool.acquire() as connection:
            return await query(connection, *args, **kwargs)

    async def do(
        self, deed: Callable[Concatenate[Tx, Actor, P], Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Do a deed as the person who is signed in, in a transaction of its own."""
        async with transaction(self.pool) as tx:
            return await deed(tx, self.actor, *args, **kwargs)


def missing() -> HttpError:
    """There is no such thing."""
    return HttpError(404, "not_found", "not found")


def see_other(path: str) -> Response:
    """What follows a form that was sent: go there, so that loading the page again sends nothing again."""
    assert own_address(path), path
    return Response(303, b"", None, [(b"location", path.encode())])


def own_address(path: str) -> bool:
    """Whether this leads to a page of ours, whatever a browser makes of slashes."""
    return _AN_ADDRESS_OF_OURS.fullmatch(path) is not None


def cookie(name: str, value: str, *, secure: bool, lasts: timedelta | None = None) -> bytes:
    """A Set-Cookie that only this site's own server gets back."""
    parts = [f"{name}={value}", "Path=/", "HttpOnly", "SameSite=Lax"]
    if secure:
        parts.append("Secure")
    if lasts is not None:
        parts.append(f"Max-Age={int(lasts.total_seconds())}")
    return "; ".join(parts).encode()


def cookies_of(request: Request) -> dict[str, str]:
    """What the browser sends along, by name."""
    pairs = (one.partition("=") for one in request.headers.get(b"cookie", b"").decode("latin-1").split(";"))
    return {name.strip(): value.strip() for name, _, value in pairs}


def session_cookie_name(settings: Settings) -> str:
    """The name of the session's cookie: over TLS one that no other host can set."""
    return "__Host-voucherd" if settings.public_url.startswith("https:") else "voucherd"


def session_cookie(settings: Settings, token: str) -> bytes:
    """The cookie of a session; an empty token takes it away."""
    secure = settings.public_url.startswith("https:")
    lasts = AGE_MAX if token else timedelta()
    return cookie(session_cookie_name(settings), token, secure=secure, lasts=lasts)


def device_cookie_name(settings: Settings) -> str:
    """The name of the cookie by which a device is known again."""
    return "__Host-device" if settings.public_url.startswith("https:") else "device"


def device_cookie(settings: Settings, value: str) -> bytes:
    """The cookie of a device that signed in."""
    secure = settings.public_url.startswith("https:")
    return cookie(device_cookie_name(settings), value, secure=secure, lasts=DEVICE_KNOWN)
