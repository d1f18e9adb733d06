"""Clients that generators make of the OpenAPI document: they compile as they are, and they sell."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.integrators.node import OPTIONS, TOOLS, compiled, modules, require_node, run
from tests.patience import HANG_S
from tests.shop import Shop
from tests.suppliers.stalls import listening
from voucherd.api.openapi import document
from voucherd.ids import State

HERE = Path(__file__).parent


def put_document(folder: Path) -> Path:
    """The document as a file."""
    file = folder / "openapi.json"
    file.write_bytes(msgspec.json.encode(document("http://127.0.0.1", 262_144)))
    return file


async def test_a_client_made_by_openapi_typescript_sells(shop: Shop, tmp_path: Path) -> None:
    """OP-149: create, confirm, find, list and errors, compiled with every strictness."""
    require_node()
    company = await shop.company()
    await shop.product("gift-10", stock=2)
    modules(tmp_path, "openapi-fetch", "openapi-typescript-helpers")
    shutil.copy(HERE / "generated.ts", tmp_path)
    maker = TOOLS / "openapi-typescript" / "bin" / "cli.js"
    await run(maker, put_document(tmp_path), "-o", "voucherd.ts", folder=tmp_path)
    await compiled(*OPTIONS, "--outDir", "built", "generated.ts", "voucherd.ts", folder=tmp_path)
    async with listening(shop) as port:
        url, key = f"http://127.0.0.1:{port}", company.keys[State.LIVE]
        said = await run("built/generated.js", folder=tmp_path, VOUCHERD_URL=url, VOUCHERD_KEY=key)
    assert said == "sold 2\n"
    await shop.assert_books_balance()


GENERATOR = Path(sys.prefix) / "generator" / "bin" / "openapi-python-client"


def make_python_client(folder: Path) -> None:
    """A client of the whole document; the generator has nothing to complain about."""
    if not GENERATOR.exists():
        why = "the generator of Python clients is missing (`make test` installs it): it was NOT tried"
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(why)
        pytest.skip(why)
    (folder / "config.json").write_text('{"post_hooks": []}', encoding="utf-8")
    words = ["generate", "--path", str(put_document(folder)), "--output-path", str(folder / "made_client")]
    done = subprocess.run(
        [
            str(GENERATOR),
            *words,
            "--meta",
            "none",
            "--config",
            str(folder / "config.json"),
            "--fail-on-warning",
        ],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


async def test_a_client_made_by_openapi_python_client_sells(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-149: create, confirm, find, list and errors."""
    await asyncio.to_thread(make_python_client, tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    api = partial(import_module, package="made_client.api")
    models: Any = import_module("made_client.models")
    company = await shop.company()
    await shop.product("gift-10", stock=2)
    async with (
        listening(shop) as port,
        import_module("made_client").AuthenticatedClient(
            f"http://127.0.0.1:{port}",
            token=company.keys[State.LIVE],
            headers={"Accept": "application/json, application/problem+json"},
        ) as client,
    ):
        cart = [models.CreateItem(product_slug="gift-10", amount=2)]
        body = models.CreateBody(items=cart, payment_currency="EUR")
        created = await api(".ordering.create_order").asyncio(client=client, body=body)
        assert created.order_status is models.ExtendedOrderOrderStatus.CREATED

        paid = await api(".ordering.confirm_order").asyncio(created.trx, client=client)
        lines = [line for item in paid.items for line in item.order_lines]
        assert [type(line) for line in lines] == [models.FinishedLine, models.FinishedLine]
        assert len({line.voucher_code for line in lines}) == 2

        found = await api(".finding.find_order").asyncio(created.trx, client=client)
        assert found.order_status is models.ExtendedOrderOrderStatus.FINISHED
        find_orders = api(".finding.find_orders")
        page = await find_orders.asyncio(client=client, limit=1)
        assert (page.metadata.page, page.data[0].trx) == (1, created.trx)
        walk = await find_orders.asyncio(client=client, cursor="")
        assert [order.trx for order in walk.data] == [created.trx]

        missing = await api(".finding.find_order").asyncio("TRX0", client=client)
        assert (type(missing), missing.code) == (models.Problem, "order_not_found")
        hook = models.WebhookBody(url="https://shop.example.com/hook")
        made = await api(".webhooks.add_webhook").asyncio(client=client, body=hook)
        assert made.disabled_reason is None
    reasons = [name for name in vars(models) if "DisabledReason" in name]
    assert reasons == ["WebhookDisabledReason"]
    await shop.assert_books_balance()
