"""Opens the demo's shop: all of it in one transaction, once."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from voucherd.actors import SYSTEM
from voucherd.catalogue import product_deeds
from voucherd.catalogue import store as catalogue
from voucherd.catalogue.fx import parse_rate
from voucherd.catalogue.products import ProductVersion
from voucherd.cli.context import operator
from voucherd.cli.demo_shop.goods import BALANCES, RATES, Good, goods, new_codes
from voucherd.cli.demo_shop.handout import DemoPerson, Handout
from voucherd.cli.output import CommandRefused
from voucherd.cli.user import new_password
from voucherd.companies import deeds as company_deeds
from voucherd.companies import store as company_store
from voucherd.companies.model import Company, CompanyDraft, CompanyNotFound
from voucherd.db import Connection, Pool, Tx
from voucherd.ids import State
from voucherd.keys import deeds as key_deeds
from voucherd.keys import store as key_store
from voucherd.keys.key_text import KeyWish, key_hash
from voucherd.money import Money
from voucherd.orders.rules.cart import CartLine, Create
from voucherd.orders.rules.decide import Finalise
from voucherd.orders.service import OrderService
from voucherd.people import approvers, members, user_store
from voucherd.people import deeds as people
from voucherd.people.users import UserDraft, hash_password
from voucherd.settings import Settings
from voucherd.vault.imports import StockTarget, append_codes
from voucherd.vault.key_ring import KeyRing
from voucherd.vault.seal import Sealer
from voucherd.wallet import deeds as wallet_deeds

COMPANY: Final = "Demo Trading"
OPERATOR_EMAIL: Final = "operator@demo.example"
BUYER_EMAIL: Final = "buyer@demo.example"
RATE_LIMIT: Final = 60_000
SUPPLIER: Final = "demo wholesale"
RATES_SOURCE: Final = "demo"
SAMPLE: Final = "nimbari-play-25-eur"


async def find_shop(connection: Connection) -> Company | None:
    """The demo's company, None in an empty database; refused in one that is somebody's own."""
    try:
        return await company_store.find_company(connection, COMPANY)
    except CompanyNotFound:
        if await company_store.list_companies(connection):
            raise CommandRefused(
                "this database has companies of its own and is no place for a demo"
            ) from None
        return None


async def still_valid(connection: Connection, handout: Handout) -> bool:
    """Whether these keys are still the demo's."""
    keys = (handout.live_key, handout.sandbox_key)
    return all([await key_store.find_key(connection, key_hash(key)) is not None for key in keys])


async def open_shop(tx: Tx, sealer: Sealer) -> Company:
    """The company, its money, the rates, the products and their codes."""
    company = await company_deeds.add(tx, operator(), CompanyDraft(COMPANY, "NL", verified=True))
    for state in State:
        for text in BALANCES:
            await wallet_deeds.top_up(tx, SYSTEM, company, state, Money.read(text), "demo opening balance")
    for currency, rate in RATES.items():
        await catalogue.set_rate(tx, currency, parse_rate(rate), RATES_SOURCE)
    now: datetime = await tx.fetchval("SELECT now()")
    for good in goods():
        listing = await product_deeds.add(tx, SYSTEM, good.draft, active=good.active)
        await _stock(tx, sealer, good, listing.version, now)
    return company


async def freshen_rates(tx: Tx) -> None:
    """Date the demo's own rates today: old ones are refused, and nobody updates these."""
    for rate in await catalogue.list_rates(tx):
        if rate.source == RATES_SOURCE:
            await catalogue.set_rate(tx, rate.currency, rate.eur_e8, RATES_SOURCE)


async def hand_out(tx: Tx, company: Company) -> Handout:
    """New keys and passwords for the shop, whatever it had before."""
    actor, keys = operator(), {}
    for state in State:
        wish = KeyWish(description="demo", rate_limit=RATE_LIMIT)
        _, keys[state] = await key_deeds.add(tx, actor, company.id, state, wish)
    return Handout(
        company=company.name,
        live_key=keys[State.LIVE],
        sandbox_key=keys[State.SANDBOX],
        operator=await _person(tx, UserDraft(OPERATOR_EMAIL, None, "admin")),
        buyer=await _person(tx, UserDraft(BUYER_EMAIL, company.id, "owner")),
        products=[good.draft.slug for good in goods()],
    )


async def sample_voucher(pool: Pool, settings: Settings, key_ring: KeyRing, company: Company) -> str:
    """The path of a recipient's link, of a first order; in the sandbox, so that nothing of the live shop is sold."""
    order_service = OrderService(pool, key_ring.sealer, settings)
    try:
        cart = (CartLine(SAMPLE, 1),)
        created = await order_service.create(Create(company.id, State.SANDBOX, 0, cart, "EUR"))
        await order_service.confirm(Finalise(created.order.id, company.id, State.SANDBOX, resolve=False))
    finally:
        await order_service.stop()
    return "/r/" + key_ring.identifiers().tokens(created.order.id, [0])[0]


async def _stock(tx: Tx, sealer: Sealer, good: Good, version: ProductVersion, now: datetime) -> None:
    rates = await catalogue.rates(tx, [version.face_currency])
    brand = await catalogue.add_or_get_brand(tx, version.brand_name)
    for lot in good.deliveries:
        await append_codes(
            tx,
            sealer,
            target=StockTarget(version.product_id, brand.brand_id, lot.face.minor),
            supplier=SUPPLIER,
            purchase=lot.cost,
            purchase_fx_e8=rates[version.face_currency],
            expires=None if good.lasts is None else now + good.lasts,
            codes=new_codes(lot.count),
        )


async def _person(tx: Tx, draft: UserDraft) -> DemoPerson:
    password = new_password()
    password_hash = await hash_password(password, [draft.email])
    login = await user_store.find_login(tx, draft.email)
    if login is None:
        await people.add(tx, operator(), draft, password_hash)
        await approvers.confirm(tx, operator(), await members.by_email(tx, draft.email))
    else:
        await people.reset_password(tx, operator(), login.user, password_hash)
    return DemoPerson(draft.email, password)
