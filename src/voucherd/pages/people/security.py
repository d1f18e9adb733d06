"""What protects one's own account: the password and the second factors."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import msgspec
from markupsafe import Markup

from voucherd import clock
from voucherd.db import transaction
from voucherd.http import JSON, HttpError, Response
from voucherd.pages.forms import whole
from voucherd.pages.people.links import password_hint, weak_password
from voucherd.pages.qr import square
from voucherd.pages.render import render
from voucherd.pages.sign_in import read_answer
from voucherd.pages.visit import Visit, missing, see_other, session_cookie
from voucherd.people import account as own
from voucherd.people import passkeys, second_factors, totp, user_store
from voucherd.people.account import LastSecondFactor, NoSecondFactor, Strengthened
from voucherd.people.passkeys import BadPasskey, TooManyPasskeys
from voucherd.people.passwords import WeakPassword
from voucherd.people.second_factors import SecondFactorSet
from voucherd.people.users import hash_password
from voucherd.words import phrase

PATH: Final = "/account/security"
FRESH: Final = timedelta(minutes=10)
"""So long after signing in the password is not asked for again."""
_WRONG: Final = phrase("That is not your password.")


async def security(visit: Visit) -> Response:
    """The password and the second factors."""
    person, session = visit.someone, visit.session
    assert session is not None
    return render(
        "people/security.html",
        visit,
        hint=password_hint(visit.words),
        factors=await second_factors.factors(visit.pool, person.id),
        owes=must_have(visit) and session.strong_at is None,
        passkeys=await passkeys.list_passkeys(visit.pool, person.id),
        passkeys_here=visit.services.sign_in.site is not None,
        ask=not fresh(visit),
    )


async def change_password(visit: Visit) -> Response:
    """Choose another password; the other browsers are signed out."""
    person, session = visit.someone, visit.session
    assert session is not None
    if not await visit.services.sign_in.is_right(person.email, visit.form.raw("current"), visit.origin):
        visit.problems["current"] = visit.words.text(_WRONG)
        return await security(visit)
    try:
        known = await user_store.known_of(visit.pool, person.id)
        password_hash = await hash_password(visit.form.raw("password"), known)
    except WeakPassword as weak:
        visit.problems["password"] = weak_password(visit.words, weak)
        return await security(visit)
    await visit.do(own.change_password, password_hash, session)
    return visit.go(PATH, visit.words.text("Your password is changed. Other browsers are signed out."))


async def app_page(visit: Visit) -> Response:
    """The QR code to set an authenticator app up with."""
    facts = await app_facts(visit)
    return see_other(PATH) if facts is None else render("people/app.html", visit, **facts)


async def app_facts(visit: Visit) -> dict[str, Any] | None:
    """What the page of an authenticator app shows; None for who has one already."""
    person, session, sealer = visit.someone, visit.session, visit.services.sealer
    assert session is not None
    # After a wrong code the page shows the same square again; whoever comes anew gets a fresh one.
    word = visit.form.get("enrolment")
    enrolment = await second_factors.open_enrolment(visit.pool, sealer, person.id, session.key, word)
    try:
        if enrolment is None:
            enrolment = await second_factors.begin_totp(visit.pool, sealer, person.id, session.key)
    except SecondFactorSet:
        return None
    uri = totp.uri(enrolment.secret, person.email, visit.services.settings.operator_name)
    title = visit.words.text("QR code for your app")
    drawn = square(uri).svg_inline(border=4, omitsize=True, light="#fff", title=title)
    return {
        "ask": not fresh(visit),
        "secret": totp.shown(enrolment.secret),
        "enrolment": enrolment.word,
        "square": Markup(drawn),  # noqa: S704 - Made of modules.
    }


async def confirm_app(visit: Visit) -> Response:
    """Take the app as second factor, once it has given a right code."""
    done = await confirmed_app(visit)
    return await app_page(visit) if done is None else _strengthened(visit, done)


async def confirmed_app(visit: Visit) -> Strengthened | None:
    """What follows from a right code of the app; None, and a problem beside its field, without one."""
    if not await _trusted(visit):
        visit.problems["current"] = visit.words.text(_WRONG)
        return None
    session = visit.session
    assert session is not None
    word, code = visit.form.get("enrolment"), visit.form.get("code")
    done = await visit.do(own.add_app, visit.services.sealer, session, visit.browser, word, code)
    if done is None:
        visit.problems["code"] = visit.words.text(
            "That code is not right. Is your phone’s clock right, and did you scan this QR code?"
        )
    return done


async def remove_app_page(visit: Visit) -> Response:
    """Ask before the app is removed."""
    return _prove(
        visit,
        title=visit.words.text("Remove the authenticator app"),
        text=visit.words.text("Your account is then protected by less."),
        button=visit.words.text("Remove the app"),
    )


async def remove_app(visit: Visit) -> Response:
    """Take the app away."""
    if not await _proven(visit):
        return await remove_app_page(visit)
    try:
        await visit.do(own.remove_app, must_have=must_have(visit))
    except LastSecondFactor:
        raise _last(visit) from None
    return visit.go(PATH, visit.words.text("The authenticator app is removed."))


async def codes_page(visit: Visit) -> Response:
    """Ask before the recovery codes are replaced."""
    return _prove(
        visit,
        title=visit.words.text("New recovery codes"),
        text=visit.words.text("You get ten new codes. Those that you have now stop working."),
        button=visit.words.text("Make ten new codes"),
    )


async def new_codes(visit: Visit) -> Response:
    """Ten new recovery codes; those before are void."""
    if not await _proven(visit):
        return await codes_page(visit)
    try:
        codes = await visit.do(own.new_recovery_codes)
    except NoSecondFactor:
        text = visit.words.text("Set up a second factor first.")
        raise HttpError(400, "no_second_factor", text) from None
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
        text = visit.words.text("You have {count} passkeys. Remove one first.", count=passkeys.PASSKEYS_MAX)
        raise HttpError(400, "too_many_passkeys", text) from None
    return Response(200, msgspec.json.encode(options), JSON)


async def add_passkey(visit: Visit) -> Response:
    """Keep the passkey that the browser has made."""
    site, session = visit.services.sign_in.site, visit.session
    if site is None or session is None:
        raise missing()
    name, answer = visit.form.get("name"), read_answer(visit)
    try:
        done = await visit.do(own.add_passkey, site, session, visit.browser, name, answer)
    except BadPasskey:
        return visit.go(PATH, visit.words.text("The passkey could not be added. Try again."), "bad")
    return _strengthened(visit, done)


async def remove_passkey_page(visit: Visit) -> Response:
    """Ask before a passkey is removed."""
    number = whole(visit.parameters["passkey"])
    found = [one for one in await passkeys.list_passkeys(visit.pool, visit.someone.id) if one.id == number]
    if not found:
        raise missing()
    return _prove(
        visit,
        title=visit.words.text("Remove the passkey “{name}”", name=found[0].name),
        text=visit.words.text("You can't sign in with this passkey any more."),
        button=visit.words.text("Remove passkey"),
    )


async def remove_passkey(visit: Visit) -> Response:
    """Take a passkey away."""
    if not await _proven(visit):
        return await remove_passkey_page(visit)
    number = whole(visit.parameters["passkey"]) or 0
    try:
        async with transaction(visit.pool) as tx:
            must = must_have(visit)
            name = await own.remove_passkey(tx, visit.actor, number, must_have=must)
    except LastSecondFactor:
        raise _last(visit) from None
    if name is None:
        raise missing()
    return visit.go(PATH, visit.words.text("The passkey “{name}” is removed.", name=name))


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


def _strengthened(visit: Visit, done: Strengthened) -> Response:
    """Go on in the session that counts from now on."""
    visit.cookies.append(session_cookie(visit.services.settings, done.token))
    return see_other(PATH) if done.codes is None else _codes(visit, done.codes)


def _codes(visit: Visit, codes: list[str]) -> Response:
    return render("people/codes.html", visit, codes=codes, path=PATH)


async def _trusted(visit: Visit) -> bool:
    """Whether the person has just signed in, or gave the password again."""
    if fresh(visit):
        return True
    return await visit.services.sign_in.is_right(visit.someone.email, visit.form.raw("current"), visit.origin)


async def _refuse_untrusted(visit: Visit) -> None:
    if not await _trusted(visit):
        raise HttpError(403, "wrong_password", visit.words.text(_WRONG))


async def _proven(visit: Visit) -> bool:
    """Whether the deed may be done; if not, the page that asks says so beside its field."""
    if await _trusted(visit):
        return True
    visit.problems["current"] = visit.words.text(_WRONG)
    return False


def _prove(visit: Visit, *, title: str, text: str, button: str) -> Response:
    """The page that asks before a deed, with a field for the password of who signed in long ago."""
    return render(
        "people/prove.html",
        visit,
        title=title,
        text=text,
        button=button,
        ask=not fresh(visit),
        back=PATH,
    )


def _last(visit: Visit) -> HttpError:
    text = visit.words.text("You must have a second factor. Set up another one first.")
    return HttpError(400, "last_second_factor", text)
