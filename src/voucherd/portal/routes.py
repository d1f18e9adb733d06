"""Every page on one screen."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from voucherd.access.roles import Right
from voucherd.http import Response
from voucherd.portal import doors
from voucherd.portal.buyer import overview as buyer_overview
from voucherd.portal.console import overview as console_overview
from voucherd.portal.house import House
from voucherd.portal.visit import Visit

BODY_BYTES_MAX: Final = 64 * 1024
_PLACE: Final = re.compile(r"\{([a-z_]+)\}")

Handler: TypeAlias = Callable[[House, Visit], Awaitable[Response]]


class Audience(Enum):
    """For whom a page is."""

    PUBLIC = "everybody"
    SIGNED_IN = "whoever signed in"
    COMPANY = "a company's people"
    OPERATOR = "the operator's people"


class Page(NamedTuple):
    """One page. A page that changes something is a POST."""

    method: str
    path: str
    handler: Handler
    audience: Audience
    right: Right | None = None
    body_bytes_max: int = BODY_BYTES_MAX


_PUBLIC, _ANY, _BUYER, _HOUSE = Audience.PUBLIC, Audience.SIGNED_IN, Audience.COMPANY, Audience.OPERATOR

PAGES: Final[tuple[Page, ...]] = (
    Page("GET", "/", doors.start, _PUBLIC),
    Page("GET", "/sign-in", doors.sign_in_page, _PUBLIC),
    Page("POST", "/sign-in", doors.sign_in, _PUBLIC),
    Page("POST", "/sign-out", doors.sign_out, _PUBLIC),
    Page("POST", "/state", doors.switch_state, _ANY),
    # ── the buyer's portal ──
    Page("GET", "/portal", buyer_overview.overview, _BUYER),
    # ── the operator's console ──
    Page("GET", "/console", console_overview.overview, _HOUSE),
)


class Routes:
    """Finds the page of a path."""

    def __init__(self, pages: tuple[Page, ...] = PAGES) -> None:
        self._plain: dict[str, dict[str, Page]] = {}
        places: dict[str, dict[str, Page]] = {}
        for page in pages:
            table = places if _PLACE.search(page.path) else self._plain
            methods = table.setdefault(page.path, {})
            assert page.method not in methods, f"two pages at {page.method} {page.path}"
            methods[page.method] = page
        self._patterns = [(_pattern(path), methods) for path, methods in places.items()]

    def match(self, path: str) -> tuple[dict[str, Page], dict[str, str]] | None:
        """The pages at this path by method, and what stands in its places."""
        plain = self._plain.get(path)
        if plain is not None:
            return plain, {}
        for pattern, methods in self._patterns:
            found = pattern.fullmatch(path)
            if found is not None:
                return methods, found.groupdict()
        return None


def _pattern(path: str) -> re.Pattern[str]:
    pieces = _PLACE.split(path)
    return re.compile(
        "".join(
            f"(?P<{piece}>[^/]{{1,200}})" if at % 2 else re.escape(piece) for at, piece in enumerate(pieces)
        )
    )
