"""Signing in: a password, then whatever else this person has set up; or a passkey alone.

Each try is counted before it is looked at, and what came of it is written into the audit trail.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from msgspec.structs import replace

from voucherd import email_address, trail
from voucherd.actors import SYSTEM, Actor, ActorKind
from voucherd.db import Pool, Tx, transaction
from voucherd.limits import allowances, throttle
from voucherd.limits.allowances import Allowance, Devices
from voucherd.networks import network_of
from voucherd.people import links, passkeys, second_factors, sessions, user_store, users
from voucherd.people.passkeys import BadPasskey, RelyingParty
from voucherd.people.second_factors import TextSealer
from voucherd.people.sessions import Browser, Session
from voucherd.people.users import Login, User


@dataclass(frozen=True, slots=True)
class SignedIn:
    """The person is in; the token belongs into the browser's cookie."""

    user: User
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class NeedsSecondFactor:
    """The password was right; the token is of a session that opens nothing until the second factor is given."""

    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SignInRefused:
    """Address or password are wrong, or the person may not sign in: which of them is not said."""


Outcome: TypeAlias = SignedIn | NeedsSecondFactor | SignInRefused


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a try comes from."""

    browser: Browser
    device: str | None = None
    """The cookie of a device that signed in before, whatever it says."""
    before: bytes | None = None
    """The session that the browser had; a new one takes its place."""
    request_id: str | None = None


class SignIn:
    """Lets people in who prove who they are."""

    def __init__(self, pool: Pool, sealing: TextSealer, devices: Devices, site: RelyingParty | None) -> None:
        self._pool = pool
        self._sealing = sealing
        self.devices = devices
        self.site = site
        """What passkeys are good for; None where browsers allow none."""

    async def sign_in(self, email: str, password: str, origin: Origin) -> Outcome:
        """A session, if the password is right; refused while too many tries failed from there."""
        login = await self._checked(email, password, origin)
        if login is None:
            return SignInRefused()
        user = login.user
        stronger = await users.hash_again(password) if users.outdated(login) else None
        async with transaction(self._pool) as tx:
            if not await user_store.may_sign_in(tx, user.id):
                await _refuse(tx, origin, "inactive", f"user {user.email}", user)
                return SignInRefused()
            if stronger is not None:
                await user_store.set_password(tx, user.id, stronger)
            if (await second_factors.factors(tx, user.id)).any:
                await _make_room(tx, origin)
                return NeedsSecondFactor(await sessions.begin(tx, user.id, origin.browser, pending=True))
            return await self._let_in(tx, user, origin, "password", strong=False)

    async def prove(self, session: Session, text: str, origin: Origin) -> SignedIn | None:
        """A session that opens, for one that owed a second factor, if this is a right code."""
        user = _user_of(session)
        key = allowances.key_of(allowances.SECOND_FACTOR, str(user.id))
        await throttle.take(self._pool, {key: allowances.SECOND_FACTOR})
        async with transaction(self._pool) as tx:
            if await second_factors.use_totp(tx, self._sealing, user.id, text):
                by = "password and app"
            elif await second_factors.use_recovery_code(tx, user.id, text):
                by = "password and recovery code"
            else:
                await _refuse(tx, origin, "second factor", f"user {user.email}", user)
                return None
            signed_in = await self._let_in(tx, user, origin, by, strong=True)
        await throttle.forgive(self._pool, [key])
        return signed_in

    async def with_passkey(self, answer: Mapping[str, Any], origin: Origin) -> SignedIn | SignInRefused:
        """A session for the person of this passkey."""
        if self.site is None:
            return SignInRefused()
        network = network_of(origin.browser.address)
        key = allowances.key_of(allowances.NETWORK, network)
        await throttle.take(self._pool, {key: allowances.NETWORK})
        try:
            async with transaction(self._pool) as tx:
                user_id = await passkeys.finish_sign_in(tx, self.site, dict(answer))
                user = await user_store.find_user(tx, user_id)
                if user is None or not await user_store.may_sign_in(tx, user_id):
                    return SignInRefused()
                signed_in = await self._let_in(tx, user, origin, "passkey", strong=True)
        except BadPasskey:
            await _refuse(self._pool, origin, "passkey", "a passkey")
            return SignInRefused()
        await throttle.forgive(self._pool, (), [key])
        return signed_in

    async def is_right(self, email: str, password: str, origin: Origin) -> bool:
        """Whether this is the person's password: asked again before something that matters."""
        return await self._checked(email, password, origin) is not None

    async def sign_out(self, session: Session, origin: Origin) -> None:
        """Sign this browser out."""
        user = _user_of(session)
        async with transaction(self._pool) as tx:
            await sessions.end(tx, session.key)
            await trail.record(tx, actor_of(user, origin), "session.end", f"user {user.email}")

    async def forgotten(self, email: str, origin: Origin) -> None:
        """Note that somebody wants a new password; the same for every address, known or not."""
        key = allowances.key_of(allowances.RESET, network_of(origin.browser.address))
        await throttle.take(self._pool, {key: allowances.RESET})
        await links.request_reset(self._pool, email)

    async def _checked(self, email: str, password: str, origin: Origin) -> Login | None:
        """The person with this address and password. It takes as long, and counts as much, for a stranger's."""
        account = email_address.looked_up(email)
        tries = self._tries(account, origin)
        await throttle.take(self._pool, tries)
        try:
            login = await user_store.find_login(self._pool, account)
            # No connection is held while the password is checked: that takes long and waits its turn.
            user = await users.verified(login, password)
        except users.PasswordChecksBusy:
            # Nobody looked at it.
            await throttle.forgive(self._pool, (), tries)
            raise
        if user is None or login is None:
            # An address that is nobody's may be a password in the wrong field: it is not written down.
            subject = "an unknown address" if login is None else f"user {login.user.email}"
            known = None if login is None else login.user
            await _refuse(self._pool, origin, "password", subject, known)
            return None
        shared = [key for key, allowance in tries.items() if allowance is allowances.NETWORK]
        await throttle.forgive(self._pool, [key for key in tries if key not in shared], shared)
        return login

    async def _let_in(self, tx: Tx, user: User, origin: Origin, by: str, *, strong: bool) -> SignedIn:
        await _make_room(tx, origin)
        token = await sessions.begin(tx, user.id, origin.browser, strong=strong)
        await trail.record(tx, actor_of(user, origin), "session.begin", f"user {user.email}", {"by": by})
        return SignedIn(user, token)

    def _tries(self, account: str, origin: Origin) -> dict[bytes, Allowance]:
        device = self.devices.known(origin.device, account)
        if device is not None:
            # What strangers do behind the same address is no concern of a device that is known.
            return {allowances.key_of(allowances.DEVICE, account, device): allowances.DEVICE}
        network = network_of(origin.browser.address)
        return {
            allowances.key_of(allowances.HERE, account, network): allowances.HERE,
            allowances.key_of(allowances.NETWORK, network): allowances.NETWORK,
        }


def actor_of(user: User, origin: Origin) -> Actor:
    """The person, as the trail names it."""
    return Actor(
        ActorKind.OPERATOR if user.company_id is None else ActorKind.PERSON,
        user.email,
        user.id,
        company_id=user.company_id,
        address=origin.browser.address,
        request_id=origin.request_id,
    )


def _user_of(session: Session) -> User:
    person = session.person
    company_id = None if person.company is None else person.company.id
    return User(person.id, person.email, company_id, person.role, person.name)


async def _make_room(tx: Tx, origin: Origin) -> None:
    if origin.before is not None:
        await sessions.end(tx, origin.before)
    await sessions.sweep(tx)


async def _refuse(tx: Tx | Pool, origin: Origin, why: str, subject: str, user: User | None = None) -> None:
    """Write down that somebody was not let in."""
    service = replace(SYSTEM, address=origin.browser.address, request_id=origin.request_id)
    company_id = None if user is None else user.company_id
    await trail.record(tx, service, "session.refuse", subject, {"why": why}, company_id=company_id)
