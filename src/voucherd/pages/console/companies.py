"""Companies: who may buy, how much, at which prices, with which keys; and their wallets, movement by movement."""

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
from voucherd.ids import State
from voucherd.keys import deeds as key_deeds
from voucherd.keys import store as key_store
from voucherd.money import Money
from voucherd.pages.console.inputs import (
    company_of,
    euros_of,
    number_in,
    number_of,
    optional_day,
    plain_euros,
)
from voucherd.pages.forms import Period
from voucherd.pages.people.approvals import changes_later
from voucherd.pages.render import qualified, render
from voucherd.pages.visit import Visit, missing, see_other
from voucherd.people import members as people
from voucherd.people import policy as rules
from voucherd.people.roles import Right
from voucherd.sandbox import deeds as sandbox
from voucherd.services import Services
from voucherd.wallet import store as wallets
from voucherd.wallet.ledger import EntryKind
from voucherd.wallet.statement import StatementFilters, StatementLine
from voucherd.wallet.store import Balance

SHOWN_MAX: Final = 100
STATEMENT_LINES: Final = 50
KINDS: Final = {kind.word: kind for kind in EntryKind}
_STATES: Final = {"live": State.LIVE, "sandbox": State.SANDBOX}


async def companies(visit: Visit) -> Response:
    """The companies, or those whose name holds a text."""
    wanted = visit.query.get("q")[:200]
    found = await visit.look(company_store.search_companies, wanted, SHOWN_MAX + 1)
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
    return render("console/company_new.html", visit)


async def add_company(visit: Visit) -> Response:
    """Add a company."""
    form = visit.form
    if form.get("expose_costs") not in {"yes", "no"}:
        visit.problems["expose_costs"] = "Choose whether it sees what you pay, and to whom."
        return await new_company(visit)
    try:
        draft = CompanyDraft(
            form.get("name"),
            form.get("country").upper(),
            form.get("vat_number") or None,
            active="active" in form,
            verified="verified" in form,
            expose_costs=form.get("expose_costs") == "yes",
        )
        company = await visit.do(sandbox.add_company, draft)
    except (CompanyExists, ValueError) as wrong:
        visit.problems["name" if isinstance(wrong, CompanyExists) else _field_of(str(wrong))] = str(wrong)
        return await new_company(visit)
    return visit.go(f"/console/companies/{company.id}", f"{company.name} is there.")


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
    now = clock.now()
    return render(
        "console/company.html",
        visit,
        company=found,
        order=_again(visit, "order", plain_euros(found.spend_order_eur_minor)),
        day=_again(visit, "day", plain_euros(found.spend_day_eur_minor)),
        balances=_by_currency(balances),
        people=members,
        policy=policy,
        rule_change=rule_change,
        approve_now=None
        if policy.approve_from_eur_minor is None
        else Money(policy.approve_from_eur_minor, "EUR"),
        approve_from=_again(visit, "approve_from", plain_euros(asked.approve_from_eur_minor)),
        keys=[(key, key.standing(now)) for key in keys],
        lists=[("", "The catalogue’s prices"), *((one.name, one.name) for one in lists)],
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
    visit.tell("It holds from now on." if waiting is None else changes_later(waiting))
    return _back(found)


async def revoke_key(visit: Visit) -> Response:
    """End the life of one of a company's keys."""
    number = number_in(visit, "key")
    async with transaction(visit.pool) as tx:
        found = await company_of(tx, visit)
        if (await key_store.find_by_id(tx, number)).company_id != found.id:
            raise missing()
        key = await key_deeds.revoke(tx, visit.actor, number)
    return visit.go(f"/console/companies/{found.id}#keys", f"The key {key.prefix}… opens nothing any more.")


async def statement(visit: Visit) -> Response:
    """The movements of one wallet, newest first, with filters."""
    query = visit.query
    state = _STATES.get(query.get("state"), visit.state)
    period = Period(visit.ask("from", optional_day), visit.ask("to", optional_day))
    kind = query.get("kind") if query.get("kind") in KINDS else ""
    filters = StatementFilters(period.begins, period.ends, frozenset({KINDS[kind]} if kind else ()))
    async with visit.pool.acquire() as conn:
        found = await company_of(conn, visit)
        balances = await wallets.balances(conn, found.id, state)
    currencies = [one.currency for one in balances]
    wanted = query.get("currency").upper()
    currency = wanted if wanted in currencies else next(iter(currencies), "")
    part = None
    if currency and not visit.problems:
        account = await visit.services.statements.account(found.id, currency, state)
        assert account is not None, "it has just been read, and no wallet is ever removed"
        part = await visit.services.statements.page(
            account, filters, after=number_of(query.get("after")), size=STATEMENT_LINES
        )
    chosen = {name: query.get(name) for name in ("from", "to")} | {"kind": kind}
    chosen |= {"currency": currency, "state": state.word}
    path = f"/console/companies/{found.id}/statement"
    return render(
        "console/statement.html",
        visit,
        company=found,
        balance=next((Money(b.balance_minor, b.currency) for b in balances if b.currency == currency), None),
        held=next((Money(b.held_minor, b.currency) for b in balances if b.currency == currency), None),
        currencies=[(one, one) for one in currencies],
        kinds=[("", "Everything"), *((word, word) for word in KINDS)],
        chosen=chosen,
        rows=[_movement(visit.services, line, currency) for line in part.lines] if part else [],
        first="" if not query.get("after") else qualified(path, chosen),
        older="" if part is None or part.after is None else qualified(path, chosen | {"after": part.after}),
    )


def _movement(services: Services, line: StatementLine, currency: str) -> dict[str, object]:
    return {
        "number": line.seq,
        "at": line.at,
        "kind": line.kind.word,
        "amount": Money(line.amount_minor, currency),
        "hold": Money(line.hold_minor, currency),
        "balance": Money(line.balance_after_minor, currency),
        "trx": None if line.order_id is None else services.ids.trx(line.order_id),
        "reference": line.reference,
    }


def _by_currency(balances: list[Balance]) -> list[tuple[str, list[tuple[Money, Money] | None]]]:
    """For each currency the balance, and what is held of it, in live and in the sandbox."""
    found: dict[str, list[tuple[Money, Money] | None]] = {}
    for one in balances:
        pair = Money(one.balance_minor, one.currency), Money(one.held_minor, one.currency)
        found.setdefault(one.currency, [None, None])[one.state] = pair
    return sorted(found.items())


def _again(visit: Visit, name: str, stored: str) -> str:
    """The field as it was sent, where this form was; else as it is stored."""
    return visit.form.get(name, stored) if visit.problems else stored


def _back(found: Company) -> Response:
    return see_other(f"/console/companies/{found.id}")


def _verified(company: Company) -> str:
    return "verified" if company.verified else "not verified"


def _field_of(refusal: str) -> str:
    """The field that a refusal of a draft is about."""
    if "country" in refusal:
        return "country"
    return "vat_number" if "VAT" in refusal else "name"
