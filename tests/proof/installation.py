"""A whole shop of real processes: database, two API hosts, worker, supplier, webhook receiver, and the wires."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import asyncpg

from tests.conftest import SMALL
from tests.faults.processes import SERVICE, WALLET_IS_ENDLESS, WORKER, Process, Server, environment
from tests.faults.test_kill import shop_of
from tests.patience import suppliers_are_well, until
from tests.proof.links import Link
from tests.shop import Company, Shop
from tests.suppliers.warehouse import Warehouse, warehouse
from voucherd.db import Pool, open_pool, transaction
from voucherd.embedded import account, cluster, processes
from voucherd.embedded.place import settle
from voucherd.embedded.session import _running
from voucherd.ids import State
from voucherd.migrate import migrate
from voucherd.settings import Settings
from voucherd.suppliers.store import SupplierDraft, add_offer, add_supplier
from voucherd.webhooks import endpoints
from voucherd.webhooks.endpoints import Draft

APIS: Final = ("api-1", "api-2")
RESOLVE_LIMIT_S: Final = 3.0
LIMITS: Final = {
    "resolve_limit_s": RESOLVE_LIMIT_S,
    "confirm_wait_s": 1.0,
    # As it is in production: it is what ends the locks of a host that is gone.
    "transaction_s_max": Settings().transaction_s_max,
}
STOCK: Final = 3_000
DATABASE_MIB: Final = 400
FAKETIME: Final = tuple(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
_AT_WORK: Final = """
    SELECT EXISTS (SELECT FROM orders WHERE status = 1) OR EXISTS (SELECT FROM attempt WHERE status < 2)
        -- Looks that were written down while the clock was behind seem to have waited for their seal for hours.
        OR EXISTS (SELECT FROM reveal WHERE at < now() - interval '1 hour' AND id > coalesce(
            (SELECT max(last_id) FROM trail_seal WHERE book = 'reveal'), 0))
"""
ROLES: Final = "".join(
    f"CREATE ROLE {name} LOGIN BYPASSRLS PASSWORD '{{password}}'\n"
    f"GRANT voucherd_service, pg_monitor, pg_signal_backend TO {name}\n"
    f"GRANT voucherd_tenant TO {name} WITH INHERIT FALSE, SET TRUE\n"
    for name in ("api_1", "api_2", "worker")
)
SETUP: Final = cluster.SETUP.replace("LOGIN CREATEDB", "LOGIN SUPERUSER") + ROLES
"""Each process has a role of its own, and the operator may do anything to the server."""


@contextmanager
def database(folder: Path, variables: dict[str, str]) -> Iterator[str]:
    """The address of a PostgreSQL of our own in this folder, started again by its supervisor when it is killed."""
    setup, before = cluster.SETUP, dict(account.ENVIRONMENT)
    cluster.SETUP = SETUP  # type: ignore[misc]
    account.ENVIRONMENT.update(variables)
    try:
        with _running(folder, True, SMALL, throwaway=True) as url:
            yield url
    finally:
        cluster.SETUP = setup  # type: ignore[misc]
        account.ENVIRONMENT.clear()
        account.ENVIRONMENT.update(before)


class Clock:
    """A clock that a process reads in place of the machine's; a file says how far it is off."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.set(0)

    def set(self, hours: int) -> None:
        """Jump."""
        part = self._file.with_suffix(".new")
        part.write_text(f"{hours:+d}h\n")
        part.chmod(0o644)
        part.rename(self._file)

    def variables(self) -> dict[str, str]:
        """What a process needs to read it; time that only passes is the machine's."""
        return {
            "LD_PRELOAD": str(FAKETIME[0]),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DISABLE_SHM": "1",
        }


class Mailbox(Process):
    """The receiver of webhooks; it comes back to the same port."""

    async def start(self) -> None:
        """Start it, until it listens."""
        await super().start()
        self._command = (*self._command[:2], self.line, *self._command[3:])


@dataclass
class Installation:
    """All of it, with one verb for each thing that a fault does."""

    folder: Path
    url: str
    pool: Pool
    shop: Shop
    servers: dict[str, Server]
    worker: Process
    wholesaler: Warehouse
    mailbox: Mailbox
    links: dict[str, Link]
    clocks: dict[str, Clock] = field(default_factory=dict)
    companies: list[Company] = field(default_factory=list)

    @property
    def urls(self) -> list[str]:
        """Where the API answers."""
        return [server.url for server in self.servers.values()]

    def disk(self, name: str) -> Path:
        """Where one part keeps its files."""
        return self.folder / name

    def process(self, name: str) -> Process:
        """An API host, the worker or the receiver."""
        return {**self.servers, "worker": self.worker, "receiver": self.mailbox}[name]

    async def order(self, *statements: str) -> None:
        """Say something to the database as its superuser, whatever state it is in."""
        conn = await asyncpg.connect(self.url, server_settings={"default_transaction_read_only": "off"})
        try:
            for statement in statements:
                await conn.execute(statement)
        finally:
            await conn.close()

    async def end_sessions(self, role: str | None = None) -> None:
        """End the connections of one process, or of all three, as a restart of the database does."""
        roles = "'api_1', 'api_2', 'worker'" if role is None else f"'{role}'"
        await self.order(
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename IN ({roles})"  # noqa: S608 - Constants.
        )

    async def in_transaction(self, role: str) -> bool:
        """Whether a session of this role holds a transaction open, waiting for its host, and keeps others waiting."""
        return bool(
            await self.pool.fetchval(
                """
                SELECT EXISTS (SELECT FROM pg_stat_activity WHERE usename = $1 AND state = 'idle in transaction'
                               AND clock_timestamp() - state_change > interval '150 ms')
                   AND EXISTS (SELECT FROM pg_stat_activity o, pg_stat_activity h
                               WHERE h.usename = $1 AND o.usename <> $1 AND o.wait_event_type = 'Lock'
                                 AND h.pid = ANY(pg_blocking_pids(o.pid)))
                """,
                role,
            )
        )

    def database_pids(self) -> list[int]:
        """The server and all its processes, the server first."""
        found = processes.read_pid_file(settle(self.disk("database") / "data").cluster)
        assert found is not None
        children = [pid for pid, parent, _ in _everything() if parent == found.pid]
        return [found.pid, *children]

    def signal_database(self, number: signal.Signals) -> None:
        """Tell every process of the server the same."""
        for pid in self.database_pids():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue  # One of its children has just left.

    async def fill_shelf(self) -> None:
        """See that there is enough on the shelf for the next trial."""
        if await self.shop.left("now") < STOCK:
            await self.shop.stock("now", STOCK)

    async def settle_down(self) -> None:
        """Wait until every order has ended and nothing is being bought any more."""

        async def quiet() -> bool:
            await suppliers_are_well(self.pool)
            return not await self.pool.fetchval(_AT_WORK)

        await until(quiet, "orders still wait")


def _everything() -> list[tuple[int, int, str]]:
    """Pid, parent and command of every process."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                _, _, rest = (entry / "stat").read_text().rpartition(") ")
            except OSError:
                continue
            found.append((int(entry.name), int(rest.split()[1]), ""))
    return found


@asynccontextmanager
async def _linked(target: Path | tuple[str, int]) -> AsyncIterator[Link]:
    link = Link(target)
    await link.start()
    try:
        yield link
    finally:
        link.heal()
        await link.stop()


@asynccontextmanager
async def installed(
    folder: Path, *, clocks: bool = False, disk: str | None = None
) -> AsyncIterator[Installation]:
    """A running installation with goods on the shelf; nothing of it is left afterwards.

    With `clocks` each process has a clock that can be set; `disk` names the part that has a small disk of its own.
    """
    os.chmod(folder, 0o711)  # noqa: S103 - The database's account passes through, and sees nothing.
    times = (
        {name: Clock(folder / f"{name}.clock") for name in (*APIS, "worker", "database")} if clocks else {}
    )
    async with AsyncExitStack() as stack:
        for name in (*APIS, "worker", "database", "supplier", "receiver"):
            (folder / name).mkdir(mode=0o711)
        if disk is not None:
            stack.enter_context(small_disk(folder / disk, DATABASE_MIB if disk == "database" else 4))
        variables = times["database"].variables() if times else {}
        opened = database(folder / "database" / "data", variables)
        url = await asyncio.to_thread(stack.enter_context, opened)
        await migrate(url)
        pool = await open_pool(f"{url}&default_transaction_read_only=off", size_max=4)
        stack.push_async_callback(pool.close)
        shop = await stack.enter_async_context(shop_of(pool, folder))
        wholesaler = await stack.enter_async_context(warehouse(folder / "supplier"))
        place = settle(folder / "database" / "data")
        found = processes.read_pid_file(place.cluster)
        assert found is not None
        socket = found.sockets / ".s.PGSQL.5432"
        links = {name: await stack.enter_async_context(_linked(socket)) for name in (*APIS, "worker")}
        links["supplier"] = await stack.enter_async_context(_linked(("127.0.0.1", wholesaler._port)))

        def surroundings(name: str) -> dict[str, str]:
            role = name.replace("-", "_")
            address = f"{role}:{place.password()}@127.0.0.1:{links[name].port}/voucherd?sslmode=disable"
            made = environment(
                f"postgresql://{address}",
                folder,
                webhook_networks="127.0.0.0/8",
                mail_folder=folder / name / "mail",
                **LIMITS,
            )
            clock = times[name].variables() if times else {}
            return made | clock | {"LEASE_MARGIN_S": "1.5"}

        serving = (*SERVICE, "--no-worker")
        servers = {name: Server(serving, surroundings(name), folder / name / "log") for name in APIS}
        worker = Process(WORKER, surroundings("worker"), folder / "worker" / "log")
        plain = dict(os.environ)
        mailbox = Mailbox(
            ("-m", "tests.webhooks.mailbox", "0", str(folder / "receiver" / "inbox")),
            plain,
            folder / "receiver.log",
        )
        for process in (*servers.values(), worker, mailbox):
            stack.push_async_callback(process.kill)
        await asyncio.gather(*(process.start() for process in (*servers.values(), worker, mailbox)))
        links["receiver"] = await stack.enter_async_context(_linked(("127.0.0.1", int(mailbox.line))))
        made = Installation(
            folder, url, pool, shop, servers, worker, wholesaler, mailbox, links, clocks=times
        )
        await _furnish(made)
        yield made


async def _furnish(made: Installation) -> None:
    """Goods, a supplier, and two companies with an endpoint each."""
    shop = made.shop
    await shop.product("now", price="9.50 EUR")
    await shop.product("bought", price="9.50 EUR", async_delivery=True)
    description = made.wholesaler.description(base_url=f"http://127.0.0.1:{made.links['supplier'].port}")
    draft = SupplierDraft(
        *("north", "http", State.LIVE, description),
        secret=made.wholesaler.key,
        timeout_s=1,
        settle_s=10,
        quote_age_s=4,
    )
    async with transaction(made.pool) as tx:
        row = await add_supplier(tx, draft, shop.sealer)
        await made.wholesaler.stock("north-bought", price="9.00", stock=1_000_000)
        await add_offer(tx, row, shop.products["bought"].product_id, sku="north-bought", face_minor=1_000)
    made.companies += [await shop.company(balance=WALLET_IS_ENDLESS) for _ in range(2)]
    for company in made.companies:
        address = f"http://127.0.0.1:{made.links['receiver'].port}/{company.id}"
        async with transaction(made.pool) as tx:
            await endpoints.add(tx, shop.sealer, company.id, State.LIVE, Draft(address, ()))


@contextmanager
def small_disk(folder: Path, size_mib: int) -> Iterator[Path]:
    """A folder on a disk of its own that can be filled; only root can make one."""
    folder.mkdir(parents=True, exist_ok=True)
    _mount("mount", "-t", "tmpfs", "-o", f"size={size_mib}m,mode=755", "tmpfs", str(folder))
    try:
        yield folder
    finally:
        _mount("umount", "--lazy", str(folder))


def _mount(*command: str) -> None:
    subprocess.run(command, check=True)
