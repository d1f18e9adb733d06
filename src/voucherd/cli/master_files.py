"""Replacing the file of the master key: the new one waits beside the old one until the database has taken it.

First the new key is on disk, then the database is changed, then the files change places. A crash in between leaves two
files, of which the database knows the right one: services start with either state, and the next try goes on from there.
"""

from __future__ import annotations

import hmac
import os
from dataclasses import dataclass
from pathlib import Path

from voucherd.settings import Settings
from voucherd.vault.key_ring import next_file
from voucherd.vault.master_key import (
    VaultKeyError,
    load_or_create_master,
    new_master,
    sync_folder,
    write_master,
)


@dataclass(frozen=True)
class KeyFileChange:
    """A new master key, and where it is to be; without a file the operator puts it where it belongs."""

    fresh: bytes
    file: Path | None

    def __repr__(self) -> str:
        return f"Change(file={self.file!r})"

    def done(self, current: bytes) -> bool:
        """Whether the database has taken the new key already, in a try that was killed."""
        return hmac.compare_digest(self.fresh, current)

    def finish(self, old_generation: int) -> Path | None:
        """Put the new file in its place, and the old one beside it."""
        if self.file is None:
            return None
        old = self.file.with_name(f"{self.file.name}.{old_generation}")
        if self.file.exists() and not old.exists():
            os.link(self.file, old)
        next_file(self.file).replace(self.file)
        sync_folder(self.file.parent)
        return old


def plan(settings: Settings, new_key_file: Path | None) -> KeyFileChange:
    """The change: with a file of its own a new key is made, otherwise it is given."""
    if settings.master_key is not None or settings.master_key_command:
        if new_key_file is None:
            raise VaultKeyError("the master key comes from elsewhere: give the new one with --new-key-file")
        return KeyFileChange(load_or_create_master(new_key_file), None)
    file = settings.master_key_file
    waiting = next_file(file)
    if not waiting.exists():
        write_master(waiting, new_master() if new_key_file is None else load_or_create_master(new_key_file))
    return KeyFileChange(load_or_create_master(waiting), file)
