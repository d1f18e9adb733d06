"""The team: who belongs to a company, or to the operator, in which role; and what a company asks of its people."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Concatenate, Final, NamedTuple, ParamSpec, TypeAlias

from voucherd.actors import Actor
from voucherd.companies import store as company_store
from voucherd.companies.model import Policy
from voucherd.db import Connection, Pool, Tx, transaction
from voucherd.http import HttpError, Response
from voucherd.money import Money
from voucherd.pages.forms import whole
from voucherd.pages.people.approvals import changes_later
from voucherd.pages.render import render
from voucherd.pages.roles import DUTIES, STAFF_DUTIES, role_word
from voucherd.pages.visit import Visit, missing, see_other
from voucherd.people import deeds as people
from voucherd.people import members
from voucherd.people import policy as rules
from voucherd.people.deeds import EnoughLinks, Invitation, Invited, OwnAccount
from voucherd.people.members import LastOwner, Member, TooManyPeople
from voucherd.people.users import UserDraft, UserExists
from voucherd.sorting import chosen, in_order
from voucherd.words import phrase

P = ParamSpec("P")

SORTS: Final[dict[str, Callable[[Member], Any]]] = {
    "name": lambda one: (one.name or one.email).casefold(),
    "role": lambda one: role_word(one.role),
    "status": lambda one: "inactive" if not one.active else "active" if one.joined else "invited",
    "factor": lambda one: one.second_factor,
}
"""How a list of people can be sorted."""
LinkDeed: TypeAlias = Callable[[Tx, Actor, Member, Invitation], Awaitable[Invited]]
"""Makes a link for somebody."""


class LinkWords(NamedTuple):
    """What is said of a link that is sent to somebody, or shown to be handed over."""

    title: str
    heading: str
    use: str
    sent: str
    enough: str


INVITATION: Final = LinkWords(
    phrase("Invitation"),
    phrase("Invitation for {email}"),
    phrase("Whoever opens it chooses the password of {email}. It works once, within 7 days."),
    phrase("An invitation was sent to {email}."),
    phrase("There are enough open invitations. Each is good for 7 days."),
)
NEW_PASSWORD: Final = LinkWords(
    phrase("New password"),
    phrase("New password for {email}"),
    phrase("Whoever opens it chooses the password of {email}. It works once, within 30 minutes."),
    phrase("A link for a new password was sent to {email}."),
    phrase("There are enough open links for a new password. Each is good for 30 minutes."),
)


class Team:
    """The pages of one side: a company's team, or the operator's staff."""

    def __init__(self, path: str) -> None:
        self.path = path

    async def page(self, visit: Visit) -> Response:
        """Everybody who belongs here."""
        side = _side(visit)
        policy = None if side is None else await company_store.policy(visit.pool, side)
        rule_change = None if side is None else await company_store.find_rule_change(visit.pool, side)
        # A rule that waits is what somebody wants: sent again with another box ticked, it must not be forgotten.
        asked = policy if rule_change is None else rule_change
        amount = None if asked is None else asked.approve_from_eur_minor
        sort = chosen(visit.query.get("sort"), SORTS, "name")
        return render(
            "people/team.html",
            visit,
            path=self.path,
            members=in_order(await members.members(visit.pool, side), SORTS, sort),
            sort=sort,
            roles=_roles(visit),
            policy=policy,
            rule_change=rule_change,
            approve_now=_euros(policy),
            approve_from="" if amount is None else str(Money(amount, "EUR").decimal()),
            email=visit.form.get("email"),
            role=visit.form.get("role") or ("support" if side is None else "buyer"),
        )

    async def person(self, visit: Visit) -> Response:
        """One of them, and what can be changed."""
        one = await _person(visit.pool, visit)
        return render("people/person.html", visit, path=self.path, one=one, roles=_roles(visit))

    async def invite(self, visit: Visit) -> Response:
        """Add somebody, and mail a link to choose a password."""
        email, role = visit.form.get("email"), visit.form.get("role")
        try:
            async with transaction(visit.pool) as tx:
                draft = UserDraft(email, _side(visit), role)
                done = await people.invite(tx, visit.actor, draft, _invitation(visit))
        except TooManyPeople:
            text = visit.words.text("There are {count} people here already.", count=members.PEOPLE_MAX)
            visit.problems["email"] = text
        except UserExists:
            visit.problems["email"] = visit.words.text("This person is here already.")
        except ValueError:
            visit.problems["email"] = visit.words.text("Enter an e-mail address, such as ann@example.com.")
        if visit.problems:
            return await self.page(visit)
        return link_sent(visit, done, self.path, INVITATION)

    async def invite_again(self, visit: Visit) -> Response:
        """Mail another link to somebody who has not chosen a password yet."""
        return await self._send_link(visit, people.invite_again, INVITATION)

    async def send_password_link(self, visit: Visit) -> Response:
        """Let somebody who forgot the password choose another one."""
        return await self._send_link(visit, people.send_password_link, NEW_PASSWORD)

    async def _send_link(self, visit: Visit, deed: LinkDeed, link: LinkWords) -> Response:
        try:
            async with transaction(visit.pool) as tx:
                done = await deed(tx, visit.actor, await _person(tx, visit), _invitation(visit))
        except OwnAccount:
            text = phrase("You change your own password in your account.")
            raise HttpError(400, "own_password", text) from None
        except EnoughLinks:
            return visit.go(self._one(visit), visit.words.text(link.enough), "bad")
        return link_sent(visit, done, self._one(visit), link)

    async def set_role(self, visit: Visit) -> Response:
        """Give somebody another role."""
        role = visit.form.get("role")
        try:
            person = await _do(visit, people.set_role, role)
        except LastOwner:
            return self._stays(visit)
        except ValueError:
            raise HttpError(400, "bad_role", phrase("There is no such role.")) from None
        said = visit.words.text(
            "{email} has the role {role} now.", email=person.email, role=visit.words.find(role_word(role))
        )
        return visit.go(self._one(visit), said)

    async def deactivate(self, visit: Visit) -> Response:
        """Let somebody in no more; who is signed in is signed out."""
        try:
            person = await _do(visit, people.deactivate)
        except LastOwner:
            return self._stays(visit)
        if person.id != visit.someone.id:
            visit.tell(visit.words.text("{email} can’t sign in any more.", email=person.email))
        return see_other(self._one(visit))

    async def activate(self, visit: Visit) -> Response:
        """Let somebody in again."""
        person = await _do(visit, people.activate)
        said = visit.words.text("{email} can sign in again.", email=person.email)
        return visit.go(self._one(visit), said)

    async def reset_second_factor(self, visit: Visit) -> Response:
        """Take the second factors of somebody away who has lost them."""
        try:
            person = await _do(visit, people.reset_second_factor)
        except OwnAccount:
            raise HttpError(
                400, "own_second_factor", phrase("You find your own second factors in your account.")
            ) from None
        said = visit.words.text(
            "{email} signs in with the password alone until a second factor is set up.", email=person.email
        )
        return visit.go(self._one(visit), said)

    async def set_policy(self, visit: Visit) -> Response:
        """Choose what the company asks of its people."""
        text = visit.form.get("approve_from")
        try:
            amount = Money.read(f"{text} EUR").minor if text else None
            if amount is not None and amount <= 0:
                raise ValueError
        except ValueError:
            visit.problems["approve_from"] = visit.words.text("Enter an amount, such as 1000 or 1000.00.")
            return await self.page(visit)
        asked = Policy(visit.form.get("second_factor") == "yes", amount)
        waiting = await visit.do(rules.set_policy, visit.company, asked)
        said = (
            visit.words.text("The rules are saved.")
            if waiting is None
            else changes_later(waiting, visit.words)
        )
        return visit.go(self.path, said, "good" if waiting is None else "note")

    def _stays(self, visit: Visit) -> Response:
        words = visit.words
        role = words.find(role_word(members.top_role(_side(visit))))
        said = words.text("Nobody else has the role {role}. Give it to somebody else first.", role=role)
        return visit.go(self._one(visit), said, "bad")

    def _one(self, visit: Visit) -> str:
        return f"{self.path}/{whole(visit.parameters['person'])}"


TEAM: Final = Team("/portal/team")


STAFF: Final = Team("/console/staff")


def link_sent(visit: Visit, done: Invited, path: str, link: LinkWords) -> Response:
    """Go on after a link was made; where nothing is mailed, show it to hand it over, this once."""
    text, email = visit.words.text, done.person.email
    if done.link is None:
        return visit.go(path, text(link.sent, email=email))
    return render(
        "people/link.html",
        visit,
        title=text(link.title),
        heading=text(link.heading, email=email),
        use=text(link.use, email=email),
        link=done.link,
        path=path,
    )


def _roles(visit: Visit) -> list[tuple[str, str, str]]:
    """The roles to choose from: by their word, what they are called, and what each may do."""
    duties = STAFF_DUTIES if _side(visit) is None else DUTIES
    find = visit.words.find
    return [(role, find(role_word(role)), find(duty)) for role, duty in duties.items()]


def _euros(policy: Policy | None) -> Money | None:
    amount = None if policy is None else policy.approve_from_eur_minor
    return None if amount is None else Money(amount, "EUR")


def _invitation(visit: Visit) -> Invitation:
    me = visit.someone
    settings = visit.services.settings
    where = settings.operator_name if me.company is None else me.company.name
    by_hand = settings.smtp_url is None
    return Invitation(
        settings.public_url, where, me.name or me.email, language=visit.words.language, by_hand=by_hand
    )


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
    async with transaction(visit.pool) as tx:
        person = await _person(tx, visit)
        await deed(tx, visit.actor, person, *args, **kwargs)
    return person


async def _person(connection: Connection | Pool, visit: Visit) -> Member:
    """The person that the path names, of one's own side."""
    number = whole(visit.parameters["person"])
    if number is None:
        raise missing()
    return await members.member(connection, number, _side(visit))
