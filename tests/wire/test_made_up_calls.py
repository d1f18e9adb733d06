"""The whole OpenAPI document, called with made-up values: no failure of ours, and every answer as described."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.faults.processes import REAL_SERVER, Server, environment, running
from tests.faults.test_kill import shop_of
from tests.patience import HANG_S
from tests.shop import Company, Shop
from tests.wire.made_up import Caller, Heard
from voucherd.db import Pool
from voucherd.keys.key_text import Scope


async def call_everything(pool: Pool, database_url: str, folder: Path, each: int) -> Heard:
    """So many made-up calls of each operation, at a server with a shop behind it."""
    quick = {"confirm_wait_s": 0.1, "resolve_limit_s": 2 * HANG_S}
    server = Server(REAL_SERVER, environment(database_url, folder, **quick), folder / "server.log")
    async with shop_of(pool, folder) as shop, running(server):
        company = await shop.company(balance="100000.00 EUR", scopes=frozenset(Scope))
        await shop.product("gift-10", stock=500)
        await shop.product("any", face=None, face_range="5.00-50.00 EUR", price=None, fee="1.02")
        async with httpx.AsyncClient(base_url=server.url, headers=company.bearer(), timeout=HANG_S) as client:
            document = (await client.get("/openapi.json")).json()
            names = await _names(client)
        caller = Caller(document, server.url, company.bearer(), names)
        heard = await asyncio.to_thread(caller.call_all, each)
        log = (folder / "server.log").read_text(encoding="utf-8")
        assert "Traceback" not in log, log[-3_000:]
        await _still_sells(shop, server, company)
    return heard


async def _names(client: httpx.AsyncClient) -> dict[str, list[str]]:
    """What there is, by the name of the parameter that it fits."""
    trxs = []
    for last in ("confirm", "resolve", "cancel", None, None):
        trx = await _create(client)
        trxs.append(trx)
        if last is not None:
            await client.patch(f"/api/1.03/order/{last}/{trx}")
    webhooks = [await _made(client, "webhook", {"url": f"https://{n}.example.com/hook"}) for n in ("a", "b")]
    keys = [await _made(client, "key", {"description": n}) for n in ("a", "b")]
    events = (await client.get("/api/1.03/event")).json()["data"]
    names = {"trx": trxs, "slug": ["gift-10", "any", "testbrand"], "currency": ["EUR", "eur"]}
    return names | {"id": [*webhooks, *keys, *[event["id"] for event in events[:3]]]}


async def _made(client: httpx.AsyncClient, what: str, body: dict[str, Any]) -> str:
    answer = await client.post(f"/api/1.03/{what}", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def _create(client: httpx.AsyncClient) -> str:
    body = {"items": [{"productSlug": "gift-10", "amount": 1}], "paymentCurrency": "EUR"}
    return str((await client.post("/api/1.03/order", json=body)).json()["trx"])


async def _still_sells(shop: Shop, server: Server, company: Company) -> None:
    async with httpx.AsyncClient(base_url=server.url, headers=company.bearer(), timeout=HANG_S) as client:
        confirmed = await client.patch(f"/api/1.03/order/confirm/{await _create(client)}")
        assert confirmed.json()["orderStatus"] == "finished"
    await shop.assert_books_balance()


def _told(heard: Heard) -> str:
    return "\n\n".join(f"{name}: {why}" for name, why in heard.failures.items())


async def test_made_up_calls_are_answered_as_the_document_says(
    pool: Pool, database_url: str, tmp_path: Path
) -> None:
    """OP-25, OP-26: a few calls of each operation, as described and not."""
    heard = await call_everything(pool, database_url, tmp_path, 2)

    assert not heard.failures, _told(heard)
    assert {200, 400, 404} <= set(heard.statuses), heard.statuses
    assert heard.statuses[401] < sum(heard.calls.values()) / 10


@pytest.mark.soak
@pytest.mark.timeout(3_600)
async def test_many_made_up_calls_are_answered_as_the_document_says(
    pool: Pool, database_url: str, tmp_path: Path
) -> None:
    """OP-25, OP-26: two hundred calls of each operation."""
    heard = await call_everything(pool, database_url, tmp_path, 200)

    print(f"{sum(heard.calls.values())} calls of {len(heard.calls)} operations: {dict(heard.statuses)}")  # noqa: T201
    assert not heard.failures, _told(heard)
    assert min(heard.calls.values()) >= 200
