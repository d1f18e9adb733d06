"""Companies: who may buy, how much, at which prices, and with which keys."""

from __future__ import annotations

from typing import Final

from voucherd import clock
from voucherd.catalogue import price_deeds, price_store
from voucherd.catalogue.price_deeds import NoPriceList
from voucherd.catalogue.price_store import UnknownPriceList
from voucherd.companies import deeds as company_deeds
from voucherd.companies import store as company_store
from voucherd.companies.model import Company, CompanyDraft, CompanyExists, Policy
from voucherd.db import transaction
from voucherd.http import Response
from voucherd.keys import deeds as key_deeds
from voucherd.keys import store as key_store
from voucherd.keys.store import KeyNotFound
from voucherd.money import Money
from voucherd.pages.console.inputs import Problems, company_of, euros_of, number_in, plain_euros
from voucherd.pages.forms import FormFields
from voucherd.pages.render import render
from voucherd.pages.visit import Visit, missing, see_other
from voucherd.people import members as people
from voucherd.people.roles import Right
from voucherd.wallet import store as wallets
from voucherd.wallet.store import Balance

SHOWN_MAX: Final = 100


async def companies(visit: Visit) -> Response:
    """The companies, or those whose name holds a text."""
    wanted = visit.query.get("q")[:200]
    async with visit.pool.acquire() as conn:
        found = await company_store.search_companies(conn, wanted, SHOWN_MAX + 1)
    return render(
        "console/companies.html",
        visit,
        companies=found[:SHOWN_MAX],
        more=len(found) > SHOWN_MAX,
        wanted=wanted,
        shown_max=SHOWN_MAX,
    )


async def new_company(visit: Visit) -> Response:
    """The form for a new company."""
    return render("console/company_new.html", visit, problems=Problems(), form=visit.form)


async def add_company(visit: Visit) -> Response:
    """Add a company."""
    form, problems = visit.form, Problems()
    try:
        draft = CompanyDraft(
            form.get("name"),
            form.get("country").upper(),
            form.get("vat_number") or None,
            active="active" in form,
            verified="verified" in form,
            expose_costs="expose_costs" in form,
        )
        company = await visit.do(company_deeds.add, draft)
    except CompanyExists as taken:
        problems["name"] = str(taken)
    except ValueError as wrong:
        problems[_field_of(str(wrong))] = str(wrong)
    if problems:
        return render("console/company_new.html", visit, status=422, problems=problems, form=form)
    return visit.go(f"/console/companies/{company.id}", f"{company.name} is there.")


async def company(visit: Visit) -> Response:
    """One company: what it may do, what it has, its people and keys."""
    async with visit.pool.acquire() as conn:
        found = await company_of(conn, visit)
    return await _page(visit, found)


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
    problems = Problems()
    order = problems.read("order", lambda: euros_of(visit.form.get("order")))
    day = problems.read("day", lambda: euros_of(visit.form.get("day")))
    async with transaction(visit.pool) as tx:
        found = await company_of(tx, visit)
        if not problems:
            found = await company_deeds.limit(
                tx, visit.actor, found.name, order_eur_minor=order, day_eur_minor=day
            )
    if problems:
        return await _page(visit, found, problems)
    visit.tell("The limits are set.")
    return _back(found)


async def set_prices(visit: Visit) -> Response:
    """Give a company a price list, or the catalogue's prices."""
    name = visit.form.get("list")
    problems = Problems()
    async with transaction(visit.pool) as tx:
        found = await company_of(tx, visit)
        try:
            if name:
                await price_deeds.assign(tx, visit.actor, name, found)
            else:
                await price_deeds.unassign(tx, visit.actor, found)
        except UnknownPriceList as unknown:
            problems["list"] = str(unknown)
        except NoPriceList:
            pass  # It has the catalogue's prices already.
    if problems:
        return await _page(visit, found, problems)
    visit.tell(
        f"{found.name} has the prices of {name}." if name else f"{found.name} has the catalogue's prices."
    )
    return _back(found)


async def set_policy(visit: Visit) -> Response:
    """Say what a company's people need: a second factor, and a second person for large orders."""
    problems = Problems()
    approve_from = problems.read("approve_from", lambda: euros_of(visit.form.get("approve_from")))
    chosen = Policy("second_factor" in visit.form, approve_from)
    async with transaction(visit.pool) as tx:
        found = await company_of(tx, visit)
        if not problems:
            await company_deeds.set_policy(tx, visit.actor, found, chosen)
    if problems:
        return await _page(visit, found, problems)
    visit.tell("It holds from now on.")
    return _back(found)


async def revoke_key(visit: Visit) -> Response:
    """End the life of one of a company's keys."""
    number = number_in(visit, "key")
    async with transaction(visit.pool) as tx:
        found = await company_of(tx, visit)
        try:
            if (await key_store.find_by_id(tx, number)).company_id != found.id:
                raise missing()
            key = await key_deeds.revoke(tx, visit.actor, number)
        except KeyNotFound:
            raise missing() from None
    return visit.go(f"/console/companies/{found.id}#keys", f"The key {key.prefix}… opens nothing any more.")


async def _page(visit: Visit, found: Company, problems: Problems | None = None) -> Response:
    async with visit.pool.acquire() as conn:
        balances = await wallets.balances(conn, found.id)
        members = await people.members(conn, found.id)
        policy = await company_store.policy(conn, found.id)
        keys = await key_store.list_keys(conn, found.id)
        lists = await price_store.lists(conn)
    now = clock.now()
    form = visit.form if problems else None
    return render(
        "console/company.html",
        visit,
        status=422 if problems else 200,
        company=found,
        problems=problems or Problems(),
        order=_again(form, "order", plain_euros(found.spend_order_eur_minor)),
        day=_again(form, "day", plain_euros(found.spend_day_eur_minor)),
        balances=_by_currency(balances),
        people=members,
        policy=policy,
        approve_from=_again(form, "approve_from", plain_euros(policy.approve_from_eur_minor)),
        keys=[(key, key.standing(now)) for key in keys],
        lists=[("", "The catalogue’s prices"), *((one.name, one.name) for one in lists)],
        list_name=next((one.name for one in lists if found.name in one.companies), ""),
        may_manage=visit.may(Right.COMPANIES_MANAGE),
    )


def _by_currency(balances: list[Balance]) -> list[tuple[str, list[tuple[Money, Money] | None]]]:
    """For each currency the balance, and what is held of it, in live and in the sandbox."""
    found: dict[str, list[tuple[Money, Money] | None]] = {}
    for one in balances:
        pair = Money(one.balance_minor, one.currency), Money(one.held_minor, one.currency)
        found.setdefault(one.currency, [None, None])[one.state] = pair
    return sorted(found.items())


def _again(form: FormFields | None, name: str, stored: str) -> str:
    """What was sent, where this form was; else what is stored."""
    return form.get(name) if form is not None and name in form else stored


def _back(found: Company) -> Response:
    return see_other(f"/console/companies/{found.id}")


def _verified(company: Company) -> str:
    return "verified" if company.verified else "not verified"


def _field_of(refusal: str) -> str:
    """The field that a refusal of a draft is about."""
    if "country" in refusal:
        return "country"
    return "vat_number" if "VAT" in refusal else "name"
