"""Files and folders that are whole after a power cut, and ours alone."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


def make_folder(folder: Path, mode: int, owner: tuple[int, int] | None = None) -> None:
    """The folder exists; when it is made here, it gets this mode and owner whatever the umask."""
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        return
    if owner is not None:
        os.chown(folder, *owner)
    folder.chmod(mode)


def write_once(path: Path, text: str) -> str:
    """The file's text: what another process wrote first, else what was given; whole or not there."""
    handle, half = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(handle)
        try:
            # A link refuses to replace, so of two first writers one wins and both read the same.
            os.link(half, path)
        except FileExistsError:
            return path.read_text()
        sync(path.parent)
    finally:
        Path(half).unlink()
    return text


def sync(path: Path) -> None:
    """The file or folder is on the disk."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(root: Path) -> None:
    """Everything under `root` is on the disk."""
    for path in _tree(root):
        if not path.is_symlink():
            sync(path)


def give_tree(root: Path, owner: tuple[int, int]) -> None:
    """Everything under `root` belongs to this user and group."""
    for path in _tree(root):
        os.chown(path, *owner, follow_symlinks=False)


def _tree(root: Path) -> Iterator[Path]:
    # The root comes last: as long as it has not changed hands or been synced, the work is not done.
    for folder, _, names in os.walk(root, topdown=False):
        yield from (Path(folder) / name for name in names)
        yield Path(folder)
