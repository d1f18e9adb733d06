"""The benchmark itself works: a run of seconds prints its table. What it says of speed is nobody's business here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.jobs import jain, spread
from bench.stage import ChildFailed, Stage
from tests.patience import HANG_S
from voucherd.db import Pool

ROOT = Path(__file__).parents[2]


@pytest.mark.soak
def test_a_quick_run_prints_the_table() -> None:
    """The lifecycle part, as short as it gets, from PostgreSQL's start to its end."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "bench", "--quick", "lifecycle", "--connections", "2"),
            *("--load-s", "0.3", "--warm-s", "0.1", "--wallets", "5", "--stock", "8000"),
            *("--history", "64", "--pgbench-scale", "1"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("| what ")
    for start in ("pgbench TPC-B", "create+confirm, 5 wallets, 2 conn.", "create+confirm, one hot wallet"):
        assert any(line.startswith(f"| {start}") for line in lines), done.stdout
    # The sampled access log has a line or more by now, which nobody wants to read here.
    assert "The server said" not in done.stderr
    assert '"event"' not in done.stderr


async def test_what_the_server_said_is_shown_when_it_fails(
    pool: Pool, database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever measures sees why there is nothing to measure."""
    stage = Stage(tmp_path, database_url, database_url, pool, os.getpid())

    with pytest.raises(ChildFailed, match="the server does not start"):
        async with stage.server(log_level="loud"):
            pass

    assert "VOUCHERD_LOG_LEVEL" in capsys.readouterr().err


def test_the_points_of_a_distribution() -> None:
    """The median and the 99th percentile are values that occurred."""
    times = spread([at / 1000 for at in range(1, 101)])

    assert (times.calls, times.p50_ms, times.p99_ms, times.max_ms) == (100, 50, 99, 100)
    assert spread([]).calls == 0


def test_fairness_is_one_when_all_get_the_same() -> None:
    """Jain's index lies between 1/n and 1."""
    assert jain([7, 7, 7]) == 1
    assert jain([9, 0, 0]) == 1 / 3
    assert jain([]) == 0
