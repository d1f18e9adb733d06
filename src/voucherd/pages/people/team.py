"""The team: who belongs to a company, or to the operator, in which role; and what a company asks of its people."""

from __future__ import annotations

from typing import Final

from voucherd.companies import deeds as company_deeds
from voucherd.companies import store as company_store
from voucherd.companies.model import Policy
from voucherd.db import Tx, transaction
from voucherd.http import HttpError, Response
from voucherd.money import Money
from voucherd.pages.render import render
from voucherd.pages.visit import Visit, missing, see_other
from voucherd.people import deeds as people
from voucherd.people import members
from voucherd.people.deeds import EnoughInvitations, Invitation, OwnSecondFactor
from voucherd.people.members import LastOwner, Member, PersonNotFound, TooManyPeople
from voucherd.people.users import COMPANY_ROLES, OPERATOR_ROLES, UserDraft, UserExists

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
        return await self._page(visit)

    async def invite(self, visit: Visit) -> Response:
        """Add somebody, and mail a link to choose a password."""
        email, role = visit.form.get("email"), visit.form.get("role")
        try:
            async with transaction(visit.pool) as tx:
                draft = UserDraft(email, _side(visit), role)
                user = await people.invite(tx, visit.actor, draft, _invitation(visit))
        except TooManyPeople:
            return await self._page(visit, wrong=f"There are {members.PEOPLE_MAX} people here already.")
        except UserExists:
            return await self._page(visit, wrong="This address has an account already.")
        except ValueError as wrong:
            return await self._page(visit, wrong=f"{str(wrong)[:1].upper()}{str(wrong)[1:]}.")
        return visit.go(self.path, f"An invitation is on its way to {user.email}.")

    async def invite_again(self, visit: Visit) -> Response:
        """Mail another link to somebody who has not chosen a password yet."""
        try:
            async with transaction(visit.pool) as tx:
                person = await _person(tx, visit)
                await people.invite_again(tx, visit.actor, person, _invitation(visit))
            visit.tell(f"Another invitation is on its way to {person.email}.")
        except EnoughInvitations:
            visit.tell("Enough invitations are on their way. Look into the mailbox first.", "bad")
        return see_other(self.path)

    async def set_role(self, visit: Visit) -> Response:
        """Give somebody another role."""
        role = visit.form.get("role")
        try:
            async with transaction(visit.pool) as tx:
                person = await _person(tx, visit)
                await people.set_role(tx, visit.actor, person, role)
        except LastOwner:
            return self._stays(visit)
        except ValueError:
            raise HttpError(400, "bad_role", "There is no such role here.") from None
        return visit.go(self.path, f"{person.email} is {role} now.")

    async def deactivate(self, visit: Visit) -> Response:
        """Let somebody in no more; who is signed in is signed out."""
        try:
            async with transaction(visit.pool) as tx:
                person = await _person(tx, visit)
                await people.deactivate(tx, visit.actor, person)
        except LastOwner:
            return self._stays(visit)
        if person.id != visit.someone.id:
            visit.tell(f"{person.email} can’t sign in any more.")
        return see_other(self.path)

    async def activate(self, visit: Visit) -> Response:
        """Let somebody in again."""
        async with transaction(visit.pool) as tx:
            person = await _person(tx, visit)
            await people.activate(tx, visit.actor, person)
        return visit.go(self.path, f"{person.email} can sign in again.")

    async def reset_second_factor(self, visit: Visit) -> Response:
        """Take the second factors of somebody away who has lost them."""
        try:
            async with transaction(visit.pool) as tx:
                person = await _person(tx, visit)
                await people.reset_second_factor(tx, visit.actor, person)
        except OwnSecondFactor:
            raise HttpError(400, "own_second_factor", "Your own are on the page of your account.") from None
        return visit.go(
            self.path, f"{person.email} signs in with the password alone, until a second factor is set up."
        )

    async def set_policy(self, visit: Visit) -> Response:
        """Choose what the company asks of its people."""
        text = visit.form.get("approve_from")
        try:
            amount = Money.read(f"{text} EUR").minor if text else None
            if amount is not None and amount <= 0:
                raise ValueError
        except ValueError:
            return await self._page(visit, wrong_amount="An amount looks like 1000 or 1000.00.")
        asked = Policy(visit.form.get("second_factor") == "yes", amount)
        await visit.do(company_deeds.set_policy, visit.company, asked)
        return visit.go(self.path, "The rules are changed.")

    def _stays(self, visit: Visit) -> Response:
        role = members.top_role(_side(visit))
        return visit.go(self.path, f"Nobody else is {role} here: give somebody else that role first.", "bad")

    async def _page(self, visit: Visit, *, wrong: str = "", wrong_amount: str = "") -> Response:
        side = _side(visit)
        roles = sorted(OPERATOR_ROLES if side is None else COMPANY_ROLES)
        policy = None if side is None else await company_store.policy(visit.pool, side)
        amount = None if policy is None else policy.approve_from_eur_minor
        return render(
            "people/team.html",
            visit,
            status=422 if wrong or wrong_amount else 200,
            path=self.path,
            members=await members.members(visit.pool, side),
            roles=[(role, f"{role}: {ROLES[role]}") for role in roles],
            policy=policy,
            approve_from="" if amount is None else str(Money(amount, "EUR").decimal()),
            email=visit.form.get("email"),
            role=visit.form.get("role") or ("support" if side is None else "buyer"),
            wrong=wrong,
            wrong_amount=wrong_amount,
        )


TEAM: Final = Team("/portal/team")
STAFF: Final = Team("/console/staff")


def _invitation(visit: Visit) -> Invitation:
    me = visit.someone
    where = OPERATOR if me.company is None else me.company.name
    return Invitation(visit.services.settings.public_url, where, me.name or me.email)


def _side(visit: Visit) -> int | None:
    """The company whose people these are; None for the operator's own."""
    return None if visit.someone.company is None else visit.company_id


async def _person(tx: Tx, visit: Visit) -> Member:
    """The person that the path names, of one's own side."""
    number = visit.parameters["person"]
    if not (number.isascii() and number.isdigit() and len(number) < 19):
        raise missing()
    try:
        return await members.member(tx, int(number), _side(visit))
    except PersonNotFound:
        raise missing() from None
