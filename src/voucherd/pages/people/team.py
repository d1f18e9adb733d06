"""The team: who belongs to a company, or to the operator, in which role; and what a company asks of its people."""

from __future__ import annotations

from typing import Final

from voucherd.companies import deeds as company_deeds
from voucherd.companies import store as company_store
from voucherd.companies.model import Policy
from voucherd.db import Tx, transaction
from voucherd.http import HttpError, Response
from voucherd.money import Money
from voucherd.pages import deeds
from voucherd.pages.render import render
from voucherd.pages.visit import Visit, see_other
from voucherd.people import letters, links, members, second_factors, sessions
from voucherd.people.links import LinkKind
from voucherd.people.members import LastOwner, Member, PersonNotFound, TooManyPeople
from voucherd.people.users import COMPANY_ROLES, OPERATOR_ROLES, UserDraft, UserExists
from voucherd.services import Services

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

    async def page(self, services: Services, visit: Visit) -> Response:
        """Everybody who belongs here."""
        return await self._page(services, visit)

    async def invite(self, services: Services, visit: Visit) -> Response:
        """Add somebody, and mail a link to choose a password."""
        email, role = visit.form.get("email"), visit.form.get("role")
        try:
            async with transaction(services.pool) as tx:
                user, token = await members.invite(tx, UserDraft(email, _side(visit), role))
                await self._mail(services, visit, tx, user.email, token)
                await deeds.record(tx, visit, "user.invite", f"user {user.email}", {"role": role})
        except TooManyPeople:
            return await self._page(
                services, visit, wrong=f"There are {members.PEOPLE_MAX} people here already."
            )
        except UserExists:
            return await self._page(services, visit, wrong="This address has an account already.")
        except ValueError as wrong:
            return await self._page(services, visit, wrong=f"{str(wrong)[:1].upper()}{str(wrong)[1:]}.")
        visit.tell(f"An invitation is on its way to {user.email}.")
        return see_other(self.path)

    async def invite_again(self, services: Services, visit: Visit) -> Response:
        """Mail another link to somebody who has not chosen a password yet."""
        async with transaction(services.pool) as tx:
            person = await _person(tx, visit)
            token = None if person.joined else await links.make(tx, person.id, LinkKind.INVITATION)
            if token is not None:
                await self._mail(services, visit, tx, person.email, token)
                await deeds.record(tx, visit, "user.invite", f"user {person.email}", {"again": True})
        if token is None:
            visit.tell("Enough invitations are on their way. Look into the mailbox first.", "bad")
        else:
            visit.tell(f"Another invitation is on its way to {person.email}.")
        return see_other(self.path)

    async def set_role(self, services: Services, visit: Visit) -> Response:
        """Give somebody another role."""
        role = visit.form.get("role")
        try:
            async with transaction(services.pool) as tx:
                person = await _person(tx, visit)
                await members.set_role(tx, person, role)
                detail = {"from": person.role, "to": role}
                await deeds.record(tx, visit, "user.role", f"user {person.email}", detail)
        except LastOwner:
            return self._stays(visit)
        except ValueError:
            raise HttpError(400, "bad_role", "There is no such role here.") from None
        visit.tell(f"{person.email} is {role} now.")
        return see_other(self.path)

    async def deactivate(self, services: Services, visit: Visit) -> Response:
        """Let somebody in no more; who is signed in is signed out."""
        try:
            async with transaction(services.pool) as tx:
                person = await _person(tx, visit)
                await members.set_active(tx, person, active=False)
                await sessions.end_others(tx, person.id, None)
                await deeds.record(tx, visit, "user.deactivate", f"user {person.email}")
        except LastOwner:
            return self._stays(visit)
        if person.id != visit.someone.id:
            visit.tell(f"{person.email} can’t sign in any more.")
        return see_other(self.path)

    async def activate(self, services: Services, visit: Visit) -> Response:
        """Let somebody in again."""
        async with transaction(services.pool) as tx:
            person = await _person(tx, visit)
            await members.set_active(tx, person, active=True)
            await deeds.record(tx, visit, "user.activate", f"user {person.email}")
        visit.tell(f"{person.email} can sign in again.")
        return see_other(self.path)

    async def reset_second_factor(self, services: Services, visit: Visit) -> Response:
        """Take the second factors of somebody away who has lost them."""
        async with transaction(services.pool) as tx:
            person = await _person(tx, visit)
            if person.id == visit.someone.id:
                raise HttpError(400, "own_second_factor", "Your own are on the page of your account.")
            await second_factors.remove_all(tx, person.id)
            await sessions.end_others(tx, person.id, None)
            await deeds.record(tx, visit, "second-factor.reset", f"user {person.email}")
            await letters.tell(tx, person.email, f"{visit.someone.email} took your second factors away.")
        visit.tell(f"{person.email} signs in with the password alone, until a second factor is set up.")
        return see_other(self.path)

    async def set_policy(self, services: Services, visit: Visit) -> Response:
        """Choose what the company asks of its people."""
        text = visit.form.get("approve_from")
        try:
            amount = Money.read(f"{text} EUR").minor if text else None
            if amount is not None and amount <= 0:
                raise ValueError
        except ValueError:
            return await self._page(services, visit, wrong_amount="An amount looks like 1000 or 1000.00.")
        asked = Policy(visit.form.get("second_factor") == "yes", amount)
        async with transaction(services.pool) as tx:
            await company_deeds.set_policy(tx, visit.actor, visit.company, asked)
        visit.tell("The rules are changed.")
        return see_other(self.path)

    def _stays(self, visit: Visit) -> Response:
        role = members.top_role(_side(visit))
        visit.tell(f"Nobody else is {role} here: give somebody else that role first.", "bad")
        return see_other(self.path)

    async def _mail(self, services: Services, visit: Visit, tx: Tx, email: str, token: str) -> None:
        company = visit.someone.company
        where = OPERATOR if company is None else company.name
        await letters.invite(
            tx,
            services.settings.public_url,
            email,
            token,
            where=where,
            by=visit.someone.name or visit.someone.email,
        )

    async def _page(
        self, services: Services, visit: Visit, *, wrong: str = "", wrong_amount: str = ""
    ) -> Response:
        side = _side(visit)
        roles = sorted(OPERATOR_ROLES if side is None else COMPANY_ROLES)
        policy = None if side is None else await company_store.policy(services.pool, side)
        amount = None if policy is None else policy.approve_from_eur_minor
        return render(
            "people/team.html",
            visit,
            status=422 if wrong or wrong_amount else 200,
            path=self.path,
            members=await members.members(services.pool, side),
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


def _side(visit: Visit) -> int | None:
    """The company whose people these are; None for the operator's own."""
    return None if visit.someone.company is None else visit.company_id


async def _person(tx: Tx, visit: Visit) -> Member:
    """The person that the path names, of one's own side."""
    number = visit.parameters["person"]
    if not (number.isascii() and number.isdigit() and len(number) < 19):
        raise HttpError(404, "no_such_person", "not found")
    try:
        return await members.member(tx, int(number), _side(visit))
    except PersonNotFound:
        raise HttpError(404, "no_such_person", "not found") from None
