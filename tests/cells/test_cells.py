"""Cells: each sells by itself, buys at the centre, and nobody's fault is another one's."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import httpx
import pytest

from tests.anywhere import test_runbooks
from tests.anywhere.programs import needed
from tests.anywhere.test_runbooks import Shell
from tests.cells.buyers import Buyer
from tests.cells.group import (
    BOUGHT,
    CELLS,
    CENTRE,
    COMMON_NAME,
    EXAMPLE,
    MACHINES,
    OWN,
    Group,
    Voucherd,
    grouped,
)
from tests.cells.network import machines
from tests.docs import pages
from tests.docs.pages import DOCS
from tests.faults.processes import codes_of
from tests.patience import HANG_S, suppliers_are_well, until, until_true
from tests.shop import Company, corrected
from voucherd.db import transaction
from voucherd.ids import State
from voucherd.keys.key_text import key_hash, new_key
from voucherd.money import Money

SALES_MIN: Final = 5
"""So many sales show that a cell sells."""
ELSEWHERE_S_MAX: Final = 5.0
PATIENCE: Final = 10
"""A machine that needs so long for a sale in calm times may need that many times longer under a fault."""
PROBE_S_MAX: Final = 1.0
SHORT: Final = (("frozen", "eu2"), ("cut off", CENTRE))
LONG: Final = tuple((kind, name) for kind in ("frozen", "cut off") for name in (*CELLS, CENTRE)) * 3
PAGE: Final = DOCS / "cells.md"
_MARKED: Final = re.compile(
    r"^\*\*([^*]+)\.\*\*.*\n(?:.+\n)*\n<!-- runs -->\n```sh\n((?s:.*?))^```$", re.MULTILINE
)

shell_port = test_runbooks.port


@pytest.fixture(scope="module")
async def group() -> AsyncIterator[Group]:
    """A centre, two cells and a front door, for all tests of this file."""
    needed("haproxy")
    # The database's account must be able to reach it, so it can't be in a folder of pytest's.
    folder = Path(tempfile.mkdtemp(prefix="voucherd-cells-"))
    try:
        with machines(*MACHINES) as network:
            async with grouped(network, folder) as made:
                yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def test_a_key_leads_to_its_cell_and_the_name_of_a_cell_goes_before_the_key(group: Group) -> None:
    """OP-132: the front door knows keys by their hash, and leaves every refusal to a cell."""
    door, cart = group.door, {"items": [{"productSlug": OWN, "amount": 1}], "paymentCurrency": "EUR"}
    known = door.map.read_text()
    for name, company in ((cell, group.companies[cell]) for cell in CELLS):
        key = company.keys[State.LIVE]
        assert f"{key_hash(key).hex().upper()} {name}\n" in known
        assert key not in known
        other = next(cell for cell in CELLS if cell != name)
        async with door.client(**company.bearer()) as client:
            made = await client.post("/api/1.03/order", json=cart)
            assert made.status_code == 201, made.text
            number = group.cells[name].shop.ids.order_id(made.json()["trx"])
            held = "SELECT EXISTS (SELECT FROM orders WHERE id = $1)"
            assert await group.cells[name].shop.pool.fetchval(held, number)
        for host, scheme, status in (
            (COMMON_NAME, "bearer", 200),
            (f"{name.upper()}.{COMMON_NAME}:443", "Bearer", 200),
            (f"{other}.{COMMON_NAME}", "Bearer", 401),
        ):
            async with door.client(host, authorization=f"{scheme} {key}") as client:
                assert (await client.get("/api/1.03/order")).status_code == status, (host, scheme)
    for stranger in ({}, {"authorization": f"Bearer {new_key(State.LIVE).text}"}, {"authorization": "x"}):
        async with door.client(**stranger) as client, httpx.AsyncClient() as direct:
            here = await client.get("/api/1.03/order")
            there = await direct.get(f"{group.cells['eu1'].url}/api/1.03/order", headers=stranger)
            assert (here.status_code, here.text) == (there.status_code, there.text) == (401, there.text)


async def _codes(client: httpx.AsyncClient, headers: dict[str, str]) -> list[str]:
    """The codes of all finished orders of a company, as Find tells them."""
    codes: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        query = {"cursor": cursor, "limit": "200", "orderStatus": "finished"}
        answer = await client.get("/api/1.03/order", params=query, headers=headers)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        codes += [code for order in page["data"] for code in codes_of(order)]
        cursor = page["metadata"]["nextCursor"]
    return codes


class Trial:
    """Buyers at work in all three, while one of them is hurt."""

    def __init__(self, group: Group, stack: AsyncExitStack) -> None:
        self._group = group
        self._stack = stack
        self.buyers: dict[tuple[str, str], Buyer] = {}
        self.gaps_s: dict[tuple[str, str], float] = {}

    async def start(self) -> dict[tuple[str, str], Buyer]:
        """A buyer for each product of each cell, through the front door, and one at the centre."""
        group = self._group
        inside = await self._stack.enter_async_context(
            httpx.AsyncClient(base_url=group.centre.url, timeout=HANG_S)
        )
        wanted = [(cell, slug) for cell in CELLS for slug in (OWN, BOUGHT)]
        for at, (name, slug) in enumerate([*wanted, (CENTRE, BOUGHT)]):
            client = inside
            if name != CENTRE:
                client = await self._stack.enter_async_context(group.door.client())
            self.buyers[name, slug] = Buyer(client, group.companies[name], slug, at)
        return self.buyers

    def elsewhere(self, hurt: str) -> list[Buyer]:
        """Whom the fault must not reach: the shelf of every other cell, and the centre unless it is hurt itself."""
        return [
            buyer
            for (name, slug), buyer in self.buyers.items()
            if name != hurt and (slug == OWN or hurt != CENTRE)
        ]

    async def calm(self) -> float:
        """The longest pause between sales while nothing is wrong."""
        buyers, began = list(self.buyers.values()), time.monotonic()
        await until_true(lambda: all(one.sold_since(began) >= SALES_MIN for one in buyers), "nobody sells")
        return max(one.gap_s(began, time.monotonic()) for one in buyers)

    async def hurt(self, kind: str, name: str, limit_s: float) -> None:
        """One fault, until everybody else has sold and the fault is known; then until all is well again."""
        await self._group.fill_shelves()
        others = self.elsewhere(name)
        with self._group.fault(kind, name) as began:
            await until_true(lambda: all(one.sold_since(began) >= SALES_MIN for one in others), "none sells")
            await (self._centre_is_missed() if name == CENTRE else self._door_knows(name))
            await until_true(
                lambda: all(one.sold_since(began) >= 2 * SALES_MIN for one in others), "none sells"
            )
            gap_s = max(one.gap_s(began, time.monotonic()) for one in others)
        self.gaps_s[kind, name] = max(gap_s, self.gaps_s.get((kind, name), 0.0))
        assert gap_s <= limit_s, f"{kind} {name}: nothing was sold elsewhere for {gap_s:.1f} s"
        over = time.monotonic()
        mine = [buyer for (cell, slug), buyer in self.buyers.items() if cell == name or slug == BOUGHT]
        await self._until_well(mine, over)

    async def _until_well(self, buyers: list[Buyer], since: float) -> None:
        async def well() -> bool:
            for cell in self._group.cells.values():
                # Nobody waits for the end of a pause that the fault has brought.
                await suppliers_are_well(cell.shop.pool)
                await cell.shop.pool.execute("UPDATE offer SET quoted_at = NULL WHERE stock = 0")
            return all(one.sold_since(since) >= 1 for one in buyers)

        await until(well, "it never got well")

    async def _door_knows(self, name: str) -> None:
        """Wait until the front door answers for the cell that does not answer itself."""
        headers = self._group.companies[name].bearer()

        async def told() -> bool:
            async with self._group.door.client(**headers) as client:
                client.timeout = PROBE_S_MAX
                try:
                    answer = await client.get("/api/1.03/order")
                except httpx.TimeoutException:
                    return False
            return (answer.status_code, answer.headers.get("retry-after")) == (503, "5")

        await until(told, "the front door never noticed")

    async def _centre_is_missed(self) -> None:
        """Wait until every cell wants something of the centre, and gets nothing."""
        for cell in self._group.cells.values():
            pool = cell.shop.pool
            await until(lambda pool=pool: pool.fetchval("SELECT EXISTS (SELECT FROM waiting)"))  # type: ignore[misc]


async def trial(group: Group, faults: tuple[tuple[str, str], ...]) -> None:
    """Calm, these faults one after the other, and then every promise is looked up."""
    async with AsyncExitStack() as stack:
        run, stop = Trial(group, stack), asyncio.Event()
        buyers = await run.start()
        async with asyncio.TaskGroup() as tasks:
            for buyer in buyers.values():
                tasks.create_task(buyer.buy_until(stop))
            try:
                limit_s = ELSEWHERE_S_MAX + PATIENCE * await run.calm()
                for kind, name in faults:
                    await run.hurt(kind, name, limit_s)
            finally:
                stop.set()
        await group.settle_down()
        sold: list[str] = []
        for name, company in group.companies.items():
            client = next(buyer._client for (cell, _), buyer in buyers.items() if cell == name)
            found = await _codes(client, company.bearer())
            told = [
                code for (cell, _), one in buyers.items() if cell == name for [code] in one.promised.values()
            ]
            assert set(told) <= set(found), f"{name} has lost an order that it had acknowledged"
            sold += found
    assert len(sold) == len(set(sold)), "a code was sold twice"
    for name in CELLS:
        assert len(await group.chains[name].purchases(CENTRE)) > 0
    await group.assert_all_books_agree()
    gaps = ", ".join(f"{name} {kind} {gap_s:.2f} s" for (kind, name), gap_s in run.gaps_s.items())
    answers = {name: dict(one.answers) for name, one in buyers.items()}
    sys.stdout.write(f"\n{len(sold)} codes; longest without a sale elsewhere: {gaps}; {answers}\n")


async def test_a_cell_or_a_centre_that_fails_stops_nobody_else_and_no_code_is_sold_twice(
    group: Group,
) -> None:
    """OP-132, invariants 1 to 4: a cell sells from its shelf, then from the centre, whatever happens to the others."""
    await trial(group, SHORT)


@pytest.mark.soak
async def test_cells_and_their_centre_fail_again_and_again(group: Group) -> None:
    """OP-132, invariants 1 to 4: the same for every fault of every one of them, several times."""
    await trial(group, LONG)


def _blocks() -> dict[str, str]:
    """The blocks of docs/cells.md that are run as printed, by the line above each."""
    return dict(_MARKED.findall(pages.text_of(PAGE)))


async def test_a_company_moves_to_another_cell_with_its_keys_and_its_money(
    group: Group, shell_port: int, tmp_path: Path
) -> None:
    """OP-133: the commands of docs/cells.md as printed; its clients keep their key, and its old orders can be found."""
    old, new, blocks = group.cells["eu1"], group.cells["eu2"], _blocks()
    company = await old.shop.company(balance="100.00 EUR")
    words = {"COMPANY": company.name, "BALANCE": "81.00", "OLD": "eu1"}
    shells = {
        cell.name: Shell(tmp_path / cell.name, shell_port, **_env(cell.terminal.env), **words)
        for cell in (old, new)
    }

    async def run(cell: Voucherd, block: str) -> str:
        return await asyncio.to_thread(shells[cell.name].run, blocks[block])

    async def carry() -> None:
        file = "company.json"
        await asyncio.to_thread(shutil.copy, tmp_path / "eu1" / file, tmp_path / "eu2" / file)

    async def joined() -> subprocess.CompletedProcess[str]:
        return await asyncio.to_thread(group.door.join_map, old, new)

    async with group.door.client(**company.bearer()) as client:
        cart = {"items": [{"productSlug": OWN, "amount": 1}], "paymentCurrency": "EUR"}

        async def create() -> httpx.Response:
            return await client.post("/api/1.03/order", json=cart)

        async def buy() -> str:
            trx = str((await _sent(create)).json()["trx"])
            answer = await _sent(lambda: client.patch(f"/api/1.03/order/confirm/{trx}"))
            assert answer.json()["orderStatus"] == "finished"
            return trx

        assert (await joined()).returncode == 0
        await until(lambda: _status(client, 200), "the new key never reached the front door")
        before = await buy()
        await run(old, "In the old cell, before")
        await carry()
        await run(new, "In the new cell, before")
        assert (await joined()).returncode == 0
        await buy()
        assert "81.00" in await run(old, "In the old cell")
        refusal = await until(lambda: _refused(create))
        assert refusal is not None
        assert refusal.text == "company not active"
        async with transaction(old.shop.pool) as tx:
            await corrected(tx, company.name, Money.read("-81.00 EUR"), "to eu2")
        await carry()
        await run(new, "In the new cell")
        assert (await joined()).returncode == 0
        await until(lambda: _accepted(create), "the company never got to its new cell")
        await buy()
        moved = Company(
            (await new.shop.pool.fetchval("SELECT id FROM company WHERE name = $1", company.name)),
            company.name,
        )
        assert await new.shop.balance(moved) == Money.read("71.50 EUR")
        assert await old.shop.balance(company) == Money.read("0.00 EUR")
        assert (await client.get(f"/api/1.03/order/{before}")).status_code == 404
    async with group.door.client(f"eu1.{COMMON_NAME}", **company.bearer()) as client:
        assert (await client.get(f"/api/1.03/order/{before}")).json()["orderStatus"] == "finished"

    kept = group.door.map.read_text()
    await old.shop.set_company(company, active=True)
    refused = await joined()
    assert (refused.returncode, group.door.map.read_text()) == (1, kept)
    assert "a key is active in both eu1 and eu2" in refused.stderr
    await old.shop.set_company(company, active=False)
    for cell in (old, new):
        await cell.shop.assert_books_balance()


def _env(env: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith("VOUCHERD_")}


async def _status(client: httpx.AsyncClient, status: int) -> bool:
    return (await client.get("/api/1.03/order")).status_code == status


async def _refused(create: Callable[[], Awaitable[httpx.Response]]) -> httpx.Response | None:
    answer = await create()
    return answer if answer.status_code == 400 else None


async def _sent(call: Callable[[], Awaitable[httpx.Response]]) -> httpx.Response:
    """The answer of a cell: sent again while the front door takes the cell for lost, because a busy machine is late."""

    async def answered() -> httpx.Response | None:
        answer = await call()
        return None if answer.status_code == 503 else answer

    found = await until(answered, "the front door never found the cell")
    assert found is not None
    return found


async def _accepted(create: Callable[[], Awaitable[httpx.Response]]) -> bool:
    return (await create()).status_code == 201


def test_a_list_that_is_not_whole_leaves_the_map_as_it_was(tmp_path: Path) -> None:
    """OP-132: what got lost on its way to the front door takes no company's key away."""
    script, known = str(EXAMPLE / "join-map.sh"), tmp_path / "keys.map"
    known.write_text("before\n")
    for broken in ("", "AA eu1 active\n", "AA eu1 active\n# 2 keys\n"):
        (tmp_path / "eu1.list").write_text(broken)
        done = subprocess.run([script, tmp_path, known], capture_output=True, text=True, check=False)
        assert (done.returncode, known.read_text()) == (1, "before\n"), broken
        assert "eu1.list is not whole" in done.stderr
    (tmp_path / "eu1.list").write_text("AA eu1 inactive\nBB eu1 active\n# 2 keys\n")
    (tmp_path / "eu2.list").write_text("AA eu2 active\n# 1 keys\n")
    failing = subprocess.run([script, tmp_path, known, "false"], capture_output=True, check=False)
    assert (failing.returncode, known.read_text()) == (1, "AA eu2\nBB eu1\n")
    # A reload that failed is tried again, one that succeeded is not.
    again = [script, str(tmp_path), str(known), "touch", str(tmp_path / "reloaded")]
    for reloads in (True, False):
        subprocess.run(again, check=True)
        assert (tmp_path / "reloaded").exists() is reloads
        (tmp_path / "reloaded").unlink(missing_ok=True)
    assert [file.name for file in sorted(tmp_path.iterdir())] == [
        "eu1.list",
        "eu2.list",
        "keys.map",
        "keys.map.loaded",
    ]
