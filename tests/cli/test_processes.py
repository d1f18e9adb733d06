"""`voucherd serve --processes`: several server processes behind one address."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.cli.terminal import Terminal
from tests.patience import HANG_S, wait_until

READY_S_MAX = HANG_S
SETTLE_S_MAX = HANG_S


@contextmanager
def serving(terminal: Terminal, count: int) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """The parent process and its address; nothing is left of it afterwards."""
    process = terminal.start("serve", "--port", "0", "--processes", str(count), "--json")
    try:
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], READY_S_MAX)
        assert ready
        yield process, json.loads(process.stdout.readline())["baseUrl"]
    finally:
        process.kill()
        process.communicate()


def children(process: subprocess.Popen[bytes]) -> list[int]:
    """The processes that this one started."""
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(pid) for pid in listed.read_text().split()]


def who_answers(address: str) -> set[str]:
    """A process behind the address, by the part of a request's id that each has of its own."""
    return {httpx.get(f"{address}/healthz", timeout=HANG_S).headers["x-request-id"][4:16]}


def gone(pids: list[int]) -> bool:
    """Whether all of them end within a while."""
    return wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


def test_several_processes_share_one_address_and_stop_together(terminal: Terminal) -> None:
    """Server processes hold no state, so any number may serve."""
    with serving(terminal, 2) as (process, address):
        pids = children(process)
        assert len(pids) == 2
        answered = set[str]()
        # Which of them takes a call is the kernel's choice.
        while len(answered) < 2:
            answered |= who_answers(address)

        process.send_signal(signal.SIGTERM)

        assert process.wait(SETTLE_S_MAX) == 0
        assert gone(pids)


def test_a_process_that_dies_is_started_again(terminal: Terminal) -> None:
    """A lost process loses nothing but itself."""
    with serving(terminal, 2) as (process, address):
        before = children(process)
        os.kill(before[0], signal.SIGKILL)
        assert gone(before[:1])

        wait_until(lambda: len(now := children(process)) == 2 and set(now) != set(before))
        assert httpx.get(f"{address}/healthz", timeout=HANG_S).text == "ok"


def test_processes_do_not_outlive_their_parent(terminal: Terminal) -> None:
    """`kill -9` of the parent leaves no process behind that holds the address."""
    with serving(terminal, 2) as (process, _):
        pids = children(process)

        process.kill()

        assert gone(pids)
