"""A shop for tests: the real service on a real database, called over HTTP, with verbs that read like sentences."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from tests.patience import HANG_S, PATIENT, a_day_later, until, until_true
from voucherd import trail
from voucherd.actors import SYSTEM, Actor, ActorKind
from voucherd.app import App, running
from voucherd.approvals.model import ApprovalKind
from voucherd.archive.block_files import BlockReader
from voucherd.audit import audit
from voucherd.catalogue import store as catalogue
from voucherd.catalogue.products import ProductChanges, ProductDraft, ProductVersion
from voucherd.catalogue.texts import read_face, read_selling
from voucherd.companies import store as company_store
from voucherd.companies.model import CompanyDraft
from voucherd.db import Pool, Tx, transaction
from voucherd.ids import Identifiers, State
from voucherd.keys import store as key_store
from voucherd.keys.key_text import SCOPES_DEFAULT, KeyDraft, Scope
from voucherd.limits.rate_store import Lender
from voucherd.migrate import service_url
from voucherd.money import Money
from voucherd.orders.service import OrderService
from voucherd.people import user_store
from voucherd.people.users import UserDraft
from voucherd.server.asgi import AsgiApp
from voucherd.settings import Settings
from voucherd.vault.imports import StockTarget, append_codes
from voucherd.vault.master_key import load_or_create_master
from voucherd.vault.seal import Sealer
from voucherd.wallet import deeds as wallet_deeds
from voucherd.wallet import store as wallets
from voucherd.worker import Worker

MOMENT = datetime(2031, 5, 6, 7, 8, 30, tzinfo=UTC)
_count = itertools.count(1)


@dataclass
class Company:
    """A company with a live and a sandbox key."""

    id: int
    name: str
    keys: dict[State, str] = field(default_factory=dict)

    def bearer(self, state: State = State.LIVE) -> dict[str, str]:
        """The header of its key."""
        return {"authorization": f"Bearer {self.keys[state]}"}


class Shop:
    """Everything a scenario needs, each as one verb."""

    def __init__(
        self, pool: Pool, client: httpx.AsyncClient, settings: Settings, master: bytes, app: AsgiApp
    ) -> None:
        self.pool = pool
        self.client = client
        self.app = app
        self.settings = settings
        self.master = master
        self.sealer = Sealer(master)
        self.ids = Identifiers(master)
        self.worker = Worker(pool, self.sealer, settings)
        self.products: dict[str, ProductVersion] = {}

    @property
    def program(self) -> App:
        """The program behind the server."""
        program = self.app.service.app
        assert isinstance(program, App)
        return program

    @property
    def order_service(self) -> OrderService:
        """The orders behind the API, for scenarios about what no client can see."""
        return self.program.services.orders

    # ── what the operator does ────────────────────────────────────────────────────────────────────────

    async def company(
        self,
        *,
        balance: str | None = "1000.00 EUR",
        country: str = "NL",
        vat_number: str | None = None,
        verified: bool = True,
        active: bool = True,
        expose_costs: bool = True,
        scopes: frozenset[Scope] = SCOPES_DEFAULT,
        rate_limit: int = 1_000_000,
    ) -> Company:
        """A new company with keys and, unless told otherwise, money in both states."""
        draft = CompanyDraft(f"Company {next(_count)}", country, vat_number, active, verified, expose_costs)
        async with transaction(self.pool) as tx:
            made = await company_store.add_company(tx, draft)
        company = Company(made.id, made.name)
        company.keys = await self.keys(company, scopes, rate_limit=rate_limit)
        if balance is not None:
            for state in State:
                await self.top_up(company, balance, state=state)
        return company

    async def keys(
        self, company: Company, scopes: frozenset[Scope], *, rate_limit: int = 1_000_000
    ) -> dict[State, str]:
        """More keys of the company."""
        draft = KeyDraft(scopes=scopes, rate_limit=rate_limit)
        async with transaction(self.pool) as tx:
            return {state: (await key_store.add_key(tx, company.id, state, draft)).text for state in State}

    async def set_company(self, company: Company, **flags: bool) -> None:
        """Change what the company may do."""
        async with transaction(self.pool) as tx:
            await company_store.set_company(tx, company.name, **flags)

    async def top_up(self, company: Company, amount: str, *, state: State = State.LIVE) -> None:
        """Add money."""
        async with transaction(self.pool) as tx:
            await paid_in(tx, company.id, state, Money.read(amount))

    async def product(
        self,
        slug: str,
        *,
        face: str | None = "10.00 EUR",
        face_range: str | None = None,
        price: str | None = "9.50 EUR",
        fee: str | None = None,
        stock: int = 0,
        async_delivery: bool = False,
        vat_category: str = "multi_purpose",
        name: str | None = None,
        expires: datetime | None = None,
        active: bool = True,
        **more: Any,
    ) -> ProductVersion:
        """A product with that many codes on the shelf; `more` are fields of its draft."""
        plain = {
            "brand": "Testbrand",
            "product_type": "giftcard",
            "category": "gifts",
            "redeem_type": "currency",
            "region": "ww",
        }
        draft = ProductDraft(
            slug=slug,
            name=name or slug.replace("-", " ").title(),
            **(plain | more),
            face=read_face(None if face_range else face, face_range),
            selling=read_selling(None if fee else price, fee),
            vat_category=vat_category,
            async_delivery=async_delivery,
        )
        async with transaction(self.pool) as tx:
            self.products[slug] = await catalogue.add_product(tx, draft, active=active)
        if stock:
            await self.stock(slug, stock, expires=expires)
        return self.products[slug]

    async def set_product(self, slug: str, **changes: Any) -> None:
        """Change a product."""
        async with transaction(self.pool) as tx:
            await catalogue.set_product(tx, slug, ProductChanges(**changes))

    async def stock(
        self,
        slug: str,
        count: int,
        *,
        cost: str | None = None,
        face: str | None = None,
        expires: datetime | None = None,
        supplier: str = "wholesale",
    ) -> list[tuple[str, str]]:
        """Put that many new codes on the shelf as one lot; the codes and serials."""
        codes = [(f"CODE-{secrets.token_hex(8)}", f"S{at:06d}-{secrets.token_hex(3)}") for at in range(count)]
        await self.stock_codes(slug, codes, cost=cost, face=face, expires=expires, supplier=supplier)
        return codes

    async def stock_codes(
        self,
        slug: str,
        codes: list[tuple[str, str]],
        *,
        cost: str | None = None,
        face: str | None = None,
        expires: datetime | None = None,
        supplier: str = "wholesale",
    ) -> None:
        """Put these codes and serials on the shelf as one lot."""
        product = self.products[slug]
        face_minor = Money.read(face).minor if face else product.face_minor
        assert face_minor is not None
        cost = cost or _fair_cost(product)
        async with transaction(self.pool) as tx:
            brand_id = await tx.fetchval(
                "SELECT brand_id FROM product_version WHERE id = $1", product.version_id
            )
            await append_codes(
                tx,
                self.sealer,
                target=StockTarget(product.product_id, brand_id, face_minor),
                supplier=supplier,
                purchase=Money.read(cost),
                purchase_fx_e8=100_000_000,
                expires=expires,
                codes=codes,
            )

    async def expire_codes(self, slug: str) -> None:
        """Let the codes of a product have expired a moment ago."""
        async with transaction(self.pool) as tx:
            # What a lot is of never changes, but a test can't wait for a date.
            await tx.execute("ALTER TABLE lot DISABLE TRIGGER USER")
            await tx.execute(
                "UPDATE lot SET expires_at = now() WHERE product_id = $1", self.products[slug].product_id
            )
            await tx.execute("ALTER TABLE lot ENABLE TRIGGER USER")

    async def fx(self, currency: str, eur_e8: int) -> None:
        """Set a rate: what one unit is worth in EUR."""
        async with transaction(self.pool) as tx:
            await catalogue.set_rate(tx, currency, eur_e8)

    async def balance(self, company: Company, currency: str = "EUR", *, state: State = State.LIVE) -> Money:
        """The company's balance."""
        for one in await wallets.balances(self.pool, company.id, state):  # type: ignore[arg-type]
            if one.currency == currency:
                return Money(one.balance_minor, currency)
        return Money(0, currency)

    async def held(self, company: Company, currency: str = "EUR", *, state: State = State.LIVE) -> int:
        """What of the balance is held, in minor units."""
        return int(
            await self.pool.fetchval(
                "SELECT held_minor FROM wallet WHERE company_id = $1 AND currency = $2 AND state = $3",
                company.id,
                currency,
                int(state),
            )
        )

    async def age(self, trx: str, interval: str) -> None:
        """Make an order older than it is, by the database's clock."""
        order_id = self.ids.order_id(trx)
        assert order_id is not None
        self.order_service._caches.recent.take(order_id)
        await self.pool.execute(
            f"UPDATE orders SET created_at = created_at - interval '{interval}', "  # noqa: S608 - A test's own words.
            f"expires_at = expires_at - interval '{interval}' WHERE id = $1",
            order_id,
        )
        # The sweeps have passed that time already.
        await self.pool.execute(
            "UPDATE sweep SET upto = least(upto, created_at) FROM orders WHERE orders.id = $1",
            self.ids.order_id(trx),
        )

    async def hear(self) -> None:
        """Let the process hear of what was changed about keys and companies, as it does by itself in a second."""
        await self.program.authenticator._poll(HANG_S)

    def stop_the_minute(self) -> None:
        """Make all calls from now on in the same moment of a minute, as its rate limits count: no minute turns."""
        authenticator = self.program.authenticator
        authenticator.limiter._lend = Lender(self.pool, lambda: MOMENT).lend
        authenticator.limiter._clock = lambda: 1_000.0
        authenticator._strangers._clock = lambda: 1_000.0

    # ── what the integrator does ──────────────────────────────────────────────────────────────────────

    async def call(
        self,
        method: str,
        path: str,
        company: Company,
        *,
        state: State = State.LIVE,
        headers: dict[str, str] | None = None,
        **arguments: Any,
    ) -> httpx.Response:
        """Any call, as the company."""
        return await self.client.request(
            method, path, headers=company.bearer(state) | (headers or {}), **arguments
        )

    async def try_create(
        self,
        company: Company,
        *items: tuple[str, int] | dict[str, Any],
        currency: str = "EUR",
        reference: str | None = None,
        state: State = State.LIVE,
    ) -> httpx.Response:
        """Create an order, whatever comes of it."""
        body: dict[str, Any] = {
            "items": [i if isinstance(i, dict) else {"productSlug": i[0], "amount": i[1]} for i in items],
            "paymentCurrency": currency,
        }
        if reference is not None:
            body["reference"] = reference
        return await self.call("POST", "/api/1.03/order", company, state=state, json=body)

    async def create(
        self, company: Company, *items: tuple[str, int] | dict[str, Any], **options: Any
    ) -> dict[str, Any]:
        """A new order."""
        response = await self.try_create(company, *items, **options)
        assert response.status_code == 201, response.text
        return dict(response.json())

    async def finalise(
        self,
        operation: str,
        company: Company,
        trx: str,
        *,
        version: str = "1.03",
        state: State = State.LIVE,
        outcome: str | None = None,
    ) -> httpx.Response:
        """Confirm, resolve or cancel, whatever comes of it."""
        headers = {} if outcome is None else {"x-sandbox-outcome": outcome}
        path = f"/api/{version}/order/{operation}/{trx}"
        return await self.call("PATCH", path, company, state=state, headers=headers)

    async def confirm(self, company: Company, trx: str, **options: Any) -> dict[str, Any]:
        """Confirm an order that can be confirmed."""
        response = await self.finalise("confirm", company, trx, **options)
        assert response.status_code == 200, response.text
        return dict(response.json())

    async def resolve(self, company: Company, trx: str, **options: Any) -> dict[str, Any]:
        """Resolve an order that can be resolved."""
        response = await self.finalise("resolve", company, trx, **options)
        assert response.status_code == 200, response.text
        return dict(response.json())

    async def cancel(self, company: Company, trx: str, **options: Any) -> httpx.Response:
        """Cancel an order, whatever comes of it."""
        return await self.finalise("cancel", company, trx, **options)

    def order_of(self, line: Mapping[str, Any]) -> int:
        """The id of the order that an extended line is of."""
        return self.ids.line_of_number(line["id"])[0]

    async def find(
        self, company: Company, trx: str, *, version: str = "1.03", state: State = State.LIVE
    ) -> dict[str, Any]:
        """The order as it stands."""
        response = await self.call("GET", f"/api/{version}/order/{trx}", company, state=state)
        assert response.status_code == 200, response.text
        return dict(response.json())

    async def until(
        self,
        company: Company,
        trx: str,
        arrived: Callable[[dict[str, Any]], bool],
        *,
        state: State = State.LIVE,
    ) -> dict[str, Any]:
        """The order, found again and again until it is as it should be."""

        async def look() -> dict[str, Any] | None:
            order = await self.find(company, trx, state=state)
            return order if arrived(order) else None

        found = await until(look, f"order {trx} never became what it should be")
        assert found is not None
        return found

    async def until_status(self, company: Company, trx: str, status: str, **options: Any) -> dict[str, Any]:
        """The order, once it has that status."""
        return await self.until(company, trx, lambda order: order["orderStatus"] == status, **options)

    async def waits(self, trx: str) -> None:
        """Returns once a call waits for this order in this process."""
        order_id = self.ids.order_id(trx)
        await until_true(lambda: order_id in self.order_service.watch._parked, "no call waits for the order")

    async def time_is_up(self, trx: str) -> None:
        """End the wait of the calls for this order, as their time limit does, whatever the machine's clock says."""
        await self.waits(trx)
        order_id = self.ids.order_id(trx)
        assert order_id is not None
        self.order_service.watch.wake(order_id)

    # ── what happened ─────────────────────────────────────────────────────────────────────────────────

    async def events(self, trx: str) -> list[str]:
        """What happened to an order, oldest first; its events are counted without a gap from 1."""
        rows = await self.pool.fetch(
            "SELECT type, seq FROM event WHERE order_id = $1 ORDER BY seq, id", self.ids.order_id(trx)
        )
        assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
        return [row["type"] for row in rows]

    async def left(self, slug: str) -> int:
        """How many live codes of a product are on the shelf."""
        return int(
            await self.pool.fetchval(
                "SELECT coalesce(sum(size - cursor), 0) FROM lot WHERE product_id = $1 AND state = 0",
                self.products[slug].product_id,
            )
        )

    # ── what must hold in the end ─────────────────────────────────────────────────────────────────────

    async def assert_books_balance(self) -> None:
        """Every invariant of decision 27 holds on the whole database, as the audit sees it."""
        async with self.pool.acquire() as conn:
            source = BlockReader(self.settings.archive_folder)
            findings = await audit(conn, self.sealer, archive=source)
        assert not findings, findings

    async def assert_refused(self, call: Awaitable[httpx.Response], status: int, text: str) -> httpx.Response:
        """The call is refused in exactly these words, and not a row is different afterwards."""
        before = await self.snapshot()
        response = await call
        assert (response.status_code, response.text) == (status, text)
        assert response.headers["content-type"] == "text/plain; charset=utf-8"
        assert await self.snapshot() == before
        return response

    async def snapshot(self) -> dict[str, list[tuple[Any, ...]]]:
        """All rows of all tables that a refusal must leave alone."""
        tables = ("orders", "order_item", "outcome", "waiting", "entry", "wallet", "lot", "event")
        rows = {}
        for table in tables:
            # What came into stock or went out of it the worker announces by itself, at any time.
            but = "WHERE type <> 'product.updated'" if table == "event" else ""
            found = await self.pool.fetch(f"SELECT * FROM {table} {but} ORDER BY 1, 2")  # noqa: S608 - Constants.
            rows[table] = [tuple(row) for row in found]
        return rows


async def paid_in(tx: Tx, company_id: int, state: State, money: Money, reference: str | None = None) -> None:
    """Add money, with the row of the trail that it needs and without the event that some tests count."""
    reference = reference or secrets.token_hex(8)
    assert await wallets.top_up(tx, company_id, state, money, reference)
    detail = {"amount": str(money), "reference": reference}
    await trail.record(
        tx, SYSTEM, "wallet.top-up", f"company {company_id}", detail, company_id=company_id, state=state
    )


async def corrected(tx: Tx, company_name: str, money: Money, reference: str) -> None:
    """Move a live wallet by hand, as two people of the operator do together."""
    company = await company_store.find_company(tx, company_name)
    people = [
        await user_store.add_user(tx, UserDraft(f"{secrets.token_hex(4)}@shop.example", None, "finance"), "x")
        for _ in range(2)
    ]
    await a_day_later(tx)
    one, other = [Actor(ActorKind.OPERATOR, person.email, person.id) for person in people]
    proposed = await wallet_deeds.propose(
        tx, one, ApprovalKind.CORRECTION, company, State.LIVE, money, reference
    )
    await wallet_deeds.approve(tx, other, proposed.id)


def _fair_cost(product: ProductVersion) -> str:
    """What codes cost unless a test says so: nothing is sold at a loss (OP-73)."""
    dear = (product.price_minor or product.face_minor or 0) >= 900
    return "9.00 EUR" if dear and (product.price_currency or product.face_currency) == "EUR" else "0.00 EUR"


@asynccontextmanager
async def open_shop(
    pool: Pool, database_url: str, folder: Path, *, with_worker: bool = True, **settings: Any
) -> AsyncIterator[Shop]:
    """A running shop; `settings` are flags such as confirm_wait_s."""
    # Lines that a thread writes between two tests would reach the terminal.
    quick = {
        "confirm_wait_s": 1.0,
        "strangers_per_minute_max": 1_000_000,
        "access_log": "off",
        # A backend that has just begun knows nothing of the tables, and few tests give ten of them something to do.
        "pool_size": 4,
        **PATIENT,
    }
    chosen = Settings.load({"data": folder, **quick, **settings}, {})
    master = load_or_create_master(chosen.master_key_file, create=True)
    async with (
        running(chosen, await service_url(database_url), with_worker=with_worker) as app,
        httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app), base_url="http://shop", timeout=HANG_S
        ) as client,
    ):
        yield Shop(pool, client, chosen, master, app)
