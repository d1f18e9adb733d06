"""`voucherd user`: the people who sign in to the portal. A password is made here and printed once."""

from __future__ import annotations

import secrets
from typing import Annotated, Any, Final

import typer

from voucherd.access import links, people, second_factors, sessions, store
from voucherd.access.people import LastOwner, Member, PersonNotFound
from voucherd.access.users import UserDraft, hash_password
from voucherd.cli.answers import Answer, Refused, record, table
from voucherd.cli.frame import command, noun, usage
from voucherd.cli.office import Office
from voucherd.db import Tx

app = noun()

_LETTERS: Final = "23456789abcdefghjkmnpqrstuvwxyz"
"""Nothing that is taken for something else when it is read aloud."""
_FLAGS: Final = ("role", "active", "joined", "secondFactor")


def new_password() -> str:
    """Four groups of five letters: 99 random bits that can be read over the telephone."""
    return "-".join("".join(secrets.choice(_LETTERS) for _ in range(5)) for _ in range(4))


@command(app, "add")
async def add(
    office: Office,
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
) -> Answer:
    """Add a person and print the first password, this once."""
    password = new_password()
    password_hash = await hash_password(password)
    async with office.transaction() as tx:
        owner = None if company is None else await store.find_company(tx, company)
        with usage():
            draft = UserDraft(email, None if owner is None else owner.id, role)
        user = await store.add_user(tx, draft, password_hash)
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
    return Answer(document, view)


@command(app, "list")
async def list_(
    office: Office,
    company: Annotated[str | None, typer.Option(help="Only the people of this company.")] = None,
    operator: Annotated[bool, typer.Option("--operator", help="Only the operator's own.")] = False,
) -> Answer:
    """List people, their roles and whether they have a second factor."""
    if company is not None and operator:
        raise typer.BadParameter("give either --company or --operator")
    async with office.connection() as connection:
        names = {one.id: one.name for one in await store.list_companies(connection)}
        if operator:
            found = await people.members(connection, None)
        elif company is not None:
            found = await people.members(connection, (await store.find_company(connection, company)).id)
        else:
            found = await people.everybody(connection)
    documents = [_document(one, None if one.company_id is None else names[one.company_id]) for one in found]
    view = table(
        ["~address", "~company", "role", "active", "joined", "second factor"],
        [
            (one["email"], one["company"] or "the operator", *(one[name] for name in _FLAGS))
            for one in documents
        ],
        empty="Nobody yet: add people with `voucherd user add`.",
    )
    return Answer(documents, view)


@command(app, "set")
async def set_(
    office: Office,
    email: Annotated[str, typer.Argument(metavar="EMAIL")],
    role: Annotated[str | None, typer.Option(help="Another role, of the same side.")] = None,
    active: Annotated[bool | None, typer.Option("--active/--inactive", help="May sign in.")] = None,
) -> Answer:
    """Change a person's role, or whether it may sign in; the last owner stays."""
    if role is None and active is None:
        raise typer.BadParameter("nothing to change: give at least one option")
    async with office.transaction() as tx:
        person = await _find(tx, email)
        try:
            if role is not None:
                with usage():
                    await people.set_role(tx, person, role)
            if active is not None:
                await people.set_active(tx, await _find(tx, email), active=active)
                if not active:
                    await sessions.end_others(tx, person.id, None)
        except LastOwner:
            raise Refused(f"{person.email} is the last {person.role} and stays") from None
        person = await _find(tx, email)
        company = await _company(tx, person)
    document = _document(person, company)
    return Answer(document, _view(document))


@command(app, "reset-password")
async def reset_password(office: Office, email: Annotated[str, typer.Argument(metavar="EMAIL")]) -> Answer:
    """Give a person a new password and print it, this once; whoever is signed in as this person is signed out."""
    password = new_password()
    password_hash = await hash_password(password)
    async with office.transaction() as tx:
        person = await _find(tx, email)
        await store.set_password(tx, person.id, password_hash)
        await links.void(tx, person.id)
        await sessions.end_others(tx, person.id, None)
    view = record([("user", person.email), ("password", password), ("", "It is not shown again.")])
    return Answer({"email": person.email, "password": password}, view)


@command(app, "reset-second-factor")
async def reset_second_factor(
    office: Office, email: Annotated[str, typer.Argument(metavar="EMAIL")]
) -> Answer:
    """Take a person's second factors away, for who has lost them all; the password stays."""
    async with office.transaction() as tx:
        person = await _find(tx, email)
        await second_factors.remove_all(tx, person.id)
        await sessions.end_others(tx, person.id, None)
        document = _document(await _find(tx, email), await _company(tx, person))
    return Answer(document, _view(document))


async def _find(tx: Tx, email: str) -> Member:
    try:
        return await people.by_email(tx, email)
    except PersonNotFound:
        raise Refused(f"there is no user {email.strip()}") from None


async def _company(tx: Tx, person: Member) -> str | None:
    if person.company_id is None:
        return None
    return (await store.companies(tx, [person.company_id]))[person.company_id].name


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
