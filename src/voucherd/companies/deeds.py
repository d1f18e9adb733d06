"""What the operator does to companies; what they ask of their own people is in `people.policy`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from voucherd import trail
from voucherd.actors import Actor
from voucherd.companies import places, store
from voucherd.companies.model import Company, CompanyDetails, CompanyDraft
from voucherd.db import Tx


async def add(tx: Tx, actor: Actor, draft: CompanyDraft, *, moved: bool = False) -> Company:
    """The company, stored; refused if the name is taken or its VAT number is wrong, unless it is moved as it was."""
    if not moved:
        places.check_country(draft.country)
        draft = replace(draft, vat_number=places.checked_vat_number(draft.country, draft.vat_number))
    company = await store.add_company(tx, draft)
    detail = {
        "country": company.country,
        "vat_number": company.vat_number,
        "active": company.active,
        "verified": company.verified,
        "expose_costs": company.expose_costs,
    }
    await _record(tx, actor, "company.add", company, detail)
    return company


async def change(
    tx: Tx,
    actor: Actor,
    name: str,
    *,
    active: bool | None = None,
    verified: bool | None = None,
    expose_costs: bool | None = None,
) -> Company:
    """The company after the change; what is None stays as it was."""
    said = {"active": active, "verified": verified, "expose_costs": expose_costs}
    company = await store.set_company(tx, name, **said)
    await _record(
        tx, actor, "company.set", company, {what: to for what, to in said.items() if to is not None}
    )
    return company


async def describe(tx: Tx, actor: Actor, name: str, details: CompanyDetails) -> Company:
    """The company with another name, country or VAT number; what stays as it was is not checked again (OP-155)."""
    before = await store.find_company(tx, name)
    country, number = details.country, details.vat_number or None
    if (country, number) != (before.country, before.vat_number):
        places.check_country(country)
        number = places.checked_vat_number(country, number)
    # Refuses a name that is none, in words.
    CompanyDraft(details.name, country, number)
    company = await store.describe_company(tx, before.id, CompanyDetails(details.name, country, number))
    changed = {
        field: f"{was or 'none'} → {getattr(company, field) or 'none'}"
        for field in ("name", "country", "vat_number")
        if (was := getattr(before, field)) != getattr(company, field)
    }
    if changed:
        await _record(tx, actor, "company.describe", company, changed)
    return company


async def limit(
    tx: Tx, actor: Actor, name: str, *, order_eur_minor: int | None, day_eur_minor: int | None
) -> Company:
    """The company with these limits of what it may spend, and no others."""
    said = {"order_eur_minor": order_eur_minor, "day_eur_minor": day_eur_minor}
    company = await store.limit_company(tx, name, **said)
    await _record(tx, actor, "company.limit", company, said)
    return company


async def _record(tx: Tx, actor: Actor, action: str, company: Company, detail: Mapping[str, Any]) -> None:
    assert actor.company_id in {None, company.id}, "nobody changes another company"
    await trail.record(tx, actor, action, f"company {company.name}", detail, company_id=company.id)
