"""Server processes that a test starts, kills and starts again, and clients that don't mind."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.shop import Company

START_S_MAX = 30.0
STOP_S_MAX = 10.0
CALLS_MAX = 20_000
WALLET_IS_ENDLESS = "10000000.00 EUR"


class Server:
    """One server process; only ever this one is killed, by its own handle."""

    def __init__(self, environment: dict[str, str], log: Path) -> None:
        self._environment = environment
        self._log = log
        self._process: asyncio.subprocess.Process | None = None
        self.url = ""

    async def start(self) -> None:
        """Start it, until it answers calls."""
        assert self._process is None
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tests.faults.service"),
                env=self._environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
            )
        assert self._process.stdout is not None
        line = await asyncio.wait_for(self._process.stdout.readline(), START_S_MAX)
        assert line, self._log.read_text()[-2_000:]
        self.url = line.decode().strip()

    async def kill(self) -> None:
        """SIGKILL: it gets no chance to finish anything."""
        if self._process is not None:
            if self._process.returncode is None:
                self._process.kill()
            await asyncio.wait_for(self._process.communicate(), STOP_S_MAX)
            self._process = None


@asynccontextmanager
async def servers(
    count: int, database_url: str, folder: Path, **settings: object
) -> AsyncIterator[list[Server]]:
    """So many running servers on one database; none is left afterwards."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("VOUCHERD_")}
    environment |= {
        "VOUCHERD_DATABASE_URL": database_url,
        "VOUCHERD_DATA": str(folder),
        "VOUCHERD_HOST": "127.0.0.1",
        "VOUCHERD_PORT": "0",
        "VOUCHERD_LOG_LEVEL": "error",
        "VOUCHERD_LOG_FORMAT": "json",
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]),
    }
    environment |= {f"VOUCHERD_{name.upper()}": str(value) for name, value in settings.items()}
    started = [Server(environment, folder / f"server-{at}.log") for at in range(count)]
    try:
        await asyncio.gather(*(server.start() for server in started))
        yield started
    finally:
        for server in started:
            await server.kill()


@dataclass
class Ledger:
    """What the clients were told: the service is held to it."""

    promised: dict[str, list[str]] = field(default_factory=dict)
    """The codes of every order that a client was told is finished."""
    owners: dict[str, Company] = field(default_factory=dict)
    answers: Counter[str] = field(default_factory=Counter)

    def note(self, operation: str, response: httpx.Response) -> None:
        """Remember an answer; there is none of which we are ashamed."""
        self.answers[f"{operation} {response.status_code}"] += 1
        assert response.status_code in {200, 201, 204, 400, 404, 503}, response.text
        if response.status_code == 200 and operation != "cancel":
            order = response.json()
            if order["orderStatus"] == "finished":
                self.promised[order["trx"]] = codes_of(order)


class Client:
    """A program that buys as fast as it can, and goes on when the server is gone."""

    def __init__(self, server: Server, company: Company, ledger: Ledger, seed: int) -> None:
        self._server = server
        self._company = company
        self._ledger = ledger
        self._chance = random.Random(seed)
        self._http = httpx.AsyncClient(headers=company.bearer(), timeout=20)

    async def buy_until(self, stop: asyncio.Event) -> None:
        """Buy, until told to stop."""
        async with self._http:
            for _ in range(CALLS_MAX):
                if stop.is_set():
                    return
                try:
                    await self._buy()
                except httpx.TransportError:
                    self._ledger.answers["lost"] += 1
                    await asyncio.sleep(0.05)

    async def _buy(self) -> None:
        slug = self._chance.choice(["now", "now", "later"])
        body = {
            "items": [{"productSlug": slug, "amount": self._chance.randint(1, 3)}],
            "paymentCurrency": "EUR",
        }
        created = await self._http.post(f"{self._server.url}/api/1.03/order", json=body)
        self._ledger.note("create", created)
        if created.status_code != 201:
            return
        trx = created.json()["trx"]
        self._ledger.owners[trx] = self._company
        # A client that lost its answer tries again, and one that is told nothing may change its mind.
        for operation in self._chance.choices(
            ["confirm", "resolve", "cancel"], weights=[6, 2, 1], k=self._chance.choice([1, 1, 2])
        ):
            url = f"{self._server.url}/api/1.03/order/{operation}/{trx}"
            self._ledger.note(operation, await self._http.patch(url))


def codes_of(order: dict[str, Any]) -> list[str]:
    """The codes on an order's lines."""
    return [line["voucherCode"] for item in order["items"] for line in item["orderLines"]]
