"""One's own account: password, second factors, and where one is signed in."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import asyncpg
import msgspec
import segno
from markupsafe import Markup

from voucherd import clock
from voucherd.db import Tx, transaction
from voucherd.http import JSON, HttpError, Response
from voucherd.pages import deeds
from voucherd.pages.people.browsers import browser_of
from voucherd.pages.people.links import PASSWORD_HINT
from voucherd.pages.render import render
from voucherd.pages.sign_in import read_answer
from voucherd.pages.visit import Visit, see_other, session_cookie
from voucherd.people import letters, passkeys, second_factors, sessions, totp, user_store
from voucherd.people.passkeys import BadPasskey, TooManyPasskeys
from voucherd.people.second_factors import SecondFactorSet
from voucherd.people.users import hash_password
from voucherd.services import Services

PATH: Final = "/account"
FRESH: Final = timedelta(minutes=10)
"""So long after signing in the password is not asked for again."""
_WRONG: Final = "That is not your password."


async def account(services: Services, visit: Visit) -> Response:
    """Everything about one's own account."""
    return await _page(services, visit)


async def change_password(services: Services, visit: Visit) -> Response:
    """Choose another password; the other browsers are signed out."""
    person, session = visit.someone, visit.session
    assert session is not None
    if not await services.sign_in.is_right(person.email, visit.form.raw("current"), visit.origin):
        return await _page(services, visit, wrong={"current": _WRONG})
    try:
        password_hash = await hash_password(visit.form.raw("password"))
    except ValueError as short:
        return await _page(services, visit, wrong={"password": f"{str(short).capitalize()}."})
    async with transaction(services.pool) as tx:
        await user_store.set_password(tx, person.id, password_hash)
        await sessions.end_others(tx, person.id, session.key)
        await _note(tx, visit, "user.change-password", "The password was changed.")
    visit.tell("Your password is changed. Other browsers are signed out.")
    return see_other(PATH)


async def app_page(services: Services, visit: Visit) -> Response:
    """The square to set an authenticator app up with."""
    return await _app(services, visit)


async def confirm_app(services: Services, visit: Visit) -> Response:
    """Take the app as second factor, once it has given a right code."""
    if not await _trusted(services, visit):
        return await _app(services, visit, wrong={"current": _WRONG})
    session = visit.session
    assert session is not None
    async with transaction(services.pool) as tx:
        codes = await second_factors.confirm_totp(
            tx, services.sealer, visit.someone.id, visit.form.get("code")
        )
        if codes is None:
            wrong = {"code": "That code is not right. Is the clock of your telephone right?"}
        else:
            await _note(tx, visit, "second-factor.add", "An authenticator app was set up.", {"kind": "app"})
            token = await services.sign_in.strengthen(tx, session, visit.origin)
    if codes is None:
        return await _app(services, visit, wrong=wrong)
    visit.cookies.append(session_cookie(services.settings, token))
    return _codes(visit, codes)


async def remove_app(services: Services, visit: Visit) -> Response:
    """Take the app away."""
    await _refuse_untrusted(services, visit)
    async with transaction(services.pool) as tx:
        await _refuse_last(services, visit, tx, leaving=True)
        if await second_factors.remove_totp(tx, visit.someone.id):
            await _note(
                tx, visit, "second-factor.remove", "The authenticator app was removed.", {"kind": "app"}
            )
    visit.tell("The app is not asked for any more.")
    return see_other(PATH)


async def new_codes(services: Services, visit: Visit) -> Response:
    """Ten new recovery codes; those before are void."""
    await _refuse_untrusted(services, visit)
    async with transaction(services.pool) as tx:
        if not (await second_factors.factors(tx, visit.someone.id)).any:
            raise HttpError(400, "no_second_factor", "Set up a second factor first.")
        codes = await second_factors.new_recovery_codes(tx, visit.someone.id)
        await _note(tx, visit, "second-factor.recovery-codes", "New recovery codes were made.")
    return _codes(visit, codes)


async def passkey_options(services: Services, visit: Visit) -> Response:
    """What a browser needs to make a passkey."""
    site = services.sign_in.site
    if site is None:
        raise HttpError(404, "no_passkeys", "not found")
    await _refuse_untrusted(services, visit)
    person = visit.someone
    try:
        async with transaction(services.pool) as tx:
            options = await passkeys.begin_registration(
                tx, site, person.id, person.email, visit.request.client_ip
            )
    except TooManyPasskeys:
        raise HttpError(
            400, "too_many_passkeys", f"You have {passkeys.PASSKEYS_MAX} passkeys. Remove one first."
        ) from None
    return Response(200, msgspec.json.encode(options), JSON)


async def add_passkey(services: Services, visit: Visit) -> Response:
    """Keep the passkey that the browser has made."""
    site, session = services.sign_in.site, visit.session
    if site is None or session is None:
        raise HttpError(404, "no_passkeys", "not found")
    person = visit.someone
    codes = None
    try:
        async with transaction(services.pool) as tx:
            # The options were given to who knows the password, and for this person: that is what the answer proves.
            made = await passkeys.finish_registration(
                tx, site, person.id, visit.form.get("name"), read_answer(visit)
            )
            await _note(
                tx, visit, "second-factor.add", f"The passkey “{made.name}” was added.", {"kind": "passkey"}
            )
            if (await second_factors.factors(tx, person.id)).recovery_codes == 0:
                codes = await second_factors.new_recovery_codes(tx, person.id)
            token = await services.sign_in.strengthen(tx, session, visit.origin)
    except BadPasskey as bad:
        visit.tell(f"The passkey could not be kept: {bad}.", "bad")
        return see_other(PATH)
    visit.cookies.append(session_cookie(services.settings, token))
    return see_other(PATH) if codes is None else _codes(visit, codes)


async def remove_passkey(services: Services, visit: Visit) -> Response:
    """Take a passkey away."""
    number = visit.parameters["passkey"]
    await _refuse_untrusted(services, visit)
    async with transaction(services.pool) as tx:
        await _refuse_last(services, visit, tx, leaving=False)
        known = number.isascii() and number.isdigit() and len(number) < 19
        name = await passkeys.remove(tx, visit.someone.id, int(number)) if known else None
        if name is None:
            raise HttpError(404, "no_passkey", "not found")
        await second_factors.tidy(tx, visit.someone.id)
        await _note(
            tx, visit, "second-factor.remove", f"The passkey “{name}” was removed.", {"kind": "passkey"}
        )
    visit.tell(f"The passkey “{name}” opens nothing any more.")
    return see_other(PATH)


async def end_session(services: Services, visit: Visit) -> Response:
    """Sign another browser out."""
    for row in await sessions.of_user(services.pool, visit.someone.id):
        if _name(row["key"]) == visit.parameters["session"]:
            async with transaction(services.pool) as tx:
                await sessions.end(tx, row["key"])
                await deeds.record(tx, visit, "session.end", f"user {visit.someone.email}")
            if visit.session is not None and row["key"] != visit.session.key:
                visit.tell("That browser is signed out.")
            return see_other(PATH)
    raise HttpError(404, "no_session", "not found")


async def end_others(services: Services, visit: Visit) -> Response:
    """Sign every other browser out."""
    assert visit.session is not None
    async with transaction(services.pool) as tx:
        await sessions.end_others(tx, visit.someone.id, visit.session.key)
        await deeds.record(tx, visit, "session.end", f"user {visit.someone.email}", {"all": True})
    visit.tell("All other browsers are signed out.")
    return see_other(PATH)


def must_have(services: Services, visit: Visit) -> bool:
    """Whether this person may not be without a second factor."""
    assert visit.session is not None
    return services.settings.operator_second_factor if visit.someone.company is None else visit.session.asked


def fresh(visit: Visit) -> bool:
    """Whether the person has just signed in: then the password need not be asked for again."""
    assert visit.session is not None
    return clock.now() - visit.session.created_at < FRESH


async def _page(services: Services, visit: Visit, *, wrong: dict[str, str] | None = None) -> Response:
    person, session = visit.someone, visit.session
    assert session is not None
    factors = await second_factors.factors(services.pool, person.id)
    rows = await sessions.of_user(services.pool, person.id)
    return render(
        "people/account.html",
        visit,
        status=422 if wrong else 200,
        wrong=wrong or {},
        hint=PASSWORD_HINT,
        factors=factors,
        must=must_have(services, visit),
        owes=must_have(services, visit) and session.strong_at is None,
        passkeys=await passkeys.list_passkeys(services.pool, person.id),
        passkeys_here=services.sign_in.site is not None,
        ask=not fresh(visit),
        sessions=[_shown(row, session.key) for row in rows],
    )


async def _app(services: Services, visit: Visit, *, wrong: dict[str, str] | None = None) -> Response:
    person = visit.someone
    try:
        async with transaction(services.pool) as tx:
            secret = await second_factors.begin_totp(tx, services.sealer, person.id)
    except SecondFactorSet:
        return see_other(PATH)
    square = segno.make(totp.uri(secret, person.email), error="m")
    return render(
        "people/app.html",
        visit,
        status=422 if wrong else 200,
        wrong=wrong or {},
        ask=not fresh(visit),
        secret=totp.shown(secret),
        square=Markup(square.svg_inline(scale=5, border=3, light="#fff", title="Code for your app")),  # noqa: S704 - Made of modules, not of words.
    )


def _shown(row: asyncpg.Record, here: bytes) -> dict[str, object]:
    """A session as its person sees it."""
    return {
        "name": _name(row["key"]),
        "browser": browser_of(row["agent"]),
        "address": row["address"],
        "seen_at": row["seen_at"],
        "here": row["key"] == here,
    }


def _codes(visit: Visit, codes: list[str]) -> Response:
    return render("people/codes.html", visit, codes=codes)


async def _trusted(services: Services, visit: Visit) -> bool:
    """Whether the person has just signed in, or gave the password again."""
    if fresh(visit):
        return True
    return await services.sign_in.is_right(visit.someone.email, visit.form.raw("current"), visit.origin)


async def _refuse_untrusted(services: Services, visit: Visit) -> None:
    if not await _trusted(services, visit):
        raise HttpError(403, "wrong_password", _WRONG)


async def _refuse_last(services: Services, visit: Visit, tx: Tx, *, leaving: bool) -> None:
    """Refuse to take away the only second factor of somebody who must have one."""
    found = await second_factors.factors(tx, visit.someone.id)
    others = found.passkeys if leaving else found.passkeys - 1 + found.totp
    if must_have(services, visit) and others <= 0:
        raise HttpError(400, "last_second_factor", "You must have a second factor. Set up another one first.")


async def _note(tx: Tx, visit: Visit, action: str, what: str, detail: dict[str, str] | None = None) -> None:
    """Write it into the trail, and tell the person, who may not have done it."""
    await deeds.record(tx, visit, action, f"user {visit.someone.email}", detail)
    await letters.tell(tx, visit.someone.email, what)


def _name(key: bytes) -> str:
    return key[:8].hex()
