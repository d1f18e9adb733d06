"""One's own account: password, second factors, and where one is signed in."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import asyncpg
import msgspec
import segno
from markupsafe import Markup

from voucherd import clock
from voucherd.db import transaction
from voucherd.http import JSON, HttpError, Response
from voucherd.pages.forms import whole
from voucherd.pages.people.links import PASSWORD_HINT
from voucherd.pages.render import render
from voucherd.pages.sign_in import read_answer
from voucherd.pages.visit import Visit, missing, see_other, session_cookie
from voucherd.people import account as own
from voucherd.people import passkeys, second_factors, sessions, totp, user_store
from voucherd.people.account import LastSecondFactor, NoSecondFactor, Strengthened
from voucherd.people.passkeys import BadPasskey, TooManyPasskeys
from voucherd.people.second_factors import SecondFactorSet
from voucherd.people.users import hash_password

PATH: Final = "/account"
FRESH: Final = timedelta(minutes=10)
"""So long after signing in the password is not asked for again."""
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
_WRONG: Final = "That is not your password."


async def account(visit: Visit) -> Response:
    """Everything about one's own account."""
    person, session = visit.someone, visit.session
    assert session is not None
    factors = await second_factors.factors(visit.pool, person.id)
    rows = await sessions.of_user(visit.pool, person.id)
    return render(
        "people/account.html",
        visit,
        hint=PASSWORD_HINT,
        factors=factors,
        must=must_have(visit),
        owes=must_have(visit) and session.strong_at is None,
        passkeys=await passkeys.list_passkeys(visit.pool, person.id),
        passkeys_here=visit.services.sign_in.site is not None,
        ask=not fresh(visit),
        sessions=[_shown(row, session.key) for row in rows],
    )


async def change_password(visit: Visit) -> Response:
    """Choose another password; the other browsers are signed out."""
    person, session = visit.someone, visit.session
    assert session is not None
    if not await visit.services.sign_in.is_right(person.email, visit.form.raw("current"), visit.origin):
        visit.problems["current"] = _WRONG
        return await account(visit)
    try:
        known = await user_store.known_of(visit.pool, person.id)
        password_hash = await hash_password(visit.form.raw("password"), known)
    except ValueError as short:
        visit.problems["password"] = f"{str(short).capitalize()}."
        return await account(visit)
    await visit.do(own.change_password, password_hash, session)
    return visit.go(PATH, "Your password is changed. Other browsers are signed out.")


async def app_page(visit: Visit) -> Response:
    """The square to set an authenticator app up with."""
    person, session, sealer = visit.someone, visit.session, visit.services.sealer
    assert session is not None
    # After a wrong code the page shows the same square again; whoever comes anew gets a fresh one.
    word = visit.form.get("enrolment")
    enrolment = await second_factors.open_enrolment(visit.pool, sealer, person.id, session.key, word)
    try:
        if enrolment is None:
            enrolment = await second_factors.begin_totp(visit.pool, sealer, person.id, session.key)
    except SecondFactorSet:
        return see_other(PATH)
    square = segno.make(totp.uri(enrolment.secret, person.email), error="m")
    return render(
        "people/app.html",
        visit,
        ask=not fresh(visit),
        secret=totp.shown(enrolment.secret),
        enrolment=enrolment.word,
        square=Markup(square.svg_inline(scale=5, border=3, light="#fff", title="Code for your app")),  # noqa: S704 - Made of modules, not of words.
    )


async def confirm_app(visit: Visit) -> Response:
    """Take the app as second factor, once it has given a right code."""
    if not await _trusted(visit):
        visit.problems["current"] = _WRONG
        return await app_page(visit)
    session = visit.session
    assert session is not None
    word, code = visit.form.get("enrolment"), visit.form.get("code")
    done = await visit.do(own.add_app, visit.services.sealer, session, visit.browser, word, code)
    if done is None:
        visit.problems["code"] = (
            "That code is not right. Is the clock of your telephone right, and the square still the one you read?"
        )
        return await app_page(visit)
    return _strengthened(visit, done)


async def remove_app(visit: Visit) -> Response:
    """Take the app away."""
    await _refuse_untrusted(visit)
    try:
        await visit.do(own.remove_app, must_have=must_have(visit))
    except LastSecondFactor:
        raise _last() from None
    return visit.go(PATH, "The app is not asked for any more.")


async def new_codes(visit: Visit) -> Response:
    """Ten new recovery codes; those before are void."""
    await _refuse_untrusted(visit)
    try:
        codes = await visit.do(own.new_recovery_codes)
    except NoSecondFactor:
        raise HttpError(400, "no_second_factor", "Set up a second factor first.") from None
    return _codes(visit, codes)


async def passkey_options(visit: Visit) -> Response:
    """What a browser needs to make a passkey."""
    site = visit.services.sign_in.site
    if site is None:
        raise missing()
    await _refuse_untrusted(visit)
    person = visit.someone
    try:
        async with transaction(visit.pool) as tx:
            options = await passkeys.begin_registration(
                tx, site, person.id, person.email, visit.request.client_ip
            )
    except TooManyPasskeys:
        raise HttpError(
            400, "too_many_passkeys", f"You have {passkeys.PASSKEYS_MAX} passkeys. Remove one first."
        ) from None
    return Response(200, msgspec.json.encode(options), JSON)


async def add_passkey(visit: Visit) -> Response:
    """Keep the passkey that the browser has made."""
    site, session = visit.services.sign_in.site, visit.session
    if site is None or session is None:
        raise missing()
    name, answer = visit.form.get("name"), read_answer(visit)
    try:
        done = await visit.do(own.add_passkey, site, session, visit.browser, name, answer)
    except BadPasskey as bad:
        return visit.go(PATH, f"The passkey could not be kept: {bad}.", "bad")
    return _strengthened(visit, done)


async def remove_passkey(visit: Visit) -> Response:
    """Take a passkey away."""
    await _refuse_untrusted(visit)
    number = whole(visit.parameters["passkey"]) or 0
    try:
        async with transaction(visit.pool) as tx:
            must = must_have(visit)
            name = await own.remove_passkey(tx, visit.actor, number, must_have=must)
    except LastSecondFactor:
        raise _last() from None
    if name is None:
        raise missing()
    return visit.go(PATH, f"The passkey “{name}” opens nothing any more.")


async def end_session(visit: Visit) -> Response:
    """Sign another browser out."""
    for row in await sessions.of_user(visit.pool, visit.someone.id):
        if _name(row["key"]) == visit.parameters["session"]:
            await visit.do(own.end_session, row["key"])
            if visit.session is not None and row["key"] != visit.session.key:
                visit.tell("That browser is signed out.")
            return see_other(PATH)
    raise missing()


async def end_others(visit: Visit) -> Response:
    """Sign every other browser out."""
    assert visit.session is not None
    await visit.do(own.end_other_sessions, visit.session)
    return visit.go(PATH, "All other browsers are signed out.")


def must_have(visit: Visit) -> bool:
    """Whether this person may not be without a second factor."""
    assert visit.session is not None
    return (
        visit.services.settings.operator_second_factor
        if visit.someone.company is None
        else visit.session.asked
    )


def fresh(visit: Visit) -> bool:
    """Whether the person has just signed in: then the password need not be asked for again."""
    assert visit.session is not None
    return clock.now() - visit.session.created_at < FRESH


def _shown(row: asyncpg.Record, here: bytes) -> dict[str, object]:
    """A session as its person sees it."""
    return {
        "name": _name(row["key"]),
        "browser": browser_of(row["agent"]),
        "address": row["address"],
        "seen_at": row["seen_at"],
        "here": row["key"] == here,
    }


def browser_of(agent: str) -> str:
    """A browser in words that its person knows it by."""
    browser = next((name for mark, name in _BROWSERS if mark in agent), "")
    system = next((name for mark, name in _SYSTEMS if mark in agent), "")
    return " on ".join(part for part in (browser, system) if part) or "An unknown browser"


def _strengthened(visit: Visit, done: Strengthened) -> Response:
    """Go on in the session that counts from now on."""
    visit.cookies.append(session_cookie(visit.services.settings, done.token))
    return see_other(PATH) if done.codes is None else _codes(visit, done.codes)


def _codes(visit: Visit, codes: list[str]) -> Response:
    return render("people/codes.html", visit, codes=codes)


async def _trusted(visit: Visit) -> bool:
    """Whether the person has just signed in, or gave the password again."""
    if fresh(visit):
        return True
    return await visit.services.sign_in.is_right(visit.someone.email, visit.form.raw("current"), visit.origin)


async def _refuse_untrusted(visit: Visit) -> None:
    if not await _trusted(visit):
        raise HttpError(403, "wrong_password", _WRONG)


def _last() -> HttpError:
    return HttpError(400, "last_second_factor", "You must have a second factor. Set up another one first.")


def _name(key: bytes) -> str:
    return key[:8].hex()
