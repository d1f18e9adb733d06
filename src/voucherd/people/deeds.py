"""Deeds on the people of a company, or of the operator: by their own side, or at the command line."""

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

_NOTHING: Final[frozenset[Right]] = frozenset()


class OwnSecondFactor(ValueError):
    """Nobody takes the own second factors away like this: for that the account asks for the password."""


class EnoughInvitations(Exception):
    """The person has a password already, or as many links as are good at a time."""


class Invitation(Struct, frozen=True):
    """What a letter of invitation says: where it leads, to what, and who invites."""

    public_url: str
    where: str
    by: str


async def add(tx: Tx, actor: Actor, draft: UserDraft, password_hash: str) -> User:
    """A person with a first password; refused if the address is taken."""
    _refuse_stranger(actor, draft.company_id)
    user = await user_store.add_user(tx, draft, password_hash)
    await _record(tx, actor, "user.add", user, {"role": user.role})
    await approvers.rest(tx, actor, user, "was added", _NOTHING)
    return user


async def invite(tx: Tx, actor: Actor, draft: UserDraft, invitation: Invitation) -> Member:
    """A person who is mailed a link to choose a password; refused if the address belongs here already."""
    _refuse_stranger(actor, draft.company_id)
    user, link = await members.invite(tx, draft)
    await _mail(tx, user, link, invitation)
    await _record(tx, actor, "user.invite", user, {"role": user.role})
    await approvers.rest(tx, actor, user, "was invited", _NOTHING)
    return user


async def invite_again(tx: Tx, actor: Actor, person: Member, invitation: Invitation) -> None:
    """Mail another link to somebody who has not chosen a password yet."""
    _refuse_stranger(actor, person.company_id)
    link = None if person.joined else await links.make(tx, person.id, LinkKind.INVITATION)
    if link is None:
        raise EnoughInvitations
    await _mail(tx, person, link, invitation)
    await _record(tx, actor, "user.invite", person, {"role": person.role, "again": True})


async def set_role(tx: Tx, actor: Actor, person: Member, role: str) -> None:
    """Give a person another role; refused for the last owner."""
    _refuse_stranger(actor, person.company_id)
    await members.set_role(tx, person, role)
    await _record(tx, actor, "user.role", person, {"from": person.role, "to": role})
    changed, before = replace(person, role=role), _rights(person) if person.active else _NOTHING
    await approvers.rest(tx, actor, changed, "got another role", before)


async def activate(tx: Tx, actor: Actor, person: Member) -> None:
    """Let a person sign in again."""
    _refuse_stranger(actor, person.company_id)
    await members.set_active(tx, person, active=True)
    await _record(tx, actor, "user.activate", person)
    if not person.active:
        await approvers.rest(tx, actor, person, "was activated again", _NOTHING)


async def deactivate(tx: Tx, actor: Actor, person: Member) -> None:
    """Let a person in no more, and sign it out everywhere; refused for the last owner."""
    _refuse_stranger(actor, person.company_id)
    await members.set_active(tx, person, active=False)
    await sessions.end_others(tx, person.id, None)
    await _record(tx, actor, "user.deactivate", person)


async def reset_password(tx: Tx, actor: Actor, person: Member | User, password_hash: str) -> None:
    """Give a person another password, and sign it out everywhere; its links end."""
    _refuse_stranger(actor, person.company_id)
    await user_store.set_password(tx, person.id, password_hash)
    await links.void(tx, person.id)
    await sessions.end_others(tx, person.id, None)
    await _record(tx, actor, "user.reset-password", person)


async def reset_second_factor(tx: Tx, actor: Actor, person: Member) -> None:
    """Take the second factors of somebody away who has lost them, sign it out everywhere, and say so by mail."""
    _refuse_stranger(actor, person.company_id)
    if actor.kind in {ActorKind.PERSON, ActorKind.OPERATOR} and actor.id == person.id:
        raise OwnSecondFactor
    await second_factors.remove_all(tx, person.id)
    await sessions.end_others(tx, person.id, None)
    await _record(tx, actor, "second-factor.reset", person)
    by = "The operator" if actor.kind is ActorKind.COMMAND else actor.name
    await letters.tell(tx, person.email, f"{by} took your second factors away.")
    await approvers.rest(tx, actor, person, "lost the second factors", _NOTHING)


def _rights(person: Member) -> frozenset[Right]:
    return rights_of(person.role, of_company=person.company_id is not None)


def _refuse_stranger(actor: Actor, company_id: int | None) -> None:
    """Refuse people of another side; at the command line there is none."""
    if actor.kind in {ActorKind.PERSON, ActorKind.OPERATOR} and actor.company_id != company_id:
        raise PersonNotFound


async def _mail(tx: Tx, person: Member, link: bytes, invitation: Invitation) -> None:
    """Mail the link; an address of another team gets a letter without one."""
    await letters.invite(
        *(tx, invitation.public_url, person.email),
        None if person.elsewhere else link,
        where=invitation.where,
        by=invitation.by,
    )


async def _record(
    tx: Tx, actor: Actor, action: str, person: User | Member, detail: Mapping[str, Any] | None = None
) -> None:
    await trail.record(tx, actor, action, f"user {person.email}", detail, company_id=person.company_id)
