"""Backups into the folder of backups: whole or not there, so many and no more, tried out, and back to any moment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg
import msgspec
import pytest

from tests.cli.terminal import Terminal, assert_refused
from voucherd import backups
from voucherd.backups import base_backups, nightly
from voucherd.backups.base_backups import Kept
from voucherd.db import open_pool
from voucherd.embedded import archive, running
from voucherd.settings import Settings

NIGHT = datetime(2031, 5, 6, 2, 0, tzinfo=UTC)


def test_a_backup_is_due_once_the_hour_has_struck() -> None:
    """OP-122: every night one, however often anybody looks, and a night that was missed is made up for."""
    last = [Kept(Path("x"), NIGHT - timedelta(hours=23))]
    assert not nightly.due(last, 2, NIGHT - timedelta(seconds=1))
    assert nightly.due(last, 2, NIGHT)
    assert not nightly.due([Kept(Path("x"), NIGHT)], 2, NIGHT + timedelta(hours=23))
    assert nightly.due([Kept(Path("x"), NIGHT - timedelta(days=9))], 2, NIGHT + timedelta(hours=21))


def test_only_whole_backups_count_and_only_the_newest_are_kept(tmp_path: Path) -> None:
    """OP-122: what a killed process left is none, and goes with the next; the log that none needs goes, too."""
    log = tmp_path / archive.FOLDER
    log.mkdir()
    for number in range(1, 5):
        folder = tmp_path / f"2031050{number}T020000Z"
        folder.mkdir()
        told = base_backups.About(NIGHT, NIGHT, archive.segment(1, number * archive.SEGMENT_BYTES), "x")
        (folder / base_backups.ABOUT).write_bytes(msgspec.json.encode(told))
        (log / f"{told.first_segment}.gz").touch()
    (log / "00000002.history.gz").touch()
    (tmp_path / f"{base_backups.HALF}abcd").mkdir()
    assert [one.at.day for one in base_backups.kept(tmp_path)] == [1, 2, 3, 4]
    assert base_backups.prune(tmp_path, 2) == 2
    assert [one.at.day for one in base_backups.kept(tmp_path)] == [3, 4]
    assert list(tmp_path.glob(f"{base_backups.HALF}*")) == []
    left = sorted(file.name for file in log.iterdir())
    assert left == ["000000010000000000000003.gz", "000000010000000000000004.gz", "00000002.history.gz"]
    (tmp_path / "20310504T020000Z" / base_backups.ABOUT).unlink()
    with pytest.raises(backups.BackupFailed, match="not a whole backup"):
        base_backups.about(base_backups.kept(tmp_path)[-1])


def test_one_process_at_a_time_takes_a_backup(tmp_path: Path) -> None:
    """OP-122: the others leave it to that one, and the lock goes with its holder."""
    with nightly.alone(tmp_path) as first, nightly.alone(tmp_path) as second:
        assert (first, second) == (True, False)
    with nightly.alone(tmp_path) as third:
        assert third


async def _moment(url: str) -> str:
    """The time of the database, with something committed before and after it."""
    connection = await asyncpg.connect(url)
    moment: datetime = await connection.fetchval("SELECT clock_timestamp()")
    await connection.close()
    return moment.isoformat()


async def _nights(url: str, data: Path) -> None:
    """Let a worker look for a backup that is due: too early, at its time, and once more afterwards."""
    pool = await open_pool(url)
    worker = nightly.NightlyBackups(pool, Settings(data=data))
    assert worker.wanted
    await worker.round()
    assert base_backups.kept(data / "backups") == []
    worker._first_at = 0.0
    await worker.round()
    (taken,) = base_backups.kept(data / "backups")
    assert taken.is_base
    await worker.round()
    assert base_backups.kept(data / "backups") == [taken]
    async with pool.acquire() as connection:
        assert not await nightly.archive_stuck(connection)
    await pool.close()


async def _state(url: str) -> backups.BackupState:
    pool = await open_pool(url)
    async with pool.acquire() as connection:
        state = await backups.state(connection)
    await pool.close()
    return state


def _companies(terminal: Terminal) -> list[str]:
    return [one["name"] for one in terminal.json("company", "list")]


async def test_the_embedded_database_goes_back_to_any_moment(bare_terminal: Terminal) -> None:
    """OP-122: a base backup and the archive of the log, restored to a moment; the drill finds the backup good."""
    first, folder = bare_terminal, bare_terminal.data.parent
    kept = first.data / "backups"
    assert_refused(first.run("backup", "verify"), "there is no database in")
    first.json("company", "add", "Before", "--country", "NL")
    assert_refused(first.run("backup", "verify"), "holds no backup")
    settings = archive.settings_for(first.data, kept)
    with running(first.data, exclusive=False, settings=settings) as url:
        await _nights(url, first.data)
        first.json("company", "add", "Between", "--country", "NL")
        moment = await _moment(url)
        first.json("company", "add", "After", "--country", "NL")
        drill = first.json("backup", "verify")
        state = await _state(url)
    assert (drill["ok"], drill["problem"], state.drill_ok) == (True, None, True)
    assert state.backup_age_s is not None
    assert state.drill_age_s is not None
    assert state.backup_age_s > state.drill_age_s >= 0

    second = Terminal(folder / "second")
    assert_refused(second.run("restore", str(kept), "--at", "2020-01-01"), "no base backup in")
    said = second.json("restore", str(kept), "--at", moment)
    assert datetime.fromisoformat(said["moment"]) == datetime.fromisoformat(moment)
    with running(second.data, exclusive=False) as url:
        assert _companies(second) == ["Before", "Between"]
        assert_refused(second.run("worker"), "run `voucherd recover` first")
        assert second.json("recover")["done"] is True
        assert (await _state(url)).drill_ok is None


@pytest.mark.soak
async def test_a_spoilt_backup_is_found_by_the_drill(bare_terminal: Terminal) -> None:
    """OP-122: a drill that fails says why, exits with 1, and is written down."""
    bare_terminal.json("company", "add", "Acme", "--country", "NL")
    with running(bare_terminal.data, exclusive=False) as url:
        packed = Path(bare_terminal.json("backup")["file"]) / "base.tar.gz"
        packed.write_bytes(packed.read_bytes()[:100_000])
        assert_refused(bare_terminal.run("backup", "verify"), "is no good", "can't be unpacked")
        state = await _state(url)
        assert_refused(
            Terminal(bare_terminal.data.parent / "second").run("restore", str(packed.parent.parent)),
            "can't be unpacked",
        )
    assert state.drill_ok is False


@pytest.mark.soak
def test_a_moment_behind_the_archive_is_refused_and_leaves_nothing(bare_terminal: Terminal) -> None:
    """OP-122: a restore that does not get as far as it was told to is none."""
    bare_terminal.json("company", "add", "Acme", "--country", "NL")
    kept = Path(bare_terminal.json("backup")["file"]).parent
    second = Terminal(bare_terminal.data.parent / "second")
    assert_refused(second.run("restore", str(kept), "--at", "2099-01-01"), "the archive ends before")
    assert not (second.data / "postgres").exists()
    assert second.json("restore", str(kept))["orders"] == 0
