"""Contract 8: the limits, as they are when nobody sets them otherwise."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.patience import HANG_S
from tests.shop import Shop, open_shop
from voucherd.api.handlers import SANDBOX_DECLINES
from voucherd.db import Pool
from voucherd.ids import LINES_MAX
from voucherd.orders.model import AMOUNT_MAX, ITEMS_MAX, REFERENCE_CHARS_MAX
from voucherd.settings import Settings


def test_the_limits_are_those_of_the_contract() -> None:
    """Contract 8, OP-09, OP-14, OP-44."""
    settings = Settings()
    assert 20 <= settings.confirm_wait_s <= 30
    assert settings.resolve_limit_s == 30
    assert settings.confirmation_window_s == 24 * 3600
    assert settings.delivery_window_s == 72 * 3600
    assert settings.body_bytes_max == 256 * 1024
    assert SANDBOX_DECLINES == 0.5
    assert (ITEMS_MAX, AMOUNT_MAX, LINES_MAX, REFERENCE_CHARS_MAX) == (100, 10_000, 10_000, 1_000)


async def test_confirm_and_resolve_need_no_body_and_ignore_one(quiet_shop: Shop) -> None:
    """Contract 4: request body none; whatever a client library sends along is not read."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10", stock=9)
    for operation in ("confirm", "resolve", "cancel"):
        for content, kind in (
            (b"", ""),
            (b"{", "application/json"),
            (b"null", "text/plain"),
            (b"a=1", "x/y"),
        ):
            trx = (await shop.create(company, ("gift-10", 1)))["trx"]
            path = f"/api/1.03/order/{operation}/{trx}"
            response = await shop.call(
                "PATCH", path, company, content=content, headers={"content-type": kind}
            )
            assert response.status_code == (204 if operation == "cancel" else 200)
    await shop.assert_books_balance()


async def test_a_call_is_woken_by_what_happens_in_another_process(
    pool: Pool, database_url: str, tmp_path: Path
) -> None:
    """Contract 4: the service that took the call has no worker; another one delivers, and a third cancels."""
    async with (
        open_shop(
            pool,
            database_url,
            tmp_path,
            with_worker=False,
            confirm_wait_s=2 * HANG_S,
            resolve_limit_s=2 * HANG_S,
        ) as one,
        open_shop(pool, database_url, tmp_path, with_worker=False) as two,
    ):
        company = await one.company()
        await one.product("later", async_delivery=True)
        trxs = [(await one.create(company, ("later", 1)))["trx"] for _ in range(3)]
        calls = [
            asyncio.create_task(one.finalise(operation, company, trx))
            for operation, trx in zip(("confirm", "resolve", "confirm"), trxs, strict=True)
        ]
        for trx in trxs:
            await one.waits(trx)

        assert (await two.cancel(company, trxs[2])).status_code == 200
        await one.stock("later", 2)
        await two.worker.run_once("deliver")
        answers = await asyncio.gather(*calls)

        statuses = [answer.json()["orderStatus"] for answer in answers]
        assert statuses == ["finished", "finished", "cancelled"]
        await one.assert_books_balance()
