"""The table app_user, as signing in needs it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection

from voucherd import email_address
from voucherd.db import Connection, Pool, Tx
from voucherd.people.users import Login, User, UserDraft, UserExists


async def add_user(tx: Tx, draft: UserDraft, password_hash: str | None) -> User:
    """The person, stored; refused if the address is taken. Without a password it is only invited."""
    row = await tx.fetchrow(
        "INSERT INTO app_user (email, company_id, role, password_hash) VALUES ($1, $2, $3, $4)"
        " ON CONFLICT (email) DO NOTHING RETURNING id, email, company_id, role, name",
        draft.email,
        draft.company_id,
        draft.role,
        password_hash,
    )
    if row is None:
        raise UserExists(draft.email)
    return User(*row)


async def hold_place(tx: Tx, draft: UserDraft) -> User:
    """A row for an address that has an account elsewhere: its team sees it as invited, and nobody signs in by it."""
    digest = hashlib.sha256(f"{draft.company_id}/{draft.email}".encode()).hexdigest()
    # Its own address is nobody's, and the same for the same wish: the database refuses a second one.
    row = await tx.fetchrow(
        "INSERT INTO app_user (email, company_id, role, invited_as) VALUES ($1, $2, $3, $4)"
        " ON CONFLICT (email) DO NOTHING RETURNING id, invited_as, company_id, role, name",
        f"{digest}@invitation.invalid",
        draft.company_id,
        draft.role,
        draft.email,
    )
    if row is None:
        raise UserExists(draft.email)
    return User(*row)


async def belongs(connection: Connection, draft: UserDraft) -> bool:
    """Whether the address is of this team; False also where it has an account elsewhere."""
    found = await connection.fetchval(
        "SELECT true FROM app_user WHERE email = $1 AND company_id IS NOT DISTINCT FROM $2",
        draft.email,
        draft.company_id,
    )
    return bool(found)


async def find_login(connection: Connection | Pool, email: str) -> Login | None:
    """The person with this address and the hash of the password."""
    row = await connection.fetchrow(
        "SELECT id, email, company_id, role, name, password_hash FROM app_user WHERE email = $1 AND active",
        email_address.looked_up(email),
    )
    return None if row is None else Login(User(*tuple(row)[:5]), row["password_hash"])


async def find_user(connection: Connection | Pool, user_id: int) -> User | None:
    """The person with this id."""
    row = await connection.fetchrow(
        "SELECT id, email, company_id, role, name FROM app_user WHERE id = $1", user_id
    )
    return None if row is None else User(*row)


async def role_now(connection: Connection, user_id: int) -> str:
    """The role of a person who is active; empty for anybody else."""
    role = await connection.fetchval("SELECT role FROM app_user WHERE id = $1 AND active", user_id)
    return role or ""


async def may_sign_in(connection: Connection, user_id: int) -> bool:
    """Whether the person, and the company if there is one, is active."""
    found = await connection.fetchval(
        "SELECT u.active AND coalesce(c.active, true) FROM app_user u"
        " LEFT JOIN company c ON c.id = u.company_id WHERE u.id = $1",
        user_id,
    )
    return bool(found)


async def known_of(connection: Connection | Pool, user_id: int) -> list[str]:
    """What everybody knows of a person: address, name and company. No password is made of it."""
    row = await connection.fetchrow(
        "SELECT u.email, u.name, coalesce(c.name, '') FROM app_user u LEFT JOIN company c ON c.id = u.company_id"
        " WHERE u.id = $1",
        user_id,
    )
    return [] if row is None else list(row)


async def lock(tx: Tx, user_id: int) -> None:
    """One change of this person at a time, until the transaction ends."""
    await tx.execute("SELECT FROM app_user WHERE id = $1 FOR NO KEY UPDATE", user_id)


async def set_password(tx: Tx | Pool, user_id: int, password_hash: str) -> None:
    """Replace the hash of the password."""
    await tx.execute("UPDATE app_user SET password_hash = $2 WHERE id = $1", user_id, password_hash)


async def profile(tx: Tx, user_id: int) -> dict[str, str]:
    """How the person is called and wants to be spoken to; the row is locked until the transaction ends."""
    row = await tx.fetchrow(
        "SELECT name, coalesce(language, '') AS language, coalesce(time_zone, '') AS \"time zone\" FROM app_user"
        " WHERE id = $1 FOR NO KEY UPDATE",
        user_id,
    )
    assert row is not None, "a person who acts is there"
    return dict(row)


async def set_profile(tx: Tx, user_id: int, name: str, language: str, time_zone: str) -> None:
    """Replace the name, the language and the time zone; an empty one of the last two is none."""
    await tx.execute(
        "UPDATE app_user SET name = $2, language = nullif($3, ''), time_zone = nullif($4, '') WHERE id = $1",
        user_id,
        name,
        language,
        time_zone,
    )


async def list_users(connection: Connection, company_id: int | None) -> list[User]:
    """The company's people, or the operator's own for None, by address."""
    rows = await connection.fetch(
        "SELECT id, coalesce(invited_as, email), company_id, role, name FROM app_user"
        " WHERE company_id IS NOT DISTINCT FROM $1 ORDER BY email",
        company_id,
    )
    return [User(*row) for row in rows]


async def find_users(
    connection: Connection, user_ids: Collection[int], emails: Collection[str] = ()
) -> list[User]:
    """The people with these ids or addresses."""
    rows = await connection.fetch(
        "SELECT id, email, company_id, role, name FROM app_user"
        " WHERE id = ANY($1::bigint[]) OR email = ANY($2::text[])",
        list(user_ids),
        list(emails),
    )
    return [User(*row) for row in rows]


async def search_users(connection: Connection, text: str, limit: int) -> list[User]:
    """The people whose address or name holds the text, by address."""
    rows = await connection.fetch(
        """
        SELECT id, email, company_id, role, name FROM app_user
        WHERE invited_as IS NULL AND (strpos(email, lower($1)) > 0 OR strpos(lower(name), lower($1)) > 0)
        ORDER BY email LIMIT $2
        """,
        text,
        limit,
    )
    return [User(*row) for row in rows]
