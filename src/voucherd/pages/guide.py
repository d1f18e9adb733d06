"""The guide for integrators; for people of a company with a sandbox key of their own in its examples."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from markupsafe import Markup
from msgspec.structs import replace

from voucherd import clock
from voucherd.db import transaction
from voucherd.http import HTML, HttpError, Response
from voucherd.ids import State
from voucherd.keys import deeds as key_deeds
from voucherd.keys import store as key_store
from voucherd.keys.key_text import KeyWish
from voucherd.pages.visit import Visit, missing
from voucherd.people.roles import Right
from voucherd.services import Services

LASTS: Final = timedelta(days=7)
_PLACE: Final = b"<!-- whose key -->"
_KEY: Final = b"KEY=vk_test_\xe2\x80\xa6"
_OFFER: Final = Markup(
    '<form method="post" action="/portal/guide-key">{csrf}'
    '<button class="button">Fill in a sandbox key of mine</button></form>'
)
_FILLED: Final = Markup(
    "<p>This sandbox key is yours and new. It is not shown again, and ends in {days} days.</p>"
)


async def guide(visit: Visit) -> Response:
    """The guide. Whoever may make keys can have one filled in."""
    if visit.person is None or visit.person.company is None or not visit.may(Right.KEYS_MANAGE):
        answer = visit.services.guide.answer(visit.request)
        answer.headers.append((b"vary", b"cookie"))
        return answer
    return _filled(visit.services, _OFFER.format(csrf=visit.csrf_field))


async def error_page(visit: Visit) -> Response:
    """What a code of an error means, or the list of all codes."""
    page = visit.services.error_pages.get(visit.parameters.get("code", ""))
    if page is None:
        raise missing()
    return page.answer(visit.request)


async def with_key(visit: Visit) -> Response:
    """The guide with a new sandbox key in its examples; the last one that the guide made for this person ends."""
    description = f"API guide, {visit.someone.email}"[:200]
    # A person may act in the sandbox whichever of the two the pages show.
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
    return _filled(visit.services, _FILLED.format(days=LASTS.days), text)


def _filled(services: Services, said: Markup, key: str | None = None) -> Response:
    """The guide for one person only: never packed, because it holds a secret beside text that others can guess."""
    page = services.guide.body.replace(_PLACE, said.encode(), 1)
    # It is not at the root of the site any more.
    for place in (b"static/", b"openapi.json", b"docs/"):
        page = page.replace(b'="' + place, b'="/' + place)
    if key is not None:
        page = page.replace(_KEY, b"KEY=" + key.encode(), 1)
    return Response(200, page, HTML)
