"""Links that came by mail: a forgotten password, and an invitation. Both end with a password that is chosen."""

from __future__ import annotations

from typing import Final

from voucherd.db import transaction
from voucherd.http import HttpError, Response
from voucherd.pages.render import render
from voucherd.pages.visit import Visit, see_other
from voucherd.people import account, links, user_store
from voucherd.people.links import LinkKind
from voucherd.people.passwords import CHARACTERS_MAX, CHARACTERS_MIN, WeakPassword
from voucherd.people.users import hash_password
from voucherd.words import Words, phrase


async def forgotten_page(visit: Visit) -> Response:
    """The form for who has forgotten the password."""
    return render("people/forgotten.html", visit, sent="sent" in visit.query)


async def forgotten(visit: Visit) -> Response:
    """Note the wish for a new password; the answer is the same whoever asks for whomever."""
    await visit.services.sign_in.forgotten(visit.form.get("email"), visit.origin)
    return see_other("/forgotten?sent=yes")


class PasswordPages:
    """The pages of one kind of link: the form for a password, and choosing it."""

    def __init__(self, kind: LinkKind, title: str) -> None:
        self.kind, self.title = kind, title

    async def page(self, visit: Visit) -> Response:
        """The form for a password, for who has the link."""
        holder = await links.look(visit.pool, visit.parameters["token"], self.kind)
        if holder is None:
            raise _over(visit.words)
        path = visit.request.path
        return render(
            "people/choose.html",
            visit,
            title=self.title,
            email=holder.email,
            path=path,
            hint=password_hint(visit.words),
        )

    async def choose(self, visit: Visit) -> Response:
        """Choose the password; everybody who was signed in as this person is signed out."""
        token = visit.parameters["token"]
        # Looked at before the password is hashed: that is work, and not for who makes up links.
        holder = await links.look(visit.pool, token, self.kind)
        if holder is None:
            raise _over(visit.words)
        known = await user_store.known_of(visit.pool, holder.user_id)
        try:
            password_hash = await hash_password(visit.form.raw("password"), known)
        except WeakPassword as weak:
            visit.problems["password"] = weak_password(visit.words, weak)
            return await self.page(visit)
        async with transaction(visit.pool) as tx:
            if not await account.choose_password(tx, token, self.kind, password_hash, visit.origin):
                raise _over(visit.words)
        return see_other("/sign-in?done=password")


RESET: Final = PasswordPages(LinkKind.RESET, phrase("Choose a new password"))
INVITATION: Final = PasswordPages(LinkKind.INVITATION, phrase("Welcome"))


def password_hint(words: Words) -> str:
    """What is said beside the field for a new password."""
    return words.text(
        "At least {count} characters. A few words that only you think of are best.", count=CHARACTERS_MIN
    )


def weak_password(words: Words, weak: WeakPassword) -> str:
    """Why a password was refused."""
    if weak.guessable:
        return words.text(
            "This password is easy to guess. Use a few words that have nothing to do with you or each other."
        )
    return words.text("A password has {low} to {high} characters.", low=CHARACTERS_MIN, high=CHARACTERS_MAX)


def _over(words: Words) -> HttpError:
    return HttpError(
        410, "link_over", words.text("This link was used before, or it is too old. Ask for a new one.")
    )
