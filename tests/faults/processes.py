"""Server processes that a test starts, kills and starts again, and clients that don't mind."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.patience import HANG_S, PATIENT, in_environment
from tests.shop import Company

START_S_MAX = HANG_S
STOP_S_MAX = HANG_S
CALLS_MAX = 20_000
WALLET_IS_ENDLESS = "10000000.00 EUR"


SERVICE = ("-m", "tests.faults.service")
WORKER = ("-m", "tests.faults.laborer")
REAL_SERVER = ("-m", "voucherd.cli", "serve", "--no-worker", "--json")
REAL_WORKER = ("-m", "voucherd.cli", "worker", "--json")


class Process:
    """One process that says in a line when it is ready; only ever this one is killed, by its own handle."""

    def __init__(
        self,
        command: tuple[str, ...],
        environment: dict[str, str],
        log: Path,
        place: tuple[str, ...] = (),
    ) -> None:
        self._command = command
        self._place = place
        """What the command begins with, such as the network that it runs in."""
        self._environment = environment
        self._log = log
        self._process: asyncio.subprocess.Process | None = None
        self.line = ""
        self.is_up = False

    async def start(self) -> None:
        """Start it, until it is ready."""
        assert self._process is None
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(*self._place, sys.executable, *self._command),
                env=self._environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
            )
        assert self._process.stdout is not None
        line = await asyncio.wait_for(self._process.stdout.readline(), START_S_MAX)
        assert line, self._log.read_text()[-2_000:]
        self.line = line.decode().strip()
        self.is_up = True

    async def kill(self) -> None:
        """SIGKILL: it gets no chance to finish anything."""
        self.is_up = False
        if self._process is not None:
            if self._process.returncode is None:
                self._process.kill()
            await asyncio.wait_for(self._process.communicate(), STOP_S_MAX)
            self._process = None

    def freeze(self) -> None:
        """SIGSTOP: it holds what it has, does nothing at all, and its connections stay open."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT: it goes on as if no time had passed."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)


class Server(Process):
    """A server; what it says is its address."""

    @property
    def url(self) -> str:
        """Where it answers, another one after each start."""
        found = json.loads(self.line)["baseUrl"] if self.line.startswith("{") else self.line
        return str(found)


def environment(database_url: str, folder: Path, **settings: object) -> dict[str, str]:
    """The environment of a process of this shop."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("VOUCHERD_")}
    inherited |= {
        "VOUCHERD_DATABASE_URL": database_url,
        "VOUCHERD_DATA": str(folder),
        "VOUCHERD_HOST": "127.0.0.1",
        "VOUCHERD_PORT": "0",
        "VOUCHERD_LOG_LEVEL": "error",
        # A slow machine must not end a sale's transaction; a test that wants its limit says so.
        "VOUCHERD_TRANSACTION_S_MAX": str(HANG_S),
        "VOUCHERD_LOG_FORMAT": "json",
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]),
    }
    return inherited | in_environment(settings)


@asynccontextmanager
async def running(*processes: Process) -> AsyncIterator[None]:
    """These processes, started together; none is left afterwards."""
    try:
        await asyncio.gather(*(process.start() for process in processes))
        yield
    finally:
        for process in processes:
            await process.kill()


@asynccontextmanager
async def servers(
    count: int, database_url: str, folder: Path, **settings: object
) -> AsyncIterator[list[Server]]:
    """So many running servers on one database; none is left afterwards."""
    surroundings = environment(database_url, folder, **(PATIENT | settings))
    command = (*SERVICE, "--patient")
    started = [Server(command, surroundings, folder / f"server-{at}.log") for at in range(count)]
    async with running(*started):
        yield started


@dataclass
class Ledger:
    """What the clients were told: the service is held to it."""

    promised: dict[str, list[str]] = field(default_factory=dict)
    """The codes of every order that a client was told is finished."""
    owners: dict[str, Company] = field(default_factory=dict)
    answers: Counter[str] = field(default_factory=Counter)
    resolve_s: float = 0.0
    """The longest that a client waited for a Resolve."""

    def note(self, operation: str, response: httpx.Response) -> None:
        """Remember an answer; there is none of which we are ashamed."""
        self.answers[f"{operation} {response.status_code}"] += 1
        assert response.status_code in {200, 201, 204, 400, 404, 422, 503}, response.text
        if operation == "resolve":
            self.resolve_s = max(self.resolve_s, response.elapsed.total_seconds())
        if response.status_code == 200 and operation != "cancel":
            order = response.json()
            if order["orderStatus"] == "finished":
                self.promised[order["trx"]] = codes_of(order)


class Client:
    """A program that buys as fast as it can, and goes on when the server is gone."""

    def __init__(
        self,
        servers: Sequence[Server],
        company: Company,
        ledger: Ledger,
        seed: int,
        slugs: Sequence[str] = ("now", "now", "later"),
        operations: Sequence[int] = (6, 2, 1),
    ) -> None:
        self._servers = servers
        self._slugs = slugs
        self._operations = operations
        self._company = company
        self._ledger = ledger
        self._chance = random.Random(seed)
        self._http = httpx.AsyncClient(headers=company.bearer(), timeout=HANG_S)

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
        slug = self._chance.choice(self._slugs)
        body = {
            "items": [{"productSlug": slug, "amount": self._chance.randint(1, 3)}],
            "paymentCurrency": "EUR",
        }
        created = await self._http.post(f"{self._chance.choice(self._servers).url}/api/1.03/order", json=body)
        self._ledger.note("create", created)
        if created.status_code != 201:
            return
        trx = created.json()["trx"]
        self._ledger.owners[trx] = self._company
        # A client that lost its answer tries again, and one that is told nothing may change its mind.
        for operation in self._chance.choices(
            ["confirm", "resolve", "cancel"], weights=self._operations, k=self._chance.choice([1, 1, 2])
        ):
            url = f"{self._chance.choice(self._servers).url}/api/1.03/order/{operation}/{trx}"
            self._ledger.note(operation, await self._http.patch(url))


def codes_of(order: dict[str, Any]) -> list[str]:
    """The codes on an order's lines."""
    return [line["voucherCode"] for item in order["items"] for line in item["orderLines"]]
