"""`voucherd user`: the people who sign in to the portal. A password is made here and printed once."""

from __future__ import annotations

import secrets
from typing import Annotated, Final

import typer

from voucherd.access import store
from voucherd.access.users import UserDraft, hash_password
from voucherd.cli.answers import Answer, Refused, record
from voucherd.cli.frame import command, noun, usage
from voucherd.cli.office import Office

app = noun()

_LETTERS: Final = "23456789abcdefghjkmnpqrstuvwxyz"
"""Nothing that is taken for something else when it is read aloud."""


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


@command(app, "reset-password")
async def reset_password(office: Office, email: Annotated[str, typer.Argument(metavar="EMAIL")]) -> Answer:
    """Give a person a new password and print it, this once."""
    password = new_password()
    password_hash = await hash_password(password)
    async with office.transaction() as tx:
        login = await store.find_login(tx, email.strip())
        if login is None:
            raise Refused(f"there is no user {email.strip()}")
        await store.set_password(tx, login.user.id, password_hash)
    view = record([("user", login.user.email), ("password", password), ("", "It is not shown again.")])
    return Answer({"email": login.user.email, "password": password}, view)
