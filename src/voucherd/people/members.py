"""The people of a company or of the operator: who is there, in which role, and with which second factors.

The last owner of a company, or the operator's last admin, stays.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec import Struct

from voucherd import email_address
from voucherd.companies import store as company_store
from voucherd.db import Connection, Pool, Tx
from voucherd.people import links, user_store
from voucherd.people.links import LinkKind
from voucherd.people.roles import Right, rights_of
from voucherd.people.users import UserDraft, UserExists

PEOPLE_MAX: Final = 500
"""Of one company, or of the operator."""


class PersonNotFound(LookupError):
    """There is no such person here."""


class LastOwner(Exception):
    """Nobody would be left who may change who belongs here."""


class TooManyPeople(Exception):
    """There are as many as a company may have."""


class Member(Struct, frozen=True):
    """A person as colleagues see it."""

    id: int
    name: str
    """Empty for who has told none."""
    email: str
    company_id: int | None
    role: str
    active: bool
    joined: bool
    """Whether a password was chosen; someone who was only invited has none."""
    second_factor: bool
    created_at: datetime
    rests_until: datetime | None
    """Until then it is no second person; None if it is one."""
    rests_by: int | None
    """The person who let this one in; None: the command line."""
    elsewhere: bool
    """The address has an account elsewhere. Only the letter to it may say so, never a page of the team."""


_MEMBER: Final = """
    SELECT u.id, u.name, coalesce(u.invited_as, u.email) AS email, u.company_id, u.role, u.active,
           u.password_hash IS NOT NULL AS joined,
           EXISTS (SELECT FROM totp t WHERE t.user_id = u.id AND t.confirmed_at IS NOT NULL)
             OR EXISTS (SELECT FROM passkey p WHERE p.user_id = u.id) AS second_factor,
           u.created_at, CASE WHEN u.rests_until > now() THEN u.rests_until END, u.rests_by,
           u.invited_as IS NOT NULL
    FROM app_user u
"""


def top_role(company_id: int | None) -> str:
    """The role that decides who belongs here."""
    return "admin" if company_id is None else "owner"


async def members(connection: Connection | Pool, company_id: int | None) -> list[Member]:
    """The company's people, or the operator's own for None, by address."""
    rows = await connection.fetch(
        f"{_MEMBER} WHERE u.company_id IS NOT DISTINCT FROM $1 ORDER BY 3 LIMIT $2",
        company_id,
        PEOPLE_MAX,
    )
    return [Member(*row) for row in rows]


async def member(connection: Connection | Pool, user_id: int, company_id: int | None) -> Member:
    """One of the company's people."""
    row = await connection.fetchrow(
        f"{_MEMBER} WHERE u.id = $1 AND u.company_id IS NOT DISTINCT FROM $2", user_id, company_id
    )
    if row is None:
        raise PersonNotFound
    return Member(*row)


async def by_email(connection: Connection | Pool, email: str) -> Member:
    """Anybody, by address: for the operator's command line."""
    row = await connection.fetchrow(f"{_MEMBER} WHERE u.email = $1", email_address.looked_up(email))
    if row is None:
        raise PersonNotFound
    return Member(*row)


async def everybody(connection: Connection | Pool) -> list[Member]:
    """The people of all companies and of the operator."""
    rows = await connection.fetch(f"{_MEMBER} ORDER BY u.company_id NULLS FIRST, 3")
    return [Member(*row) for row in rows]


async def with_right(connection: Connection, company_id: int | None, right: Right) -> list[Member]:
    """Those of the company's, or the operator's, active people who have this right."""
    found = await members(connection, company_id)
    return [
        one
        for one in found
        if one.active and one.joined and right in rights_of(one.role, of_company=company_id is not None)
    ]


async def invite(tx: Tx, draft: UserDraft) -> tuple[Member, bytes]:
    """A person without a password, and the link to choose one; refused if the address belongs here already."""
    # Counted under a lock of the company's, so that two at once can't pass the limit.
    await lock(tx, draft.company_id)
    count = await tx.fetchval(
        "SELECT count(*) FROM app_user WHERE company_id IS NOT DISTINCT FROM $1", draft.company_id
    )
    if count >= PEOPLE_MAX:
        raise TooManyPeople
    if await user_store.belongs(tx, draft):
        raise UserExists(draft.email)
    try:
        user = await user_store.add_user(tx, draft, None)
    except UserExists:
        # Of another team: who invites must not learn that, so everything goes on as with a stranger.
        user = await user_store.hold_place(tx, draft)
    link = await links.make(tx, user.id, LinkKind.INVITATION)
    assert link is not None, "a new person has no links yet"
    return await member(tx, user.id, draft.company_id), link


async def set_role(tx: Tx, person: Member, role: str) -> None:
    """Give a person another role; refused for the last owner."""
    UserDraft(person.email, person.company_id, role)  # Refuses a role that is none.
    await lock(tx, person.company_id)
    if role != top_role(person.company_id):
        await _refuse_last(tx, person)
    await tx.execute("UPDATE app_user SET role = $2 WHERE id = $1", person.id, role)


async def set_active(tx: Tx, person: Member, *, active: bool) -> None:
    """Let a person sign in, or not any more; refused for the last owner. Links end with it."""
    await lock(tx, person.company_id)
    if not active:
        await _refuse_last(tx, person)
        await links.void(tx, person.id)
    await tx.execute("UPDATE app_user SET active = $2 WHERE id = $1", person.id, active)


async def _refuse_last(tx: Tx, person: Member) -> None:
    others = await tx.fetchval(
        """
        SELECT EXISTS (SELECT FROM app_user WHERE company_id IS NOT DISTINCT FROM $1 AND role = $2 AND active
                       AND password_hash IS NOT NULL AND id <> $3)
        """,
        person.company_id,
        top_role(person.company_id),
        person.id,
    )
    if not others and person.role == top_role(person.company_id) and person.active:
        raise LastOwner


async def lock(tx: Tx, company_id: int | None) -> None:
    """One change of who belongs here at a time; a company's keys lose what their makers lose, so these wait, too."""
    if company_id is None:
        await tx.execute("SELECT pg_advisory_xact_lock(hashtext('people'), 0)")
    else:
        await company_store.lock_company(tx, company_id)
