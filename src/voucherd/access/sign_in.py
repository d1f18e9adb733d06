"""Signing in: a password, and where one is set a second factor."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from voucherd.access import sessions, store, users
from voucherd.access.sessions import Browser
from voucherd.access.users import User
from voucherd.db import Pool, Tx, transaction


@dataclass(frozen=True, slots=True)
class SignedIn:
    """The person is in; the token belongs into the browser's cookie."""

    user: User
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class NeedsSecondFactor:
    """The password was right; the token is of a session that opens nothing until the second factor is given."""

    user: User
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Refused:
    """Address or password are wrong, or the person may not sign in: which of them is not said."""


Outcome: TypeAlias = SignedIn | NeedsSecondFactor | Refused


async def sign_in(
    pool: Pool, email: str, password: str, browser: Browser, *, before: bytes | None = None
) -> Outcome:
    """A session in place of the one that the browser had `before`, if the password is right."""
    login = await store.find_login(pool, email.strip())
    # No connection is held while the password is checked: that takes long and waits its turn.
    user = await users.verified(login, password)
    if login is None or user is None:
        return Refused()
    stronger = await users.hash_password(password) if users.outdated(login) else None
    async with transaction(pool) as tx:
        if not await store.may_sign_in(tx, user.id):
            return Refused()
        if stronger is not None:
            await store.set_password(tx, user.id, stronger)
        if before is not None:
            await sessions.end(tx, before)
        await sessions.sweep(tx)
        if await wants_second_factor(tx, user):
            return NeedsSecondFactor(user, await sessions.begin(tx, user.id, browser, pending=True))
        return SignedIn(user, await sessions.begin(tx, user.id, browser))


async def wants_second_factor(_tx: Tx, _user: User) -> bool:
    """Whether the password alone is not enough; nobody can set a second factor yet."""
    return False
