"""The archive of the write-ahead log, beside the backups: with both a restore can end at any moment (OP-122)."""

import os
import shlex
import shutil
from datetime import datetime
from pathlib import Path
from typing import Final

from voucherd.embedded import durable, place, programs
from voucherd.embedded.errors import EmbeddedError

FOLDER: Final = "archive"
ENDING: Final = ".gz"
# A segment goes to the archive when it is full, and after so long if anything was written.
SWITCH_S: Final = 300
SEGMENT_BYTES: Final = 16 * 1024 * 1024
SEGMENTS_OF_LOG: Final = 2**32 // SEGMENT_BYTES
SEGMENT_CHARS: Final = 24


def settings_for(data: Path, backups: Path) -> dict[str, str]:
    """The server's settings that keep its log in the folder of backups; none where its account can't get there."""
    programs.package()  # Before anything is made for a server that is not there.
    try:
        found = place.settle(data)
        for folder in (backups, backups / FOLDER):
            folder.parent.mkdir(parents=True, exist_ok=True)
            place.make_passable(folder, found.account)
        target = (backups / FOLDER).resolve()
        if found.account.switches:
            os.chown(target, found.account.uid, found.account.gid)
    except OSError as error:
        raise EmbeddedError(
            f"cannot use the folder of backups {backups}: {error.strerror or error}"
        ) from error
    if not found.account.can_enter(target):
        return {}
    half, whole = (shlex.quote(f"{target}/{name}").replace("%", "%%") for name in (".", ""))
    # Named anew only when it is whole and on the disk. The same segment may come twice, and is the same then.
    command = f"gzip -1 <%p >{half}%f.half && sync {half}%f.half && mv {half}%f.half {whole}%f{ENDING}"
    return {"archive_mode": "on", "archive_timeout": str(SWITCH_S), "archive_command": command}


def replay_settings(folder: Path, until: datetime | None) -> dict[str, str]:
    """The server's settings that replay what is archived there: to this moment, or to its end."""
    source = shlex.quote(f"{folder}/").replace("%", "%%")
    settings = {
        "restore_command": f"gzip -dc {source}%f{ENDING} >%p",
        "recovery_target_action": "promote",
        # Else it would be taken for ready while it still replays, and refuse to write.
        "hot_standby": "off",
    }
    if until is not None:
        settings["recovery_target_time"] = until.isoformat(sep=" ")
    return settings


def segment(timeline: int, position: int) -> str:
    """The name of the segment that a position of the log is in."""
    log, part = divmod(position // SEGMENT_BYTES, SEGMENTS_OF_LOG)
    return f"{timeline:08X}{log:08X}{part:08X}"


def read_position(text: str) -> int:
    """The number behind a position as PostgreSQL writes it, such as 0/3000028."""
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) + int(low, 16)


def remove_before(archive: Path, first: str) -> int:
    """Remove the segments that no backup needs any more; how many."""
    removed = 0
    for file in archive.iterdir() if archive.is_dir() else ():
        name = file.name.lstrip(".")
        # Histories of timelines are tiny, and needed for good. The timeline does not count: a log has one order.
        if len(name) >= SEGMENT_CHARS and name[8:SEGMENT_CHARS] < first[8:]:
            file.unlink(missing_ok=True)
            removed += 1
    return removed


def copy_for(found: place.DataFolder, archive: Path, first: str) -> Path:
    """A copy of the archive from this segment on that the server of a new data folder can read."""
    target = found.home / "replay"
    target.mkdir(mode=0o700)
    for file in sorted(archive.iterdir()) if archive.is_dir() else ():
        if file.name.endswith(ENDING) and (
            ".history" in file.name or file.name[8:SEGMENT_CHARS] >= first[8:]
        ):
            shutil.copyfile(file, target / file.name)
    if found.account.switches:
        durable.give_tree(target, (found.account.uid, found.account.gid))
    return target
