"""What a scanner reads from the recipient's page, and who counts as a person."""

from __future__ import annotations

import re

import pytest

from voucherd.http import Request
from voucherd.limits.unknown_links import UNKNOWN_MAX, WINDOW_S, UnknownLinks
from voucherd.pages.recipient import link

IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 "
    "Mobile/15E148 Safari/604.1"
)
ANDROID = (
    "Mozilla/5.0 (Linux; Android 10; CUBOT NOTE 20) AppleWebKit/537.36 Chrome/140.0.0.0 Mobile Safari/537.36"
)


def test_numbered_lines_are_steps_and_others_are_as_they_are() -> None:
    """OP-57: how to redeem reads well, whatever the operator wrote."""
    assert link.steps("1. Open the app\n 2) Tap “Redeem” ") == ["Open the app", "Tap “Redeem”"]
    for other in ("", "1. Alone", "1. One\n3. Three", "1. One\nand more", "Just do it", "2. Two\n3. Three"):
        assert link.steps(other) == []


def test_pictures_hold_the_code_and_no_style() -> None:
    """Part of a strict content policy: nothing inline but shapes; what Code 128 can't write has no barcode."""
    for picture in (link.qr_code('A<b>&"é' * 20), link.barcode("ABC-123"), link.ornament("x")):
        assert picture is not None
        assert re.fullmatch(r"<svg [^<>]*>(<(path|circle) [^<>]*/>)+</svg>", picture), picture
        assert "style" not in picture
    assert link.barcode("é") is None
    assert link.barcode("A" * 41) is None
    # The bars of a Code 128 of three characters: start, three, check and stop, 11 modules each and 2 more at the end.
    assert 'viewBox="0 0 88 40"' in (link.barcode("ABC") or "")
    assert {link.tone(f"brand-{at}") for at in range(200)} == set(range(link.TONES))


def request(agent: str | None, *, wanted: bool = True, **headers: str) -> Request:
    """A request with these headers."""
    given = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
    if agent is not None:
        given[b"user-agent"] = agent.encode()
    return Request("GET", "/r/X", b"", given, b"", "127.0.0.1", "req", body_wanted=wanted)


@pytest.mark.parametrize(
    "agent",
    [
        "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
        "Slack-ImgProxy (+https://api.slack.com/robots)",
        "WhatsApp/2.23.20.0",
        "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
        "meta-externalagent/1.1",
        "Twitterbot/1.0",
        "TelegramBot (like TwitterBot)",
        "Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)",
        "LinkedInBot/1.0 (compatible; Mozilla/5.0)",
        "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
        "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
        "Mozilla/5.0 (Windows NT 6.1; WOW64) SkypeUriPreview Preview/0.5",
        "Mozilla/5.0 (Windows NT 10.0; Microsoft Outlook 16.0.4266; ms-office; MSOffice 16)",
        "Mozilla/5.0 (Windows NT 10.0) Google-Safety; BingPreview/1.0b",
        "Mozilla/5.0 (X11; Linux x86_64) HeadlessChrome/140.0.0.0 Safari/537.36",
        "Applebot/0.1",
        "python-requests/2.32",
        "curl/8.5",
        "",
        None,
    ],
)
def test_programs_are_no_persons(agent: str | None) -> None:
    """OP-57: crawlers and link previews don't count as a view."""
    assert not link.is_person(request(agent))


def test_persons_are_persons_unless_nobody_looks_yet() -> None:
    """OP-57: browsers count, those inside of apps too; HEAD and what is fetched ahead do not."""
    inside = (
        " [FBAN/FBIOS;FBAV/500.0;FBBV/1]",
        " Instagram 300.0",
        " [LinkedInApp]/9.1",
        " [Pinterest/iOS]",
        " Line/14.0",
    )
    for agent in (IPHONE, ANDROID, *(IPHONE + app for app in inside)):
        assert link.is_person(request(agent)), agent
    assert not link.is_person(request(IPHONE, wanted=False))
    assert not link.is_person(request(IPHONE, sec_purpose="prefetch;prerender"))
    assert not link.is_person(request(IPHONE, purpose="prefetch"))
    assert not link.is_person(request(IPHONE, x_purpose="preview", x_moz="prefetch"))


def test_an_address_that_tries_many_links_has_to_wait() -> None:
    """Decision 9: tokens can't be guessed, and nobody may try for long."""
    now = 0.0
    allowance = UnknownLinks(lambda: now)
    for _ in range(UNKNOWN_MAX):
        assert not allowance.spent("a")
        allowance.note("a")
    assert allowance.spent("a")
    assert not allowance.spent("b")
    now = WINDOW_S
    assert not allowance.spent("a")
    allowance.note("a")
    assert not allowance.spent("a")
