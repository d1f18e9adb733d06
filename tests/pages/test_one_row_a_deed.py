"""Every deed leaves one row in the trail, the same one whichever way it is done: on a page, by a command, by a key."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.terminal import Terminal
from tests.pages.people import Someone, someone
from tests.purchasing.conftest import Market
from tests.purchasing.fake import unclear
from tests.shop import Shop, open_shop
from voucherd.actors import ActorKind
from voucherd.db import Pool
from voucherd.ids import line_number

PRODUCT = {
    "name": "Gift",
    "brand": "Testbrand",
    "product_type": "giftcard",
    "category": "gifts",
    "redeem_type": "currency",
    "region": "ww",
    "vat_category": "multi_purpose",
    "face_value": "10.00 EUR",
    "price": "9.50 EUR",
    "active": "yes",
}
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (8).to_bytes(4) + (8).to_bytes(4) + b"\x08\x02\0\0\0"
WHO = ("--by", "Ada", "--note", "asked them")


class Trail:
    """Does deeds in one way or another, and reads what the trail says of each."""

    def __init__(self, shop: Shop, terminal: Terminal, tmp_path: Path) -> None:
        self.shop = shop
        self.terminal = terminal
        self.folder = tmp_path
        self._seen = 0

    def file(self, name: str, text: str) -> str:
        """The path of a file that says this."""
        (self.folder / name).write_text(text)
        return str(self.folder / name)

    async def skip(self) -> None:
        """Forget what was done so far."""
        self._seen = await self.shop.pool.fetchval("SELECT coalesce(max(id), 0) FROM trail")

    async def one(self, kind: ActorKind, action: str, subject: str) -> dict[str, Any]:
        """The detail of the only row since the last look; it must say this."""
        rows = await self.shop.pool.fetch(
            "SELECT id, actor_kind, action, subject, detail::text FROM trail WHERE id > $1 ORDER BY id",
            self._seen,
        )
        assert [tuple(row)[1:4] for row in rows] == [(kind, action, subject)]
        self._seen = rows[0]["id"]
        detail: dict[str, Any] = json.loads(rows[0]["detail"] or "{}")
        return detail

    async def command(self, action: str, subject: str, *words: str, stdin: str = "") -> dict[str, Any]:
        """Run a command that must succeed; what the trail says of it."""
        await self.skip()
        self.terminal.json(*words, stdin=stdin)
        return await self.one(ActorKind.COMMAND, action, subject)

    async def page(
        self,
        action: str,
        subject: str,
        sending: Awaitable[httpx.Response],
        kind: ActorKind = ActorKind.OPERATOR,
    ) -> dict[str, Any]:
        """Send a form that must be taken; what the trail says of it."""
        await self.skip()
        answer = await sending
        assert answer.status_code == 303, answer.text
        await self.shop.program.services.jobs.settled()
        return await self.one(kind, action, subject)


@pytest.fixture
async def market(pool: Pool, database_url: str, tmp_path: Path) -> AsyncIterator[Market]:
    """A shop without a worker in which Confirm does not wait."""
    async with open_shop(pool, database_url, tmp_path, with_worker=False, confirm_wait_s=0) as shop:
        opened = Market(shop)
        yield opened
        await opened.dispatcher.stop()


@pytest.fixture
def trail(market: Market, database_url: str, tmp_path: Path) -> Trail:
    """The shop, a terminal with its master key, and a folder."""
    return Trail(market.shop, Terminal(tmp_path, database_url), tmp_path)


async def test_products_and_brands(trail: Trail) -> None:
    """OP-94: the trail says what changed, and nothing else."""
    clerk = await someone(trail.shop, "stock")
    plain = [
        *("--name", "Gift", "--brand", "Testbrand", "--type", "giftcard", "--category", "gifts"),
        *("--redeem-type", "currency", "--region", "ww", "--face-value", "10.00 EUR", "--price", "9.50 EUR"),
    ]
    told = [
        await trail.command("product.add", "product a", "product", "add", "a", *plain),
        await trail.page(
            "product.add", "product b", clerk.post("/console/products/-/new", PRODUCT | {"slug": "b"})
        ),
    ]
    assert told[0] == told[1]
    assert (told[0]["price"], told[0]["face-value"], told[0]["active"]) == ("9.50", "10.00", "yes")
    changed = PRODUCT | {"price": "9.40 EUR"}
    told = [
        await trail.command("product.set", "product a", "product", "set", "a", "--price", "9.40 EUR"),
        await trail.page("product.set", "product b", clerk.post("/console/products/b/edit", changed)),
    ]
    assert told == [{"price": "9.40"}] * 2
    off = await trail.page(
        "product.set", "product b", clerk.post("/console/products/b/active", {"active": "no"})
    )
    assert off == {"active": "no"}
    file = trail.file("prices.csv", "slug,price,price-currency\na,9.30,EUR\n")
    by_command = await trail.command("product.import", "file prices.csv", "product", "import", file)
    content = b"slug,price,price-currency\na,9.20,EUR\n"
    path = await uploaded(trail, clerk, "/console/products/-/files", {}, "prices.csv", content)
    by_page = await trail.page("product.import", "file prices.csv", clerk.post(path))
    assert by_command == by_page == {"added": 0, "changed": 1, "unchanged": 0}
    logo = trail.folder / "logo.png"
    logo.write_bytes(PNG)
    await trail.command("brand.set-logo", "brand testbrand", "brand", "set-logo", "testbrand", str(logo))
    await trail.command("brand.remove-logo", "brand testbrand", "brand", "remove-logo", "testbrand")


async def uploaded(
    trail: Trail, clerk: Someone, path: str, fields: dict[str, str], name: str, content: bytes
) -> str:
    """The address of a file that was uploaded and tried out; nothing is written down for that."""
    await trail.skip()
    answer = await clerk.post(path, fields, files={"file": (name, content)})
    assert answer.status_code == 303, answer.text
    await trail.shop.program.services.jobs.settled()
    assert await trail.shop.pool.fetchval("SELECT count(*) FROM trail WHERE id > $1", trail._seen) == 0
    return answer.headers["location"]


async def test_price_lists(trail: Trail) -> None:
    """OP-94: every change of a list, of what it says and of whose it is."""
    shop = trail.shop
    clerk, admin = await someone(shop, "stock"), await someone(shop, "admin")
    company = await shop.company()
    await shop.product("gift")
    await trail.command("price.list.add", "price list a", "price", "list", "add", "a")
    await trail.page("price.list.add", "price list b", clerk.post("/console/prices", {"name": "b"}))
    number = await shop.pool.fetchval("SELECT id FROM price_list WHERE name = 'b'")
    path = f"/console/prices/{number}"
    told = [
        await trail.command("price.set", "price list a", "price", "set", "a", "gift", "--discount", "2%"),
        await trail.page(
            "price.set", "price list b", clerk.post(f"{path}/entries", {"product": "gift", "discount": "2%"})
        ),
    ]
    assert told == [{"product": "gift", "discount": "2%"}] * 2
    told = [
        await trail.command("price.remove", "price list a", "price", "remove", "a", "gift"),
        await trail.page(
            "price.remove", "price list b", clerk.post(f"{path}/entries/remove", {"product": "gift"})
        ),
    ]
    assert told == [{"product": "gift"}] * 2
    text = "product,discount\ngift,3%\n"
    told = [
        await trail.command(
            "price.import", "price list a", "price", "import", "a", trail.file("p.csv", text)
        ),
        await trail.page(
            "price.import",
            "price list b",
            clerk.post(f"{path}/import", files={"file": ("p.csv", text.encode())}),
        ),
    ]
    assert told == [{"file": "p.csv", "entries": 1}] * 2
    whose, home = f"company {company.name}", f"/console/companies/{company.id}/prices"
    told = [
        await trail.command("price.list.assign", whose, "price", "list", "assign", "a", company.name),
        await trail.page("price.list.assign", whose, admin.post(home, {"list": "b"})),
    ]
    assert told == [{"list": "a"}, {"list": "b"}]
    await trail.page("price.list.unassign", whose, admin.post(home, {"list": ""}))
    await trail.command("price.list.assign", whose, "price", "list", "assign", "a", company.name)
    await trail.command("price.list.unassign", whose, "price", "list", "unassign", company.name)
    await trail.command("price.list.remove", "price list a", "price", "list", "remove", "a")
    await trail.page("price.list.remove", "price list b", clerk.post(f"{path}/remove"))


async def test_rates(trail: Trail) -> None:
    """OP-94: exchange rates, margins and VAT rates."""
    clerk = await someone(trail.shop, "stock")
    told = [
        await trail.command("fx.set", "currency USD", "fx", "set", "USD", "0.9"),
        await trail.page(
            "fx.set", "currency USD", clerk.post("/console/fx", {"currency": "USD", "rate": "0.9"})
        ),
    ]
    assert told[0] == told[1]
    assert told[0]["rate"] == "0.9000"
    bank = "Date, USD, \n13 November 2026, 1.0832, \n"
    told = [
        await trail.command("fx.import", "fx", "fx", "import", trail.file("eurofxref.csv", bank)),
        await trail.page(
            "fx.import",
            "fx",
            clerk.post("/console/fx/import", files={"file": ("eurofxref.csv", bank.encode())}),
        ),
    ]
    assert told == [{"source": "eurofxref.csv", "rates": 1}] * 2
    told = [
        await trail.command("fx.margin.set", "margin EUR USD", "fx", "margin", "set", "EUR", "USD", "1.5%"),
        await trail.page(
            "fx.margin.set",
            "margin EUR USD",
            clerk.post("/console/fx/margin", {"of": "EUR", "to": "USD", "share": "1.5%"}),
        ),
    ]
    assert told == [{"share": "1.5%"}] * 2
    pair = {"of": "EUR", "to": "USD"}
    await trail.page("fx.margin.remove", "margin EUR USD", clerk.post("/console/fx/margin/remove", pair))
    await trail.command("fx.margin.set", "margin EUR USD", "fx", "margin", "set", "EUR", "USD", "1%")
    await trail.command("fx.margin.remove", "margin EUR USD", "fx", "margin", "remove", "EUR", "USD")
    later = {"country": "NL", "from": "2999-01-01"}
    told = [
        await trail.page("vat.set", "country NL", clerk.post("/console/vat", later | {"rate": "22%"})),
        await trail.page("vat.remove", "country NL", clerk.post("/console/vat/remove", later)),
    ]
    assert told == [{"from": "2999-01-01", "rate": "22%"}, {"from": "2999-01-01"}]


async def test_stock(trail: Trail) -> None:
    """OP-94: how many codes came, from whom and at what cost; never a code."""
    clerk = await someone(trail.shop, "stock")
    await trail.shop.product("gift")
    terms = ["--supplier", "Wholesale", "--purchase-price", "9.00 EUR"]
    by_command = await trail.command(
        "stock.import", "product gift", "stock", "import", "gift", trail.file("c.csv", "SECRET-1\n"), *terms
    )
    fields = {"slug": "gift", "supplier": "Wholesale", "purchase": "9.00 EUR", "face": ""}
    path = await uploaded(trail, clerk, "/console/stock/import", fields, "c.csv", b"SECRET-2\n")
    by_page = await trail.page("stock.import", "product gift", clerk.post(path))
    lots = by_command.pop("lots"), by_page.pop("lots")
    assert [len(one) for one in lots] == [1, 1]
    assert by_command == by_page
    assert (by_page["taken"], by_page["purchase"], by_page["face"]) == (1, "9.00 EUR", "10.00 EUR")
    assert "SECRET" not in str(by_page)


async def test_money(trail: Trail) -> None:
    """OP-93, OP-94: money that moves, who proposed and who agreed; and alerts of a low balance."""
    shop = trail.shop
    company = await shop.company()
    ann, ben = await someone(shop, "finance"), await someone(shop, "finance")
    buyer = await someone(shop, "buyer", company)
    booked = await trail.command(
        "wallet.top-up",
        f"company {company.name}",
        *("wallet", "top-up", company.name, "10.00", "EUR", "--state", "live", "--reference", "bank 1"),
    )
    assert booked == {"amount": "10.00 EUR", "reference": "bank 1"}
    form = {"kind": "top-up", "company": str(company.id), "amount": "5.00", "currency": "EUR"}
    for at, (end, who) in enumerate((("approve", ben), ("reject", ben), ("withdraw", ann)), 1):
        proposed = await trail.page(
            "money.propose", f"payment {at}", ann.post("/console/money", form | {"reference": f"bank 1{at}"})
        )
        ended = await trail.page(f"money.{end}", f"payment {at}", who.post(f"/console/money/{at}/{end}"))
        assert proposed == ended == {"kind": "top-up", "amount": "5.00 EUR", "reference": f"bank 1{at}"}
    told = [
        await trail.command(
            "alert.set", "balance in EUR", "wallet", "alert", company.name, "EUR", "--below", "7.00"
        ),
        await trail.page(
            "alert.set",
            "balance in EUR",
            buyer.post("/portal/alerts", {"currency": "EUR", "below": "7.00"}),
            ActorKind.PERSON,
        ),
    ]
    assert told == [{"below": "7.00 EUR"}] * 2
    off = {"currency": "EUR", "below": ""}
    await trail.page("alert.remove", "balance in EUR", buyer.post("/portal/alerts", off), ActorKind.PERSON)
    await trail.command("alert.set", "balance in EUR", "wallet", "alert", company.name, "EUR", "--below", "1")
    await trail.command("alert.remove", "balance in EUR", "wallet", "alert", company.name, "EUR", "--off")
    # What the company had from the start was paid in by the program itself, in both states.
    rows = await shop.pool.fetch(
        "SELECT DISTINCT company_id, state FROM trail WHERE NOT (actor_kind = 4 AND action = 'wallet.top-up')"
    )
    assert [tuple(row) for row in rows] == [(company.id, 0)]


async def test_suppliers(trail: Trail) -> None:
    """OP-94: what is bought where, and how; of a key only that it is new."""
    shop = trail.shop
    clerk = await someone(shop, "stock")
    await shop.product("gift")
    words = ("--kind", "voucherd", "--url", "https://one.example/api", "--currency", "EUR", "--key", "-")
    added = await trail.command(
        "supplier.add", "supplier one", "supplier", "add", "one", *words, stdin="vk_live_secret1\n"
    )
    assert (added["kind"], added["key"], added["timeout_s"]) == ("voucherd", True, 20)
    told = [
        await trail.command("supplier.set", "supplier one", "supplier", "set", "one", "--inactive"),
        await trail.page(
            "supplier.set", "supplier one", clerk.post("/console/suppliers/one/active", {"active": "no"})
        ),
    ]
    assert told == [{"active": False}] * 2
    rekeyed = await trail.command(
        "supplier.set", "supplier one", "supplier", "set", "one", "--key", "-", stdin="vk_live_secret2\n"
    )
    assert rekeyed == {"key": "new"}
    offered = await trail.command("supplier.offer", "supplier one", "supplier", "offer", "one", "gift")
    assert offered == {"product": "gift", "sku": "gift"}
    ended = await trail.command("supplier.withdraw", "supplier one", "supplier", "withdraw", "one", "gift")
    assert ended == {"product": "gift", "offers": 1}
    await shop.pool.execute("UPDATE supplier_health SET failures = 3")
    closing = clerk.post("/console/suppliers/one/breaker")
    await trail.page("supplier.close_breaker", "supplier one", closing)
    said = await shop.pool.fetch("SELECT detail::text FROM trail")
    assert not any("secret" in (row[0] or "") for row in said)


async def test_purchases_by_hand(trail: Trail, market: Market) -> None:
    """OP-44, OP-94: who settled what and why, asked again, or read codes that can't be sold."""
    shop = trail.shop
    clerk = await someone(shop, "support")
    await shop.product("gift", price="9.50 EUR")
    await shop.product("else")
    await shop.stock_codes("else", [("KNOWN-CODE-0001", "")])
    company = await shop.company(balance="100.00 EUR")
    fake = await market.supplier("blind", "gift", price="8.00 EUR", looks_up=False)

    async def unknown() -> str:
        order = await shop.create(company, ("gift", 1))
        fake.deeds.append(unclear)
        await shop.confirm(company, order["trx"])
        await market.round()
        found = await shop.pool.fetchval("SELECT id FROM attempt WHERE status = 2 LIMIT 1")
        await shop.pool.execute("UPDATE attempt SET settles_at = now()")
        return str(found)

    first = await unknown()
    file = trail.file("sold.csv", "SECRET-1\nKNOWN-CODE-0001\n")
    by_command = await trail.command(
        "attempt.settle", f"attempt {first}", "attempt", "settle", first[:8], *WHO, "--codes", file
    )
    seen = await trail.command(
        "attempt.quarantine", f"attempt {first}", "attempt", "quarantine", first, *WHO, "--reveal"
    )
    assert seen == {"by": "Ada", "note": "asked them", "codes": 1}
    second = await unknown()
    fields = {"codes": "SECRET-2\nKNOWN-CODE-0001", "bought_note": "asked them"}
    by_page = await trail.page(
        "attempt.settle", f"attempt {second}", clerk.post(f"/console/purchases/{second}/bought", fields)
    )
    assert (by_command.pop("by"), by_page.pop("by")) == ("Ada", clerk.email)
    assert by_command == by_page
    assert (by_page["note"], by_page["to"], by_page["codes"]) == ("asked them", "bought", 1)
    third = await unknown()
    # The fake stands in for a supplier of another kind: its row says whether it can be asked.
    await shop.pool.execute(
        "UPDATE supplier SET kind = 'voucherd', config = $1::text::jsonb",
        '{"url": "https://one.example", "currency": "EUR"}',
    )
    await trail.command("attempt.retry", f"attempt {third}", "attempt", "retry", third, *WHO)
    await shop.pool.execute("UPDATE attempt SET status = 2, ask_at = NULL WHERE status = 1")
    await trail.page("attempt.retry", f"attempt {third}", clerk.post(f"/console/purchases/{third}/ask"))
    said = await shop.pool.fetch("SELECT detail::text FROM trail")
    assert not any("SECRET" in (row[0] or "") or "KNOWN" in (row[0] or "") for row in said)


async def test_orders(trail: Trail) -> None:
    """OP-94: people confirm, cancel, protect and take back; the row is there if the deed is, and only then."""
    shop = trail.shop
    clerk, company = await someone(shop, "support"), await shop.company(balance="100.00 EUR")
    buyer = await someone(shop, "buyer", company)
    await shop.product("gift", async_delivery=True)
    await shop.stock("gift", 1)
    trx = [(await shop.create(company, ("gift", amount)))["trx"] for amount in (1, 2, 2, 2, 100)]
    path, person = f"/portal/orders/{trx[0]}", ActorKind.PERSON
    await trail.page("order.confirm", f"order {trx[0]}", buyer.post(f"{path}/confirm"), person)
    told = [
        await trail.page(
            "order.protect", f"order {trx[0]}", buyer.post(f"{path}/links", {"pin": "1234"}), person
        )
    ]
    called = await shop.call("PATCH", f"/api/1.03/order/{trx[0]}/redemption", company, json={"pin": "4321"})
    assert called.status_code == 200, called.text
    told.append(await trail.one(ActorKind.KEY, "order.protect", f"order {trx[0]}"))
    assert told == [{"pin": True}] * 2
    for one in trx[1:4]:
        await shop.confirm(company, one)
    await trail.command("order.cancel", f"order {trx[1]}", "order", "cancel", trx[1])
    await trail.page("order.cancel", f"order {trx[2]}", clerk.post(f"/console/orders/{trx[2]}/cancel"))
    await trail.page("order.cancel", f"order {trx[3]}", buyer.post(f"/portal/orders/{trx[3]}/cancel"), person)
    await trail.command("order.show", f"order {trx[0]}", "order", "show", trx[0], "--reveal")
    line = line_number(shop.ids.order_number(shop.ids.order_id(trx[0]) or 0), 0)
    returned = await trail.command("order.return", f"order {trx[0]}", "order", "return", str(line))
    assert returned == {"line": 1}
    await trail.skip()
    refused = await buyer.post(f"/portal/orders/{trx[4]}/confirm", follow=True)
    assert "Nothing was charged" in refused.text
    assert await shop.pool.fetchval("SELECT count(*) FROM trail WHERE id > $1", trail._seen) == 0
    await shop.assert_books_balance()
