"""One cell of the matrix under load: calm, fault, calm again; then every promise is looked up."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import httpx

from tests.patience import OwnTime, own_time, until
from tests.proof.buyers import Buyer, Caller, Lost
from tests.proof.cells import ELSEWHERE_S, Cell, everything_told, fault
from tests.proof.installation import APIS, RESOLVE_LIMIT_S, Installation
from tests.proof.promises import Promises

BUYERS_AT_HOME: Final = 4
"""So many call each host."""
SALES_MIN: Final = 5
"""So many sales show that a host sells."""
LOOK_EVERY_S: Final = 0.05
PATIENCE: Final = 10
"""A machine that needs so long for a sale in calm times may need that many times longer under a fault."""
CALM_S_MAX: Final = 120.0
RETRY_S_MAX: Final = 5.0
READY_S_MAX: Final = 5.0


@dataclass
class Findings:
    """What was measured, and what broke the demand."""

    cell: Cell
    calm_gap_s: float = 0.0
    elsewhere_gap_s: float = 0.0
    again_s: float = 0.0
    resolve_s: float = 0.0
    retry_s: float = 0.0
    sold: int = 0
    answers: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    """What took longer than is allowed."""
    stood_s: float = 0.0
    """How long the machine stood still since the fault began."""

    @property
    def slack_s(self) -> float:
        """What the machine itself needs."""
        return PATIENCE * self.calm_gap_s

    def demand(self, in_time: bool, otherwise: str) -> None:
        """Write down what came too late."""
        if not in_time:
            self.late.append(otherwise)

    def __str__(self) -> str:
        figures = (
            f"calm gap {self.calm_gap_s:.2f} s, elsewhere gap {self.elsewhere_gap_s:.2f} s, sold again after"
            f" {self.again_s:.2f} s, slowest Resolve {self.resolve_s:.2f} s, slowest retry {self.retry_s:.2f} s,"
            f" stood still for {self.stood_s:.2f} s"
        )
        wrong = self.faults + self.late or "as demanded"
        return f"{self.cell.name}: {figures}, {self.sold} sold, {self.answers}; {wrong}"


class Trial:
    """Buyers at work on an installation while something breaks."""

    def __init__(self, shop: Installation, cell: Cell, seed: int) -> None:
        self._shop = shop
        self._cell = cell
        self._seed = seed
        self.promises = Promises()
        self.findings = Findings(cell)

    async def run(self) -> Findings:
        """The whole trial."""
        await self._shop.fill_shelf()
        async with own_time() as clock:
            self.promises.clock = clock
            await self._buy(clock)
        await self._settle()
        return self.findings

    async def _buy(self, clock: OwnTime) -> None:
        shop, stop = self._shop, asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for at, home in enumerate(APIS * BUYERS_AT_HOME):
                # All of them share two wallets, so that a host that keeps a lock is in everybody's way.
                company = shop.companies[at // 2 % len(shop.companies)]
                buyer = Buyer(shop.servers, home, company, self.promises, self._seed * 100 + at)
                group.create_task(buyer.buy_until(stop))
            try:
                await self._calm(clock)
                stood_s = clock.stood_s
                await self._under_fault(clock)
            finally:
                stop.set()
        self.findings.stood_s = clock.stood_s - stood_s

    async def _sold(self, hosts: tuple[str, ...], since: float, limit_s: float) -> bool:
        """Whether each of the hosts sells within this time."""
        clock = self.promises.clock
        while clock() - since < limit_s:
            if all(self.promises.since(host, since) >= SALES_MIN for host in hosts):
                return True
            await asyncio.sleep(LOOK_EVERY_S)
        return False

    async def _calm(self, clock: OwnTime) -> None:
        begin = clock()
        assert await self._sold(APIS, begin, CALM_S_MAX), (
            f"nothing is sold in calm times: {self.promises.answers}"
        )
        warm = clock()
        assert await self._sold(APIS, warm, CALM_S_MAX), "nothing is sold in calm times"
        end = clock()
        self.findings.calm_gap_s = max(self.promises.gap_s(host, warm, end) for host in APIS)

    async def _under_fault(self, clock: OwnTime) -> None:
        cell, findings, promises = self._cell, self.findings, self.promises
        limit_s = ELSEWHERE_S + findings.slack_s
        orders = {host: await until(partial(self._created, host)) for host in APIS if host not in cell.silent}
        promises.resolve_s.clear()
        promises.retry_s = 0.0
        async with fault(self._shop, cell), asyncio.TaskGroup() as group:
            begin = clock()
            for host, trx in orders.items():
                group.create_task(self._resolve(host, trx))
            # Longer than allowed: a demand that is missed is measured, not only missed.
            await self._sold(cell.elsewhere, begin, 1.5 * limit_s)
            if cell.not_ready:
                await self._ask_ready()
            await asyncio.sleep(max(0.0, begin + cell.lasts_s - clock()))
            end = clock()
        for host in cell.elsewhere:
            gap_s = promises.gap_s(host, begin, end)
            findings.elsewhere_gap_s = max(findings.elsewhere_gap_s, gap_s)
            findings.demand(gap_s <= limit_s, f"{host} sold nothing for {gap_s:.1f} s")
        over = clock()
        again_s = cell.again_s + findings.slack_s
        sells = await self._sold(APIS, over, 1.5 * again_s)
        findings.again_s = clock() - over
        findings.demand(sells and findings.again_s <= again_s, f"sold again after {findings.again_s:.1f} s")
        # Until everybody knows what became of the calls that were lost.
        ends = over + 1.5 * RETRY_S_MAX + findings.slack_s
        while promises.repeating and clock() < ends:  # noqa: ASYNC110 - Nothing tells us.
            await asyncio.sleep(LOOK_EVERY_S)

    async def _created(self, host: str) -> str:
        """An order that is resolved once the fault is there; nothing if the host asks us to come again."""
        body = {"items": [{"productSlug": "now", "amount": 1}], "paymentCurrency": "EUR"}
        url = f"{self._shop.servers[host].url}/api/1.03/order"
        response = await self._shop.shop.client.post(url, json=body, headers=self._shop.companies[0].bearer())
        assert response.status_code in {201, 503}, response.text
        return str(response.json()["trx"]) if response.status_code == 201 else ""

    async def _resolve(self, host: str, trx: str) -> None:
        """Resolve an order while the fault lasts, and look at the clock."""
        company, caller = self._shop.companies[0], Caller(self._shop.servers[host])
        clock = self.promises.clock
        began = clock()
        try:
            status, answer = await caller.call(
                "PATCH", f"/api/1.03/order/resolve/{trx}", company.bearer(), b""
            )
            self.promises.note("resolve", status, answer)
        except Lost:
            status, answer = 0, b""
        took_s = clock() - began
        caller.close()
        self.promises.resolve_s[host] = max(self.promises.resolve_s.get(host, 0.0), took_s)
        if status == 200 and json.loads(answer)["orderStatus"] == "finished":
            self.promises.sold(host, trx, json.loads(answer), company, "now")

    async def _ask_ready(self) -> None:
        """A host that can't sell says so to its load balancer."""
        clock = self.promises.clock
        ends = clock() + READY_S_MAX + self.findings.slack_s
        for host in self._cell.not_ready:
            status = 200
            while status == 200 and clock() < ends:
                async with httpx.AsyncClient(timeout=READY_S_MAX) as client:
                    status = (await client.get(f"{self._shop.servers[host].url}/readyz")).status_code
                await asyncio.sleep(LOOK_EVERY_S)
            self.findings.demand(status == 503, f"{host} says that it is ready: {status}")

    async def _settle(self) -> None:
        """Let everything come to its end, and hold the service to what it said."""
        cell, findings, promises = self._cell, self.findings, self.promises
        healthy = [host for host in APIS if host not in cell.silent]
        findings.resolve_s = max((promises.resolve_s.get(host, 0.0) for host in healthy), default=0.0)
        findings.retry_s = promises.retry_s
        findings.sold = len(promises.codes)
        findings.answers = dict(promises.answers)
        limit_s = RESOLVE_LIMIT_S + findings.calm_gap_s
        findings.demand(findings.resolve_s <= limit_s, f"a Resolve took {findings.resolve_s:.2f} s")
        if cell.fault == "kill -9" and cell.target in APIS:
            limit_s = RETRY_S_MAX + findings.slack_s
            findings.demand(findings.retry_s <= limit_s, f"a retry waited {findings.retry_s:.1f} s")
        for strange, count in promises.strange.items():
            findings.faults.append(f"{count} × {strange}")
        await self._shop.settle_down()
        await promises.assert_kept(self._shop.shop, self._shop.urls)
        if cell.target == "receiver":
            await everything_told(self._shop)
