"""The doors: where people come in, go out, and switch between live and sandbox."""

from __future__ import annotations

from typing import Final

from voucherd.access import sessions
from voucherd.access.sign_in import NeedsSecondFactor, SignedIn
from voucherd.access.sign_in import sign_in as check
from voucherd.http import HttpError, Response
from voucherd.ids import State
from voucherd.portal.house import House
from voucherd.portal.render import render
from voucherd.portal.visit import Visit, own_address, see_other, session_cookie

SECOND_FACTOR_PATH: Final = "/sign-in/second-factor"
_STATES: Final = {"live": State.LIVE, "sandbox": State.SANDBOX}


async def start(_house: House, visit: Visit) -> Response:
    """Lead everybody to where they belong."""
    return see_other("/docs" if visit.person is None else home_of(visit))


async def sign_in_page(_house: House, visit: Visit) -> Response:
    """The form to sign in."""
    if visit.person is not None:
        return see_other(_wanted(visit.query.get("next")) or home_of(visit))
    return _form(visit, visit.query.get("next"))


async def sign_in(house: House, visit: Visit) -> Response:
    """Sign in, and go on to where the person wanted to go."""
    email, password = visit.form.get("email"), visit.form.raw("password")
    before = None if visit.session is None else visit.session.key
    outcome = await check(house.pool, email, password, visit.browser, before=before)
    wanted = _wanted(visit.form.get("next"))
    if isinstance(outcome, SignedIn):
        visit.cookies.append(session_cookie(house.settings, outcome.token))
        return see_other(wanted or ("/console" if outcome.user.company_id is None else "/portal"))
    if isinstance(outcome, NeedsSecondFactor):
        visit.cookies.append(session_cookie(house.settings, outcome.token))
        return see_other(SECOND_FACTOR_PATH)
    return _form(visit, wanted, email=email, problem="That address and password do not belong together.")


async def sign_out(house: House, visit: Visit) -> Response:
    """Sign out of this browser."""
    if visit.session is not None:
        await sessions.end(house.pool, visit.session.key)
    visit.cookies.append(session_cookie(house.settings, ""))
    return see_other("/sign-in")


async def switch_state(house: House, visit: Visit) -> Response:
    """Look at live, or at the sandbox, from now on."""
    state = _STATES.get(visit.form.get("state"))
    if state is None:
        raise HttpError(400, "bad_state", "There is live and there is sandbox.")
    assert visit.session is not None
    await sessions.look_at(house.pool, visit.session.key, state)
    return see_other(home_of(visit))


def home_of(visit: Visit) -> str:
    """Where a person's own pages begin."""
    return "/console" if visit.someone.company is None else "/portal"


def _form(visit: Visit, wanted: str, *, email: str = "", problem: str = "") -> Response:
    status = 422 if problem else 200
    return render("sign_in.html", visit, status=status, next=_wanted(wanted), email=email, problem=problem)


def _wanted(path: str) -> str:
    """Where to go after signing in, if that is a page of ours and not one that leads straight out again."""
    return path if own_address(path) and not path.startswith(("/sign-", "/api/")) else ""
