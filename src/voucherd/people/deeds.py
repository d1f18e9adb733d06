"""Deeds on the people of a company, or of the operator: by their own side, or by the operator (OP-156)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from voucherd import trail
from voucherd.actors import Actor, ActorKind
from voucherd.db import Tx
from voucherd.people import approvers, letters, links, members, second_factors, sessions, user_store
from voucherd.people.links import LinkKind
from voucherd.people.members import Member, PersonNotFound
from voucherd.people.roles import Right, rights_of
from voucherd.people.users import User, UserDraft
from voucherd.words import SOURCE, phrase

_NOTHING: Final[frozenset[Right]] = frozenset()
_OPEN_BY_HAND: Final = 2 * links.OPEN_MAX
"""Each invitation by hand has two links: one in its letter, one on the page."""


class OwnAccount(ValueError):
    """Nobody changes the own way in like this: for that the account asks for the password."""


class EnoughLinks(Exception):
    """The person needs no such link, or has as many as are good at a time."""


class Invitation(Struct, frozen=True):
    """What a letter of invitation says: where it leads, to what, and who invites."""

    public_url: str
    where: str
    by: str
    language: str = SOURCE
    """Of whoever invites: nobody knows the guest's yet."""
    by_hand: bool = False
    """Without a mail server whoever invites is shown a link, too, and hands it over (OP-153)."""


class Invited(Struct, frozen=True):
    """Who was invited, and the link to hand over where nothing is mailed."""

    person: Member
    link: str | None


async def add(tx: Tx, actor: Actor, draft: UserDraft, password_hash: str) -> User:
    """A person with a first password; refused if the address is taken."""
    await _refuse_stranger(tx, actor, draft.company_id)
    user = await user_store.add_user(tx, draft, password_hash)
    await _record(tx, actor, "user.add", user, {"role": user.role})
    await approvers.rest(tx, actor, user, phrase("{email} was added"), _NOTHING)
    return user


async def invite(tx: Tx, actor: Actor, draft: UserDraft, invitation: Invitation) -> Invited:
    """A person who is mailed a link to choose a password; refused if the address belongs here already."""
    await _refuse_stranger(tx, actor, draft.company_id)
    user, link = await members.invite(tx, draft)
    await _mail(tx, user, link, invitation)
    shown = await _shown(tx, user, invitation)
    await _record(tx, actor, "user.invite", user, {"role": user.role, **_told(shown)})
    await approvers.rest(tx, actor, user, phrase("{email} was invited"), _NOTHING)
    return Invited(user, shown)


async def invite_again(tx: Tx, actor: Actor, person: Member, invitation: Invitation) -> Invited:
    """Mail another link to somebody who has not chosen a password yet."""
    await _refuse_stranger(tx, actor, person.company_id)
    most = _OPEN_BY_HAND if invitation.by_hand else links.OPEN_MAX
    link = None if person.joined else await links.make(tx, person.id, LinkKind.INVITATION, most)
    if link is None:
        raise EnoughLinks
    await _mail(tx, person, link, invitation)
    shown = await _shown(tx, person, invitation)
    await _record(tx, actor, "user.invite", person, {"role": person.role, "again": True, **_told(shown)})
    return Invited(person, shown)


async def set_role(tx: Tx, actor: Actor, person: Member, role: str) -> None:
    """Give a person another role; refused for the last owner."""
    await _refuse_stranger(tx, actor, person.company_id)
    await members.set_role(tx, person, role)
    await _record(tx, actor, "user.role", person, {"from": person.role, "to": role})
    changed, before = replace(person, role=role), _rights(person) if person.active else _NOTHING
    await approvers.rest(tx, actor, changed, phrase("{email} has another role"), before)


async def activate(tx: Tx, actor: Actor, person: Member) -> None:
    """Let a person sign in again."""
    await _refuse_stranger(tx, actor, person.company_id)
    await members.set_active(tx, person, active=True)
    await _record(tx, actor, "user.activate", person)
    if not person.active:
        await approvers.rest(tx, actor, person, phrase("{email} was activated again"), _NOTHING)


async def deactivate(tx: Tx, actor: Actor, person: Member) -> None:
    """Let a person in no more, and sign it out everywhere; refused for the last owner."""
    await _refuse_stranger(tx, actor, person.company_id)
    await members.set_active(tx, person, active=False)
    await sessions.end_others(tx, person.id, None)
    await _record(tx, actor, "user.deactivate", person)


async def reset_password(tx: Tx, actor: Actor, person: Member | User, password_hash: str) -> None:
    """Give a person another password, and sign it out everywhere; its links end."""
    await _refuse_stranger(tx, actor, person.company_id)
    await user_store.set_password(tx, person.id, password_hash)
    await links.void(tx, person.id)
    await sessions.end_others(tx, person.id, None)
    await _record(tx, actor, "user.reset-password", person)


async def send_password_link(tx: Tx, actor: Actor, person: Member, invitation: Invitation) -> Invited:
    """Send somebody who forgot the password a link to choose another one, which is all that changes until then."""
    await _refuse_stranger(tx, actor, person.company_id)
    _refuse_own(actor, person)
    able = person.joined and person.active and not person.elsewhere
    link = await links.make(tx, person.id, LinkKind.RESET) if able else None
    if link is None:
        raise EnoughLinks
    shown = None
    if invitation.by_hand:
        shown = await _address(tx, link, f"{invitation.public_url}/reset")
        # Whoever hands the link over could use it, and act as two.
        await approvers.rest(
            tx, actor, person, phrase("{email} was given a link for a new password"), _NOTHING
        )
    else:
        await letters.send_password_link(tx, invitation.public_url, person.email, link, by=invitation.by)
    await _record(tx, actor, "user.password-link", person, _told(shown))
    return Invited(person, shown)


async def reset_second_factor(tx: Tx, actor: Actor, person: Member) -> None:
    """Take the second factors of somebody away who has lost them, sign it out everywhere, and say so by mail."""
    await _refuse_stranger(tx, actor, person.company_id)
    _refuse_own(actor, person)
    await second_factors.remove_all(tx, person.id)
    await sessions.end_others(tx, person.id, None)
    await _record(tx, actor, "second-factor.reset", person)
    if actor.kind is ActorKind.COMMAND:
        await letters.tell(tx, person.email, phrase("The operator removed your second factors."))
    else:
        await letters.tell(tx, person.email, phrase("{by} removed your second factors."), by=actor.name)
    await approvers.rest(tx, actor, person, phrase("{email} has no second factor any more"), _NOTHING)


def _refuse_own(actor: Actor, person: Member) -> None:
    if actor.kind in {ActorKind.PERSON, ActorKind.OPERATOR} and actor.id == person.id:
        raise OwnAccount


def _rights(person: Member) -> frozenset[Right]:
    return rights_of(person.role, of_company=person.company_id is not None)


async def _refuse_stranger(tx: Tx, actor: Actor, company_id: int | None) -> None:
    """Refuse people of another side, unless the operator's look after companies (OP-156)."""
    if actor.kind not in {ActorKind.PERSON, ActorKind.OPERATOR} or actor.company_id == company_id:
        return
    if actor.kind is ActorKind.PERSON or not await _manages_companies(tx, actor):
        raise PersonNotFound


async def _manages_companies(tx: Tx, actor: Actor) -> bool:
    assert actor.id is not None, "a person has a number"
    role = await user_store.role_now(tx, actor.id)
    return Right.COMPANIES_MANAGE in rights_of(role, of_company=False)


async def _mail(tx: Tx, person: Member, link: bytes, invitation: Invitation) -> None:
    """Mail the link; an address of another team gets a letter without one."""
    await letters.invite(
        tx,
        invitation.public_url,
        person.email,
        None if person.elsewhere else link,
        where=invitation.where,
        by=invitation.by,
        language=invitation.language,
    )


async def _shown(tx: Tx, person: Member, invitation: Invitation) -> str | None:
    """A link for whoever invites to hand over, where nothing is mailed; an address of another team gets a dead one."""
    if not invitation.by_hand:
        return None
    link = await links.make(tx, person.id, LinkKind.INVITATION, _OPEN_BY_HAND)
    return None if link is None else await _address(tx, link, f"{invitation.public_url}/invitation")


async def _address(tx: Tx, link: bytes, path: str) -> str:
    """Where a link that was just made leads."""
    renewed = await links.renew(tx, link)
    assert renewed is not None, "it is good for a while"
    return f"{path}/{renewed[0]}"


def _told(shown: str | None) -> dict[str, bool]:
    return {} if shown is None else {"link_shown": True}


async def _record(
    tx: Tx, actor: Actor, action: str, person: User | Member, detail: Mapping[str, Any] | None = None
) -> None:
    await trail.record(tx, actor, action, f"user {person.email}", detail, company_id=person.company_id)
