"""`voucherd user`: the people who sign in to the portal. A password is made here and printed once."""

from __future__ import annotations

import secrets
from typing import Annotated, Any, Final

import typer

from voucherd.cli.command import command, noun, usage
from voucherd.cli.context import CommandContext
from voucherd.cli.output import CommandRefused, Output, record, table
from voucherd.companies import store as company_store
from voucherd.db import Tx
from voucherd.people import deeds, members
from voucherd.people.members import LastOwner, Member, PersonNotFound
from voucherd.people.users import UserDraft, hash_password

app = noun()

_LETTERS: Final = "23456789abcdefghjkmnpqrstuvwxyz"
"""Nothing that is taken for something else when it is read aloud."""
_FLAGS: Final = ("role", "active", "joined", "secondFactor")


def new_password() -> str:
    """Four groups of five letters: 99 random bits that can be read over the telephone."""
    return "-".join("".join(secrets.choice(_LETTERS) for _ in range(5)) for _ in range(4))


@command(app, "add")
async def add(
    context: CommandContext,
    email: Annotated[str, typer.Argument(metavar="EMAIL")],
    role: Annotated[
        str,
        typer.Option(
            help="owner, buyer, finance, viewer or developer; without a company admin, support, stock or finance."
        ),
    ],
    company: Annotated[
        str | None, typer.Option(help="Whose buyer it is; none for the operator's own.")
    ] = None,
) -> Output:
    """Add a person and print the first password, this once."""
    password = new_password()
    password_hash = await hash_password(password)
    async with context.transaction() as tx:
        owner = None if company is None else await company_store.find_company(tx, company)
        with usage():
            draft = UserDraft(email, None if owner is None else owner.id, role)
        user = await deeds.add(tx, context.actor, draft, password_hash)
    document = {
        "id": user.id,
        "email": user.email,
        "company": company,
        "role": user.role,
        "password": password,
    }
    view = record(
        [
            ("user", user.email),
            ("company", company or "the operator"),
            ("role", user.role),
            ("password", password),
            ("", "It is not shown again."),
        ]
    )
    return Output(document, view)


@command(app, "list")
async def list_(
    context: CommandContext,
    company: Annotated[str | None, typer.Option(help="Only the people of this company.")] = None,
    operator: Annotated[bool, typer.Option("--operator", help="Only the operator's own.")] = False,
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
    documents = [_document(one, None if one.company_id is None else names[one.company_id]) for one in found]
    view = table(
        ["~address", "~company", "role", "active", "joined", "second factor"],
        [
            (one["email"], one["company"] or "the operator", *(one[name] for name in _FLAGS))
            for one in documents
        ],
        empty="Nobody yet: add people with `voucherd user add`.",
    )
    return Output(documents, view)


@command(app, "set")
async def set_(
    context: CommandContext,
    email: Annotated[str, typer.Argument(metavar="EMAIL")],
    role: Annotated[str | None, typer.Option(help="Another role, of the same side.")] = None,
    active: Annotated[bool | None, typer.Option("--active/--inactive", help="May sign in.")] = None,
) -> Output:
    """Change a person's role, or whether it may sign in; the last owner stays."""
    if role is None and active is None:
        raise typer.BadParameter("nothing to change: give at least one option")
    async with context.transaction() as tx:
        person = await _find(tx, email)
        try:
            if role is not None:
                with usage():
                    await deeds.set_role(tx, context.actor, person, role)
            if active is not None:
                change = deeds.activate if active else deeds.deactivate
                await change(tx, context.actor, await _find(tx, email))
        except LastOwner:
            raise CommandRefused(f"{person.email} is the last {person.role} and stays") from None
        person = await _find(tx, email)
        company = await _company(tx, person)
    document = _document(person, company)
    return Output(document, _view(document))


@command(app, "reset-password")
async def reset_password(
    context: CommandContext, email: Annotated[str, typer.Argument(metavar="EMAIL")]
) -> Output:
    """Give a person a new password and print it, this once; whoever is signed in as this person is signed out."""
    password = new_password()
    password_hash = await hash_password(password)
    async with context.transaction() as tx:
        person = await _find(tx, email)
        await deeds.reset_password(tx, context.actor, person, password_hash)
    view = record([("user", person.email), ("password", password), ("", "It is not shown again.")])
    return Output({"email": person.email, "password": password}, view)


@command(app, "reset-second-factor")
async def reset_second_factor(
    context: CommandContext, email: Annotated[str, typer.Argument(metavar="EMAIL")]
) -> Output:
    """Take a person's second factors away, for who has lost them all; the password stays."""
    async with context.transaction() as tx:
        person = await _find(tx, email)
        await deeds.reset_second_factor(tx, context.actor, person)
        document = _document(await _find(tx, email), await _company(tx, person))
    return Output(document, _view(document))


async def _find(tx: Tx, email: str) -> Member:
    try:
        return await members.by_email(tx, email)
    except PersonNotFound:
        raise CommandRefused(f"there is no user {email.strip()}") from None


async def _company(tx: Tx, person: Member) -> str | None:
    if person.company_id is None:
        return None
    return (await company_store.companies(tx, [person.company_id]))[person.company_id].name


def _document(person: Member, company: str | None) -> dict[str, Any]:
    return {
        "id": person.id,
        "email": person.email,
        "company": company,
        "role": person.role,
        "active": person.active,
        "joined": person.joined,
        "secondFactor": person.second_factor,
    }


def _view(document: dict[str, Any]) -> Any:
    names = ("role", "active", "joined", "second factor")
    return record(
        [
            ("user", document["email"]),
            ("company", document["company"] or "the operator"),
            *zip(names, (document[name] for name in _FLAGS), strict=True),
        ]
    )
