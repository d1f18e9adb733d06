"""Suppliers in the console: added, tested before and after, changed, and what they sell; without a command."""

from __future__ import annotations

import asyncio
import csv
import io
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.pages.people import Someone, someone
from tests.shop import Shop, open_shop
from tests.suppliers import plain_http
from voucherd.db import Pool
from voucherd.ids import State
from voucherd.suppliers import store as supplier_store
from voucherd.suppliers.store import OfferRow, SupplierRow

DESCRIPTION = (Path(__file__).parents[1] / "suppliers" / "wholesale.toml").read_text()
KEY = "wholesale-secret-77aa"


@pytest.fixture
async def shop(pool: Pool, database_url: str, tmp_path: Path) -> AsyncIterator[Shop]:
    """A shop whose operator allows the network that its supplier is in."""
    async with open_shop(pool, database_url, tmp_path, webhook_networks="127.0.0.0/8") as opened:
        yield opened


@asynccontextmanager
async def wholesaler(seen: list[str]) -> AsyncIterator[str]:
    """The address of a supplier that knows no purchase, and sells one product; it notes who calls."""

    async def answer(_method: str, path: str, headers: dict[str, str], _body: bytes) -> plain_http.Response:
        seen.append(headers.get("authorization", ""))
        if path.startswith("/products/"):
            return plain_http.Response(200, {"price": {"amount": "9.00", "currency": "EUR"}, "stock": 7})
        return plain_http.Response(404, {"error": {"code": "UNKNOWN_REFERENCE"}})

    server = await asyncio.start_server(partial(plain_http.serve, answer), "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def row_of(shop: Shop, name: str) -> SupplierRow:
    """The supplier as it is stored."""
    async with shop.pool.acquire() as conn:
        return await supplier_store.supplier(conn, name)


async def offers_of(shop: Shop, name: str) -> list[OfferRow]:
    """What it sells."""
    async with shop.pool.acquire() as conn:
        return await supplier_store.offers(conn, (await supplier_store.supplier(conn, name)).id)


def sealed_in(text: str) -> str:
    """The sealed key that a form brings back."""
    found = re.search(r'name="sealed_key" value="([0-9a-f]+)"', text)
    assert found is not None
    return found[1]


async def test_a_supplier_is_described_tested_and_added(shop: Shop) -> None:
    """OP-158: the test stores nothing, the key comes back sealed and for this person alone, no page shows it."""
    clerk, other = await someone(shop, "stock"), await someone(shop, "admin")
    assert "HTTP API" in (await clerk.get("/console/suppliers/-/new")).text
    assert 'name="description"' in (await clerk.get("/console/suppliers/-/new?kind=http")).text
    seen: list[str] = []
    async with wholesaler(seen) as url:
        form = {"kind": "http", "name": "whole", "state": "live", "url": url, "description": DESCRIPTION}
        form |= {"on_unknown": "wait"}
        tried = await clerk.post("/console/suppliers/-/new", form | {"key": KEY, "test": "yes"})
        assert tried.status_code == 200
        assert "not found, as it should be" in tried.text
        assert KEY not in tried.text
        assert seen == [f"Bearer {KEY}"]
        assert await shop.pool.fetchval("SELECT count(*) FROM supplier") == 0
        form["sealed_key"] = sealed_in(tried.text)
        stolen = await other.post("/console/suppliers/-/new", form)
        assert "Write the key again" in stolen.text
        page = await clerk.post("/console/suppliers/-/new", form, follow=True)
        assert "Stored, sealed" in page.text
        assert KEY not in page.text
        assert "base_url" not in page.text
        row = await row_of(shop, "whole")
        assert row.spec(shop.sealer).secret == KEY
        assert row.config["base_url"] == url
        assert "OK" in (await clerk.get("/console/suppliers/whole/test?run=yes")).text
    twice = await clerk.post("/console/suppliers/-/new", form)
    assert re.search(r'id="p-name">There is a supplier', twice.text)
    [detail] = await shop.pool.fetch("SELECT action, detail::text FROM trail WHERE action LIKE 'supplier.%'")
    assert detail["action"] == "supplier.add"
    assert KEY not in detail["detail"]


async def test_what_is_wrong_with_a_supplier_stands_beside_its_field(shop: Shop) -> None:
    """OP-158: a description's mistake names its key; nothing is stored."""
    clerk = await someone(shop, "stock")
    good = {"kind": "http", "name": "whole", "state": "live", "on_unknown": "wait", "key": KEY}
    good |= {"url": "https://api.example.com", "description": DESCRIPTION}
    for changed, field, said in (
        ({"name": "Whole sale"}, "name", "lower-case"),
        ({"state": "both"}, "state", "Choose one"),
        ({"on_unknown": ""}, "on_unknown", "Choose one"),
        ({"url": "ftp://x"}, "url", "https"),
        ({"description": "", "url": ""}, "description", "Paste it"),
        ({"description": "= no"}, "description", "not TOML"),
        (
            {"description": DESCRIPTION.replace('path = "/orders"', 'path = "orders"')},
            "description",
            "buy.path",
        ),
        ({"key": ""}, "key", "required"),
        ({"key": "with\u00e9"}, "key", "ASCII"),
        ({"sealed_key": "00ff", "key": ""}, "key", "Write the key again"),
        ({"currency": "XXX9"}, "currency", "ISO 4217"),
    ):
        answer = await clerk.post("/console/suppliers/-/new", good | changed)
        assert answer.status_code == 422, changed
        assert re.search(rf'id="p-{field}">[^<]*{said}', answer.text), (changed, answer.text)
    assert await shop.pool.fetchval("SELECT count(*) FROM supplier") == 0
    assert (await clerk.post("/console/suppliers/-/new", {"kind": "pigeon"})).status_code == 303
    live = {"kind": "sandbox", "name": "play", "state": "live", "on_unknown": "wait", "outcome": "finished"}
    assert re.search(
        r'id="p-state">Choose sandbox', (await clerk.post("/console/suppliers/-/new", live)).text
    )
    finance = await someone(shop, "finance")
    assert (await finance.get("/console/suppliers/-/new")).status_code == 403


async def made(shop: Shop, clerk: Someone) -> None:
    """A test supplier of the sandbox, by the form."""
    form = {"kind": "sandbox", "name": "play", "state": "sandbox", "on_unknown": "wait"}
    form |= {"outcome": "finished", "price": "9.50", "currency": "EUR"}
    answer = await clerk.post("/console/suppliers/-/new", form)
    assert answer.status_code == 303, answer.text
    assert (await row_of(shop, "play")).config["price"] == "9.50"


async def test_a_suppliers_connection_is_changed_and_its_key_stays(shop: Shop) -> None:
    """OP-158: an empty key keeps the stored one, a description is replaced as a whole and never shown."""
    clerk = await someone(shop, "stock")
    form = {"kind": "http", "name": "whole", "state": "live", "on_unknown": "wait", "key": KEY}
    secret = DESCRIPTION.replace("[auth]", '[headers]\nX-Old = "hidden-in-headers"\n[auth]')
    form |= {"url": "https://api.example.com", "description": secret}
    assert (await clerk.post("/console/suppliers/-/new", form)).status_code == 303
    path = "/console/suppliers/whole/connection"
    page = (await clerk.get(path)).text
    assert "https://api.example.com" in page
    assert "hidden-in-headers" not in page
    assert KEY not in page
    changed = {"url": "https://other.example.com", "on_unknown": "rebuy"}
    assert (await clerk.post(path, changed)).status_code == 303
    row = await row_of(shop, "whole")
    assert row.config["base_url"] == "https://other.example.com"
    assert row.config["headers"] == {"X-Old": "hidden-in-headers"}
    assert (row.on_unknown, row.spec(shop.sealer).secret) == ("rebuy", KEY)
    assert (
        await clerk.post(path, changed | {"description": DESCRIPTION, "key": "new-key"})
    ).status_code == 303
    row = await row_of(shop, "whole")
    assert "headers" not in row.config
    assert row.spec(shop.sealer).secret == "new-key"
    wrong = await clerk.post(path, changed | {"url": "nowhere"})
    assert re.search(r'id="p-url">[^<]+', wrong.text)
    assert (await clerk.get("/console/suppliers/nobody/connection")).status_code == 404


async def test_products_of_a_supplier_are_added_named_and_removed(shop: Shop) -> None:
    """OP-158: picked by name, one face value of a variable product too; what is wrong stands beside its field."""
    clerk = await someone(shop, "stock")
    await made(shop, clerk)
    await shop.product("gift-10", name="Gift card 10")
    await shop.product(
        "gift-any", name="Gift card any", face=None, face_range="5-500 EUR", price=None, fee="1.02"
    )
    path = "/console/suppliers/play/offers"
    assert '<option value="gift-10">Gift card 10 (gift-10)</option>' in (await clerk.get(f"{path}/new")).text
    for fields, field in (
        ({"product": ""}, "product"),
        ({"product": "gift card"}, "product"),
        ({"product": "no such thing"}, "product"),
        ({"product": "gift-any", "face": "9999"}, "face"),
        ({"product": "gift-any", "face": "much"}, "face"),
        ({"product": "gift-10", "sku": "x" * 201}, "sku"),
    ):
        answer = await clerk.post(path, fields)
        assert answer.status_code == 422, fields
        assert re.search(rf'id="p-{field}">[^<]+', answer.text), fields
    assert (await clerk.post(path, {"product": "Gift card 10", "sku": "A-10"})).status_code == 303
    assert (await clerk.post(path, {"product": "Gift card any (gift-any)", "face": "25"})).status_code == 303
    overlap = await clerk.post(path, {"product": "gift-any"})
    assert re.search(r'id="p-face">[^<]*already', overlap.text)
    assert [(one.slug, one.sku, one.face_minor) for one in await offers_of(shop, "play")] == [
        ("gift-10", "A-10", 1_000),
        ("gift-any", "gift-any", 2_500),
    ]
    edit = await clerk.get(f"{path}/edit?product=gift-any&face=2500")
    assert 'value="gift-any"' in edit.text
    fields = {"product": "gift-any", "face": "25.00 EUR", "edited": "2500", "sku": "ANY-25"}
    assert (await clerk.post(path, fields)).status_code == 303
    too_long = await clerk.post(path, fields | {"sku": "x" * 201})
    assert re.search(r'id="p-sku">[^<]+', too_long.text)
    file = await clerk.get(f"{path}/file?q=ANY-25&format=csv")
    assert [row["sku"] for row in csv.DictReader(io.StringIO(file.text))] == ["ANY-25"]
    removed = await clerk.post(f"{path}/remove", {"product": "gift-any", "face": "2500"}, follow=True)
    assert "not bought at play any more" in removed.text
    assert "ANY-25" not in (await clerk.get(path)).text
    assert "ANY-25" in (await clerk.get(f"{path}?status=removed")).text
    assert (await clerk.post(f"{path}/remove", {"product": "gift-any", "face": "2500"})).status_code == 404
    actions = await shop.pool.fetch("SELECT action FROM trail WHERE action LIKE 'supplier.%' ORDER BY id")
    assert [one[0] for one in actions] == [
        "supplier.add",
        "supplier.offer",
        "supplier.offer",
        "supplier.offer",
        "supplier.withdraw",
    ]


async def test_a_supplier_that_fails_every_call_is_not_good(shop: Shop) -> None:
    """OP-157: the list says so, finds it by its failures, and exports the same."""
    clerk = await someone(shop, "stock")
    await made(shop, clerk)
    await shop.product("gift-10")
    assert (await clerk.post("/console/suppliers/play/offers", {"product": "gift-10"})).status_code == 303
    await shop.pool.execute(
        """
        WITH q AS (
            INSERT INTO quote (id, supplier_id, state, product_id, face_minor, price_minor, currency, fx_e8)
            SELECT 3, supplier_id, state, product_id, face_minor, 900, 'EUR', 100000000 FROM offer RETURNING *)
        INSERT INTO attempt (supplier_id, state, product_id, face_minor, sku, quote_id, price_minor, price_max_minor,
                             count, urgent, status, worker, lease_until, settles_at, ended_at, placed_at)
        SELECT supplier_id, state, product_id, face_minor, 'x', id, 900, 900, 1, false, 4, 'w', now(), now(), now(),
               now() - interval '10 minutes' FROM q, generate_series(1, 12)
        """
    )

    clerk.look_at(State.SANDBOX)
    page = (await clerk.get("/console/suppliers?status=failing&sort=-failed")).text
    assert "Failing: 12 of 12 calls in the last hour" in page
    assert "Failing: 12 of 12" in (await clerk.get("/console/suppliers/play")).text
    assert "No supplier found" in (await clerk.get("/console/suppliers?status=paused")).text
    file = await clerk.get("/console/suppliers/-/file?status=failing&format=csv")
    assert [row["supplier"] for row in csv.DictReader(io.StringIO(file.text))] == ["play"]


async def test_nobody_sends_the_server_to_an_address_inside(
    pool: Pool, database_url: str, tmp_path: Path
) -> None:
    """OP-158: people name public addresses only, before a test as well as when saving; commands name any."""
    async with open_shop(pool, database_url, tmp_path) as strict:
        clerk, seen = await someone(strict, "stock"), list[str]()
        async with wholesaler(seen) as url:
            form = {"kind": "http", "name": "inside", "state": "live", "description": DESCRIPTION}
            form |= {"on_unknown": "wait", "key": KEY}
            for inside in (
                url,
                "https://10.0.0.1",
                "https://[::1]",
                "https://printer",
                "https://169.254.169.254",
            ):
                for more in ({"test": "yes"}, {}):
                    refused = await clerk.post("/console/suppliers/-/new", form | more | {"url": inside})
                    assert re.search(r'id="p-url">[^<]+', refused.text), (inside, more)
        assert seen == []
        assert await strict.pool.fetchval("SELECT count(*) FROM supplier") == 0
        allowed = await clerk.post("/console/suppliers/-/new", form | {"url": "https://api.example.com"})
        assert allowed.status_code == 303
        changed = {"url": "https://192.168.0.1", "on_unknown": "wait"}
        refused = await clerk.post("/console/suppliers/inside/connection", changed)
        assert re.search(r'id="p-url">[^<]+', refused.text)
        assert (await row_of(strict, "inside")).config["base_url"] == "https://api.example.com"
