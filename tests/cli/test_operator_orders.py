"""Orders and the audit on the command line: every company's orders, codes only for who asks."""

from __future__ import annotations

import json

import pytest

from tests.cli.terminal import Terminal, assert_refused
from tests.patience import HANG_S
from tests.shop import paid_in
from voucherd.catalogue import store as catalogue
from voucherd.catalogue.products import ProductDraft
from voucherd.companies import store as company_store
from voucherd.companies.model import CompanyDraft
from voucherd.db import Pool, transaction
from voucherd.ids import Identifiers, State, line_number
from voucherd.money import RATE_ONE, Money
from voucherd.orders.rules.cart import CartLine, Create
from voucherd.orders.rules.decide import Finalise
from voucherd.orders.service import OrderService
from voucherd.settings import Settings
from voucherd.vault.imports import StockTarget, append_codes
from voucherd.vault.master_key import load_or_create_master
from voucherd.vault.seal import Sealer


class Till:
    """Buys as a client of the API would, on the terminal's database and with its master key."""

    def __init__(self, terminal: Terminal, pool: Pool) -> None:
        master = load_or_create_master(terminal.data / "master.key")
        flags = {"confirm_wait_s": 0, "transaction_s_max": HANG_S, "data": str(terminal.data)}
        self._orders = OrderService(pool, Sealer(master), Settings.load(flags, {}))
        self.ids = Identifiers(master)

    async def buy(self, slug: str, amount: int, *, confirm: bool = True) -> str:
        """The trx of a new order."""
        command = Create(1, State.LIVE, 0, (CartLine(slug, amount),), "EUR", "till 7")
        order = (await self._orders.create(command)).order
        if confirm:
            await self._orders.confirm(Finalise(order.id, 1, State.LIVE, resolve=False))
        return self.ids.trx(order.id)


@pytest.fixture
async def till(terminal: Terminal, pool: Pool) -> Till:
    """A till in a shop with three codes of one product, and another that is delivered later."""
    sealer = Sealer(load_or_create_master(terminal.data / "master.key", create=True))
    async with transaction(pool) as tx:
        company = await company_store.add_company(tx, CompanyDraft("Acme", "NL", verified=True))
        await paid_in(tx, company.id, State.LIVE, Money.read("2000 EUR"), "opening")
        gift = await catalogue.add_product(tx, _draft("gift", async_delivery=False))
        await catalogue.add_product(tx, _draft("later", async_delivery=True))
        await append_codes(
            tx,
            sealer,
            target=StockTarget(gift.product_id, 1, 1000),
            supplier="wholesale",
            purchase=Money.read("9 EUR"),
            purchase_fx_e8=RATE_ONE,
            expires=None,
            codes=[("SECRET-1", "S1"), ("SECRET-2", "S2"), ("SECRET-3", "S3")],
        )
    return Till(terminal, pool)


def _draft(slug: str, *, async_delivery: bool) -> ProductDraft:
    return ProductDraft(
        slug=slug,
        name=slug,
        brand="Gifty",
        product_type="giftcard",
        category="gifts",
        redeem_type="currency",
        region="ww",
        face=Money.read("10 EUR"),
        selling=Money.read("9.50 EUR"),
        async_delivery=async_delivery,
    )


async def test_orders_of_every_company_are_listed_newest_first(terminal: Terminal, till: Till) -> None:
    """The command line: `order list`."""
    bought, waiting = await till.buy("gift", 2), await till.buy("later", 1)

    listed = terminal.json("order", "list")
    assert [order["trx"] for order in listed] == [waiting, bought]
    assert listed[1] | {"dateCreated": None} == {
        "trx": bought,
        "company": "Acme",
        "state": "live",
        "orderStatus": "finished",
        "paymentStatus": "paid",
        "paymentCurrency": "EUR",
        "total": 19.00,
        "linesTotal": 2,
        "linesCompleted": 2,
        "linesCancelled": 0,
        "dateCreated": None,
        "reference": "till 7",
    }
    assert [order["trx"] for order in terminal.json("order", "list", "--status", "pending")] == [waiting]
    assert terminal.json("order", "list", "--state", "sandbox") == []
    assert len(terminal.json("order", "list", "--company", "Acme", "--limit", "1")) == 1
    assert bought in terminal.view("order", "list")
    assert_refused(terminal.run("order", "list", "--company", "Nobody"), "there is no company")


async def test_codes_are_shown_only_to_who_asks(terminal: Terminal, till: Till) -> None:
    """The command line: `order show TRX`; no code is printed unless a person asked for it (OP-94)."""
    trx = await till.buy("gift", 2)

    shown = terminal.json("order", "show", trx)
    assert [line["status"] for line in shown["lines"]] == ["finished", "finished"]
    assert all(line["tag"].startswith("TAG-") for line in shown["lines"])
    assert "SECRET" not in str(shown) + terminal.view("order", "show", trx)

    revealed = terminal.json("order", "show", trx, "--reveal")
    assert [line["voucherCode"] for line in revealed["lines"]] == ["SECRET-1", "SECRET-2"]
    assert [line["voucherSerial"] for line in revealed["lines"]] == ["S1", "S2"]
    assert "SECRET-2" in terminal.view("order", "show", trx, "--reveal")
    # Who looked is written down, here and in the trail; who did not ask for codes is not (OP-94).
    seen = terminal.json("trail", "reveals", trx)
    assert [(row["actorKind"], row["via"], row["codes"]) for row in seen] == [("command", "find", 2)] * 2
    assert "command" in terminal.view("trail", "reveals", trx)
    deeds = terminal.json("trail", "list", "--action", "order.show")
    assert [row["subject"] for row in deeds] == [f"order {trx}"] * 2


async def test_a_long_order_is_shown_in_part(terminal: Terminal, till: Till) -> None:
    """The command line: short, no noise; the rest for who asks."""
    trx = await till.buy("later", 120)
    assert "… and 70 more (--lines 120)" in terminal.view("order", "show", trx)
    assert len(terminal.json("order", "show", trx)["lines"]) == 120


async def test_an_operator_cancels_for_a_customer(terminal: Terminal, till: Till) -> None:
    """The command line: `order cancel TRX`; OP-45: what is undelivered is refunded."""
    waiting, unconfirmed = await till.buy("later", 2), await till.buy("gift", 1, confirm=False)
    bought = await till.buy("gift", 1)

    cancelled = terminal.json("order", "cancel", waiting)
    assert (cancelled["orderStatus"], cancelled["paymentStatus"], cancelled["refunded"]) == (
        "cancelled",
        "refunded",
        19,
    )
    assert "deleted" in terminal.view("order", "cancel", unconfirmed)
    written = [row["subject"] for row in terminal.json("trail", "list", "--action", "order.cancel")]
    assert written == [f"order {unconfirmed}", f"order {waiting}"]
    assert_refused(terminal.run("order", "cancel", bought), "is finished and can't be cancelled")
    assert_refused(terminal.run("order", "cancel", "TRXNONSENSE"), "there is no order TRXNONSENSE")
    assert_refused(terminal.run("order", "show", "TRX" + "0" * 26), "there is no order")
    # An order that was never confirmed is gone for the API, and kept for the operator (OP-53).
    assert terminal.json("order", "show", unconfirmed)["orderStatus"] == "deleted"
    assert terminal.json("wallet", "show", "Acme")[0]["balance"] == 1990.50
    kinds = [(line["kind"], line["trx"]) for line in terminal.json("wallet", "statement", "Acme", "EUR")]
    assert ("refund", waiting) in kinds


async def test_an_operator_takes_a_code_back(terminal: Terminal, till: Till) -> None:
    """The command line: `order return LINE`, by a line's id; said twice it is the first time that counts."""
    bought, waiting = await till.buy("gift", 1), await till.buy("later", 1)
    lines = [line_number(till.ids.order_number(till.ids.order_id(trx) or 0), 0) for trx in (bought, waiting)]
    returned = terminal.json("order", "return", str(lines[0]))
    assert (returned["trx"], returned["lineId"]) == (bought, lines[0])
    assert f"The code of line 1 of {bought} was taken back at" in terminal.view(
        "order", "return", str(lines[0])
    )
    assert terminal.json("order", "return", str(lines[0])) == returned
    for other in (lines[0] + 1, lines[1], 7):
        assert_refused(terminal.run("order", "return", str(other)), f"there is no line {other} with a code")


async def test_the_audit_says_that_all_is_well_or_what_is_not(
    terminal: Terminal, till: Till, pool: Pool
) -> None:
    """The command line: `audit` exits 1 with the offending rows if an invariant is broken."""
    await till.buy("gift", 2)
    assert "invariants hold" in terminal.view("audit")
    report = terminal.json("audit")
    assert report["ok"]
    assert "seals" in {check["name"] for check in report["checks"]}

    await pool.execute("ALTER TABLE wallet DISABLE TRIGGER USER; UPDATE wallet SET balance_minor = 1")

    said = terminal.run("audit")
    assert_refused(said, "1 invariant is broken")
    assert "wallet-is-its-entries" in said.out
    told = terminal.run("audit", "--json")
    assert told.code == 1
    [finding] = json.loads(told.out)["findings"]
    assert finding["rows"][0]["balance_minor"] == 1


async def test_the_audit_since_the_last_one_looks_at_what_changed(
    terminal: Terminal, till: Till, pool: Pool
) -> None:
    """OP-117: `audit` alone is the whole one, and writes nothing; `--since-last` goes on from its own last run."""
    await till.buy("gift", 1)
    assert "since" not in terminal.json("audit")
    assert "since" not in terminal.json("audit", "--full")
    first = terminal.json("audit", "--since-last")
    assert (first["ok"], first["since"], first["ordersLookedAt"], first["marked"]) == (True, None, None, True)
    await till.buy("gift", 1)
    assert "for what changed since 20" in terminal.view("audit", "--since-last")
    await till.buy("gift", 1)
    assert terminal.json("audit", "--since-last")["ordersLookedAt"] == 1

    await pool.execute("ALTER TABLE wallet DISABLE TRIGGER USER; UPDATE wallet SET balance_minor = 1")

    for _ in range(2):
        assert_refused(terminal.run("audit", "--since-last"), "1 invariant is broken")
    assert await pool.fetchval("SELECT count(*) FROM trail WHERE action = 'audit.mark'") == 3


async def test_the_audit_works_without_the_master_key_and_without_the_second_lock(
    terminal: Terminal, till: Till, pool: Pool
) -> None:
    """The command line: `audit` opens a sample of codes only where the key is at hand, and says what is missing."""
    await till.buy("gift", 1)
    (terminal.data / "master.key").unlink()
    assert "no code was opened" in terminal.view("audit")
    assert terminal.json("audit")["tenantsLocked"] is True
    await pool.execute("CREATE OR REPLACE FUNCTION tenant_role() RETURNS text STABLE RETURN 'none'")
    assert "voucherd_tenant is missing" in terminal.view("audit")
    assert terminal.json("audit")["tenantsLocked"] is False
