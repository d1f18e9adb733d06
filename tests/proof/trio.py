"""Three PostgreSQL servers that Patroni looks after: one leads, and another takes over when that one fails."""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import shutil
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import asyncpg
import httpx

from tests.patience import until
from tests.proof.installation import small_disk
from tests.proof.links import Link

NODES: Final = 3
PROGRAMS: Final = tuple(sorted(Path("/usr/lib/postgresql").glob("*/bin")))
IS_HERE: Final = bool(shutil.which("patroni") and shutil.which("etcd") and PROGRAMS and os.geteuid() == 0)
STOP_S_MAX: Final = 60.0
HAND_OVER_S_MAX: Final = 60.0
TTL_S: Final = 20
"""The shortest that Patroni allows: most of an outage is the wait for this to run out."""
LEADS: Final = ("master", "primary")
IN_STEP: Final = "in step"
"""A standby that has all that was acknowledged, and may take over."""
ACCOUNT: Final = "postgres"
DISK_MIB: Final = 1_500
SAID_MAX: Final = 5_000


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def family(pid: int) -> list[int]:
    """A process and all that descend from it."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                _, _, rest = (entry / "stat").read_text().rpartition(") ")
            except OSError:
                continue
            parents.setdefault(int(rest.split()[1]), []).append(int(entry.name))
    found = [pid]
    for one in found:
        found += parents.get(one, [])
    return found


def tell(pids: list[int], number: signal.Signals) -> None:
    """Send a signal to those of them that are still there."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


class Program:
    """A program of the trio, run as the database's account in a session of its own."""

    def __init__(self, folder: Path, name: str, *command: str) -> None:
        self._command = command
        self._log = folder / f"{name}.log"
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it; what it says goes to its log."""
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"},
                user=ACCOUNT,
                group=ACCOUNT,
                extra_groups=[],
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        """The end of its log."""
        return f"{self._log.name}: {self._log.read_text()[-SAID_MAX:]}"

    def send(self, number: signal.Signals) -> None:
        """Tell it and everything that it started the same."""
        if self._process is not None:
            tell(family(self._process.pid), number)

    async def kill(self) -> None:
        """SIGKILL, with all that it started."""
        if self._process is not None:
            self.send(signal.SIGKILL)
            await asyncio.wait_for(self._process.wait(), STOP_S_MAX)
            self._process = None


class Node:
    """One server with its Patroni. Everybody reaches it, and it reaches the store of locks, over wires of ours."""

    def __init__(self, folder: Path, number: int, etcd_port: int) -> None:
        self.name = f"node-{number}"
        self.folder = folder / self.name
        self._port, self._rest = free_port(), free_port()
        self.clients = Link(("127.0.0.1", self._port))
        self.locks = Link(("127.0.0.1", etcd_port))
        self.program = Program(folder, self.name, "/usr/bin/patroni", str(folder / f"{self.name}.json"))

    async def start(self, folder: Path) -> None:
        """Write its settings, and start it."""
        await self.clients.start()
        await self.locks.start()
        self.folder.mkdir(exist_ok=True)
        shutil.chown(self.folder, ACCOUNT, ACCOUNT)
        # A document of JSON is one of YAML.
        (folder / f"{self.name}.json").write_text(json.dumps(self._settings()))
        await self.program.start()

    async def stop(self) -> None:
        """End it, and its wires."""
        for link in (self.clients, self.locks):
            link.heal()
        await self.kill()
        for link in (self.clients, self.locks):
            await link.stop()

    def send(self, number: signal.Signals) -> None:
        """Tell Patroni and its server the same; the server is nobody's child."""
        self.program.send(number)
        tell(self.server(), number)

    def server(self) -> list[int]:
        """The processes of the server alone, none if it does not run."""
        try:
            pid = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (OSError, ValueError, IndexError):
            return []
        return family(pid) if str(self.folder).encode() in command else []

    async def hand_over(self) -> None:
        """Ask Patroni to let another one lead; it answers when that is so."""
        async with httpx.AsyncClient(timeout=HAND_OVER_S_MAX) as client:
            url = f"http://127.0.0.1:{self._rest}/switchover"
            told = await client.post(url, json={"leader": self.name})
        assert told.status_code == 200, told.text

    async def kill(self) -> None:
        """SIGKILL for all of it."""
        self.send(signal.SIGKILL)
        await self.program.kill()

    @property
    def address(self) -> str:
        """Where its clients and its standbys find it."""
        return f"127.0.0.1:{self.clients.port}"

    async def order(self, *statements: str) -> None:
        """Say something to this very server, whatever state it is in."""
        conn = await asyncpg.connect(
            f"postgresql://postgres:x@{self.address}/postgres?sslmode=disable",
            timeout=10.0,
            server_settings={"default_transaction_read_only": "off"},
        )
        try:
            for statement in statements:
                await conn.execute(statement)
        finally:
            await conn.close()

    async def role(self) -> str:
        """What Patroni says that it is; nothing if it does not answer."""
        try:
            async with httpx.AsyncClient(timeout=1.0) as client:
                told = (await client.get(f"http://127.0.0.1:{self._rest}/patroni")).json()
        except (httpx.HTTPError, ValueError):
            return ""
        if told.get("state") != "running":
            return ""
        return IN_STEP if told.get("sync_standby") else str(told.get("role", ""))

    def _settings(self) -> dict[str, Any]:
        trusted = [f"{kind} 127.0.0.1/32 trust" for kind in ("host all all", "host replication all")]
        people = {"superuser": "postgres", "replication": "replicator", "rewind": "rewinder"}
        return {
            "scope": "proof",
            "name": self.name,
            "restapi": {"listen": f"127.0.0.1:{self._rest}", "connect_address": f"127.0.0.1:{self._rest}"},
            "etcd3": {"hosts": f"127.0.0.1:{self.locks.port}", "use_proxies": True},
            "bootstrap": {
                "dcs": {
                    "ttl": TTL_S,
                    "loop_wait": 2,
                    "retry_timeout": 3,
                    # A leader whose server crashed hands over; starting it again would take longer.
                    "primary_start_timeout": 0,
                    # An order that was acknowledged is on two servers.
                    "synchronous_mode": True,
                    "postgresql": {
                        "use_pg_rewind": True,
                        "parameters": {
                            "max_connections": 200,
                            "wal_log_hints": "on",
                            "wal_keep_size": "512MB",
                        },
                    },
                },
                "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}, {"auth": "trust"}, "data-checksums"],
                "pg_hba": ["local all all trust", *trusted],
            },
            "postgresql": {
                "listen": f"127.0.0.1:{self._port}",
                "connect_address": self.address,
                "data_dir": str(self.folder / "data"),
                "bin_dir": str(PROGRAMS[-1]),
                "pgpass": str(self.folder / "pgpass"),
                "authentication": {
                    part: {"username": name, "password": "x"} for part, name in people.items()
                },
                "parameters": {"unix_socket_directories": str(self.folder), "jit": "off"},
                # A server that can't be wound back to where the new leader took over is copied from it.
                "remove_data_directory_on_rewind_failure": True,
                "remove_data_directory_on_diverged_timelines": True,
            },
        }


class Trio:
    """The three, and the store of locks that tells them who leads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        port, peer = free_port(), free_port()
        here, others = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer}"
        self._etcd = Program(
            folder, "etcd", "/usr/bin/etcd", "--name", "one", "--data-dir", str(folder / "etcd"),
            "--listen-client-urls", here, "--advertise-client-urls", here,
            "--listen-peer-urls", others, "--initial-advertise-peer-urls", others,
            "--initial-cluster", f"one={others}",
        )  # fmt: skip
        self.nodes = [Node(folder, number, port) for number in range(NODES)]

    @property
    def url(self) -> str:
        """All three addresses, for clients that look for the leader."""
        hosts = ",".join(node.address for node in self.nodes)
        return f"postgresql://postgres:x@{hosts}/postgres?sslmode=disable&target_session_attrs=primary"

    async def start(self) -> None:
        """Start all of it, until one leads and two follow."""
        await self._etcd.start()
        for node in self.nodes:
            await node.start(self._folder)
        await self.whole()

    async def stop(self) -> None:
        """End all of it."""
        for node in self.nodes:
            await node.stop()
        await self._etcd.kill()

    async def leader(self) -> Node:
        """The one that leads now."""

        async def found() -> Node | None:
            for node in self.nodes:
                if await node.role() in LEADS:
                    return node
            return None

        led = await until(found, "nobody leads")
        assert led is not None
        return led

    async def whole(self) -> None:
        """Returns once one leads and two follow, one of them in step."""

        async def in_step() -> bool:
            # Patroni knows it later than the server itself, and until it does nobody takes over.
            roles = [await node.role() for node in self.nodes]
            return sum(role in LEADS for role in roles) == 1 and IN_STEP in roles and "" not in roles

        try:
            await until(in_step, "the trio does not become whole")
        except AssertionError as late:
            raise AssertionError(
                "\n\n".join([str(late), *(node.program.said for node in self.nodes)])
            ) from None


def _own_folder(folder: Path) -> Path:
    """A folder of the database's account in this one, which it may pass through."""
    entry = pwd.getpwnam(ACCOUNT)
    folder.chmod(0o711)
    place = folder / "trio"
    place.mkdir()
    os.chown(place, entry.pw_uid, entry.pw_gid)
    return place


@asynccontextmanager
async def trio(folder: Path, *, disks: bool = False) -> AsyncIterator[Trio]:
    """A running trio, on small disks if told so; nothing of it is left afterwards."""
    made = Trio(_own_folder(folder))
    async with AsyncExitStack() as stack:
        for node in made.nodes if disks else ():
            stack.enter_context(small_disk(node.folder, DISK_MIB))
        stack.push_async_callback(made.stop)
        await made.start()
        yield made
