"""One's own account: name, language and time zone, and where one is signed in."""

from __future__ import annotations

from typing import Final

import asyncpg

from voucherd.http import Response
from voucherd.pages.render import render
from voucherd.pages.visit import Visit, missing, see_other
from voucherd.people import account as own
from voucherd.people import sessions
from voucherd.people.account import BadProfile, Profile
from voucherd.words import LANGUAGES, Words, phrase, zone_names

PATH: Final = "/account"
SESSIONS: Final = "/account/sessions"
# The first that is found counts: most call themselves by the names of others, too.
_BROWSERS: Final = (
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS: Final = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)
_PROFILE: Final = {
    "name": phrase("A name has up to {count} characters, on one line."),
    "language": phrase("Choose one of the languages."),
    "time_zone": phrase("Choose a time zone from the list, such as Europe/Amsterdam."),
}


async def account(visit: Visit) -> Response:
    """Who one is: name, language and time zone."""
    person = visit.someone
    given = visit.form if visit.problems else None
    return render(
        "people/account.html",
        visit,
        name=person.name if given is None else given.get("name"),
        name_chars_max=own.NAME_CHARS_MAX,
        language=person.language if given is None else given.get("language"),
        languages=[("", visit.words.text("As in your browser")), *LANGUAGES.items()],
        time_zone=person.time_zone if given is None else given.get("time_zone"),
        zones=[(zone, zone) for zone in zone_names()],
    )


async def change_profile(visit: Visit) -> Response:
    """Keep another name, language or time zone."""
    form, words = visit.form, visit.words
    try:
        profile = Profile(form.get("name"), form.get("language"), form.get("time_zone"))
    except BadProfile as wrong:
        visit.problems[wrong.field] = words.text(_PROFILE[wrong.field], count=own.NAME_CHARS_MAX)
        return await account(visit)
    await visit.do(own.change_profile, profile)
    # In the language that was just chosen: it is the one that the next page speaks.
    spoken = Words(profile.language) if profile.language else words
    return visit.go(PATH, spoken.text("Saved."))


async def signed_in(visit: Visit) -> Response:
    """The browsers in which one is signed in."""
    assert visit.session is not None
    rows = await sessions.of_user(visit.pool, visit.someone.id)
    shown = [_shown(visit.words, row, visit.session.key) for row in rows]
    return render("people/sessions.html", visit, sessions=shown)


async def end_session(visit: Visit) -> Response:
    """Sign another browser out."""
    for row in await sessions.of_user(visit.pool, visit.someone.id):
        if _name(row["key"]) == visit.parameters["session"]:
            await visit.do(own.end_session, row["key"])
            if visit.session is not None and row["key"] != visit.session.key:
                visit.tell(visit.words.text("That browser is signed out."))
            return see_other(SESSIONS)
    raise missing()


async def end_others(visit: Visit) -> Response:
    """Sign every other browser out."""
    assert visit.session is not None
    await visit.do(own.end_other_sessions, visit.session)
    return visit.go(SESSIONS, visit.words.text("All other browsers are signed out."))


def _shown(words: Words, row: asyncpg.Record, here: bytes) -> dict[str, object]:
    """A session as its person sees it."""
    return {
        "name": _name(row["key"]),
        "browser": browser_of(row["agent"], words),
        "address": row["address"],
        "seen_at": row["seen_at"],
        "here": row["key"] == here,
    }


def browser_of(agent: str, words: Words) -> str:
    """A browser in words that its person knows it by."""
    browser = next((name for mark, name in _BROWSERS if mark in agent), "")
    system = next((name for mark, name in _SYSTEMS if mark in agent), "")
    if browser and system:
        return words.text("{browser} on {system}", browser=browser, system=system)
    return browser or system or words.text("An unknown browser")


def _name(key: bytes) -> str:
    return key[:8].hex()
