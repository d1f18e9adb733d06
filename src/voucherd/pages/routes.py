"""Every page: the doors here, each area's pages in a table of its own."""

from __future__ import annotations

import re
from typing import Final

from voucherd.pages import guide, sign_in
from voucherd.pages.buyer.pages import PAGES as BUYER
from voucherd.pages.console.pages import PAGES as CONSOLE
from voucherd.pages.page import Audience, Page
from voucherd.pages.people.pages import PAGES as PEOPLE
from voucherd.pages.recipient.pages import PAGES as RECIPIENT

_PLACE: Final = re.compile(r"\{([a-z_]+)\}")
_PUBLIC, _ANY = Audience.PUBLIC, Audience.SIGNED_IN

DOORS: Final[tuple[Page, ...]] = (
    Page("GET", "/", sign_in.start, _PUBLIC),
    Page("GET", "/sign-in", sign_in.sign_in_page, _PUBLIC),
    Page("POST", "/sign-in", sign_in.sign_in, _PUBLIC),
    Page("GET", "/sign-in/second-factor", sign_in.second_factor_page, _PUBLIC),
    Page("POST", "/sign-in/second-factor", sign_in.second_factor, _PUBLIC),
    Page("POST", "/sign-in/passkey/options", sign_in.passkey_options, _PUBLIC),
    Page("POST", "/sign-in/passkey", sign_in.passkey, _PUBLIC),
    Page("POST", "/sign-out", sign_in.sign_out, _PUBLIC),
    Page("POST", "/state", sign_in.switch_state, _ANY),
    Page("GET", "/docs", guide.guide, _PUBLIC),
)
PAGES: Final[tuple[Page, ...]] = DOORS + PEOPLE + RECIPIENT + BUYER + CONSOLE


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
