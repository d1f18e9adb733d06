"""Being over the limit is cheaper for the server than being served."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.patience import HANG_S
from tests.shop import Company, Shop
from voucherd.ids import State
from voucherd.keys import authenticator
from voucherd.keys.key_text import new_key

CALLS = 400


def ask(shop: Shop, path: str, bearer: dict[str, str]) -> Any:
    """One call, as the server makes it of a request that has come in."""
    front = shop.app.service
    headers = [(name.encode(), value.encode()) for name, value in bearer.items()]
    return front.answer(front.request("GET", path, b"", headers, "192.0.2.1"))


def answered_at_once(shop: Shop, path: str, bearer: dict[str, str]) -> int:
    """The status of an answer that waits for nothing: not for the database, nor for another call."""
    call = ask(shop, path, bearer).__await__()
    with pytest.raises(StopIteration) as ended:
        next(call)
    return int(ended.value.value.status)


async def cpu_us(shop: Shop, path: str, bearer: dict[str, str], status: int) -> float:
    """This process's own work for one call, without the client's and the database's."""
    best = float("inf")
    for _ in range(4):
        began = time.process_time()
        for _ in range(CALLS // 4):
            assert (await ask(shop, path, bearer)).status == status
        best = min(best, (time.process_time() - began) / (CALLS // 4))
    return best * 1e6


async def spent(shop: Shop, company: Company, path: str) -> None:
    """Use up what the key has."""
    for _ in range(5):
        await shop.call("GET", path, company)


async def over_the_limit(shop: Shop) -> tuple[str, Company, dict[str, dict[str, str]]]:
    """A path, a company that is served there, and the headers of those who are not."""
    shop.stop_the_minute()
    await shop.product("gift-10", stock=5)
    company, hurried = await shop.company(), await shop.company(rate_limit=3)
    path = f"/api/1.03/order/{(await shop.create(company, ('gift-10', 1)))['trx']}"
    await spent(shop, hurried, path)
    shop.program.authenticator._strangers._a_minute = 1
    wrong = {"authorization": f"Bearer {new_key(State.LIVE).text}"}
    assert (await ask(shop, path, wrong)).status == 401
    return path, company, {"limited": hurried.bearer(), "stranger": wrong}


async def test_a_refusal_waits_for_nothing(quiet_shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """OP-27: over the limit, or without a valid key too often: no database at all, nor a turn in any queue."""
    # A key that was looked up stays known, however slow the machine is.
    monkeypatch.setattr(authenticator, "TRUST_S", 2 * HANG_S)
    path, company, refused = await over_the_limit(quiet_shop)
    assert {answered_at_once(quiet_shop, path, bearer) for bearer in refused.values()} == {429}
    assert (await ask(quiet_shop, path, company.bearer())).status == 200


@pytest.mark.soak
async def test_a_refusal_costs_a_part_of_what_an_answer_costs(quiet_shop: Shop) -> None:
    """OP-27: less than half of the processor's time of a Find."""
    path, company, refused = await over_the_limit(quiet_shop)
    served = await cpu_us(quiet_shop, path, company.bearer(), 200)
    costs = {name: await cpu_us(quiet_shop, path, bearer, 429) for name, bearer in refused.items()}
    print(f"served {served:.0f} µs, {costs}")  # noqa: T201
    assert max(costs.values()) < served / 2
