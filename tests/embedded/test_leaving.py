"""However the owner is told to leave, it takes its server along."""

import os
import signal
import threading
import time
from pathlib import Path

import asyncpg
import pytest

from tests.embedded.witness import WAIT_S_MAX, Neighbour, is_running, postmaster, query
from tests.patience import wait_until
from voucherd.embedded import running, shutdown_signals


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=["Ctrl-C", "SIGTERM", "closed terminal"],
)
def test_a_signal_to_the_owners_whole_group_stops_the_server_cleanly(
    made: Path, number: signal.Signals, status: int
) -> None:
    """A terminal signals every process of its group; the server is in none of them and is stopped by us."""
    owner = Neighbour(made)
    owner.address()
    server = postmaster(made)
    assert os.getpgid(server) == server
    assert os.getsid(server) == server
    os.killpg(owner.pid, number)
    owner.process.communicate(timeout=WAIT_S_MAX)
    assert owner.process.returncode == status
    assert not is_running(made)
    assert "database system is shut down" in (made / "postgres" / "server.log").read_text()


def test_impatient_signals_do_not_disturb_the_leaving(made: Path) -> None:
    """The second and third Ctrl-C come while the server is being stopped, and it is stopped all the same."""
    owner = Neighbour(made)
    owner.address()
    owner.process.send_signal(signal.SIGTERM)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGINT):
        if owner.process.poll() is None:
            owner.process.send_signal(number)
        time.sleep(0.01)
    owner.process.communicate(timeout=WAIT_S_MAX)
    assert not is_running(made)


@pytest.mark.parametrize("after_s", [0.1, 0.3, 0.6])
def test_ctrl_c_during_the_first_start_leaves_no_server(data: Path, after_s: float) -> None:
    """Whatever the start was doing, no process stays behind and the folder can be started."""
    owner = Neighbour(data)
    time.sleep(after_s)
    os.killpg(owner.pid, signal.SIGINT)
    owner.process.communicate(timeout=WAIT_S_MAX)
    assert not is_running(data)
    with running(data, exclusive=True) as address:
        assert query(address, "SELECT 1") == 1


def test_an_exception_in_the_block_stops_the_server_and_comes_out(made: Path) -> None:
    """The block's own error is not hidden, not even one that looks like the system's."""
    with pytest.raises(FileNotFoundError, match="mine"), running(made, exclusive=True):
        raise FileNotFoundError("mine")
    assert not is_running(made)


def test_signals_are_given_back_after_the_block() -> None:
    """The handlers of before are in place again, and an ignored SIGHUP stayed ignored, as under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        term = signal.getsignal(signal.SIGTERM)
        with shutdown_signals():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is not term
        assert signal.getsignal(signal.SIGTERM) is term
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_client_that_stays_connected_does_not_hold_up_the_stop(made: Path) -> None:
    """A pool that was not closed is disconnected; the stop takes moments, not the pool's lifetime."""
    owner = Neighbour(made)
    address = owner.address()
    sleeping = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"

    def stop_it() -> None:
        wait_until(lambda: query(address, sleeping))
        owner.process.send_signal(signal.SIGTERM)

    stopping = threading.Thread(target=stop_it)
    stopping.start()
    with pytest.raises(asyncpg.PostgresError, match="terminating connection"):
        query(address, "SELECT pg_sleep(3600)")
    stopping.join()
    owner.process.communicate(timeout=WAIT_S_MAX)
    assert not is_running(made)
