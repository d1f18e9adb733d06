"""A centre and two cells, each a whole voucherd on a machine of its own, and the front door of deploy/cells."""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import httpx

from tests.anywhere.installed import ROOT
from tests.anywhere.programs import needed, running
from tests.anywhere.proxies import Certificate, _changed, make_certificate
from tests.cells.network import Network
from tests.cli.terminal import Terminal
from tests.conftest import SMALL
from tests.faults.processes import SERVICE, WALLET_IS_ENDLESS, Server, environment
from tests.faults.test_kill import shop_of
from tests.patience import HANG_S, suppliers_are_well, until
from tests.shop import Company, Shop
from tests.suppliers.chain import FUNDS_MINOR, Chain
from voucherd.db import open_pool, transaction
from voucherd.embedded import processes
from voucherd.embedded.place import settle
from voucherd.embedded.session import _running
from voucherd.ids import State
from voucherd.migrate import migrate
from voucherd.money import Money
from voucherd.suppliers.store import SupplierDraft, add_offer, add_supplier

EXAMPLE: Final = ROOT / "deploy" / "cells"
CENTRE: Final = "centre"
CELLS: Final = ("eu1", "eu2")
FRONT: Final = "front"
MACHINES: Final = (FRONT, CENTRE, *CELLS)
PORT: Final = 8080
COMMON_NAME: Final = "shop.example.com"
OWN, BOUGHT = "own", "bought"
STOCK: Final = 3_000
ON_SHELF: Final = 3
"""Codes of the product that is bought at the centre, once these are sold."""
LIMITS: Final = {"confirm_wait_s": 2.0, "resolve_limit_s": 4.0}
SUPPLIER_S_MAX: Final = 5
OPEN: Final = (
    "SELECT EXISTS (SELECT FROM orders WHERE status = 1) OR EXISTS (SELECT FROM attempt WHERE status < 2)"
)


@dataclass
class Voucherd:
    """A whole voucherd on its own machine: database, API and worker."""

    name: str
    data: Path
    database_url: str
    shop: Shop
    server: Server
    url: str
    """Where it answers, on the inside."""

    @property
    def terminal(self) -> Terminal:
        """A shell of its operator."""
        return Terminal(self.data, self.database_url)

    def freeze(self) -> None:
        """Stop every process of it, the database's first."""
        self._signal(signal.SIGSTOP)
        self.server.freeze()

    def thaw(self) -> None:
        """Let all of them go on."""
        self._signal(signal.SIGCONT)
        self.server.thaw()

    def _signal(self, number: signal.Signals) -> None:
        found = processes.read_pid_file(settle(self.data / "database").cluster)
        assert found is not None
        os.kill(found.pid, number)
        # A parent that is stopped makes no more of them.
        children = Path(f"/proc/{found.pid}/task/{found.pid}/children").read_text().split()
        for pid in map(int, children):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue  # One of its children has just left.


@dataclass
class FrontDoor:
    """HAProxy as deploy/cells sets it up."""

    folder: Path
    address: str
    certificate: Certificate
    process: subprocess.Popen[bytes] | None = None

    @property
    def map(self) -> Path:
        """The map of keys."""
        return self.folder / "keys.map"

    def client(self, host: str = COMMON_NAME, **headers: str) -> httpx.AsyncClient:
        """A client that calls by this name."""
        trusted = self.certificate.trusted()
        # The certificate is for one name, and the cells have others.
        trusted.check_hostname, trusted.verify_mode = False, ssl.CERT_REQUIRED
        return httpx.AsyncClient(
            base_url=f"https://{self.address}",
            headers={"host": host, **headers},
            verify=trusted,
            timeout=HANG_S,
            # The proxy ends connections that are idle as it likes, also while one is being used again.
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    def join_map(self, *cells: Voucherd) -> subprocess.CompletedProcess[str]:
        """Fetch the list of each cell, as its timer does, and join them, as the front door's does."""
        for cell in cells:
            listed = cell.terminal.view("key", "map", cell.name)
            (self.folder / f"{cell.name}.list").write_text(listed)
        reload = () if self.process is None else ("kill", "-USR2", str(self.process.pid))
        words = [str(EXAMPLE / "join-map.sh"), str(self.folder), str(self.map), *reload]
        return subprocess.run(words, capture_output=True, text=True, check=False, timeout=HANG_S)


@dataclass
class Group:
    """All of it."""

    network: Network
    centre: Voucherd
    cells: dict[str, Voucherd]
    door: FrontDoor
    chains: dict[str, Chain] = field(default_factory=dict)
    companies: dict[str, Company] = field(default_factory=dict)

    def member(self, name: str) -> Voucherd:
        """The centre or a cell."""
        return self.centre if name == CENTRE else self.cells[name]

    @contextmanager
    def fault(self, kind: str, name: str) -> Iterator[float]:
        """Freeze a voucherd or cut it off, as long as the block lasts; when it began."""
        hurt = self.member(name)
        if kind == "frozen":
            hurt.freeze()
        else:
            self.network.cut(name)
        try:
            yield time.monotonic()
        finally:
            if kind == "frozen":
                hurt.thaw()
            else:
                self.network.heal(name)

    async def fill_shelves(self) -> None:
        """See that there is enough for the next trial."""
        for shop, slug in ((self.centre.shop, BOUGHT), *((cell.shop, OWN) for cell in self.cells.values())):
            if await shop.left(slug) < STOCK:
                await shop.stock(slug, STOCK)

    async def settle_down(self) -> None:
        """Wait until nobody owes anybody anything."""
        pools = [one.shop.pool for one in (self.centre, *self.cells.values())]

        async def quiet() -> bool:
            for pool in pools[1:]:
                await suppliers_are_well(pool)
            return not any([await pool.fetchval(OPEN) for pool in pools])

        await until(quiet, "orders still wait")

    async def assert_all_books_agree(self) -> None:
        """The books of all three balance, and the centre sold to each cell what the cell bought, to the cent."""
        for chain in self.chains.values():
            await chain.assert_both_books_agree()


@asynccontextmanager
async def grouped(network: Network, folder: Path) -> AsyncIterator[Group]:
    """A centre, two cells and their front door, with goods on every shelf; nothing is left afterwards."""
    async with AsyncExitStack() as stack:
        names = (CENTRE, *CELLS)
        _open_to_the_database(folder, *(folder / name for name in names))
        opened = await asyncio.gather(*(_voucherd(stack, network, folder / name, name) for name in names))
        centre, *cells = opened
        door = FrontDoor(folder / FRONT, network.address(FRONT), _certificate(folder / FRONT))
        group = Group(network, centre, {cell.name: cell for cell in cells}, door)
        await _furnish(group)
        joined = await asyncio.to_thread(door.join_map, *cells)
        assert joined.returncode == 0, joined.stderr
        door.process = stack.enter_context(_front_door(network, door))
        async with door.client() as client:
            await until(lambda: _answers(client), "the front door never opened")
        yield group


def _open_to_the_database(*folders: Path) -> None:
    """Let its account pass through these folders; it sees nothing of them."""
    for folder in folders:
        folder.mkdir(exist_ok=True)
        folder.chmod(0o711)


async def _answers(client: httpx.AsyncClient) -> bool:
    try:
        return (await client.get("/api/1.03/order")).status_code == 401
    except httpx.TransportError:
        return False


async def _voucherd(stack: AsyncExitStack, network: Network, data: Path, name: str) -> Voucherd:
    database = _running(data / "database", True, SMALL, throwaway=True)
    url = await asyncio.to_thread(stack.enter_context, database)
    await migrate(url)
    pool = await open_pool(url, size_max=4)
    stack.push_async_callback(pool.close)
    shop = await stack.enter_async_context(shop_of(pool, data))
    surroundings = environment(
        url,
        data,
        host=network.address(name),
        port=PORT,
        public_url=f"https://{name}.{COMMON_NAME}",
        trusted_proxies=network.address(FRONT),
        **LIMITS,
    )
    server = Server(SERVICE, surroundings, data / "log", network.inside(name))
    stack.push_async_callback(server.kill)
    await server.start()
    return Voucherd(name, data, url, shop, server, f"http://{network.address(name)}:{PORT}")


async def _furnish(group: Group) -> None:
    """A product of each cell's own, and one that cells have a few codes of and buy at the centre."""
    centre = group.centre.shop
    await centre.product(BOUGHT, price="0.09 EUR", async_delivery=True)
    await centre.stock(BOUGHT, STOCK)
    for cell in group.cells.values():
        shop = cell.shop
        await shop.product(OWN, price="9.50 EUR")
        await shop.stock(OWN, STOCK)
        await shop.product(BOUGHT, price="0.10 EUR", async_delivery=True)
        await shop.stock(BOUGHT, ON_SHELF)
        us = await centre.company(balance=str(Money(FUNDS_MINOR, "EUR")))
        config = {"url": group.centre.url, "currency": "EUR", "plain_http": True, "bulk_max": 5}
        draft = SupplierDraft(
            *(CENTRE, "voucherd", State.LIVE, config),
            secret=us.keys[State.LIVE],
            timeout_s=SUPPLIER_S_MAX,
            settle_s=1,
            quote_age_s=60,
        )
        async with transaction(shop.pool) as tx:
            row = await add_supplier(tx, draft, shop.sealer)
            await add_offer(tx, row, shop.products[BOUGHT].product_id, sku=BOUGHT, face_minor=1_000)
        group.chains[cell.name] = Chain(centre, shop, group.centre.url, us)
        group.companies[cell.name] = await shop.company(balance=WALLET_IS_ENDLESS)
    group.companies[CENTRE] = await centre.company(balance=WALLET_IS_ENDLESS)
    for cell in group.cells.values():
        pool = cell.shop.pool
        await until(lambda pool=pool: pool.fetchval("SELECT bool_and(quote_id IS NOT NULL) FROM offer"))  # type: ignore[misc]


def _certificate(folder: Path) -> Certificate:
    folder.mkdir()
    return make_certificate(folder)


@contextmanager
def _front_door(network: Network, door: FrontDoor) -> Iterator[subprocess.Popen[bytes]]:
    """HAProxy on its own machine, with the addresses of this network."""
    (door.folder / "hosts.map").write_text((EXAMPLE / "hosts.map").read_text("utf-8"))
    changes = {
        # As many as this machine has files for.
        "maxconn 20000": "maxconn 400",
        "    server host2 192.0.2.12:8080\n": "",
        "    server host2 192.0.2.22:8080\n": "",
        "192.0.2.11:8080": f"{network.address('eu1')}:{PORT}",
        "192.0.2.21:8080": f"{network.address('eu2')}:{PORT}",
        "/etc/voucherd/tls/shop.both.pem": str(door.certificate.both),
        "/etc/voucherd/cells/": f"{door.folder}/",
    }
    file = door.folder / "haproxy.cfg"
    file.write_text(_changed((EXAMPLE / "haproxy.cfg").read_text("utf-8"), changes))
    command = [*network.inside(FRONT), needed("haproxy"), "-W", "-db", "-f", str(file)]
    with running(command, dict(os.environ)) as process:
        yield process
