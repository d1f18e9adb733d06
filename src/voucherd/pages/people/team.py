"""The team: who belongs to a company, or to the operator, in which role; and what a company asks of its people."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Concatenate, Final, ParamSpec

from voucherd.actors import Actor
from voucherd.companies import store as company_store
from voucherd.companies.model import Policy
from voucherd.db import Tx, transaction
from voucherd.http import HttpError, Response
from voucherd.money import Money
from voucherd.pages.forms import sentence, whole
from voucherd.pages.people.approvals import changes_later
from voucherd.pages.render import render
from voucherd.pages.visit import Visit, missing, see_other
from voucherd.people import deeds as people
from voucherd.people import members
from voucherd.people import policy as rules
from voucherd.people.deeds import EnoughInvitations, Invitation, OwnSecondFactor
from voucherd.people.members import LastOwner, Member, TooManyPeople
from voucherd.people.users import COMPANY_ROLES, OPERATOR_ROLES, UserDraft, UserExists

P = ParamSpec("P")

OPERATOR: Final = "the operator's console"
ROLES: Final = {
    "owner": "everything, and decides who belongs to the team",
    "buyer": "orders and sees codes",
    "finance": "sees money",
    "viewer": "looks, changes nothing",
    "developer": "keys and webhooks",
    "admin": "everything, and decides who belongs to the staff",
    "support": "companies, orders and purchases",
    "stock": "products, stock and suppliers",
}


class Team:
    """The pages of one side: a company's team, or the operator's staff."""

    def __init__(self, path: str) -> None:
        self.path = path

    async def page(self, visit: Visit) -> Response:
        """Everybody who belongs here."""
        side = _side(visit)
        roles = sorted(OPERATOR_ROLES if side is None else COMPANY_ROLES)
        policy = None if side is None else await company_store.policy(visit.pool, side)
        rule_change = None if side is None else await company_store.find_rule_change(visit.pool, side)
        # A rule that waits is what somebody wants: sent again with another box ticked, it must not be forgotten.
        asked = policy if rule_change is None else rule_change
        amount = None if asked is None else asked.approve_from_eur_minor
        return render(
            "people/team.html",
            visit,
            path=self.path,
            members=await members.members(visit.pool, side),
            roles=[(role, f"{role}: {ROLES[role]}") for role in roles],
            policy=policy,
            rule_change=rule_change,
            approve_now=_euros(policy),
            approve_from="" if amount is None else str(Money(amount, "EUR").decimal()),
            email=visit.form.get("email"),
            role=visit.form.get("role") or ("support" if side is None else "buyer"),
        )

    async def invite(self, visit: Visit) -> Response:
        """Add somebody, and mail a link to choose a password."""
        email, role = visit.form.get("email"), visit.form.get("role")
        try:
            async with transaction(visit.pool) as tx:
                draft = UserDraft(email, _side(visit), role)
                user = await people.invite(tx, visit.actor, draft, _invitation(visit))
        except TooManyPeople:
            visit.problems["email"] = f"There are {members.PEOPLE_MAX} people here already."
        except UserExists:
            visit.problems["email"] = "This address belongs here already."
        except ValueError as wrong:
            visit.problems["email"] = sentence(wrong)
        if visit.problems:
            return await self.page(visit)
        return visit.go(self.path, f"An invitation is on its way to {user.email}.")

    async def invite_again(self, visit: Visit) -> Response:
        """Mail another link to somebody who has not chosen a password yet."""
        try:
            person = await _do(visit, people.invite_again, _invitation(visit))
        except EnoughInvitations:
            said = "Enough invitations are on their way. Look into the mailbox first."
            return visit.go(self.path, said, "bad")
        return visit.go(self.path, f"Another invitation is on its way to {person.email}.")

    async def set_role(self, visit: Visit) -> Response:
        """Give somebody another role."""
        role = visit.form.get("role")
        try:
            person = await _do(visit, people.set_role, role)
        except LastOwner:
            return self._stays(visit)
        except ValueError:
            raise HttpError(400, "bad_role", "There is no such role here.") from None
        return visit.go(self.path, f"{person.email} is {role} now.")

    async def deactivate(self, visit: Visit) -> Response:
        """Let somebody in no more; who is signed in is signed out."""
        try:
            person = await _do(visit, people.deactivate)
        except LastOwner:
            return self._stays(visit)
        if person.id != visit.someone.id:
            visit.tell(f"{person.email} can’t sign in any more.")
        return see_other(self.path)

    async def activate(self, visit: Visit) -> Response:
        """Let somebody in again."""
        person = await _do(visit, people.activate)
        return visit.go(self.path, f"{person.email} can sign in again.")

    async def reset_second_factor(self, visit: Visit) -> Response:
        """Take the second factors of somebody away who has lost them."""
        try:
            person = await _do(visit, people.reset_second_factor)
        except OwnSecondFactor:
            raise HttpError(400, "own_second_factor", "Your own are on the page of your account.") from None
        said = f"{person.email} signs in with the password alone, until a second factor is set up."
        return visit.go(self.path, said)

    async def set_policy(self, visit: Visit) -> Response:
        """Choose what the company asks of its people."""
        text = visit.form.get("approve_from")
        try:
            amount = Money.read(f"{text} EUR").minor if text else None
            if amount is not None and amount <= 0:
                raise ValueError
        except ValueError:
            visit.problems["approve_from"] = "An amount looks like 1000 or 1000.00."
            return await self.page(visit)
        asked = Policy(visit.form.get("second_factor") == "yes", amount)
        waiting = await visit.do(rules.set_policy, visit.company, asked)
        said = "The rules are changed." if waiting is None else changes_later(waiting)
        return visit.go(self.path, said, "good" if waiting is None else "note")

    def _stays(self, visit: Visit) -> Response:
        role = members.top_role(_side(visit))
        return visit.go(self.path, f"Nobody else is {role} here: give somebody else that role first.", "bad")


TEAM: Final = Team("/portal/team")


STAFF: Final = Team("/console/staff")


def _euros(policy: Policy | None) -> Money | None:
    amount = None if policy is None else policy.approve_from_eur_minor
    return None if amount is None else Money(amount, "EUR")


def _invitation(visit: Visit) -> Invitation:
    me = visit.someone
    where = OPERATOR if me.company is None else me.company.name
    return Invitation(visit.services.settings.public_url, where, me.name or me.email)


def _side(visit: Visit) -> int | None:
    """The company whose people these are; None for the operator's own."""
    return None if visit.someone.company is None else visit.company_id


async def _do(
    visit: Visit,
    deed: Callable[Concatenate[Tx, Actor, Member, P], Awaitable[object]],
    /,
    *args: P.args,
    **kwargs: P.kwargs,
) -> Member:
    """Do a deed about the person that the path names, of one's own side; that person."""
    number = whole(visit.parameters["person"])
    if number is None:
        raise missing()
    async with transaction(visit.pool) as tx:
        person = await members.member(tx, number, _side(visit))
        await deed(tx, visit.actor, person, *args, **kwargs)
    return person
