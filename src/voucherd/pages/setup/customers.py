"""The set-up's steps about who buys: a first company with its owner and key, its balance, and the first sale."""

from __future__ import annotations

from typing import Final

from voucherd.approvals.model import AlreadyProposed, ApprovalKind
from voucherd.catalogue import search as register
from voucherd.catalogue.search import ProductSearch
from voucherd.companies import store as company_store
from voucherd.companies.model import BadCompany, Company, CompanyDraft, CompanyExists
from voucherd.companies.places import countries
from voucherd.companies.store import CompanySearch
from voucherd.db import Connection, transaction
from voucherd.http import Response
from voucherd.ids import State
from voucherd.keys import deeds as key_deeds
from voucherd.keys.key_text import SCOPES_DEFAULT, KeyWish
from voucherd.money import DIGITS, Money
from voucherd.pages.console.inputs import amount_of, currency_of, number_of
from voucherd.pages.forms import sentence
from voucherd.pages.setup import wizard
from voucherd.pages.visit import Visit
from voucherd.people import approvers, members
from voucherd.people import deeds as people
from voucherd.people.deeds import Invitation
from voucherd.people.users import UserDraft, UserExists
from voucherd.sandbox import deeds as sandbox
from voucherd.wallet import deeds as wallet_deeds
from voucherd.wallet import store as wallets
from voucherd.wallet.deeds import BadPayment, NothingBooked
from voucherd.wallet.store import ReferenceReused

COMPANIES_OFFERED_MAX: Final = 100
OWNER: Final = "owner"
_EXAMPLE: Final = "your-product"


async def company_page(visit: Visit) -> Response:
    """The form for the first company and its owner."""
    return wizard.draw(
        visit,
        "company",
        made=None,
        countries=list(countries().items()),
        country=visit.form.get("country") or visit.services.settings.operator_country,
        mailing=visit.services.settings.smtp_url is not None,
    )


async def company(visit: Visit) -> Response:
    """Add the company, invite its owner and make its first key: all of it, or nothing. The key is shown once."""
    form, problems, settings = visit.form, visit.problems, visit.services.settings
    me = visit.someone
    try:
        draft = CompanyDraft(
            form.get("name"),
            form.get("country"),
            form.get("vat_number") or None,
            verified=True,
            expose_costs="expose_costs" in form,
        )
        async with transaction(visit.pool) as tx:
            made = await sandbox.add_company(tx, visit.actor, draft)
            invitation = Invitation(
                settings.public_url, made.name, me.name or me.email, by_hand=settings.smtp_url is None
            )
            owner = UserDraft(form.get("email"), made.id, OWNER)
            invited = await people.invite(tx, visit.actor, owner, invitation)
            wish = KeyWish(description="First key", scopes=SCOPES_DEFAULT)
            _, key = await key_deeds.add(tx, visit.actor, made.id, State.LIVE, wish)
    except BadCompany as bad:
        problems[bad.field] = sentence(bad)
    except CompanyExists as exists:
        problems["name"] = sentence(exists)
    except (UserExists, ValueError) as wrong:
        problems["email"] = sentence(wrong)
    if problems:
        return await company_page(visit)
    return wizard.draw(
        visit,
        "company",
        made=made,
        invited=invited,
        key=key,
        address=settings.public_url,
        slug=await visit.look(_slug),
    )


async def balance_page(visit: Visit) -> Response:
    """The form for the first top-up."""
    async with visit.pool.acquire() as conn:
        found = await company_store.search_companies(
            conn, CompanySearch(sort="-added"), COMPANIES_OFFERED_MAX
        )
        alone = await approvers.is_alone(conn, visit.someone.id)
    return wizard.draw(
        visit,
        "balance",
        companies=[(one.id, one.name) for one in found],
        currencies=[(code, code) for code in ("EUR", *(code for code in sorted(DIGITS) if code != "EUR"))],
        alone=alone,
        reference=visit.form.get("reference") if visit.problems else "First top-up",
    )


async def balance(visit: Visit) -> Response:
    """Top the balance up: at once by who is alone, else it waits for a second person (OP-151)."""
    problems, reference = visit.problems, visit.form.get("reference")
    currency = visit.read("currency", currency_of)
    money = visit.read("amount", lambda text: amount_of(text, currency or "EUR"))
    found = await visit.look(_company, visit)
    if found is None:
        problems["company"] = "Choose a company."
    said = "It is proposed, and moves when a second person agrees."
    if found is not None and money is not None and not problems:
        try:
            if await approvers.is_alone(visit.pool, visit.someone.id):
                await visit.do(wallet_deeds.top_up_alone, found, State.LIVE, money, reference)
                said = f"{found.name} can spend {money}."
            else:
                await visit.do(wallet_deeds.propose, ApprovalKind.TOP_UP, found, State.LIVE, money, reference)
        except BadPayment as bad:
            problems[bad.field] = sentence(bad.rule)
        except (NothingBooked, ReferenceReused, AlreadyProposed):
            problems["reference"] = "There is a payment with this reference already."
    if problems:
        return await balance_page(visit)
    return wizard.go_on(visit, "balance", said)


async def sale_page(visit: Visit) -> Response:
    """What is left until the first sale, and how it is made."""
    done = await wizard.done(visit)
    async with visit.pool.acquire() as conn:
        newest = await company_store.search_companies(conn, CompanySearch(sort="-added"), 1)
        found = newest[0] if newest else None
        owners = [] if found is None else await members.members(conn, found.id)
        balances = [] if found is None else await wallets.balances(conn, found.id, State.LIVE)
        slug = await _slug(conn)
    return wizard.draw(
        visit,
        "sale",
        done=done,
        company=found,
        owner=next((one for one in owners if one.role == OWNER), None),
        balances=[Money(one.balance_minor - one.held_minor, one.currency) for one in balances],
        address=visit.services.settings.public_url,
        slug=slug,
    )


async def _slug(conn: Connection) -> str:
    """The slug of a product that can be ordered in an example."""
    found = await register.page_of_products(conn, ProductSearch(active=True), size=1)
    return found[0].version.slug if found else _EXAMPLE


async def _company(conn: Connection, visit: Visit) -> Company | None:
    number = number_of(visit.form.get("company"), 2**31 - 1)
    return None if number is None else (await company_store.companies(conn, [number])).get(number)
