"""What the tests see of a server from outside, and other processes that share it."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar, Final

import asyncpg
import pytest

from tests.patience import HANG_S
from voucherd.embedded import place, processes

NEIGHBOUR: Final = Path(__file__).with_name("neighbour.py")
WAIT_S_MAX: Final = HANG_S

needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root switches accounts and mounts file systems"
)


class Neighbour:
    """Another process that uses a data folder until it is told to leave."""

    started: ClassVar[list["Neighbour"]] = []

    def __init__(self, data: Path, kind: str = "owner", *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, NEIGHBOUR, data, place.SYSTEM_ROOT, kind, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.started.append(self)

    @classmethod
    def dismiss_all(cls) -> None:
        """Ends the ones that a failed test has left."""
        while cls.started:
            cls.started.pop().killed()

    @property
    def pid(self) -> int:
        return self.process.pid

    def address(self) -> str:
        """The address it was given, once its server is ready."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        assert line, self.complaint()
        return line

    def complaint(self) -> str:
        """What it said on leaving by itself."""
        return self.process.communicate(timeout=WAIT_S_MAX)[1].strip()

    def leave(self) -> int:
        """Its exit status after it was asked to leave."""
        self.process.communicate(input="leave\n", timeout=WAIT_S_MAX)
        return self.process.returncode

    def killed(self, number: signal.Signals = signal.SIGKILL) -> int:
        """Its exit status after this signal."""
        self.process.send_signal(number)
        if self.process.returncode is None:
            self.process.communicate(timeout=WAIT_S_MAX)
        return self.process.returncode


def query(address: str, sql: str) -> Any:
    """The first column of the first row."""

    async def fetch() -> Any:
        connection = await asyncpg.connect(address)
        try:
            return await connection.fetchval(sql)
        finally:
            await connection.close()

    return asyncio.run(fetch())


def postmaster(data: Path) -> int:
    """The process number of the live server of this folder."""
    settled = place.find(data)
    assert settled is not None
    written = processes.read_pid_file(settled.cluster)
    assert written is not None
    assert processes.is_postmaster(written.pid, settled)
    return written.pid


def is_running(data: Path) -> bool:
    """Whether any process of this folder's server is alive."""
    settled = place.find(data)
    return settled is not None and processes.orphans(settled) != []


def kill_server(data: Path) -> None:
    """Kills every process of the server at once, as a power cut would."""
    settled = place.find(data)
    assert settled is not None
    for pid in sorted(processes.orphans(settled)):
        os.kill(pid, signal.SIGKILL)
    assert processes.wait_until(lambda: not is_running(data), wait_s_max=WAIT_S_MAX)
