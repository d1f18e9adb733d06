"""One server per data folder, however many processes use it."""

import stat
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.embedded.witness import Neighbour, is_running, postmaster, query
from voucherd.embedded import (
    AlreadyRunning,
    EmbeddedError,
    EmbeddedPostgres,
    binaries,
    running,
    stop_now,
    throwaway,
)


def test_the_first_start_makes_a_database_with_checksums_utf8_and_utc(data: Path) -> None:
    """A new folder becomes a running database, and the server is gone when the block ends."""
    with running(data, exclusive=True) as address:
        shown = {
            name: query(address, f"SHOW {name}")
            for name in ("data_checksums", "server_encoding", "timezone", "jit", "listen_addresses")
        }
        assert query(address, "SELECT lower('ÄÖ') || current_database()") == "äövoucherd"
    assert shown == {
        "data_checksums": "on",
        "server_encoding": "UTF8",
        "timezone": "UTC",
        "jit": "off",
        "listen_addresses": "",
    }
    assert not is_running(data)


def test_what_was_committed_is_durable_and_nobody_can_weaken_that(data: Path) -> None:
    """A file or ALTER SYSTEM does not beat the supervisor's settings, and a caller is refused."""
    with running(data, exclusive=True):
        pass
    with (data / "postgres" / "cluster" / "postgresql.auto.conf").open("a") as file:
        file.write("fsync = off\nfull_page_writes = off\nsynchronous_commit = off\nlisten_addresses = '*'\n")
    with running(data, exclusive=True) as address:
        for name in ("fsync", "full_page_writes", "synchronous_commit"):
            assert query(address, f"SHOW {name}") == "on"
        assert query(address, "SHOW listen_addresses") == ""
    with (
        pytest.raises(EmbeddedError, match="does not allow to set fsync, listen_addresses"),
        running(data, exclusive=True, settings={"fsync": "off", "listen_addresses": "*"}),
    ):
        pytest.fail("it started")


def test_the_service_is_no_superuser_and_nobody_can_log_in_as_one(made: Path) -> None:
    """The service owns its database and may make others, and the superuser has no password."""
    with running(made, exclusive=True) as address:
        assert query(address, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user") is False
        query(address, "CREATE DATABASE another")
        with pytest.raises(Exception, match="password authentication failed"):
            query(address.replace("//voucherd:", "//postgres:"), "SELECT 1")


def test_the_password_is_random_and_only_its_owner_can_read_it(made: Path) -> None:
    """The password file is 0600, the address carries its content, and a wrong one is refused."""
    with running(made, exclusive=True) as address:
        secret = made / "postgres" / "password"
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600
        assert len(secret.read_text()) == 64
        assert f":{secret.read_text()}@" in address
        with pytest.raises(Exception, match="password authentication failed"):
            query(address.replace(secret.read_text(), "guess"), "SELECT 1")


def test_a_second_owner_is_refused_and_told_who_is_there(made: Path) -> None:
    """AlreadyRunning names the folder and the other process, and the first owner is not disturbed."""
    owner = Neighbour(made)
    address = owner.address()
    with (
        pytest.raises(AlreadyRunning, match=rf"already running on {made} \(pid {owner.pid}\)"),
        running(made, exclusive=True),
    ):
        pytest.fail("it started")
    assert query(address, "SELECT 1") == 1
    assert owner.leave() == 0
    assert not is_running(made)


def test_a_command_uses_the_owners_server_and_leaves_it_running(made: Path) -> None:
    """A command beside an owner gets the same server, and its end does not stop it."""
    owner = Neighbour(made)
    address = owner.address()
    before = postmaster(made)
    with running(made, exclusive=False) as same:
        assert same == address
    assert postmaster(made) == before
    assert owner.leave() == 0
    assert not is_running(made)


def test_two_commands_share_one_server_and_the_last_one_stops_it(made: Path) -> None:
    """Without an owner the first command starts the server, and it stays until the last one leaves."""
    first, second = Neighbour(made, "command"), Neighbour(made, "command")
    assert first.address() == second.address()
    before = postmaster(made)
    assert first.leave() == 0
    assert postmaster(made) == before
    assert second.leave() == 0
    assert not is_running(made)


def test_an_owner_that_leaves_first_lets_a_command_finish(made: Path) -> None:
    """The server goes with its last user, so an import in progress is not cut off."""
    owner = Neighbour(made)
    address = owner.address()
    command = Neighbour(made, "command")
    command.address()
    assert owner.leave() == 0
    assert query(address, "SELECT 1") == 1
    assert command.leave() == 0
    assert not is_running(made)


def test_five_starts_at_once_on_a_new_folder_make_one_server(data: Path) -> None:
    """Racing first starts agree on one database, one password and one server."""
    crowd = [Neighbour(data, "command") for _ in range(5)]
    assert len({one.address() for one in crowd}) == 1
    postmaster(data)
    assert [one.leave() for one in crowd] == [0] * 5
    assert not is_running(data)


def test_of_two_owners_at_once_exactly_one_stays(data: Path) -> None:
    """Racing owners: one runs, the other leaves with a clear line."""
    rivals = [Neighbour(data), Neighbour(data)]
    assert sorted(rival.leave() for rival in rivals) in ([0, 0], [0, 1])
    assert not is_running(data)


def test_stop_now_stops_a_server_whose_users_were_killed(made: Path) -> None:
    """An orphan can be stopped without starting anything, and a stopped server cannot be stopped again."""
    owner = Neighbour(made)
    owner.address()
    owner.killed()
    assert is_running(made)
    assert stop_now(made) is True
    assert not is_running(made)
    assert stop_now(made) is False


def test_stop_now_makes_no_folder(data: Path) -> None:
    """Asking to stop what never was leaves no trace."""
    assert stop_now(data) is False
    assert not data.exists()


def test_stop_now_beats_the_watch_of_a_live_owner(made: Path) -> None:
    """An owner revives a server that was killed, never one that was stopped."""
    with running(made, exclusive=True):
        assert stop_now(made) is True
        with pytest.raises(EmbeddedError, match="no database is running"):
            _ = EmbeddedPostgres(made).dsn


def test_a_throwaway_server_leaves_nothing_behind() -> None:
    """Its folder goes with it."""
    with throwaway(settings={"work_mem": "8MB"}) as address:
        assert query(address, "SHOW work_mem") == "8MB"
        assert query(address, "SHOW fsync") == "off"
        folder = Path(unquote(address.partition("host=")[2].partition("&")[0])).parents[2]
        assert folder.name.startswith("voucherd-")
        assert folder.exists()
    assert not folder.exists()


def test_the_programs_for_backups_and_benchmarks_are_there() -> None:
    """binaries() is the folder of pg_dump, pg_restore, psql and pgbench."""
    assert all((binaries() / name).is_file() for name in ("pg_dump", "pg_restore", "psql", "pgbench"))
