"""`voucherd user`: the people who sign in to the portal. A password is made here and printed once."""

from __future__ import annotations

import secrets
from typing import Annotated, Any, Final, TypeAlias

import typer
from typer import Argument, Option

from voucherd.cli.command import command, noun, refusing, usage
from voucherd.cli.context import CommandContext
from voucherd.cli.output import Document, Output, facts, listed, once, shown
from voucherd.companies import store as company_store
from voucherd.db import Tx
from voucherd.people import approvers, deeds, members
from voucherd.people.members import LastOwner, Member, PersonNotFound
from voucherd.people.users import UserDraft, hash_password

app = noun()

_LETTERS: Final = "23456789abcdefghjkmnpqrstuvwxyz"
"""Nothing that is taken for something else when it is read aloud."""
_STANDING: Final = ("role", "active", "joined", "second factor")

Email: TypeAlias = Annotated[str, Argument(metavar="EMAIL")]


def new_password() -> str:
    """Four groups of five letters: 99 random bits that can be read over the telephone."""
    return "-".join("".join(secrets.choice(_LETTERS) for _ in range(5)) for _ in range(4))


@command(app, "add")
async def add(
    context: CommandContext,
    email: Email,
    role: Annotated[
        str,
        Option(
            help="owner, buyer, finance, viewer or developer; without a company admin, support, stock or finance."
        ),
    ],
    company: Annotated[str | None, Option(help="Whose buyer it is; none for the operator's own.")] = None,
) -> Output:
    """Add a person and print the first password, this once."""
    password = new_password()
    password_hash = await hash_password(password, [email])
    async with context.transaction() as tx:
        owner = None if company is None else await company_store.find_company(tx, company)
        with usage():
            draft = UserDraft(email, None if owner is None else owner.id, role)
        user = await deeds.add(tx, context.actor, draft, password_hash)
    document = facts(user, "id email company role", company=company, password=password)
    return once(document, [("user", "email"), ("company", _side), "role", "password"])


@command(app, "list")
async def list_(
    context: CommandContext,
    company: Annotated[str | None, Option(help="Only the people of this company.")] = None,
    operator: Annotated[bool, Option("--operator", help="Only the operator's own.")] = False,
) -> Output:
    """List people, their roles and whether they have a second factor."""
    if company is not None and operator:
        raise typer.BadParameter("give either --company or --operator")
    async with context.connection() as connection:
        names = {one.id: one.name for one in await company_store.list_companies(connection)}
        if operator:
            found = await members.members(connection, None)
        elif company is not None:
            found = await members.members(
                connection, (await company_store.find_company(connection, company)).id
            )
        else:
            found = await members.everybody(connection)
    return listed(
        [_document(one, None if one.company_id is None else names[one.company_id]) for one in found],
        [("~address", "email"), ("~company", _side), *_STANDING],
        empty="Nobody yet: add people with `voucherd user add`.",
    )


@command(app, "set")
async def set_(
    context: CommandContext,
    email: Email,
    role: Annotated[str | None, Option(help="Another role, of the same side.")] = None,
    active: Annotated[bool | None, Option("--active/--inactive", help="May sign in.")] = None,
) -> Output:
    """Change a person's role, or whether it may sign in; the last owner stays."""
    if role is None and active is None:
        raise typer.BadParameter("nothing to change: give at least one option")
    async with context.transaction() as tx:
        person = await _find(tx, email)
        with refusing({LastOwner: f"{person.email} is the last {person.role} and stays"}):
            if role is not None:
                with usage():
                    await deeds.set_role(tx, context.actor, person, role)
            if active is not None:
                change = deeds.activate if active else deeds.deactivate
                await change(tx, context.actor, await _find(tx, email))
        return await _shown(tx, email)


@command(app, "reset-password")
async def reset_password(context: CommandContext, email: Email) -> Output:
    """Give a person a new password and print it, this once; whoever is signed in as this person is signed out."""
    password = new_password()
    password_hash = await hash_password(password, [email])
    async with context.transaction() as tx:
        person = await _find(tx, email)
        await deeds.reset_password(tx, context.actor, person, password_hash)
    return once({"email": person.email, "password": password}, [("user", "email"), "password"])


@command(app, "reset-second-factor")
async def reset_second_factor(context: CommandContext, email: Email) -> Output:
    """Take a person's second factors away, for who has lost them all; the password stays."""
    async with context.transaction() as tx:
        person = await _find(tx, email)
        await deeds.reset_second_factor(tx, context.actor, person)
        return await _shown(tx, email)


@command(app, "confirm")
async def confirm(context: CommandContext, email: Email) -> Output:
    """Let a person who is new approve at once; every approver of that side is told."""
    async with context.transaction() as tx:
        await approvers.confirm(tx, context.actor, await _find(tx, email))
        return await _shown(tx, email)


async def _find(tx: Tx, email: str) -> Member:
    with refusing({PersonNotFound: f"there is no user {email.strip()}"}):
        return await members.by_email(tx, email)


async def _shown(tx: Tx, email: str) -> Output:
    person = await _find(tx, email)
    company = None
    if person.company_id is not None:
        company = (await company_store.companies(tx, [person.company_id]))[person.company_id].name
    return shown(_document(person, company), [("user", "email"), ("company", _side), *_STANDING])


def _document(person: Member, company: str | None) -> dict[str, Any]:
    return facts(person, "id email company role active joined secondFactor", company=company)


def _side(person: Document) -> str:
    return person["company"] or "the operator"
