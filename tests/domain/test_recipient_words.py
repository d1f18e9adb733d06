"""The languages of the recipient's page, what a scanner reads from it, and who counts as a person."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path

import pytest
from jinja2.ext import babel_extract

import voucherd.pages.recipient as package
from voucherd.http import Request
from voucherd.limits.unknown_links import UNKNOWN_MAX, WINDOW_S, UnknownLinks
from voucherd.money import Money
from voucherd.pages.assets import templates
from voucherd.pages.recipient import link
from voucherd.pages.recipient.words import LANGUAGES, SOURCE, PageWords, catalogue, pick

FOLDER = Path(str(package.__file__)).parent
IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 "
    "Mobile/15E148 Safari/604.1"
)
ANDROID = (
    "Mozilla/5.0 (Linux; Android 10; CUBOT NOTE 20) AppleWebKit/537.36 Chrome/140.0.0.0 Mobile Safari/537.36"
)


def said() -> Iterator[str]:
    """Every English text of the page, from its templates and its code."""
    for name, text in templates().items():
        if name.startswith("recipient/"):
            for _line, _function, message, _comments in babel_extract(
                BytesIO(text.encode()), ["t"], [], {"silent": "false"}
            ):
                # Words with values in them come with those, which are no words.
                yield str(message if isinstance(message, str) else message and message[0])
    for file in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "text"
            ):
                first = node.args[0]
                if isinstance(first, ast.Constant):
                    yield str(first.value)
    yield from link.TITLES.values()


def places(text: str) -> list[str]:
    """The names of the values in a text."""
    return sorted(re.findall(r"\{([a-z]*)\}", text))


@pytest.mark.parametrize("language", [tag for tag in LANGUAGES if tag != SOURCE])
def test_every_message_is_translated_and_none_is_left_over(language: str) -> None:
    """OP-57: the page speaks each language wholly, with the same values in its sentences."""
    english, translated = set(said()), catalogue(language)
    assert len(english) > 35
    assert set(translated) == english
    for message, words in translated.items():
        assert words, message
        assert places(words) == places(message), message
        assert words == words.strip()
        assert message.endswith(".") == words.endswith("."), message


def test_the_language_is_the_browsers_unless_another_is_asked_for() -> None:
    """OP-57: Accept-Language decides, ?lang= before it, English after it; nonsense is nobody's language."""
    assert pick("", "de-AT,de;q=0.9,en;q=0.8") == "de"
    assert pick("", "en;q=0.5, nl;q=0.7") == "nl"
    assert pick("", "pt-BR, it;q=0.9") == "en"
    assert pick("", "fr;q=0, es;q=0.1") == "es"
    assert pick("es", "fr") == "es"
    assert pick("xx", "fr") == "fr"
    assert pick("", ";;,q=,-" * 1000) == "en"


def test_money_dates_and_waits_are_written_as_people_write_them() -> None:
    """OP-57: whole amounts without zeros, letters apart from their number, days in full."""
    day = datetime(2028, 11, 3, tzinfo=UTC)
    written = {tag: (PageWords(tag).money(Money(5000, "EUR")), PageWords(tag).day(day)) for tag in LANGUAGES}
    assert written == {
        "en": ("€50", "3 November 2028"),
        "nl": ("€\u00a050", "3 november 2028"),
        "de": ("50\u00a0€", "3. November 2028"),
        "fr": ("50\u00a0€", "3 novembre 2028"),
        "es": ("50\u00a0€", "3 de noviembre de 2028"),
    }
    assert PageWords("en").money(Money(123456, "NOK")) == "NOK\u00a01,234.56"
    assert PageWords("de").money(Money(3000, "JPY")) == "3.000\u00a0¥"
    assert PageWords("en").money(Money(2500, "KWD")) == "KWD\u00a02.500"
    assert PageWords("en").until(day + timedelta(minutes=14, seconds=1), day) == "in 15 minutes"
    assert PageWords("nl").until(day, day) == "over 1 minuut"
    assert (PageWords("fr").place("nl"), PageWords("en").place("ww"), PageWords("en").place("benelux")) == (
        "Pays-Bas",
        "",
        "BENELUX",
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
