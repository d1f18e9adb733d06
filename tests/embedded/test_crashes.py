"""What is left after a kill or a power cut: data that is whole, and never two servers."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.embedded.witness import WAIT_S_MAX, Neighbour, is_running, kill_server, postmaster, query
from voucherd.embedded import EmbeddedError, cluster, place, processes, running, stop_now


def test_a_killed_owners_server_is_adopted_and_not_started_twice(made: Path) -> None:
    """After kill -9 of the owner the next one goes on with the same server, and stops it at its end."""
    owner = Neighbour(made)
    owner.address()
    before = postmaster(made)
    owner.killed()
    assert postmaster(made) == before
    with running(made, exclusive=True) as address:
        assert postmaster(made) == before
        assert query(address, "SELECT 1") == 1
    assert not is_running(made)


def test_an_orphan_with_other_settings_is_started_anew(made: Path) -> None:
    """An owner gets the settings it asked for, also where an orphan runs with others."""
    owner = Neighbour(made)
    owner.address()
    before = postmaster(made)
    owner.killed()
    with running(made, exclusive=True, settings={"work_mem": "9MB"}) as address:
        assert postmaster(made) != before
        assert query(address, "SHOW work_mem") == "9MB"


def test_a_server_found_stopping_is_waited_for_and_started_again(made: Path) -> None:
    """A start during somebody else's stop gets a fresh server and not a closing one."""
    owner = Neighbour(made)
    owner.address()
    before = postmaster(made)
    owner.killed()
    os.kill(before, signal.SIGINT)
    assert processes.wait_until(lambda: not _is_ready(made), wait_s_max=WAIT_S_MAX)
    with running(made, exclusive=True) as address:
        assert postmaster(made) != before
        assert query(address, "SELECT 1") == 1


def test_a_power_cut_loses_nothing_that_was_committed(made: Path) -> None:
    """kill -9 of the owner and of every server process at once; the next start has every row."""
    owner = Neighbour(made)
    address = owner.address()
    query(address, "CREATE TABLE paid AS SELECT n FROM generate_series(1, 1000) AS n")
    os.kill(owner.pid, signal.SIGSTOP)  # Its watch must not be faster than the power cut.
    kill_server(made)
    owner.killed()
    assert (made / "postgres" / "cluster" / "postmaster.pid").exists()
    with running(made, exclusive=True) as address:
        assert query(address, "SELECT sum(n) FROM paid") == 500_500


def test_a_killed_postmaster_comes_back_under_its_users(made: Path) -> None:
    """The watch of a live owner starts a killed server again, with the data, under the same address."""
    with running(made, exclusive=True) as address:
        query(address, "CREATE TABLE kept AS SELECT 7 AS n")
        before = postmaster(made)
        os.kill(before, signal.SIGKILL)
        assert processes.wait_until(lambda: _answers(address), wait_s_max=WAIT_S_MAX)
        assert postmaster(made) != before
        assert query(address, "SELECT n FROM kept") == 7
    assert not is_running(made)


def test_a_stuck_child_of_a_killed_postmaster_does_not_block_the_next_start(made: Path) -> None:
    """A stopped backend keeps the old memory in use; it is ended, as its postmaster is gone."""
    owner = Neighbour(made)
    owner.address()
    settled = place.settle(made)
    before = postmaster(made)
    stuck = next(pid for pid in processes.orphans(settled) if pid != before)
    owner.killed()
    os.kill(stuck, signal.SIGSTOP)
    os.kill(before, signal.SIGKILL)
    assert processes.wait_until(lambda: not processes.is_postmaster(before, settled), wait_s_max=WAIT_S_MAX)
    with running(made, exclusive=True) as address:
        assert query(address, "SELECT 1") == 1
        assert stuck not in processes.orphans(settled)


@pytest.mark.parametrize("whose", ["the server's account", "ours"])
def test_a_stale_pid_file_that_names_a_stranger_neither_stops_us_nor_hurts_it(made: Path, whose: str) -> None:
    """PostgreSQL would refuse to start over a live process of its user; we know that it is another."""
    with running(made, exclusive=True):
        written = (made / "postgres" / "cluster" / "postmaster.pid").read_text()
    account = place.settle(made).account
    user = account.uid if account.switches and whose != "ours" else None
    with subprocess.Popen(["/bin/sleep", "60"], user=user) as stranger:
        _, _, rest = written.partition("\n")
        _write_pid_file(made, f"{stranger.pid}\n{rest}")
        with running(made, exclusive=True) as address:
            assert query(address, "SELECT 1") == 1
        assert stranger.poll() is None
        stranger.kill()


@pytest.mark.parametrize("content", ["", "nonsense\n", "1\n", "-77\n", "99999999999\n"])
def test_a_broken_pid_file_is_survived(made: Path, content: str) -> None:
    """Whatever a power cut left of the file, no process is believed or signalled on its word."""
    _write_pid_file(made, content)
    with running(made, exclusive=True) as address:
        assert query(address, "SELECT 1") == 1


def test_a_copy_of_a_running_folder_does_not_adopt_the_originals_server(made: Path, base: Path) -> None:
    """The copied pid file names a live postmaster, but of the other folder: the copy gets its own."""
    owner = Neighbour(made)
    owner.address()
    original = postmaster(made)
    copied = base / "copy"
    subprocess.run(["/bin/cp", "-a", made, copied], check=True)
    with running(copied, exclusive=True):
        assert postmaster(copied) != original
    assert postmaster(made) == original
    assert owner.leave() == 0


def test_a_server_that_cannot_be_seen_is_neither_doubled_nor_disturbed(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In another container its processes are invisible, but its socket answers: that is an error."""
    owner = Neighbour(made)
    address = owner.address()
    written = (made / "postgres" / "cluster" / "postmaster.pid").read_bytes()
    with monkeypatch.context() as blind:
        blind.setattr(processes, "_describe", lambda pid: None)
        with pytest.raises(EmbeddedError, match="cannot be seen from here"), running(made, exclusive=False):
            pytest.fail("it started")
    assert (made / "postgres" / "cluster" / "postmaster.pid").read_bytes() == written
    assert query(address, "SELECT 1") == 1
    assert owner.leave() == 0


def test_a_server_interrupted_before_it_wrote_its_file_is_ended_too(made: Path) -> None:
    """Without a file nothing points to the process; it is known by its account and command line."""
    owner = Neighbour(made)
    owner.address()
    owner.killed()
    (made / "postgres" / "cluster" / "postmaster.pid").unlink()
    stop_now(made)
    assert not is_running(made)


@pytest.mark.parametrize("after_s", [0.2, 0.4, 0.6])
def test_a_first_start_that_is_killed_half_way_leaves_a_startable_folder(data: Path, after_s: float) -> None:
    """The database is made under another name, so it is whole or not there; leftovers are removed."""
    owner = Neighbour(data)
    time.sleep(after_s)
    owner.killed()
    with running(data, exclusive=True) as address:
        assert query(address, "SELECT current_database()") == "voucherd"
    assert processes.wait_until(lambda: not _is_being_made(data), wait_s_max=WAIT_S_MAX)
    with running(data, exclusive=True):
        assert list((data / "postgres").glob(f"{cluster.HALF_MADE}*")) == []
    assert not is_running(data)


def test_the_server_is_recognised_without_proc_too(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no /proc, as on macOS, ps tells our server from other processes."""
    with running(made, exclusive=True):
        settled, pid = place.settle(made), postmaster(made)
        seen = set(processes.orphans(settled))
        monkeypatch.setattr(processes, "PROC", Path("/nowhere"))
        assert processes.is_postmaster(pid, settled)
        assert not processes.is_postmaster(os.getpid(), settled)
        assert not processes.is_postmaster(2**22 - 1, settled)
        assert {pid} <= set(processes.orphans(settled)) & seen
        assert sys.platform != "linux" or len(seen) > 3


def test_a_folder_renamed_under_its_orphan_is_still_recognised(made: Path, base: Path) -> None:
    """The server's command line names the old path, so where it works decides."""
    owner = Neighbour(made)
    owner.address()
    before = postmaster(made)
    owner.killed()
    try:
        Path(f"/proc/{before}/cwd").readlink()
    except OSError as refused:
        pytest.skip(f"where another account's process works cannot be seen here: {refused}")
    moved = base / "moved"
    made.rename(moved)
    with running(moved, exclusive=True) as address:
        assert postmaster(moved) != before
        assert query(address, "SELECT 1") == 1
    assert not processes.is_postmaster(before, place.settle(moved))
    moved.rename(made)


def _is_being_made(data: Path) -> bool:
    return any(f"{data}/postgres/{cluster.HALF_MADE}" in command for _, _, command in processes.everything())


def _is_ready(data: Path) -> bool:
    written = processes.read_pid_file(data / "postgres" / "cluster")
    return written is not None and written.status == "ready"


def _answers(address: str) -> bool:
    try:
        return bool(query(address, "SELECT 1") == 1)
    except Exception:  # noqa: BLE001 - While the server is down, a driver may fail in many ways.
        return False


def _write_pid_file(data: Path, content: str) -> None:
    settled = place.settle(data)
    path = settled.cluster / "postmaster.pid"
    path.write_text(content)
    if settled.account.switches:
        os.chown(path, settled.account.uid, settled.account.gid)
