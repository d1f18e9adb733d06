"""PostgreSQL refuses root: root gets a server under an account that nobody else uses."""

import os
import pwd
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from tests.embedded.witness import Neighbour, is_running, needs_root, postmaster, query
from voucherd.embedded import EmbeddedError, binaries, place, processes, programs, running
from voucherd.embedded.account import PRIVATE_IDS, private

pytestmark = needs_root
NOBODY = 65_534


def test_root_runs_the_server_as_a_number_without_a_name(data: Path) -> None:
    """No login user is made or borrowed: the account has no passwd entry, so no daemon shares it."""
    entries = Path("/etc/passwd").read_text()
    with running(data, exclusive=True):
        status = Path(f"/proc/{postmaster(data)}/status").read_text()
    numbers = next(line for line in status.splitlines() if line.startswith("Uid:")).split()[1:]
    groups = next(line for line in status.splitlines() if line.startswith("Groups:")).split()[1:]
    assert len(set(numbers)) == 1
    assert int(numbers[0]) in PRIVATE_IDS
    assert set(groups) <= {numbers[0]}
    with pytest.raises(KeyError):
        pwd.getpwuid(int(numbers[0]))
    assert Path("/etc/passwd").read_text() == entries


def test_folders_that_are_not_ours_keep_their_permissions(base: Path) -> None:
    """A data folder that the operator made stays as it was; only what we make in it is ours."""
    given = base / "given"
    given.mkdir(mode=0o755)
    before = [_permissions(folder) for folder in (given, *given.parents)]
    with running(given, exclusive=True):
        pass
    assert [_permissions(folder) for folder in (given, *given.parents)] == before
    assert _permissions(given / "postgres") == (0o710, 0, private().gid)


def test_other_users_get_neither_at_the_password_nor_at_the_socket(data: Path) -> None:
    """Another user who knows even the password cannot reach the server, and cannot read the data."""
    with running(data, exclusive=True) as address:
        login = subprocess.run(
            [binaries() / "psql", address, "-c", "SELECT 1"],
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Permission denied" in login.stderr
        for path in ("postgres/password", "postgres/cluster/PG_VERSION", "postgres/server.log"):
            read = subprocess.run(
                ["/bin/cat", data / path],
                user=NOBODY,
                group=NOBODY,
                extra_groups=[],
                capture_output=True,
                check=False,
            )
            assert b"Permission denied" in read.stderr


def test_a_data_folder_that_the_server_cannot_reach_gets_its_database_in_the_system_folder(
    base: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As under /root: nobody's permissions change, the operator is told where, and the data is found again."""
    closed = base / "closed"
    closed.mkdir(mode=0o700)
    data = closed / "data"
    with running(data, exclusive=True) as address:
        query(address, "CREATE TABLE kept AS SELECT 7 AS n")
        home = next(place.SYSTEM_ROOT.glob("*-*"))
        assert f"cannot reach {data}: its database is in {home}" in caplog.text
    assert _permissions(closed) == (0o700, 0, 0)
    moved = closed / "moved"
    data.rename(moved)
    with running(moved, exclusive=True) as address:
        assert query(address, "SELECT n FROM kept") == 7
    shutil.rmtree(home)
    with pytest.raises(EmbeddedError, match="which is not there any more"), running(moved, exclusive=True):
        pytest.fail("it started with an empty database")


def test_two_first_starts_at_once_agree_on_the_system_folder(base: Path) -> None:
    """Of two that look for another place at once, one decides for both."""
    closed = base / "closed"
    closed.mkdir(mode=0o700)
    pair = [Neighbour(closed / "data", "command"), Neighbour(closed / "data", "command")]
    assert pair[0].address() == pair[1].address()
    assert [one.leave() for one in pair] == [0, 0]
    assert not is_running(closed / "data")


def test_a_database_that_has_become_unreachable_is_not_replaced_by_an_empty_one(
    made: Path, base: Path
) -> None:
    """Moved under a closed folder, the data is there but out of reach: that is said, nothing is made."""
    closed = base / "closed"
    closed.mkdir(mode=0o700)
    made.rename(closed / "data")
    with (
        pytest.raises(EmbeddedError, match=r"cannot reach .*closed/data/postgres"),
        running(closed / "data", exclusive=True),
    ):
        pytest.fail("it started")
    assert not place.SYSTEM_ROOT.exists()
    (closed / "data").rename(made)


def test_programs_that_the_server_cannot_reach_are_copied_once(
    made: Path, base: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As with a virtual environment under /root: the programs run from a copy, which is made one time."""
    closed = base / "closed"
    closed.mkdir(mode=0o700)
    package = closed / programs.PACKAGE
    package.mkdir()
    (package / programs.INSTALL).symlink_to(binaries().parent)
    monkeypatch.setattr(programs, "package", lambda: package)
    copies = place.SYSTEM_ROOT / "binaries"
    for _ in range(2):
        with running(made, exclusive=True) as address:
            assert query(address, "SELECT 1") == 1
            command = Path(f"/proc/{postmaster(made)}/cmdline").read_text()
            assert command.startswith(f"{copies}/")
    assert caplog.text.count("copying PostgreSQL to") == 1
    assert len(list(copies.iterdir())) == 1


def test_an_ordinary_user_runs_the_server_as_itself(base: Path) -> None:
    """Without root nothing is switched: folder and server belong to the user, and it stops as well."""
    data = _folder_of_nobody(base) / "data"
    owner = Neighbour(data, "owner", str(NOBODY))
    address = owner.address()
    written = processes.read_pid_file(data / "postgres" / "cluster")
    assert written is not None
    assert Path(f"/proc/{written.pid}").stat().st_uid == NOBODY
    assert query(address, "SELECT 1") == 1
    assert _permissions(data / "postgres") == (0o700, NOBODY, NOBODY)
    assert owner.leave() == 0
    assert not (data / "postgres" / "cluster" / "postmaster.pid").exists()


def test_a_folder_of_another_user_is_refused_also_by_root(made: Path, base: Path) -> None:
    """One clear line, no second database beside the first, and no file of root's to lock the user out."""
    stranger = Neighbour(made, "owner", str(NOBODY))
    assert "Permission denied" in stranger.complaint()
    assert stranger.process.returncode == 1
    theirs = _folder_of_nobody(base) / "data"
    owner = Neighbour(theirs, "owner", str(NOBODY))
    owner.address()
    assert owner.leave() == 0
    with pytest.raises(EmbeddedError, match=f"belongs to user {NOBODY}"), running(theirs, exclusive=True):
        pytest.fail("it started")
    assert {path.lstat().st_uid for path in theirs.rglob("*")} == {NOBODY}


def test_a_database_that_root_has_copied_in_is_given_to_the_server_again(made: Path) -> None:
    """A restore by root leaves root's files, and PostgreSQL would refuse them."""
    for path in [made / "postgres" / "cluster", *(made / "postgres" / "cluster").rglob("*")]:
        os.chown(path, 0, 0)
    with running(made, exclusive=True) as address:
        assert query(address, "SELECT 1") == 1


def _permissions(folder: Path) -> tuple[int, int, int]:
    status = folder.stat()
    return stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid


def _folder_of_nobody(base: Path) -> Path:
    folder = base / "of-nobody"
    folder.mkdir()
    os.chown(folder, NOBODY, NOBODY)
    return folder
