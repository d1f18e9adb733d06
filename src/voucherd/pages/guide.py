"""The docs for integrators: for everybody; for people of a company with a sandbox key of their own, if they like."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final
from urllib.parse import quote

import structlog
from markupsafe import Markup
from msgspec.structs import replace

from voucherd import clock
from voucherd.db import UNAVAILABLE, transaction
from voucherd.http import HTML, HttpError, Response
from voucherd.ids import State
from voucherd.keys import deeds as key_deeds
from voucherd.keys import store as key_store
from voucherd.keys.key_text import KeyWish
from voucherd.pages.visit import Visit, missing
from voucherd.people.roles import Right
from voucherd.storefront.service import SampleProduct

logger = structlog.get_logger(__name__)

LASTS: Final = timedelta(days=7)
SAMPLE_WAIT_S_MAX: Final = 2.0
"""The docs do not wait longer for a product of the catalogue: their samples name one that is made up, then."""
KEPT_BRIEFLY: Final = b"public, max-age=300"

_WHO: Final = b"<!-- who -->"
_OFFER_PLACE: Final = b"<!-- key offer -->"
_YESTERDAY: Final = b"{yesterday}"
_KEY_FIELD: Final = b'data-filled=""'
_KEY: Final = "export KEY=vk_test_…".encode()
_OFFER: Final = Markup(
    '<form method="post" action="/sandbox/portal/guide-key">{csrf}<input type="hidden" name="page" value="{page}">'
    '<button class="button">Fill in a sandbox key of mine</button></form>'
)
_SIGN_IN_FIRST: Final = Markup(
    '<p class="hint"><a href="/sign-in?next={path}">Sign in</a> to have one of yours filled in.</p>'
)
_FILLED: Final = Markup(
    '<p class="hint">This sandbox key is yours and new. It is not shown again, and ends in {days} days.</p>'
)


async def guide(visit: Visit) -> Response:
    """One page of the docs. Whoever may make keys can have one filled in."""
    path = visit.request.path
    return _dressed(visit, path, await _page(visit, path))


async def search(visit: Visit) -> Response:
    """What the docs have about these words."""
    return _dressed(visit, "/docs/search", visit.services.guide.found(visit.query.get("q")))


async def with_key(visit: Visit) -> Response:
    """A page of the docs with a new sandbox key in it; the last one that the docs made for this person ends."""
    path = visit.form.get("page") or "/docs"
    page = await _page(visit, path)
    description = f"API guide, {visit.someone.email}"[:200]
    actor = replace(visit.actor, state=State.SANDBOX)
    async with transaction(visit.pool) as tx:
        for old in await key_store.list_keys(tx, visit.company_id):
            if old.description == description and old.state is State.SANDBOX and old.revoked_at is None:
                await key_deeds.revoke(tx, actor, old.id)
        wish = KeyWish(description=description, expires_at=clock.now() + LASTS)
        try:
            _, text = await key_deeds.add(tx, actor, visit.company_id, State.SANDBOX, wish)
        except key_deeds.TooManyKeys:
            raise HttpError(
                422, "too_many_keys", "Your company has too many keys. Revoke one first."
            ) from None
    return _dressed(visit, path, page, text)


async def _page(visit: Visit, path: str) -> bytes:
    """The page at a path of the docs, with samples that order what is for sale."""
    product = await visit.services.reports.get("sample product", lambda: _sample(visit))
    page = visit.services.guide.page(path, product)
    if page is None:
        raise missing()
    return page


async def _sample(visit: Visit) -> SampleProduct | None:
    """A product that is for sale, so that the samples work as they are printed."""
    try:
        async with asyncio.timeout(SAMPLE_WAIT_S_MAX):
            return await visit.services.storefront.sample()
    except (TimeoutError, *UNAVAILABLE) as error:
        logger.warning("docs_without_product", error=repr(error))
        return None


def _dressed(visit: Visit, path: str, page: bytes, key: str | None = None) -> Response:
    """A page of the docs for this visitor: the way in or back, and what is to be said about a key."""
    yesterday = clock.now().date() - timedelta(days=1)
    page = page.replace(_YESTERDAY, yesterday.isoformat().encode())
    page = page.replace(_WHO, _way(visit, path).encode(), 1)
    page = page.replace(_OFFER_PLACE, _offer(visit, path, key).encode(), 1)
    if key is not None:
        page = page.replace(_KEY_FIELD, b'value="%b"' % key.encode(), 1)
        page = page.replace(_KEY, b"export KEY=" + key.encode(), 1)
    if visit.person is not None:
        return Response(200, page, HTML)
    return Response(200, page, HTML, [(b"vary", b"cookie")], KEPT_BRIEFLY)


def _way(visit: Visit, path: str) -> Markup:
    """The link in the header: to sign in, or back to where a person's own pages are."""
    if visit.person is None:
        return Markup('<a class="button" href="/sign-in?next={}">Sign in</a>').format(quote(path, safe="/"))
    if visit.person.company is None:
        return Markup('<a class="button" href="/console">Back to the console</a>')
    return Markup('<a class="button" href="/portal">Back to the portal</a>')


def _offer(visit: Visit, path: str, key: str | None) -> Markup:
    """What is said beside the field for a key."""
    if key is not None:
        return _FILLED.format(days=LASTS.days)
    if visit.person is None:
        return _SIGN_IN_FIRST.format(path=quote(path, safe="/"))
    if visit.person.company is None or not visit.may(Right.KEYS_MANAGE):
        return Markup("")
    return _OFFER.format(csrf=visit.csrf_field, page=path)
