"""A key that ends, or loses a right, while its call waits: what is answered is judged by what it may do then."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.patience import HANG_S
from tests.shop import Company, Shop, open_shop
from voucherd.actors import SYSTEM
from voucherd.api import app
from voucherd.api.app import JUDGED_S_MAX, Api
from voucherd.api.routes import ROUTES, Route
from voucherd.db import Pool, transaction
from voucherd.http import Response
from voucherd.ids import State
from voucherd.keys import authenticator, deeds
from voucherd.keys.callers import Unauthorized
from voucherd.keys.key_text import SCOPES_DEFAULT, KeyWish, Scope, key_hash

ALL = frozenset(Scope)
SECRET = b"a code that nobody may see any more"
LOSSES = ("revoked", "expired", "stripped")


@pytest.fixture
async def patient_shop(pool: Pool, database_url: str, tmp_path: Path) -> AsyncIterator[Shop]:
    """A shop without a worker in which a Confirm waits until the test is done with it."""
    async with open_shop(
        pool, database_url, tmp_path, with_worker=False, confirm_wait_s=2 * HANG_S
    ) as opened:
        yield opened


async def lose(shop: Shop, company: Company, how: str) -> None:
    """End the company's live key, or take its right to codes; and let the process hear of it."""
    found = key_hash(company.keys[State.LIVE])
    number = await shop.pool.fetchval("SELECT id FROM api_key WHERE hash = $1", found)
    async with transaction(shop.pool) as tx:
        if how == "revoked":
            await deeds.revoke(tx, SYSTEM, number)
        elif how == "expired":
            await deeds.rotate(tx, SYSTEM, number, timedelta())
        else:
            await deeds.change(tx, SYSTEM, number, KeyWish(scopes=SCOPES_DEFAULT - {Scope.CODES_READ}))
    await shop.hear()


def calls(shop: Shop, company: Company, trx: str) -> dict[str, Any]:
    """The calls that wait for an order."""
    path = "/api/1.03/order"
    return {
        "confirm": lambda: shop.call("PATCH", f"{path}/confirm/{trx}", company),
        "confirm once": lambda: shop.call(
            "PATCH", f"{path}/confirm/{trx}", company, headers={"idempotency-key": "k"}
        ),
        "resolve": lambda: shop.call("PATCH", f"{path}/resolve/{trx}", company),
        "find": lambda: shop.call("GET", f"{path}/{trx}?wait=60", company),
    }


@pytest.mark.parametrize("how", LOSSES)
@pytest.mark.parametrize("waiting", ["confirm", "confirm once", "resolve", "find"])
async def test_a_call_that_waits_shows_no_code_to_a_key_that_may_not_see_it_any_more(
    patient_shop: Shop, waiting: str, how: str
) -> None:
    """OP-29, OP-100: a change of a key holds within a second, also for calls that are under way."""
    shop, company = patient_shop, await patient_shop.company()
    await shop.product("later", async_delivery=True)
    trx = (await shop.create(company, ("later", 1)))["trx"]
    if waiting == "find":
        confirming = asyncio.create_task(shop.confirm(company, trx))
        await shop.time_is_up(trx)
        await confirming
    call = asyncio.create_task(calls(shop, company, trx)[waiting]())
    await shop.waits(trx)
    await lose(shop, company, how)
    await asyncio.sleep(JUDGED_S_MAX)
    [(code, _)] = await shop.stock("later", 1)
    await shop.worker.run_once("deliver")

    answer = await call

    assert code not in answer.text
    if how == "stripped":
        assert (answer.status_code, answer.json()["orderStatus"]) == (200, "finished")
        assert answer.json()["items"][0]["orderLines"][0]["voucherCode"] is None
    else:
        assert (answer.status_code, answer.text) == (401, "unauthorized")
    await shop.assert_books_balance()


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
async def test_no_route_answers_a_key_that_ended_meanwhile(
    quiet_shop: Shop, route: Route, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-100: every route of the table, in one piece and piece by piece, so that a new one can't be forgotten."""
    shop = quiet_shop
    monkeypatch.setattr(app, "JUDGED_S_MAX", 0.0)
    path = f"/api/{route.versions[0]}/" + re.sub(r"\{\w+\}", "x", route.path)
    ending: list[Company] = []

    async def whole(_api: Api, _route: Route, _call: object) -> Response:
        await lose(shop, ending[-1], "revoked")
        return Response(200, SECRET)

    async def parts() -> AsyncIterator[bytes]:
        yield b"before"
        await lose(shop, ending[-1], "revoked")
        yield SECRET

    async def streamed(_api: Api, _route: Route, _call: object) -> Response:
        return Response(200, parts())

    ending.append(await shop.company(scopes=ALL))
    monkeypatch.setattr(Api, "_respond", whole)
    answer = await shop.call(route.method, path, ending[-1])
    assert (answer.status_code, SECRET in answer.content) == (401, False)

    ending.append(await shop.company(scopes=ALL))
    monkeypatch.setattr(Api, "_respond", streamed)
    # The head is out by then: all that is left is to break off, which this client raises.
    with pytest.raises(Unauthorized):
        await shop.call(route.method, path, ending[-1])


def test_a_key_is_judged_again_soon_enough() -> None:
    """OP-29: what a process knows of a key is at most a second old, and asked for four times in that second."""
    assert JUDGED_S_MAX <= authenticator.POLL_S < authenticator.TRUST_S <= 1
