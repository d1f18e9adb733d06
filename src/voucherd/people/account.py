"""What a person does to the own account. Each change is mailed, because somebody else may have made it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from voucherd import trail
from voucherd.actors import Actor
from voucherd.db import Tx
from voucherd.people import letters, links, passkeys, second_factors, sessions, user_store
from voucherd.people.links import LinkKind
from voucherd.people.passkeys import RelyingParty
from voucherd.people.second_factors import TextSealer
from voucherd.people.sessions import Browser, Session
from voucherd.people.sign_in import Origin, actor_of
from voucherd.words import LANGUAGES, phrase, zones

NAME_CHARS_MAX: Final = 100


class NoSecondFactor(ValueError):
    """There is nothing that recovery codes could stand in for."""


class LastSecondFactor(ValueError):
    """The person must have a second factor, and this is the only one."""


class BadProfile(ValueError):
    """A field of the profile can't be kept; `field` says which."""

    def __init__(self, field: str) -> None:
        super().__init__(field)
        self.field = field


class Profile(Struct, frozen=True):
    """How a person is called and wants to be spoken to; an empty language or zone is the browser's."""

    name: str
    language: str
    time_zone: str

    def __post_init__(self) -> None:
        if len(self.name) > NAME_CHARS_MAX or not self.name.isprintable():
            raise BadProfile("name")
        if self.language and self.language not in LANGUAGES:
            raise BadProfile("language")
        if self.time_zone and self.time_zone not in zones():
            raise BadProfile("time_zone")


class Strengthened(Struct, frozen=True):
    """A second factor was set up: new recovery codes if there are any, and the token of the session from now on."""

    codes: list[str] | None
    token: str


async def change_profile(tx: Tx, actor: Actor, profile: Profile) -> None:
    """Keep another name, language or time zone; what stays the same is not told."""
    before = await user_store.profile(tx, _own(actor))
    after = {"name": profile.name, "language": profile.language, "time zone": profile.time_zone}
    changed = {field: value for field, value in after.items() if value != before[field]}
    if changed:
        await user_store.set_profile(tx, _own(actor), profile.name, profile.language, profile.time_zone)
        await trail.record(tx, actor, "user.profile", f"user {actor.name}", changed)


async def change_password(tx: Tx, actor: Actor, password_hash: str, session: Session) -> None:
    """Choose another password; the other browsers are signed out."""
    await user_store.set_password(tx, _own(actor), password_hash)
    await sessions.end_others(tx, _own(actor), session.key)
    await _record(tx, actor, "user.change-password", phrase("The password was changed."))


async def choose_password(tx: Tx, token: str, kind: LinkKind, password_hash: str, origin: Origin) -> bool:
    """Choose a password by a link that was mailed, and sign everybody out; False if the link is over."""
    holder = await links.use(tx, token, kind)
    if holder is None:
        return False
    await user_store.set_password(tx, holder.user_id, password_hash)
    await sessions.end_others(tx, holder.user_id, None)
    user = await user_store.find_user(tx, holder.user_id)
    assert user is not None, "the link was this person's"
    action = "user.reset-password" if kind is LinkKind.RESET else "user.join"
    await trail.record(tx, actor_of(user, origin), action, f"user {user.email}")
    if kind is LinkKind.RESET:
        told = phrase("The password was changed through a link that was mailed to you.")
        await letters.tell(tx, user.email, told)
    return True


async def add_app(
    tx: Tx, actor: Actor, sealing: TextSealer, session: Session, browser: Browser, word: str, code: str
) -> Strengthened | None:
    """Take an authenticator app as second factor, once it has given a right code; None if it has not."""
    codes = await second_factors.confirm_totp(tx, sealing, _own(actor), session.key, word, code)
    if codes is None:
        return None
    await _record(tx, actor, "second-factor.add", phrase("An authenticator app was set up."), {"kind": "app"})
    return Strengthened(codes, await _strengthened(tx, session, browser))


async def remove_app(tx: Tx, actor: Actor, *, must_have: bool) -> None:
    """Take the app away; refused for the last second factor of somebody who must have one."""
    if must_have and not (await second_factors.factors(tx, _own(actor))).passkeys:
        raise LastSecondFactor
    if await second_factors.remove_totp(tx, _own(actor)):
        told = phrase("The authenticator app was removed.")
        await _record(tx, actor, "second-factor.remove", told, {"kind": "app"})


async def new_recovery_codes(tx: Tx, actor: Actor) -> list[str]:
    """Ten new recovery codes; those before are void."""
    if not (await second_factors.factors(tx, _own(actor))).any:
        raise NoSecondFactor
    codes = await second_factors.new_recovery_codes(tx, _own(actor))
    await _record(tx, actor, "second-factor.recovery-codes", phrase("New recovery codes were made."))
    return codes


async def add_passkey(
    tx: Tx,
    actor: Actor,
    site: RelyingParty,
    session: Session,
    browser: Browser,
    name: str,
    answer: dict[str, Any],
) -> Strengthened:
    """Keep the passkey that the browser has made."""
    # The options were given to who knows the password, and for this person: that is what the answer proves.
    made = await passkeys.finish_registration(tx, site, _own(actor), name, answer)
    told = phrase("The passkey “{name}” was added.")
    await _record(tx, actor, "second-factor.add", told, {"kind": "passkey"}, name=made.name)
    codes = None
    if (await second_factors.factors(tx, _own(actor))).recovery_codes == 0:
        codes = await second_factors.new_recovery_codes(tx, _own(actor))
    return Strengthened(codes, await _strengthened(tx, session, browser))


async def remove_passkey(tx: Tx, actor: Actor, passkey_id: int, *, must_have: bool) -> str | None:
    """Take a passkey away; its name, None if there is none. Refused for the last one of who must have one."""
    found = await second_factors.factors(tx, _own(actor))
    if must_have and found.passkeys - 1 + found.totp <= 0:
        raise LastSecondFactor
    name = await passkeys.remove(tx, _own(actor), passkey_id)
    if name is not None:
        await second_factors.tidy(tx, _own(actor))
        told = phrase("The passkey “{name}” was removed.")
        await _record(tx, actor, "second-factor.remove", told, {"kind": "passkey"}, name=name)
    return name


async def end_session(tx: Tx, actor: Actor, key: bytes) -> None:
    """Sign one browser out."""
    await sessions.end(tx, key)
    await trail.record(tx, actor, "session.end", f"user {actor.name}")


async def end_other_sessions(tx: Tx, actor: Actor, session: Session) -> None:
    """Sign every other browser out."""
    await sessions.end_others(tx, _own(actor), session.key)
    await trail.record(tx, actor, "session.end", f"user {actor.name}", {"all": True})


async def _strengthened(tx: Tx, session: Session, browser: Browser) -> str:
    """The token of a new session; all before it end, for they were begun with a password alone."""
    await sessions.end_others(tx, session.person.id, None)
    return await sessions.begin(tx, session.person.id, browser, strong=True)


def _own(actor: Actor) -> int:
    assert actor.id is not None, "a person has a number"
    return actor.id


async def _record(
    tx: Tx,
    actor: Actor,
    action: str,
    told: str,
    detail: Mapping[str, Any] | None = None,
    **values: str,
) -> None:
    await trail.record(tx, actor, action, f"user {actor.name}", detail)
    await letters.tell(tx, actor.name, told, **values)
