"""What cannot work is said in one clear line, and nothing is touched or left behind."""

import asyncio
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import asyncpg
import pytest

from tests.embedded.witness import is_running, needs_root, query
from voucherd.api.readiness import Readiness
from voucherd.db import open_pool
from voucherd.embedded import EmbeddedError, place, running, serverlog, sockets, tuning

Mount = Callable[..., Path]


@pytest.fixture
def mount(base: Path) -> Iterator[Mount]:
    """A file system in memory, of a given size and with given options."""
    mounted: list[Path] = []

    def mount(options: str, *, folder: Path = base / "disk") -> Path:
        folder.mkdir(exist_ok=True)
        done = subprocess.run(
            ["/bin/mount", "-t", "tmpfs", "-o", options, "tmpfs", folder],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            pytest.skip(f"mounting is not permitted here: {done.stderr.strip()}")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["/bin/umount", folder], check=True)


def test_a_database_of_another_major_version_is_refused_untouched(made: Path) -> None:
    """The line names both versions, and not a byte of the database has changed."""
    cluster = made / "postgres" / "cluster"
    (cluster / "PG_VERSION").write_text("16\n")
    before = _snapshot(cluster)
    assert "was made by PostgreSQL 16 and this is PostgreSQL 18" in _refusal(made)
    assert _snapshot(cluster) == before


def test_a_folder_that_is_no_database_is_refused_untouched(made: Path) -> None:
    """Something else lies where the database should be: it is neither started nor replaced."""
    (made / "postgres" / "cluster" / "PG_VERSION").unlink()
    assert "is not a PostgreSQL database" in _refusal(made)


def test_a_lost_password_file_is_named(made: Path) -> None:
    """A new password would not open the old database, so none is made."""
    (made / "postgres" / "password").unlink()
    assert "password is missing: put it back from a backup" in _refusal(made)
    assert not (made / "postgres" / "password").exists()


@needs_root
def test_a_disk_too_small_for_the_first_start_is_named_and_left_clean(mount: Mount) -> None:
    """initdb runs out of space; half a database is not left behind to fill the disk."""
    data = mount("size=20m,mode=755") / "data"
    assert _names_a_full_disk(_refusal(data))
    assert not is_running(data)
    assert sum(path.stat().st_size for path in data.rglob("*")) < 4096 * 8


@needs_root
def test_a_disk_that_is_full_at_a_later_start_is_named_and_nothing_is_lost(mount: Mount) -> None:
    """The server can write neither its files nor its log; freed space makes it start with its data."""
    disk = mount("size=120m,mode=755")
    data = disk / "data"
    with running(data, exclusive=True) as address:
        query(address, "CREATE TABLE kept AS SELECT 7 AS n")
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        _fill(file)
    assert _names_a_full_disk(_refusal(data))
    assert not is_running(data)
    filler.unlink()
    with running(data, exclusive=True) as address:
        assert query(address, "SELECT n FROM kept") == 7


@needs_root
def test_a_service_whose_disk_is_full_is_not_ready(mount: Mount) -> None:
    """OP-110: what readiness tries needs room on the disk, so it fails before the first sale does."""
    disk = mount("size=120m,mode=755")
    with running(disk / "data", exclusive=True) as address:
        query(address, "CREATE TABLE access_epoch AS SELECT 1 AS epoch")
        assert asyncio.run(_missing(address)).endswith("to run")
        filler = disk / "filler"
        with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
            _fill(file)
        assert asyncio.run(_missing(address)) == "database: DiskFullError"
        filler.unlink()
        assert asyncio.run(_missing(address)).endswith("to run")


@needs_root
def test_a_read_only_file_system_is_named(mount: Mount) -> None:
    """A folder with a database on a disk that became read-only, as disks with errors do."""
    disk = mount("size=120m,mode=755")
    with running(disk / "data", exclusive=True):
        pass
    subprocess.run(["/bin/mount", "-o", "remount,ro", disk], check=True)
    assert "Read-only file system" in _refusal(disk / "data")
    assert "Read-only file system" in _refusal(disk / "new")


def test_a_file_in_place_of_the_data_folder_is_named(data: Path) -> None:
    """Wrong input of the operator is told apart from our own bugs."""
    data.write_text("not a folder")
    assert "cannot use the data folder" in _refusal(data)
    data.unlink()


def test_a_setting_that_postgresql_refuses_is_quoted(made: Path) -> None:
    """The server's own complaint reaches the operator, with the log to look at."""
    with (
        pytest.raises(EmbeddedError, match=r'does not start: .*"shared_buffers".*server\.log'),
        running(made, exclusive=True, settings={"shared_buffers": "much"}),
    ):
        pytest.fail("it started")


def test_a_path_too_long_for_a_socket_gets_a_short_private_folder(base: Path) -> None:
    """Sockets end at about a hundred bytes; the short folder is private and goes with the server."""
    data = base / ("long-" * 20) / ("names-" * 20) / "data"
    with running(data, exclusive=True) as address:
        assert query(address, "SELECT 1") == 1
        folder = Path(address.partition("host=")[2].partition("&")[0].replace("%2F", "/"))
        assert folder.name.startswith(sockets.SHORT_PREFIX)
        assert folder.stat().st_mode & 0o777 == 0o700
        with running(data, exclusive=False) as same:
            assert same == address
    assert not folder.exists()


@pytest.mark.parametrize("name", ["with space", "quo'te\"d", "com,ma", "ünïcode", "per%cent&=?#@:"])
def test_a_data_folder_may_be_called_anything(base: Path, name: str) -> None:
    """The path goes through a command line, a list of quoted names and an address unharmed."""
    with running(base / name, exclusive=True) as address:
        assert query(address, "SELECT 1") == 1
    assert not is_running(base / name)


def test_the_log_is_bounded_while_the_server_writes_on(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long log is cut, its end is kept, and the server goes on writing to the start of the same file."""
    monkeypatch.setattr(serverlog, "LOG_BYTES_MAX", 100_000)
    monkeypatch.setattr(serverlog, "KEPT_BYTES", 1_000)
    with running(made, exclusive=True) as address:
        log = made / "postgres" / "server.log"
        with log.open("ab") as file:
            file.write(b"x" * 200_000)
        serverlog.trim(place.settle(made))
        assert log.with_suffix(".log.old").stat().st_size <= 1_000
        with pytest.raises(asyncpg.UndefinedColumnError):
            query(address, "SELECT nothing")
        assert b"nothing" in log.read_bytes()
        assert log.stat().st_size < 10_000


def test_the_log_does_not_repeat_what_statements_carry(made: Path) -> None:
    """A statement that fails may hold a voucher code; neither it nor the offending row is logged."""
    with running(made, exclusive=True) as address:
        query(address, "CREATE TABLE codes (code text PRIMARY KEY)")
        query(address, "INSERT INTO codes VALUES ('SECRET-CODE')")
        with pytest.raises(asyncpg.UniqueViolationError):
            query(address, "INSERT INTO codes VALUES ('SECRET-CODE')")
    log = (made / "postgres" / "server.log").read_text()
    assert "duplicate key" in log
    assert "SECRET-CODE" not in log


def test_small_machines_get_a_small_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The buffers are an eighth of the memory, as the container limits it, and 256 MB at the most."""
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(tuning, "CGROUP_LIMIT", limit)
    for allowed, buffers in ((f"{512 * tuning.MIB}", "64MB"), (f"{32 * tuning.MIB}", "16MB")):
        limit.write_text(allowed)
        assert tuning.memory()["shared_buffers"] == buffers


def _names_a_full_disk(line: str) -> bool:
    # Where PostgreSQL can still say so, its own words name the file, too.
    return "the disk is full" in line or "No space left on device" in line


async def _missing(address: str) -> str:
    pool = await open_pool(address)
    try:
        return await Readiness(pool).missing()
    finally:
        await pool.close()


def _fill(file: IO[bytes]) -> None:
    while True:
        file.write(b"x" * 65_536)


def _refusal(data: Path) -> str:
    with pytest.raises(EmbeddedError) as refused, running(data, exclusive=True):
        pytest.fail("it started")
    line = str(refused.value)
    assert "\n" not in line
    return line


def _snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    found = {}
    for path in folder.rglob("*"):
        status = os.lstat(path)
        found[str(path)] = (status.st_mtime_ns, status.st_size)
    return found
