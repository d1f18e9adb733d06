"""Programs that a test starts and ends: the demo's shop, and whatever an example is an example of."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.anywhere.installed import clean_environment
from tests.patience import HANG_S, PATIENT, in_environment


@dataclass(frozen=True)
class OpenShop:
    """A shop that sells: its address, its database, and what the demo hands out."""

    url: str
    database_url: str
    data: Path
    handout: dict[str, Any]

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rpartition(":")[2])

    @property
    def env(self) -> dict[str, str]:
        """What lets a command work on the same shop."""
        return {"VOUCHERD_DATABASE_URL": self.database_url, "VOUCHERD_DATA": str(self.data)}

    def cart(self, amount: int = 1) -> dict[str, Any]:
        """The body of an order of the first product."""
        items = [{"productSlug": self.handout["products"][0], "amount": amount}]
        return {"items": items, "paymentCurrency": "EUR"}

    def bearer(self, whose: str = "live") -> dict[str, str]:
        """The header of a key."""
        return {"Authorization": f"Bearer {self.handout[whose]['key']}"}


def needed(program: str) -> str:
    """The path of a program that Debian has, and that `make test` installs."""
    found = shutil.which(program, path=os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin")
    if found is None:
        pytest.skip(f"{program} is not installed here: `make packages` does it, as root on Debian")
    return found


@contextmanager
def demo(
    data: Path, database_url: str, program: Sequence[str | Path] = (sys.executable, "-m", "voucherd.cli")
) -> Iterator[OpenShop]:
    """The demo on this database, until the block ends."""
    env = clean_environment() | {
        "VOUCHERD_DATABASE_URL": database_url,
        "VOUCHERD_DATA": str(data),
        "VOUCHERD_TRUSTED_PROXIES": "127.0.0.1",
        **in_environment(PATIENT),
    }
    with running([*program, "demo", "--port", "0", "--json"], env) as process:
        handout = json.loads(first_line(process))
        yield OpenShop(handout["baseUrl"], database_url, data, handout)


@contextmanager
def running(command: Sequence[str | Path], env: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A program in a group of its own, ended with the block: politely, then not."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=env,
        cwd="/",
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.communicate(timeout=HANG_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise


def first_line(process: subprocess.Popen[bytes]) -> bytes:
    """The first line that a program prints, once it is ready."""
    assert process.stdout is not None
    ends_at, said = time.monotonic() + HANG_S, b""
    while not said.endswith(b"\n"):
        ready, _, _ = select.select([process.stdout], [], [], max(ends_at - time.monotonic(), 0))
        piece = os.read(process.stdout.fileno(), 1) if ready else b""
        if not piece:
            process.kill()
            raise AssertionError(f"it said {said!r}, then nothing: {process.communicate()[1]!r}")
        said += piece
    return said


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on; all are held while they are chosen, so that no two are the same."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports
