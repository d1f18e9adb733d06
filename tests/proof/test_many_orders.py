"""Very many orders while the processes that sell them are killed and frozen: what was acknowledged is kept."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Final

import pytest

from tests.faults.processes import (
    REAL_WORKER,
    SERVICE,
    WALLET_IS_ENDLESS,
    Process,
    Server,
    environment,
    running,
)
from tests.faults.test_kill import shop_of
from tests.patience import HANG_S
from tests.proof.buyers import Buyer
from tests.proof.installation import APIS, LIMITS
from tests.proof.promises import Promises
from tests.shop import Shop
from voucherd.db import Pool

ORDERS: Final = int(os.environ.get("VOUCHERD_SOAK_ORDERS", "10000"))
"""The proof of a release: 1,000,000."""
ORDERS_A_FAULT: Final = 10_000
BUYERS: Final = 256
COMPANIES: Final = 8
LOT: Final = 10_000
SHELF_MIN: Final = 3 * LOT
FROZEN_S: Final = 3.0
LOOK_EVERY_S: Final = 0.05


async def _kill(process: Process) -> None:
    await process.kill()
    await process.start()


async def _freeze(process: Process) -> None:
    process.freeze()
    await asyncio.sleep(FROZEN_S)
    process.thaw()


FAULTS: Final[dict[str, Callable[[Process], Awaitable[None]]]] = {"kill -9": _kill, "SIGSTOP": _freeze}


async def _keep_stocked(shop: Shop, stop: asyncio.Event) -> None:
    while not stop.is_set():
        if await shop.left("now") < SHELF_MIN:
            await shop.stock("now", LOT)
        await asyncio.sleep(LOOK_EVERY_S)


async def _reached(promises: Promises, count: int) -> None:
    """Returns once so many orders are acknowledged, however long that takes while some are."""
    seen, since = 0, time.monotonic()
    while (sold := len(promises.codes)) < count:
        if sold > seen:
            seen, since = sold, time.monotonic()
        assert time.monotonic() - since < HANG_S, f"nothing is sold any more: {promises.answers}"
        await asyncio.sleep(LOOK_EVERY_S)


@pytest.mark.soak
@pytest.mark.timeout(4 * 3600)
async def test_however_often_they_are_killed_every_acknowledged_order_is_kept(
    pool: Pool, database_url: str, tmp_path: Path
) -> None:
    """Invariants 1 to 4: hosts and worker fall in turn under load; promises, codes, books and audit are right."""
    surroundings = environment(database_url, tmp_path, **LIMITS)
    servers = {
        name: Server((*SERVICE, "--no-worker"), surroundings, tmp_path / f"{name}.log") for name in APIS
    }
    worker = Process(REAL_WORKER, surroundings, tmp_path / "worker.log")
    turns: Iterator[tuple[Process, str]] = cycle(
        [(process, fault) for fault in FAULTS for process in (*servers.values(), worker)]
    )
    promises, stop, faults, began = Promises(), asyncio.Event(), 0, time.monotonic()
    async with shop_of(pool, tmp_path) as shop:
        await shop.product("now", price="9.50 EUR")
        await shop.stock("now", LOT)
        companies = [await shop.company(balance=WALLET_IS_ENDLESS) for _ in range(COMPANIES)]
        async with running(*servers.values(), worker):
            async with asyncio.TaskGroup() as group:
                group.create_task(_keep_stocked(shop, stop))
                for at in range(BUYERS):
                    company = companies[at % COMPANIES]
                    buyer = Buyer(servers, APIS[at % len(APIS)], company, promises, at, ("now",))
                    group.create_task(buyer.buy_until(stop))
                chance = random.Random(ORDERS)
                while (acknowledged := len(promises.codes)) < ORDERS:
                    await _reached(
                        promises, min(ORDERS, acknowledged + chance.randint(1, 2 * ORDERS_A_FAULT))
                    )
                    process, fault = next(turns)
                    await FAULTS[fault](process)
                    faults += 1
                    if not faults % 10:
                        sys.stdout.write(f"\n{len(promises.codes)} acknowledged, {faults} faults\n")
                stop.set()
            took_s = time.monotonic() - began
            await promises.assert_kept(shop, [server.url for server in servers.values()])
    figures = {
        "acknowledged": len(promises.codes),
        "faults": faults,
        "took": round(took_s),
        "answers": promises.answers,
    }
    sys.stdout.write(f"\n{json.dumps(figures)}\n")
    assert not promises.strange, promises.strange
