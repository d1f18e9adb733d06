"""Every page: signing in here, each area's pages in a table of its own."""

from __future__ import annotations

from typing import Final

from voucherd.pages import guide, sign_in
from voucherd.pages.buyer.pages import PAGES as BUYER
from voucherd.pages.console.pages import PAGES as CONSOLE
from voucherd.pages.page import Audience, Page
from voucherd.pages.people.pages import PAGES as PEOPLE
from voucherd.pages.recipient import link
from voucherd.router import Router, names

_PUBLIC, _ANY = Audience.PUBLIC, Audience.SIGNED_IN

SIGN_IN: Final[tuple[Page, ...]] = (
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
RECIPIENT: Final[tuple[Page, ...]] = (
    Page("GET", "/r/{token}", link.voucher, Audience.LINK),
    Page("POST", "/r/{token}", link.reveal, Audience.LINK),
    Page("GET", "/logo/{name}", link.logo, Audience.LINK),
)
PAGES: Final[tuple[Page, ...]] = SIGN_IN + PEOPLE + RECIPIENT + BUYER + CONSOLE


VALUE_CHARS_MAX: Final = 200

_find: Final = Router((page.method, page.path, page) for page in PAGES).match


def match(path: str) -> tuple[dict[str, Page], dict[str, str]] | None:
    """The pages at this path by method, and its parameters by name."""
    found = _find(path)
    if found is None or any(len(value) > VALUE_CHARS_MAX for value in found.values):
        return None
    return found.methods, dict(zip(names(found.path), found.values, strict=True))
