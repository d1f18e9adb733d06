"""A link that is really cut: the host at its other end is in a network of its own, and the cable is pulled."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.patience import HANG_S, until
from voucherd.connections import COMMAND, connect
from voucherd.embedded import throwaway, tuning

OURS, THEIRS = "10.203.17.1", "10.203.17.2"
_HOLD = """
import asyncio, sys
from voucherd.connections import Limits, connect

async def hold():
    for _ in range(100):
        try:
            session = await connect(sys.argv[1], Limits(0, 0, 0))
            break
        except Exception:  # The server has not read yet that we may come in.
            await asyncio.sleep(0.1)
    await session.execute("BEGIN; SELECT pg_advisory_xact_lock(17)")
    print(await session.fetchval("SELECT pg_backend_pid()"), flush=True)
    await asyncio.sleep(3600)

asyncio.run(hold())
"""
"""Holds a lock without any limit of pauses, so that nothing but the link can end its session."""


@contextmanager
def network() -> Iterator[tuple[str, str]]:
    """A network of its own, at the end of a cable; its name, and that of its end of the cable."""
    name = f"v{secrets.token_hex(4)}"
    ours, theirs = f"{name}a", f"{name}b"
    steps = (
        f"netns add {name}",
        f"link add {ours} type veth peer name {theirs}",
        f"link set {theirs} netns {name}",
        f"addr add {OURS}/30 dev {ours}",
        f"link set {ours} up",
        f"-n {name} addr add {THEIRS}/30 dev {theirs}",
        f"-n {name} link set {theirs} up",
    )
    try:
        for step in steps:
            subprocess.run(["ip", *step.split()], check=True, capture_output=True, timeout=HANG_S)  # noqa: S607
        yield name, theirs
    finally:
        subprocess.run(["ip", "link", "del", ours], check=False, capture_output=True, timeout=HANG_S)  # noqa: S607
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True, timeout=HANG_S)  # noqa: S607


@asynccontextmanager
async def holding(name: str, url: str) -> AsyncIterator[int]:
    """The session of a process in that network, which holds a lock."""
    command = ("ip", "netns", "exec", name, sys.executable, "-c", _HOLD, url)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield int(await asyncio.wait_for(process.stdout.readline(), HANG_S))
    finally:
        process.kill()
        await process.communicate()


def _let_in(hba: Path) -> None:
    with hba.open("a") as file:
        file.write(f"host all all {THEIRS}/32 scram-sha-256\n")
    # The server, which is this test's own, reads it anew.
    os.kill(int(hba.with_name("postmaster.pid").read_text().split()[0]), signal.SIGHUP)


@pytest.mark.soak
async def test_the_server_ends_the_session_of_a_host_whose_cable_is_pulled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """OP-106: nobody says that the host is gone; the server notices that nothing is acknowledged."""
    if os.getuid() != 0 or shutil.which("ip") is None:
        pytest.skip("only root can make networks with `ip`: a cut link is NOT tested here")
    with network() as (name, cable):
        monkeypatch.setitem(tuning.PRIVATE, "listen_addresses", OURS)
        with throwaway() as url:
            watching = await connect(url, COMMAND)
            await asyncio.to_thread(_let_in, Path(await watching.fetchval("SHOW hba_file")))
            parts = urlsplit(url)
            far = parts._replace(netloc=f"{parts.username}:{parts.password}@{OURS}:5432", query="").geturl()
            async with holding(name, far) as session:
                assert not await watching.fetchval("SELECT pg_try_advisory_xact_lock(17)")
                subprocess.run(["ip", "-n", name, "link", "set", cable, "down"], check=True, timeout=HANG_S)  # noqa: ASYNC221, S607

                async def gone() -> bool:
                    return not await watching.fetchval(
                        "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)", session
                    )

                await until(gone, "the server never noticed that the host is gone")
                assert await watching.fetchval("SELECT pg_try_advisory_xact_lock(17)")
            await watching.close()
