"""Links that came by mail: a forgotten password, and an invitation. Both end with a password that is chosen."""

from __future__ import annotations

from typing import Final

from voucherd.db import transaction
from voucherd.http import HttpError, Response
from voucherd.pages.render import render
from voucherd.pages.visit import Visit, see_other
from voucherd.people import account, links
from voucherd.people.links import LinkKind
from voucherd.people.users import PASSWORD_CHARACTERS_MIN, hash_password

PASSWORD_HINT: Final = (
    f"At least {PASSWORD_CHARACTERS_MIN} characters. A few words that only you think of are best."
)
_TITLES: Final = {LinkKind.RESET: "Choose a new password", LinkKind.INVITATION: "Welcome"}


async def forgotten_page(visit: Visit) -> Response:
    """The form for who has forgotten the password."""
    return render("people/forgotten.html", visit, sent="sent" in visit.query)


async def forgotten(visit: Visit) -> Response:
    """Note the wish for a new password; the answer is the same whoever asks for whomever."""
    await visit.services.sign_in.forgotten(visit.form.get("email"), visit.origin)
    return see_other("/forgotten?sent=yes")


async def reset_page(visit: Visit) -> Response:
    """The form for a new password, for who has the link."""
    return await _page(visit, LinkKind.RESET)


async def reset(visit: Visit) -> Response:
    """Choose a new password; everybody who was signed in as this person is signed out."""
    return await _choose(visit, LinkKind.RESET)


async def invitation_page(visit: Visit) -> Response:
    """The form for the first password, for who was invited."""
    return await _page(visit, LinkKind.INVITATION)


async def invitation(visit: Visit) -> Response:
    """Choose the first password."""
    return await _choose(visit, LinkKind.INVITATION)


async def _page(visit: Visit, kind: LinkKind, *, problem: str = "") -> Response:
    holder = await links.look(visit.pool, visit.parameters["token"], kind)
    if holder is None:
        raise _over()
    return render(
        "people/choose.html",
        visit,
        status=422 if problem else 200,
        title=_TITLES[kind],
        email=holder.email,
        path=visit.request.path,
        problem=problem,
        hint=PASSWORD_HINT,
    )


async def _choose(visit: Visit, kind: LinkKind) -> Response:
    token, password = visit.parameters["token"], visit.form.raw("password")
    # Looked at before the password is hashed: that is work, and not for whoever makes up links.
    if await links.look(visit.pool, token, kind) is None:
        raise _over()
    try:
        password_hash = await hash_password(password)
    except ValueError as short:
        return await _page(visit, kind, problem=f"{str(short).capitalize()}.")
    async with transaction(visit.pool) as tx:
        if not await account.choose_password(tx, token, kind, password_hash, visit.origin):
            raise _over()
    return see_other("/sign-in?done=password")


def _over() -> HttpError:
    return HttpError(410, "link_over", "This link was used before, or it is too old. Ask for a new one.")
