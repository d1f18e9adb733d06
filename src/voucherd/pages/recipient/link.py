"""The page behind a redemption link (OP-57): what it is, and the code on a click."""

from __future__ import annotations

import re
from typing import Final

from voucherd import clock
from voucherd.catalogue import logos
from voucherd.http import Response
from voucherd.limits import unknown_links
from voucherd.pages.assets import FOR_EVER
from voucherd.pages.recipient import pictures, visitors
from voucherd.pages.recipient.words import LANGUAGES, PageWords, pick
from voucherd.pages.render import render
from voucherd.pages.visit import Visit, missing
from voucherd.recipients.pins import PIN_DIGITS_MAX, PinCheck, Tried
from voucherd.recipients.service import Closed, ShownVoucher
from voucherd.recipients.vouchers import VoucherStatus

_UNSEEN: Final = (b"x-robots-tag", b"noindex, nofollow, noarchive, nosnippet")
_STATUSES: Final = {None: 200, PinCheck.WRONG: 422, PinCheck.NOT_NOW: 429}

_STEP: Final = re.compile(r"([0-9]{1,2})[.)]\s+(.+)")

TITLES: Final = {
    "giftcard": "Your gift card from {brand}",
    "gamecard": "Your game card from {brand}",
    "topup": "Your top-up from {brand}",
    "paymentcard": "Your payment card from {brand}",
    "subscription": "Your subscription from {brand}",
}


async def voucher(visit: Visit) -> Response:
    """What is behind the link, without the code."""
    if visit.services.unknown_links.spent(visit.request.client_ip):
        return _notice(visit, 429)
    person = visitors.is_person(visit.request)
    closed = await visit.services.recipients.open(visit.parameters["token"], person=person)
    if closed is None:
        return _unknown(visit)
    return _page(visit, closed, None)


async def reveal(visit: Visit) -> Response:
    """The code, to a person who asks for it. Not after a redirect: nothing but the click itself may show it."""
    token, recipients = visit.parameters["token"], visit.services.recipients
    if visit.services.unknown_links.spent(visit.request.client_ip):
        return _notice(visit, 429)
    stale = _stale(visit, token)
    if stale:
        closed = await recipients.open(token, person=False)
        return _unknown(visit) if closed is None else _page(visit, closed, None, stale=stale)
    found = await recipients.reveal(token, visit.form.get("pin"), visit.request.client_ip)
    if found is None:
        return _unknown(visit)
    if isinstance(found, ShownVoucher):
        return _page(visit, Closed(found.voucher), found)
    return _page(visit, found, None)


async def logo(visit: Visit) -> Response:
    """A brand's logo. Another one has another name, so a cache may keep it for ever."""
    name = visit.parameters["name"]
    content = None
    if logos.NAME.fullmatch(name):
        async with visit.pool.acquire() as conn:
            content = await logos.find_logo(conn, name)
    if content is None:
        raise missing()
    return Response(200, content, logos.TYPES[name.rpartition(".")[2]], cache_control=FOR_EVER)


def _stale(visit: Visit, token: str) -> str:
    """Why this click shows nothing; empty for one that may."""
    if not visitors.is_person(visit.request):
        return _words(visit).text("Please open this link in another browser to see the code.")
    if not visit.services.recipients.form_fits(token, visit.form.get("word"), clock.now()):
        return _words(visit).text("This page was open for a long time. Please try once more.")
    return ""


def _unknown(visit: Visit) -> Response:
    """A link that leads nowhere, and never did as far as anyone can tell."""
    visit.services.unknown_links.note(visit.request.client_ip)
    return _notice(visit, 404)


def _words(visit: Visit) -> PageWords:
    accepted = visit.request.headers.get(b"accept-language", b"").decode("latin-1")
    return PageWords(pick(visit.query.get("lang"), accepted))


def _page(visit: Visit, closed: Closed, shown: ShownVoucher | None, *, stale: str = "") -> Response:
    words, found, now = _words(visit), closed.voucher, clock.now()
    token = visit.parameters["token"]
    ready = found.standing is VoucherStatus.READY
    response = render(
        "recipient/voucher.html",
        visit,
        status=400 if stale and ready else _STATUSES[None if closed.tried is None else closed.tried.told],
        **_facts(visit, words),
        token=token,
        voucher=found,
        standing=found.standing.value,
        test=bool(found.state),
        title=words.text(TITLES[found.product_type], brand=found.brand),
        value=words.money(found.face),
        until=None if found.expires_at is None else words.day(found.expires_at),
        place=words.place(found.region),
        steps=steps(found.instructions),
        word=visit.services.recipients.form_word(token, now) if ready and shown is None else "",
        pin_digits_max=PIN_DIGITS_MAX,
        problem=_problem(words, closed.tried),
        blocked=closed.tried is not None and closed.tried.told is PinCheck.NOT_NOW,
        stale=stale,
        tone=pictures.tone(found.brand_slug),
        ornament=pictures.ornament(found.brand_slug),
        shown=shown,
        qr=None if shown is None else pictures.qr_code(shown.code),
        bars=None if shown is None else pictures.barcode(shown.code),
    )
    response.headers.append(_UNSEEN)
    return response


def steps(instructions: str) -> list[str]:
    """The steps of instructions whose lines are numbered from 1 on; none where they are not."""
    found = [_STEP.fullmatch(line.strip()) for line in instructions.splitlines()]
    told = [(int(step[1]), step[2]) for step in found if step is not None]
    in_order = len(told) == len(found) > 1 and [number for number, _ in told] == list(range(1, len(told) + 1))
    return [text for _, text in told] if in_order else []


def _problem(words: PageWords, tried: Tried | None) -> str:
    """What is to be said of a PIN that did not open anything."""
    if tried is None:
        return ""
    if tried.blocked_until is not None:
        when = words.until(tried.blocked_until, clock.now())
        return words.text("Too many wrong PINs. You can try again {when}.", when=when)
    return words.text("That is not the right PIN. Tries left: {count}", count=tried.left)


def _notice(visit: Visit, status: int) -> Response:
    response = render(
        "recipient/notice.html",
        visit,
        status=status,
        **_facts(visit, _words(visit)),
        test=False,
        tired=status == 429,
    )
    response.headers.append(_UNSEEN)
    if status == 429:
        response.headers.append((b"retry-after", b"%d" % unknown_links.WINDOW_S))
    return response


def _facts(visit: Visit, words: PageWords) -> dict[str, object]:
    return {"t": words.text, "language": words.language, "languages": LANGUAGES, "path": visit.request.path}
