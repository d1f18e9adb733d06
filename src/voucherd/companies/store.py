"""The only place that touches company and rule_change."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import asyncpg
from msgspec import Struct

from voucherd.companies.model import (
    Company,
    CompanyDetails,
    CompanyDraft,
    CompanyExists,
    CompanyNotFound,
    Policy,
    RuleChange,
)
from voucherd.db import Connection, Pool, Tx
from voucherd.sorting import order_by

_COMPANY: Final = (
    "id, name, country, vat_number, active, verified, expose_costs, "
    "spend_order_eur_minor, spend_day_eur_minor, approve_from_eur_minor"
)


async def add_company(tx: Tx, draft: CompanyDraft) -> Company:
    """The company, stored; refused if the name is taken."""
    row = await tx.fetchrow(
        "INSERT INTO company (name, country, vat_number, active, verified, expose_costs)"  # noqa: S608 - Constants of ours.
        f" VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (name) DO NOTHING RETURNING {_COMPANY}",
        draft.name,
        draft.country,
        draft.vat_number,
        draft.active,
        draft.verified,
        draft.expose_costs,
    )
    if row is None:
        raise CompanyExists(draft.name)
    return Company(*row)


async def find_company(connection: Connection, name: str) -> Company:
    """The company of that name."""
    row = await connection.fetchrow(
        f"SELECT {_COMPANY} FROM company WHERE name = $1",  # noqa: S608 - A constant of ours.
        name,
    )
    if row is None:
        raise CompanyNotFound(name)
    return Company(*row)


async def set_company(
    tx: Tx,
    name: str,
    *,
    active: bool | None = None,
    verified: bool | None = None,
    expose_costs: bool | None = None,
) -> Company:
    """The company after the change; what is None stays as it was."""
    row = await tx.fetchrow(
        "UPDATE company SET active = coalesce($2, active), verified = coalesce($3, verified),"  # noqa: S608 - Ours.
        f" expose_costs = coalesce($4, expose_costs) WHERE name = $1 RETURNING {_COMPANY}",
        name,
        active,
        verified,
        expose_costs,
    )
    if row is None:
        raise CompanyNotFound(name)
    return Company(*row)


async def describe_company(tx: Tx, company_id: int, details: CompanyDetails) -> Company:
    """The company with this name, country and VAT number; refused if another one has the name."""
    try:
        row = await tx.fetchrow(
            "UPDATE company SET name = $2, country = $3, vat_number = $4"  # noqa: S608 - A constant of ours.
            f" WHERE id = $1 RETURNING {_COMPANY}",
            company_id,
            details.name,
            details.country,
            details.vat_number,
        )
    except asyncpg.UniqueViolationError:
        raise CompanyExists(details.name) from None
    assert row is not None, "no company is ever removed"
    return Company(*row)


async def limit_company(
    tx: Tx, name: str, *, order_eur_minor: int | None, day_eur_minor: int | None
) -> Company:
    """The company with these limits of what it may spend, and no others."""
    row = await tx.fetchrow(
        "UPDATE company SET spend_order_eur_minor = $2, spend_day_eur_minor = $3"  # noqa: S608 - Ours.
        f" WHERE name = $1 RETURNING {_COMPANY}",
        name,
        order_eur_minor,
        day_eur_minor,
    )
    if row is None:
        raise CompanyNotFound(name)
    return Company(*row)


async def companies(connection: Connection, company_ids: Collection[int]) -> dict[int, Company]:
    """The companies with these ids."""
    rows = await connection.fetch(
        f"SELECT {_COMPANY} FROM company WHERE id = ANY($1::int[])",  # noqa: S608 - A constant of ours.
        company_ids,
    )
    return {row[0]: Company(*row) for row in rows}


async def lock_company(tx: Tx, company_id: int) -> None:
    """Be the only one who changes the company's keys and people, until the transaction ends."""
    await tx.execute("SELECT FROM company WHERE id = $1 FOR NO KEY UPDATE", company_id)


async def list_companies(connection: Connection) -> list[Company]:
    """Every company, by name."""
    rows = await connection.fetch(
        f"SELECT {_COMPANY} FROM company ORDER BY name"  # noqa: S608 - A constant of ours.
    )
    return [Company(*row) for row in rows]


SORTS: Final = {
    "name": "name {0}",
    "status": "active {0}, verified {0}, name",
    "country": "country {0}, name",
    "vat": "vat_number {0} NULLS LAST, name",
    "costs": "expose_costs {0}, name",
    "added": "id {0}",
}
"""How a list of companies can be sorted."""


class CompanySearch(Struct, frozen=True):
    """Which companies a list shows, and in which order."""

    text: str = ""
    """Part of the name or of the VAT number."""
    active: bool | None = None
    verified: bool | None = None
    sort: str = "name"
    """A key of SORTS."""


async def search_companies(
    connection: Connection, search: CompanySearch, limit: int, offset: int = 0
) -> list[Company]:
    """The companies that are looked for."""
    rows = await connection.fetch(
        f"SELECT {_COMPANY} FROM company"  # noqa: S608 - Constants of ours.
        " WHERE ($1 = '' OR strpos(lower(name), lower($1)) > 0 OR strpos(lower(vat_number), lower($1)) > 0)"
        " AND ($2::boolean IS NULL OR active = $2) AND ($3::boolean IS NULL OR verified = $3)"
        f" ORDER BY {order_by(SORTS, search.sort)} LIMIT $4 OFFSET $5",
        search.text,
        search.active,
        search.verified,
        limit,
        offset,
    )
    return [Company(*row) for row in rows]


async def names(connection: Connection, limit: int) -> list[str]:
    """The names of companies, in their order."""
    return [
        row[0] for row in await connection.fetch("SELECT name FROM company ORDER BY name LIMIT $1", limit)
    ]


async def count_unverified(connection: Connection) -> int:
    """How many active companies are not verified yet."""
    return int(await connection.fetchval("SELECT count(*) FROM company WHERE active AND NOT verified"))


async def company_named(connection: Connection, text: str) -> Company | None:
    """The company that a person means by this text: its number, its name, or what only its name holds."""
    if text.isascii() and text.isdecimal() and len(text) < 10:
        return (await companies(connection, [int(text)])).get(int(text))
    if not text:
        return None
    row = await connection.fetchrow(
        f"SELECT {_COMPANY} FROM company WHERE lower(name) = lower($1) ORDER BY name <> $1 LIMIT 1",  # noqa: S608
        text,
    )
    if row is not None:
        return Company(*row)
    found = await search_companies(connection, CompanySearch(text), 2)
    return found[0] if len(found) == 1 else None


async def policy(connection: Connection | Pool, company_id: int) -> Policy:
    """What the company asks of its people."""
    row = await connection.fetchrow(
        "SELECT second_factor, approve_from_eur_minor FROM company WHERE id = $1", company_id
    )
    return Policy() if row is None else Policy(*row)


async def set_policy(tx: Tx, company_id: int, chosen: Policy) -> None:
    """Ask this of the company's people from now on."""
    await tx.execute(
        "UPDATE company SET second_factor = $2, approve_from_eur_minor = $3 WHERE id = $1",
        company_id,
        chosen.second_factor,
        chosen.approve_from_eur_minor,
    )


async def lock_policy(tx: Tx, company_id: int) -> Policy:
    """What the company asks of its people; nobody else changes it until the transaction ends."""
    await lock_company(tx, company_id)
    return await policy(tx, company_id)


_CHANGE: Final = """
    SELECT r.company_id, r.approve_from_eur_minor, r.asked_by, u.email, u.name, r.holds_from
    FROM rule_change r JOIN app_user u ON u.id = r.asked_by
"""


async def find_rule_change(connection: Connection | Pool, company_id: int) -> RuleChange | None:
    """The looser rule that the company waits for."""
    row = await connection.fetchrow(f"{_CHANGE} WHERE r.company_id = $1", company_id)
    return None if row is None else RuleChange(*row)


async def ask_rule_change(
    tx: Tx, company_id: int, approve_from_eur_minor: int | None, asked_by: int
) -> RuleChange:
    """A looser rule that waits from now on, in place of one that waited before."""
    await remove_rule_change(tx, company_id)
    await tx.execute(
        "INSERT INTO rule_change (company_id, approve_from_eur_minor, asked_by) VALUES ($1, $2, $3)",
        company_id,
        approve_from_eur_minor,
        asked_by,
    )
    found = await find_rule_change(tx, company_id)
    assert found is not None, "it has just been stored"
    return found


async def remove_rule_change(tx: Tx, company_id: int) -> None:
    """Wait for no looser rule any more."""
    await tx.execute("DELETE FROM rule_change WHERE company_id = $1", company_id)


async def company_with_due_rule(connection: Connection | Pool) -> int | None:
    """A company whose looser rule has waited for its day."""
    found: int | None = await connection.fetchval(
        "SELECT company_id FROM rule_change WHERE holds_from <= now() ORDER BY holds_from LIMIT 1"
    )
    return found


async def due_rule_change(tx: Tx, company_id: int) -> RuleChange | None:
    """The looser rule that the company waits for, if its day is over."""
    row = await tx.fetchrow(f"{_CHANGE} WHERE r.company_id = $1 AND r.holds_from <= now()", company_id)
    return None if row is None else RuleChange(*row)
