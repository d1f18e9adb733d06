"""A server whose owner was killed outright leaves by itself, and no server leaves under somebody who uses it."""

import subprocess
from pathlib import Path

import pytest

from tests.embedded.witness import Neighbour, is_running, postmaster, query
from tests.patience import wait_until
from voucherd.embedded import EmbeddedPostgres, place, processes, running, stop_now, watcher

SOON = ("", "0.05")
"""No other user; and how often its watcher looks."""


def watchers(data: Path) -> list[int]:
    """The live watchers of this folder, and for a moment the program that one is just about to start."""
    where = place.find(data)
    assert where is not None
    return [pid for pid, *_ in processes.everything() if processes.is_watcher(pid, where)]


def test_a_server_whose_owner_was_killed_leaves_by_itself(made: Path) -> None:
    """OP-111: it is stopped cleanly, without the next command, and its watcher goes, too."""
    owner = Neighbour(made, "owner", *SOON)
    owner.address()
    owner.killed()
    wait_until(lambda: not is_running(made), "it runs on")
    assert "database system is shut down" in (made / "postgres" / "server.log").read_text()
    wait_until(lambda: not watchers(made), "its watcher stays")


def test_a_server_that_a_command_still_uses_is_not_stopped_under_it(made: Path) -> None:
    """OP-111: the server of a killed owner goes with its last user, whichever way that one leaves."""
    owner = Neighbour(made)
    address = owner.address()
    before = postmaster(made)
    command = Neighbour(made, "command")
    command.address()
    owner.killed()
    assert watcher._is_over(EmbeddedPostgres(made)) is False
    assert postmaster(made) == before
    assert query(address, "SELECT 1") == 1
    command.killed()
    assert watcher._is_over(EmbeddedPostgres(made)) is True
    assert not is_running(made)


def test_a_server_has_one_watcher_which_goes_with_it(made: Path) -> None:
    """OP-111: however many use it; who stops the server sends the watcher away."""
    with running(made, exclusive=True):
        wait_until(lambda: len(watchers(made)) == 1, "not one watcher")
        with running(made, exclusive=False):
            wait_until(lambda: len(watchers(made)) == 1, "not one watcher")
    wait_until(lambda: not watchers(made), "its watcher stays")
    assert not (made / "postgres" / watcher.PID_FILE).exists()


def test_the_next_owner_after_a_kill_is_watched_as_well(made: Path) -> None:
    """OP-111: it takes the server over, and the watcher with it."""
    owner = Neighbour(made)
    owner.address()
    owner.killed()
    with running(made, exclusive=True) as address:
        assert query(address, "SELECT 1") == 1
        wait_until(lambda: len(watchers(made)) == 1, "not one watcher")


def test_a_server_that_is_stopped_under_its_users_is_not_watched_any_more(made: Path) -> None:
    """OP-111: there is nothing to watch."""
    with running(made, exclusive=True):
        assert stop_now(made) is True
        wait_until(lambda: not watchers(made), "its watcher stays")


def test_a_child_that_dies_between_two_looks_is_reaped(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OP-111: a watcher that was sent away leaves no dead process behind in who sent it."""
    where = place.find(made)
    assert where is not None
    child = subprocess.Popen(["/bin/sleep", "60"])
    processes.keep(child)

    def die(_: int) -> None:
        child.terminate()

    monkeypatch.setattr(processes, "_describe", die)
    assert not processes.is_watcher(child.pid, where)
    assert child.returncode is not None
    assert child.pid not in processes._children
