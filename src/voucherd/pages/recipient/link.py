"""The page behind a redemption link (OP-57): what it is, and the code on a click."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from barcode.codex import Code128
from barcode.errors import BarcodeError
from markupsafe import Markup

from voucherd import clock
from voucherd.catalogue import logos
from voucherd.http import Request, Response
from voucherd.limits import unknown_links
from voucherd.pages.assets import FOR_EVER
from voucherd.pages.qr import square
from voucherd.pages.render import render
from voucherd.pages.visit import Visit, cookies_of, missing, session_cookie_name
from voucherd.people import sessions
from voucherd.recipients.pins import PIN_DIGITS_MAX, PinCheck, Tried
from voucherd.recipients.service import Closed, ShownVoucher
from voucherd.recipients.vouchers import VoucherStatus
from voucherd.setup import store as shop_store
from voucherd.words import LANGUAGES, Words, phrase, pick

_UNSEEN: Final = (b"x-robots-tag", b"noindex, nofollow, noarchive, nosnippet")
_STATUSES: Final = {None: 200, PinCheck.WRONG: 422, PinCheck.NOT_NOW: 429}

_STEP: Final = re.compile(r"([0-9]{1,2})[.)]\s+(.+)")

TONES: Final = 12
"""Gradients of the style sheet; each carries white text."""
BARCODE_CHARS_MAX: Final = 40
"""A longer one is wider than a telephone, and no scanner reads it there."""
_QUIET: Final = 10
"""Modules of white that Code 128 wants at each end."""
_AGENT_CHARS_MAX: Final = 1_000
# Programs that fetch the links of chats, mails and posts to show a preview or to look for harm, and those that collect
# pages. Browsers inside of apps carry the app's name, too, and a person looks through them: the names are no shorter
# than they must be. CUBOT makes telephones.
_PROGRAMS: Final = re.compile(
    r"(?<!cu)bot\b|crawler|spider|slurp|preview|prefetch|prerender|headless|externalhit|facebookcatalog|meta-external"
    r"|^whatsapp/|slack-imgproxy|pinterest/0|viber|line-poker|kakaotalk-scrap|mastodon|embedly|iframely|google-|googleother"
    r"|googleimageproxy|mediapartners|favicons|safelinks|microsoft office|ms-office|outlook|exchangewebservices"
    r"|proofpoint|mimecast|barracuda|trendmicro|symantec|virustotal|urlscan|phishtank|zscaler|cloudmark|netcraft"
    r"|^python|^curl/|^wget|libwww|httpclient|http-client|^okhttp|^java/|^go-http|node-fetch|^axios|^undici|^ruby|^php",
    re.IGNORECASE,
)

TITLES: Final = {
    "giftcard": phrase("Your gift card from {brand}"),
    "gamecard": phrase("Your game card from {brand}"),
    "topup": phrase("Your top-up from {brand}"),
    "paymentcard": phrase("Your payment card from {brand}"),
    "subscription": phrase("Your subscription from {brand}"),
}


async def voucher(visit: Visit) -> Response:
    """What is behind the link, without the code."""
    if visit.services.unknown_links.spent(visit.request.client_ip):
        return _notice(visit, 429)
    person = is_person(visit.request)
    sender_id = await _sender(visit) if person else None
    closed = await visit.services.recipients.open(
        visit.parameters["token"], person=person, sender_id=sender_id
    )
    if closed is None:
        return _unknown(visit)
    return _page(visit, closed, None)


async def _sender(visit: Visit) -> int | None:
    """The company of whoever is signed in at this browser, whose own look at a link counts for nothing (OP-165)."""
    token = cookies_of(visit.request).get(session_cookie_name(visit.services.settings))
    session = await sessions.find(visit.pool, token) if token else None
    company = None if session is None or session.pending else session.person.company
    return None if company is None else company.id


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
        content = await visit.look(logos.find_logo, name) or await visit.look(shop_store.find_logo, name)
    if content is None:
        raise missing()
    return Response(200, content, logos.TYPES[name.rpartition(".")[2]], cache_control=FOR_EVER)


def _stale(visit: Visit, token: str) -> str:
    """Why this click shows nothing; empty for one that may."""
    if not is_person(visit.request):
        return _words(visit).text("Please open this link in another browser to see the code.")
    if not visit.services.recipients.form_fits(token, visit.form.get("word"), clock.now()):
        return _words(visit).text("This page was open for a long time. Please try once more.")
    return ""


def _unknown(visit: Visit) -> Response:
    """A link that leads nowhere, and never did as far as anyone can tell."""
    visit.services.unknown_links.note(visit.request.client_ip)
    return _notice(visit, 404)


def _words(visit: Visit) -> Words:
    """In the language that the address asks for, else the browser's."""
    visit.words = Words(pick(visit.query.get("lang"), visit.words.language))
    return visit.words


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
        until=None if found.expires_at is None else words.long_day(found.expires_at),
        place=words.place(found.region),
        steps=steps(found.instructions),
        word=visit.services.recipients.form_word(token, now) if ready and shown is None else "",
        pin_digits_max=PIN_DIGITS_MAX,
        problem=_problem(words, closed.tried),
        blocked=closed.tried is not None and closed.tried.told is PinCheck.NOT_NOW,
        stale=stale,
        tone=tone(found.brand_slug),
        ornament=ornament(found.brand_slug),
        shown=shown,
        qr=None if shown is None else qr_code(shown.code),
        bars=None if shown is None else barcode(shown.code),
    )
    response.headers.append(_UNSEEN)
    return response


def steps(instructions: str) -> list[str]:
    """The steps of instructions whose lines are numbered from 1 on; none where they are not."""
    found = [_STEP.fullmatch(line.strip()) for line in instructions.splitlines()]
    told = [(int(step[1]), step[2]) for step in found if step is not None]
    in_order = len(told) == len(found) > 1 and [number for number, _ in told] == list(range(1, len(told) + 1))
    return [text for _, text in told] if in_order else []


def _problem(words: Words, tried: Tried | None) -> str:
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


def _facts(visit: Visit, words: Words) -> dict[str, object]:
    return {"language": words.language, "languages": LANGUAGES, "path": visit.request.path}


def is_person(request: Request) -> bool:
    """Whether a person looks at this page. In doubt not: what does not count can be opened again."""
    headers = request.headers
    if not request.body_wanted:
        return False
    ahead = headers.get(b"sec-purpose", b"") + headers.get(b"purpose", b"") + headers.get(b"x-moz", b"")
    if b"prefetch" in ahead.lower() or b"preview" in ahead.lower() or b"prerender" in ahead.lower():
        return False
    agent = headers.get(b"user-agent", b"").decode("latin-1")[:_AGENT_CHARS_MAX]
    if not agent:
        return False
    return _PROGRAMS.search(agent) is None


def qr_code(code: str) -> Markup:
    """The code as a QR code, black on white."""
    made = square(code)
    drawn = made.svg_inline(border=4, svgclass=None, lineclass=None, omitsize=True, dark="#000", light="#fff")
    return Markup(drawn.replace("<svg ", '<svg role="img" aria-labelledby="qr-name" ', 1))  # noqa: S704 - Squares.


def barcode(code: str) -> Markup | None:
    """The code as Code 128; None where that can't write it, or it would be too wide."""
    if len(code) > BARCODE_CHARS_MAX:
        return None
    try:
        (modules,) = Code128(code).build()
    except BarcodeError:
        return None
    bars, at = [], _QUIET
    for bar in modules.split("0"):
        if bar:
            bars.append(f"M{at} 0h{len(bar)}v40h-{len(bar)}z")
        at += len(bar) + 1
    width = len(modules) + 2 * _QUIET
    return Markup(  # noqa: S704 - Numbers and constants only.
        f'<svg viewBox="0 0 {width} 40" preserveAspectRatio="none" role="img" aria-labelledby="bars-name">'
        f'<path fill="#fff" d="M0 0h{width}v40h-{width}z"/><path fill="#000" d="{"".join(bars)}"/></svg>'
    )


def tone(brand_slug: str) -> int:
    """The gradient of a brand: always the same one."""
    return _digest(brand_slug)[0] % TONES


def ornament(brand_slug: str) -> Markup:
    """Circles of light behind a brand's card: always the same ones."""
    digest = _digest(brand_slug)
    circles = "".join(
        f'<circle cx="{digest[at] * 340 // 255}" cy="{digest[at + 1] * 214 // 255}" r="{60 + digest[at + 2] // 2}" '
        f'fill="#fff" fill-opacity="{("0.10", "0.06", "0.08")[at % 3]}"/>'
        for at in (1, 5, 9)
    )
    return Markup(  # noqa: S704 - Numbers and constants only.
        '<svg class="ornament" viewBox="0 0 340 214" preserveAspectRatio="xMidYMid slice" aria-hidden="true">'
        f"{circles}</svg>"
    )


def _digest(brand_slug: str) -> bytes:
    return hashlib.blake2b(brand_slug.encode(), digest_size=16).digest()
