"""The folder of the server's socket: at home, or a short private one where the path grows too long."""

import os
import socket
import tempfile
from pathlib import Path
from typing import Final

from voucherd.embedded import durable
from voucherd.embedded.errors import EmbeddedError
from voucherd.embedded.place import DataFolder

CONNECT_S_MAX: Final = 2.0
# The kernel allows 108 bytes on Linux and 104 on macOS, the closing zero included.
PATH_BYTES_MAX: Final = 100
NAME: Final = ".s.PGSQL.5432"
SHORT_PREFIX: Final = "voucherd-"


def make_folder(place: DataFolder) -> Path:
    """A folder that only the server's account may enter."""
    owner = (place.account.uid, place.account.gid) if place.account.switches else None
    folder = place.home / "run"
    if _fits(folder):
        durable.make_folder(folder, 0o700, owner)
        return folder
    for temporary in dict.fromkeys((tempfile.gettempdir(), "/tmp")):  # noqa: S108 - mkdtemp makes it private.
        if not _fits(Path(temporary) / f"{SHORT_PREFIX}12345678") or not place.account.can_enter(
            Path(temporary)
        ):
            continue
        folder = Path(tempfile.mkdtemp(prefix=SHORT_PREFIX, dir=temporary))
        if owner is not None:
            os.chown(folder, *owner)
        return folder
    raise EmbeddedError(
        f"{place.home} is no path for a socket (too long, or with a comma), nor is a temporary folder"
    )


def clear(place: DataFolder, folder: Path) -> None:
    """Removes the socket of a server that is gone, and a short folder with it."""
    short = folder.name.startswith(SHORT_PREFIX) and not folder.is_relative_to(place.home)
    try:
        if not folder.is_absolute() or folder.lstat().st_uid != place.account.uid:
            return
        # The lock beside it names a process, too, and PostgreSQL believes it as long as any such lives.
        for name in (NAME, f"{NAME}.lock"):
            (folder / name).unlink(missing_ok=True)
        if short:
            folder.rmdir()
    except FileNotFoundError:
        return


def answers(folder: Path) -> bool:
    """Whether some server listens there."""
    if not folder.is_absolute():
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(CONNECT_S_MAX)
        try:
            line.connect(str(folder / NAME))
        except OSError:
            return False
    return True


def _fits(folder: Path) -> bool:
    # In an address a comma separates two hosts, and there is no way to quote it.
    return len(os.fsencode(folder / NAME)) <= PATH_BYTES_MAX and "," not in str(folder)
