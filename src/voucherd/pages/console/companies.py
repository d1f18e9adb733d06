"""Companies: found, added, changed; how much they may spend, at which prices, and what their people need."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from voucherd import clock
from voucherd.catalogue import price_deeds, price_store
from voucherd.catalogue.price_deeds import NoPriceList
from voucherd.catalogue.price_store import UnknownPriceList
from voucherd.companies import deeds as company_deeds
from voucherd.companies import store as company_store
from voucherd.companies.model import (
    BadCompany,
    Company,
    CompanyDetails,
    CompanyDraft,
    CompanyExists,
    Policy,
)
from voucherd.companies.places import countries
from voucherd.companies.store import SORTS, CompanySearch
from voucherd.db import transaction
from voucherd.http import Response
from voucherd.keys import store as key_store
from voucherd.keys.model import STANDINGS, Key
from voucherd.money import Money
from voucherd.pages.console.inputs import company_of, euros_of, number_of, plain_euros
from voucherd.pages.forms import sentence
from voucherd.pages.people.approvals import changes_later
from voucherd.pages.people.team import SORTS as PEOPLE_SORTS
from voucherd.pages.render import ROWS_AT_ONCE, qualified, render, sheet
from voucherd.pages.visit import Visit, see_other
from voucherd.people import members as people
from voucherd.people import policy as rules
from voucherd.people.roles import Right
from voucherd.sandbox import deeds as sandbox
from voucherd.sheets.writing import Value
from voucherd.sorting import chosen, in_order
from voucherd.wallet import store as wallets
from voucherd.wallet.store import Balance

PATH: Final = "/console/companies"
PAGE_SIZE: Final = 50
SHOWN_MAX: Final = 20
"""People and keys of a company, before all of them are asked for."""
PAGES_MAX: Final = 200
"""Whoever looks further searches."""
_KEY_SORTS: Final[dict[str, Callable[[tuple[Key, str]], Any]]] = {
    "key": lambda one: one[0].prefix.casefold(),
    "description": lambda one: one[0].description.casefold() or None,
    "state": lambda one: one[0].state.word,
    "standing": lambda one: STANDINGS.index(one[1]),
    "used": lambda one: one[0].last_used_at,
    "expires": lambda one: one[0].expires_at,
}


async def companies(visit: Visit) -> Response:
    """The companies, or those that are looked for."""
    query = visit.query
    given, search = _search(visit)
    page = number_of(query.get("page"), PAGES_MAX) or 1
    async with visit.pool.acquire() as conn:
        found = await company_store.search_companies(conn, search, PAGE_SIZE + 1, (page - 1) * PAGE_SIZE)
        balances = await wallets.balances_of(conn, [one.id for one in found], visit.state)
    more = len(found) > PAGE_SIZE and page < PAGES_MAX
    return render(
        "console/companies.html",
        visit,
        companies=[
            (one, countries().get(one.country, one.country), balances.get(one.id, []))
            for one in found[:PAGE_SIZE]
        ],
        given=given,
        sort=search.sort,
        filtered=any(given[name] for name in ("q", "status", "verified")),
        before=qualified(PATH, given | {"page": page - 1}) if page > 1 else "",
        after=qualified(PATH, given | {"page": page + 1}) if more else "",
    )


async def companies_file(visit: Visit) -> Response:
    """The companies of the list, as a file."""
    _, search = _search(visit)

    async def pages() -> AsyncIterator[list[list[Value]]]:
        offset = 0
        while True:
            async with visit.pool.acquire() as conn:
                found = await company_store.search_companies(conn, search, ROWS_AT_ONCE, offset)
            yield [
                [one.id, one.name, one.country, one.vat_number, one.active, one.verified, one.expose_costs]
                for one in found
            ]
            offset += len(found)
            if len(found) < ROWS_AT_ONCE:
                return

    columns = ("number", "name", "country", "vat number", "active", "verified", "sees costs")
    return await sheet(visit, "companies", columns, pages(), title="companies")


def _search(visit: Visit) -> tuple[dict[str, str], CompanySearch]:
    """The filters of the address, as it has them and as the query takes them."""
    query = visit.query
    sort = chosen(query.get("sort"), SORTS, "name")
    given = {name: query.get(name)[:200] for name in ("q", "status", "verified")} | {"sort": sort}
    status = {"active": True, "inactive": False}.get(given["status"])
    verified = {"yes": True, "no": False}.get(given["verified"])
    return given, CompanySearch(given["q"], status, verified, sort)


async def new_company(visit: Visit) -> Response:
    """The form for a new company."""
    usual = visit.services.settings.operator_country
    return render(
        "console/company_new.html",
        visit,
        countries=list(countries().items()),
        country=visit.form.get("country") or usual,
    )


async def add_company(visit: Visit) -> Response:
    """Add a company."""
    form = visit.form
    if form.get("expose_costs") not in {"yes", "no"}:
        visit.problems["expose_costs"] = "Choose whether it sees what you pay, and to whom."
    try:
        draft = CompanyDraft(
            form.get("name"),
            form.get("country").upper(),
            form.get("vat_number") or None,
            active="active" in form,
            verified="verified" in form,
            expose_costs=form.get("expose_costs") == "yes",
        )
        if visit.problems:
            return await new_company(visit)
        company = await visit.do(sandbox.add_company, draft)
    except BadCompany as bad:
        visit.problems[bad.field] = sentence(bad)
    except CompanyExists:
        visit.problems["name"] = "There is a company of that name already."
    if visit.problems:
        return await new_company(visit)
    return visit.go(f"{PATH}/{company.id}", f"{company.name} is added. Invite its owner next.")


async def edit_page(visit: Visit) -> Response:
    """The form with a company as it is."""
    found = await visit.look(company_of, visit)
    values = {"name": found.name, "country": found.country, "vat_number": found.vat_number or ""}
    if visit.problems:
        values = {name: visit.form.get(name) for name in values}
    return render(
        "console/company_edit.html", visit, company=found, values=values, countries=list(countries().items())
    )


async def edit(visit: Visit) -> Response:
    """Change a company's name, country or VAT number; orders keep the VAT that they were made with."""
    form = visit.form
    try:
        async with transaction(visit.pool) as tx:
            found = await company_of(tx, visit)
            details = CompanyDetails(form.get("name"), form.get("country"), form.get("vat_number") or None)
            await company_deeds.describe(tx, visit.actor, found.name, details)
    except BadCompany as bad:
        visit.problems[bad.field] = sentence(bad)
    except CompanyExists:
        visit.problems["name"] = "There is a company of that name already."
    if visit.problems:
        return await edit_page(visit)
    return visit.go(f"{PATH}/{found.id}", "Saved. Orders that were made before keep their VAT.")


async def company(visit: Visit) -> Response:
    """One company: what it may do, what it has, its people and keys."""
    async with visit.pool.acquire() as conn:
        found = await company_of(conn, visit)
        balances = await wallets.balances(conn, found.id)
        members = await people.members(conn, found.id)
        policy = await company_store.policy(conn, found.id)
        rule_change = await company_store.find_rule_change(conn, found.id)
        asked = policy if rule_change is None else rule_change
        keys = await key_store.list_keys(conn, found.id)
        lists = await price_store.lists(conn)
    now, whole = clock.now(), visit.query.get("all") == "yes"
    # Those that can be used come first; they are in the order of their age already.
    keys.sort(key=lambda key: key.standing(now) not in ("valid", "replaced"))
    sort = chosen(visit.query.get("sort"), {*PEOPLE_SORTS, *_KEY_SORTS}, "")
    members = in_order(members, PEOPLE_SORTS, sort)
    standings = in_order([(key, key.standing(now)) for key in keys], _KEY_SORTS, sort)
    return render(
        "console/company.html",
        visit,
        company=found,
        order_max=_euros(found.spend_order_eur_minor),
        day_max=_euros(found.spend_day_eur_minor),
        order=_again(visit, "order", plain_euros(found.spend_order_eur_minor)),
        day=_again(visit, "day", plain_euros(found.spend_day_eur_minor)),
        balances=_by_currency(balances),
        people=members if whole else members[:SHOWN_MAX],
        people_count=len(members),
        policy=policy,
        rule_change=rule_change,
        approve_now=_euros(policy.approve_from_eur_minor),
        approve_from=_again(visit, "approve_from", plain_euros(asked.approve_from_eur_minor)),
        country=countries().get(found.country, found.country),
        keys=standings if whole else standings[:SHOWN_MAX],
        sort=sort,
        keys_count=len(keys),
        lists=[("", "Catalogue prices"), *((one.name, one.name) for one in lists)],
        list_name=next((one.name for one in lists if found.name in one.companies), ""),
        may_manage=visit.may(Right.COMPANIES_MANAGE),
    )


async def set_standing(visit: Visit) -> Response:
    """Verify, activate or deactivate a company, and show it costs or not."""
    async with transaction(visit.pool) as tx:
        before = await company_of(tx, visit)
        after = await company_deeds.change(
            tx,
            visit.actor,
            before.name,
            active="active" in visit.form,
            verified="verified" in visit.form,
            expose_costs="expose_costs" in visit.form,
        )
    visit.tell(f"{after.name} is {'active' if after.active else 'inactive'} and {_verified(after)}.")
    return _back(after)


async def set_limits(visit: Visit) -> Response:
    """Limit what a company may spend on an order and in a day."""
    order, day = visit.read("order", euros_of), visit.read("day", euros_of)
    async with transaction(visit.pool) as tx:
        found = await company_of(tx, visit)
        if not visit.problems:
            found = await company_deeds.limit(
                tx, visit.actor, found.name, order_eur_minor=order, day_eur_minor=day
            )
    if visit.problems:
        return await company(visit)
    visit.tell("The limits are set.")
    return _back(found)


async def set_prices(visit: Visit) -> Response:
    """Give a company a price list, or the catalogue's prices."""
    name = visit.form.get("list")
    async with transaction(visit.pool) as tx:
        found = await company_of(tx, visit)
        try:
            if name:
                await price_deeds.assign(tx, visit.actor, name, found)
            else:
                await price_deeds.unassign(tx, visit.actor, found)
        except UnknownPriceList as unknown:
            visit.problems["list"] = str(unknown)
        except NoPriceList:
            pass  # It has the catalogue's prices already.
    if visit.problems:
        return await company(visit)
    visit.tell(
        f"{found.name} has the prices of {name}." if name else f"{found.name} has the catalogue's prices."
    )
    return _back(found)


async def set_policy(visit: Visit) -> Response:
    """Say what a company's people need: a second factor, and a second person for large orders."""
    chosen = Policy("second_factor" in visit.form, visit.read("approve_from", euros_of))
    async with transaction(visit.pool) as tx:
        found = await company_of(tx, visit)
        if not visit.problems:
            waiting = await rules.set_policy(tx, visit.actor, found, chosen)
    if visit.problems:
        return await company(visit)
    visit.tell("It holds from now on." if waiting is None else changes_later(waiting, visit.words))
    return _back(found)


def _by_currency(balances: list[Balance]) -> list[tuple[str, list[tuple[Money, Money] | None]]]:
    """For each currency the balance, and what is held of it, in live and in the sandbox."""
    found: dict[str, list[tuple[Money, Money] | None]] = {}
    for one in balances:
        pair = Money(one.balance_minor, one.currency), Money(one.held_minor, one.currency)
        found.setdefault(one.currency, [None, None])[one.state] = pair
    return sorted(found.items())


def _euros(minor: int | None) -> Money | None:
    return None if minor is None else Money(minor, "EUR")


def _again(visit: Visit, name: str, stored: str) -> str:
    """The field as it was sent, where this form was; else as it is stored."""
    return visit.form.get(name, stored) if visit.problems else stored


def _back(found: Company) -> Response:
    return see_other(f"{PATH}/{found.id}")


def _verified(company: Company) -> str:
    return "verified" if company.verified else "not verified"
