"""deploy/compose.yaml: compose accepts it, and its services run as it says, with a root that nobody can write."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import asyncpg
import httpx
import pytest
import yaml

from tests.anywhere.installed import EMBEDDED, ROOT, Installed, clean_environment
from tests.anywhere.programs import first_line, free_ports, needed, running
from tests.anywhere.sandbox import UID, Sandbox, interpreter, refuse_without_root
from tests.patience import HANG_S, until, wait_until
from voucherd.embedded import binaries

FILE: Final = ROOT / "deploy" / "compose.yaml"


def _compose() -> list[str]:
    """The command of whichever compose is here."""
    docker = shutil.which("docker")
    if (
        docker
        and subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode == 0
    ):
        return [docker, "compose"]
    return [needed("docker-compose")]


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    """The file as compose understands it: its anchors followed, its variables filled in."""
    done = subprocess.run(
        [*_compose(), "--file", str(FILE), "config"],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
        env=clean_environment(),
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = yaml.safe_load(done.stdout)
    return found


def test_every_service_is_read_only_without_rights_and_has_its_secrets_as_files(
    described: dict[str, Any],
) -> None:
    """OP-127: two API processes, a worker and the migrations; no password is in the file or in the environment."""
    services = described["services"]
    assert set(services) == {"db", "migrate", "api1", "api2", "worker"}
    for name, service in services.items():
        assert service["read_only"] is True, name
        assert service["secrets"], name
        assert not [
            word for word in service["environment"].values() if "://" in str(word) and "@" in str(word)
        ]
        if name != "db":
            assert (service["user"], service["cap_drop"]) == (f"{UID}:{UID}", ["ALL"])
            assert service["security_opt"] == ["no-new-privileges:true"]
    assert all("healthcheck" in services[name] for name in ("db", "api1", "api2"))
    # Only the migrations know the owner of the tables.
    holders = {
        name for name in services for one in services[name]["secrets"] if one["source"] == "owner.toml"
    }
    assert holders == {"migrate"}


class Machine:
    """The services of the file, each in a root of its own, on the network of this machine."""

    def __init__(self, services: dict[str, Any], environment: Installed, folder: Path) -> None:
        self.services = services
        self.environment = environment
        self.secrets = folder / "compose" / "secrets"
        self.folder = folder
        self.ports = dict(zip(("db", "api1", "api2"), free_ports(3), strict=True))
        for name in ("service.toml", "owner.toml"):
            file = self.secrets / name
            file.chmod(0o600)
            # The only thing that is another than in a container: all share one network, so ports differ.
            file.write_text(file.read_text().replace("@db/", f"@db:{self.ports['db']}/"))

    def sandbox(self, name: str) -> Sandbox:
        """What the container of a service sees."""
        service = self.services[name]
        kept = {}
        for volume in service.get("volumes", ()):
            source, place = (
                volume.split(":")[:2] if isinstance(volume, str) else (volume["source"], volume["target"])
            )
            if not source.endswith(".sh"):
                kept[place] = self._volume(source.rpartition("/")[2])
        return Sandbox(
            seen=(*interpreter(), self.environment.folder),
            kept=kept,
            secrets={one["source"]: self.secrets / one["source"] for one in service["secrets"]},
            memory=service.get("tmpfs", ()),
        )

    def command(self, name: str) -> list[str]:
        """The command line of a service, as the file says."""
        service = self.services[name]
        program = str(self.environment.program)
        env = {"PATH": "/usr/bin:/bin", "VOUCHERD_DATA": "/data"} | service["environment"]
        if name in self.ports:
            env |= {"VOUCHERD_PORT": str(self.ports[name])}
        return self.sandbox(name).command([program, *service["command"], "--json"], env)

    def healthy(self, name: str) -> bool:
        """Whether the health check of a service, as the file says, is content."""
        kind, *words = self.services[name]["healthcheck"]["test"]
        assert kind == "CMD"
        words = [word.replace("127.0.0.1:8080", f"127.0.0.1:{self.ports[name]}") for word in words]
        path = f"{self.environment.program.parent}:{binaries()}:/usr/bin:/bin"
        env = {"PATH": path, "PGPORT": str(self.ports["db"])}
        checked = subprocess.run(
            self.sandbox(name).command(words, env), capture_output=True, timeout=HANG_S, check=False
        )
        return checked.returncode == 0

    @contextmanager
    def database(self) -> Iterator[None]:
        """PostgreSQL as its image makes it: a superuser, then our roles by our script."""
        sandbox = self.sandbox("db")
        cluster, port = "/var/lib/postgresql/data", self.ports["db"]
        env = {"PATH": f"{binaries()}:/usr/bin:/bin", "PGHOST": "/run/postgresql", "PGPORT": str(port)}
        make = [
            "initdb",
            "-D",
            cluster,
            "-U",
            "postgres",
            "--auth-local=trust",
            "--auth-host=scram-sha-256",
            "-N",
        ]
        options = f"-k /run/postgresql -p {port} -c fsync=off -c dynamic_shared_memory_type=mmap"
        # All in one namespace, as in one container: the socket is in its memory.
        roles = ROOT / "deploy" / "compose" / "roles.sh"
        then = f"(until pg_isready -q; do sleep 0.05; done; sh {roles}; echo made) &"
        script = f"{' '.join(make)} >/dev/null; {then} exec postgres -D {cluster} {options}"
        with running(sandbox.command(["/bin/sh", "-euc", script], env), clean_environment()) as process:
            line = first_line(process)
            while line != b"made\n":
                line = first_line(process)
            yield

    def _volume(self, name: str) -> Path:
        volume = self.folder / "volumes" / name
        volume.mkdir(parents=True, exist_ok=True)
        shutil.chown(volume, UID, UID)
        return volume


@pytest.fixture
def machine(described: dict[str, Any], environment: Installed, tmp_path: Path) -> Machine:
    """The machine, with its secrets made as the file says."""
    refuse_without_root()
    shutil.copytree(
        ROOT / "deploy" / "compose", tmp_path / "compose", ignore=shutil.ignore_patterns("secrets")
    )
    subprocess.run([tmp_path / "compose" / "secrets.sh"], check=True, timeout=HANG_S)
    return Machine(described["services"], environment, tmp_path)


def _ended(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)


async def test_the_services_run_as_the_file_says(machine: Machine) -> None:
    """OP-127: PostgreSQL, migrations, two API processes and a worker, each with a root that nobody can write."""
    look = "touch /x /usr/x 2>&1; id -u; grep CapEff /proc/self/status; touch /tmp/x && echo writes to /tmp"
    seen = _ended(machine.sandbox("api1").command(["/bin/sh", "-c", look], {"PATH": "/usr/bin:/bin"}))
    assert seen.stdout.count("Read-only file system") == 2, seen
    assert f"\n{UID}\n" in seen.stdout
    assert "0000000000000000\nwrites to /tmp" in seen.stdout
    with machine.database(), ExitStack() as started:
        wait_until(lambda: machine.healthy("db"))
        migrated = _ended(machine.command("migrate"))
        assert migrated.returncode == 0, migrated.stderr
        for name in ("api1", "api2", "worker"):
            process = started.enter_context(running(machine.command(name), clean_environment()))
            said = json.loads(first_line(process))
            assert said == {"working": True} if name == "worker" else "baseUrl" in said
        async with httpx.AsyncClient(timeout=HANG_S) as client:
            for name in ("api1", "api2"):
                assert machine.healthy(name)
                ready = await client.get(f"http://127.0.0.1:{machine.ports[name]}/readyz")
                assert (ready.status_code, ready.text) == (200, "ready")
        await _worker_was_seen(machine)
    assert EMBEDDED not in str(list(machine.environment.package.parent.iterdir()))


async def _worker_was_seen(machine: Machine) -> None:
    """Returns once the worker has left a sign of life in the database, as the role that owns nothing."""
    password = (machine.secrets / "service_password").read_text()
    address = f"postgresql://voucherd_service:{password}@127.0.0.1:{machine.ports['db']}/voucherd"
    connection = await asyncpg.connect(address)
    try:
        await until(
            lambda: connection.fetchval("SELECT count(*) FROM process_seen WHERE works"), "no worker was seen"
        )
    finally:
        await connection.close()
