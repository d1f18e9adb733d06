"""The doors: where people come in and go out."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from voucherd.db import transaction
from voucherd.http import JSON, HttpError, Response
from voucherd.limits.throttle import TooManyTries
from voucherd.pages.nav import home
from voucherd.pages.problems import too_many
from voucherd.pages.render import qualified, render
from voucherd.pages.visit import Visit, device_cookie, missing, own_address, see_other, session_cookie
from voucherd.people import passkeys, second_factors
from voucherd.people.sign_in import NeedsSecondFactor, SignedIn
from voucherd.setup import links
from voucherd.words import phrase

SECOND_FACTOR_PATH: Final = "/sign-in/second-factor"
_DONE: Final = {"password": phrase("Your password is saved. Sign in with it.")}


async def start(visit: Visit) -> Response:
    """Lead everybody to where they belong; to a shop that nobody has set up belongs whoever runs it."""
    if visit.person is not None:
        return see_other(home(visit.person))
    running = visit.services.running
    running.begun = running.begun or not await links.is_empty(visit.pool)
    return see_other("/sign-in") if running.begun else render("setup/empty.html", visit)


async def sign_in_page(visit: Visit) -> Response:
    """The form to sign in."""
    if visit.person is not None:
        return see_other(_wanted(visit.query.get("next")) or home(visit.person))
    return _form(visit, visit.query.get("next"))


async def sign_in(visit: Visit) -> Response:
    """Sign in, and go on to where the person wanted to go."""
    email, password = visit.form.get("email"), visit.form.raw("password")
    wanted = _wanted(visit.form.get("next"))
    try:
        outcome = await visit.services.sign_in.sign_in(email, password, visit.origin)
    except TooManyTries as refused:
        answer = _form(visit, wanted, email=email, problem=too_many(visit.words, refused), status=429)
        answer.headers.append((b"retry-after", str(refused.wait_s).encode()))
        return answer
    if isinstance(outcome, NeedsSecondFactor):
        visit.cookies.append(session_cookie(visit.services.settings, outcome.token))
        return see_other(qualified(SECOND_FACTOR_PATH, {"next": wanted}))
    if isinstance(outcome, SignedIn):
        return _welcome(visit, outcome, wanted)
    return _form(visit, wanted, email=email, problem=visit.words.text("Wrong e-mail or password."))


async def second_factor_page(visit: Visit) -> Response:
    """The form for the second factor, for who has given the password."""
    if visit.session is None or not visit.session.pending:
        return see_other("/sign-in")
    return await _second_form(visit, visit.query.get("next"))


async def second_factor(visit: Visit) -> Response:
    """Check the code of an app, or a recovery code."""
    if visit.session is None or not visit.session.pending:
        return see_other("/sign-in")
    wanted = visit.form.get("next")
    try:
        outcome = await visit.services.sign_in.prove(visit.session, visit.form.get("code"), visit.origin)
    except TooManyTries as refused:
        answer = await _second_form(visit, wanted, problem=too_many(visit.words, refused), status=429)
        answer.headers.append((b"retry-after", str(refused.wait_s).encode()))
        return answer
    if outcome is None:
        return await _second_form(
            visit, wanted, problem=visit.words.text("That code is wrong, or was used before."), status=422
        )
    return _welcome(visit, outcome, _wanted(wanted))


async def passkey_options(visit: Visit) -> Response:
    """What a browser needs to ask for a passkey."""
    if visit.services.sign_in.site is None:
        raise missing()
    async with transaction(visit.pool) as tx:
        options = await passkeys.begin_sign_in(tx, visit.services.sign_in.site, visit.request.client_ip)
    return Response(200, msgspec.json.encode(options), JSON)


async def passkey(visit: Visit) -> Response:
    """Sign in with what a passkey has signed."""
    wanted = _wanted(visit.form.get("next"))
    outcome = await visit.services.sign_in.with_passkey(read_answer(visit), visit.origin)
    if isinstance(outcome, SignedIn):
        return _welcome(visit, outcome, wanted)
    return _form(
        visit, wanted, problem=visit.words.text("This passkey is not known here, or it took too long.")
    )


async def sign_out(visit: Visit) -> Response:
    """Sign out of this browser."""
    if visit.session is not None:
        await visit.services.sign_in.sign_out(visit.session, visit.origin)
    visit.cookies.append(session_cookie(visit.services.settings, ""))
    return see_other("/sign-in")


def read_answer(visit: Visit) -> dict[str, Any]:
    """What a browser says that a passkey has signed."""
    try:
        return msgspec.json.decode(visit.form.get("answer"), type=dict[str, Any])
    except msgspec.MsgspecError:
        raise HttpError(400, "bad_passkey", phrase("This browser's answer could not be read.")) from None


def _welcome(visit: Visit, signed_in: SignedIn, wanted: str) -> Response:
    visit.cookies.append(session_cookie(visit.services.settings, signed_in.token))
    email = signed_in.user.email
    if visit.services.sign_in.devices.known(visit.device, email) is None:
        visit.cookies.append(
            device_cookie(visit.services.settings, visit.services.sign_in.devices.issue(email))
        )
    return see_other(wanted or ("/console" if signed_in.user.company_id is None else "/portal"))


def _form(visit: Visit, wanted: str, *, email: str = "", problem: str = "", status: int = 422) -> Response:
    return render(
        "sign_in.html",
        visit,
        status=status if problem else 200,
        next=_wanted(wanted),
        email=email,
        problem=problem,
        passkeys=visit.services.sign_in.site is not None,
        done=visit.words.find(_DONE.get(visit.query.get("done"), "")),
    )


async def _second_form(visit: Visit, wanted: str, *, problem: str = "", status: int = 200) -> Response:
    assert visit.session is not None
    factors = await second_factors.factors(visit.pool, visit.session.person.id)
    return render(
        "second_factor.html",
        visit,
        status=status,
        next=_wanted(wanted),
        problem=problem,
        factors=factors,
        passkeys=visit.services.sign_in.site is not None and factors.passkeys > 0,
    )


def _wanted(path: str) -> str:
    """Where to go after signing in, if that is a page of ours and not one that leads straight out again."""
    return path if own_address(path) and not path.startswith(("/sign-", "/api/")) else ""
