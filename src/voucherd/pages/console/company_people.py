"""The people of a company, as the operator looks after them: invited, given roles, let in or not (OP-156)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Concatenate, Final, ParamSpec

from voucherd.actors import Actor
from voucherd.companies.model import Company
from voucherd.db import Tx, transaction
from voucherd.http import HttpError, Response
from voucherd.pages.console.inputs import company_of, number_in
from voucherd.pages.forms import sentence
from voucherd.pages.people.team import INVITATION, NEW_PASSWORD, LinkDeed, LinkWords, link_sent
from voucherd.pages.render import render
from voucherd.pages.roles import DUTIES, ROLES
from voucherd.pages.visit import Visit
from voucherd.people import deeds as people
from voucherd.people import members
from voucherd.people.deeds import EnoughLinks, Invitation
from voucherd.people.members import LastOwner, Member, TooManyPeople
from voucherd.people.users import COMPANY_ROLES, UserDraft, UserExists

P = ParamSpec("P")

_CHOICES: Final = [(name, ROLES[name]) for name in DUTIES]
_DUTIES: Final = [(ROLES[name], duty) for name, duty in DUTIES.items()]


async def invite_page(visit: Visit) -> Response:
    """The form of an invitation."""
    async with visit.pool.acquire() as conn:
        company = await company_of(conn, visit)
        known = await members.members(conn, company.id)
    role = visit.form.get("role") or ("buyer" if known else members.top_role(company.id))
    return render(
        "console/company_invite.html", visit, company=company, roles=_CHOICES, duties=_DUTIES, role=role
    )


async def invite(visit: Visit) -> Response:
    """Invite somebody to the team of a company."""
    company = await visit.look(company_of, visit)
    try:
        draft = UserDraft(visit.form.get("email"), company.id, visit.form.get("role"))
        done = await visit.do(people.invite, draft, _invitation(visit, company))
    except TooManyPeople:
        visit.problems["email"] = f"There are {members.PEOPLE_MAX} people here already."
    except UserExists:
        visit.problems["email"] = "This address belongs to the company already."
    except ValueError as wrong:
        visit.problems["role" if "role" in str(wrong) else "email"] = sentence(wrong)
    if visit.problems:
        return await invite_page(visit)
    return link_sent(visit, done, _path(company, done.person), INVITATION)


async def person_page(visit: Visit) -> Response:
    """One person of a company: role, whether it may sign in, its second factor."""
    async with visit.pool.acquire() as conn:
        company = await company_of(conn, visit)
        person = await members.member(conn, number_in(visit, "person"), company.id)
    return render(
        "console/company_person.html",
        visit,
        company=company,
        one=person,
        path=_path(company, person),
        roles=_CHOICES,
        duties=_DUTIES,
    )


async def invite_again(visit: Visit) -> Response:
    """Make another invitation for somebody who has not chosen a password yet."""
    return await _send_link(visit, people.invite_again, INVITATION)


async def send_password_link(visit: Visit) -> Response:
    """Let somebody who forgot the password choose another one."""
    return await _send_link(visit, people.send_password_link, NEW_PASSWORD)


async def _send_link(visit: Visit, deed: LinkDeed, link: LinkWords) -> Response:
    company = await visit.look(company_of, visit)
    try:
        async with transaction(visit.pool) as tx:
            person = await members.member(tx, number_in(visit, "person"), company.id)
            done = await deed(tx, visit.actor, person, _invitation(visit, company))
    except EnoughLinks:
        path = f"/console/companies/{company.id}/people/{visit.parameters['person']}"
        return visit.go(path, link.enough, "bad")
    return link_sent(visit, done, _path(company, person), link)


async def set_role(visit: Visit) -> Response:
    """Give somebody another role."""
    role = visit.form.get("role")
    company = await visit.look(company_of, visit)
    await visit.look(members.member, number_in(visit, "person"), company.id)
    if role not in COMPANY_ROLES:
        raise HttpError(400, "bad_role", "There is no such role here.")
    return await _done(visit, lambda one: f"{one.email} is {role} now.", people.set_role, role)


async def deactivate(visit: Visit) -> Response:
    """Let somebody in no more; who is signed in is signed out."""
    return await _done(visit, lambda one: f"{one.email} can’t sign in any more.", people.deactivate)


async def activate(visit: Visit) -> Response:
    """Let somebody in again."""
    return await _done(visit, lambda one: f"{one.email} can sign in again.", people.activate)


async def reset_second_factor(visit: Visit) -> Response:
    """Take the second factors of somebody away who has lost them."""
    return await _done(
        visit,
        lambda one: f"{one.email} signs in with the password alone, until a second factor is set up.",
        people.reset_second_factor,
    )


async def _done(
    visit: Visit,
    said: Callable[[Member], str],
    deed: Callable[Concatenate[Tx, Actor, Member, P], Awaitable[object]],
    *args: P.args,
    **kwargs: P.kwargs,
) -> Response:
    """Do a deed about the person that the path names, say so, and go back to the person."""
    company = await visit.look(company_of, visit)
    try:
        person = await _do(visit, company, deed, *args, **kwargs)
    except LastOwner:
        path = f"/console/companies/{company.id}/people/{visit.parameters['person']}"
        return visit.go(path, "Nobody else is owner here: give somebody else that role first.", "bad")
    return visit.go(_path(company, person), said(person))


async def _do(
    visit: Visit,
    company: Company,
    deed: Callable[Concatenate[Tx, Actor, Member, P], Awaitable[object]],
    *args: P.args,
    **kwargs: P.kwargs,
) -> Member:
    number = number_in(visit, "person")
    async with transaction(visit.pool) as tx:
        person = await members.member(tx, number, company.id)
        await deed(tx, visit.actor, person, *args, **kwargs)
    return person


def _invitation(visit: Visit, company: Company) -> Invitation:
    me = visit.someone
    settings = visit.services.settings
    by_hand = settings.smtp_url is None
    return Invitation(settings.public_url, company.name, me.name or me.email, by_hand=by_hand)


def _path(company: Company, person: Member) -> str:
    return f"/console/companies/{company.id}/people/{person.id}"
