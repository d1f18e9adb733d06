"""The master key: from a file that only its owner can read, the environment or a command; and how it is recognised."""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import secrets
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from voucherd.db import Connection
from voucherd.ids import derive
from voucherd.settings import PREFIX, Settings

MASTER_BYTES: Final = 32
KEY_VERSION: Final = 1
"""The first one, which is derived from the root; later ones are wrapped."""

COMMAND_S_MAX: Final = 30.0
_FILE_BYTES_MAX: Final = 1024
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


class VaultKeyError(Exception):
    """The master key can't be used; the one line of text says why and never holds the key."""


def load_or_create_master(path: Path, *, create: bool = False) -> bytes:
    """The master key in this file; made there first if it is absent and may be created."""
    if create and not path.exists():
        _create(path)
    return _load(path)


def read_master(settings: Settings, *, create: bool = False) -> bytes:
    """The master key from wherever the settings say; only a file is made where there is none."""
    if settings.master_key is not None:
        return _sound(settings.master_key.encode(), f"in {PREFIX}MASTER_KEY")
    if settings.master_key_command:
        return _sound(_output(settings.master_key_command), "that its command printed")
    return load_or_create_master(settings.master_key_file, create=create)


def has_master(settings: Settings) -> bool:
    """Whether there is a key to be had, without looking at it."""
    return (
        settings.master_key is not None
        or bool(settings.master_key_command)
        or settings.master_key_file.exists()
    )


def _output(command: Sequence[str]) -> bytes:
    """What the command prints. Neither its words nor what it says are repeated anywhere: both may hold secrets."""
    try:
        # Its standard error goes nowhere, for the same reason.
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as running:
            try:
                printed, _ = running.communicate(timeout=COMMAND_S_MAX)
            except subprocess.TimeoutExpired:
                running.kill()
                raise VaultKeyError(
                    f"the command for the master key did not end within {COMMAND_S_MAX:g} seconds"
                ) from None
    except OSError as error:
        raise VaultKeyError(f"the command for the master key can't be run: {error.strerror}") from None
    if running.returncode != 0:
        raise VaultKeyError(f"the command for the master key failed with {running.returncode}")
    return printed


def _sound(text: bytes, where: str) -> bytes:
    master = _decode(text.strip()) if len(text) <= _FILE_BYTES_MAX else None
    if master is None:
        raise VaultKeyError(f"the master key {where} is not {MASTER_BYTES} bytes in hex or base64")
    return master


def fingerprint(master: bytes, version: int = KEY_VERSION) -> bytes:
    """What the database keeps to recognise the key; it opens nothing."""
    return derive(master, f"vault/fingerprint/{version}")


async def check_fingerprint(conn: Connection, master: bytes) -> None:
    """Remember the key in a database that has seen none; refuse it in one that was sealed with another."""
    await conn.execute(
        """
        INSERT INTO vault_key (version, fingerprint)
        SELECT $1, $2 WHERE NOT EXISTS (SELECT FROM vault_key)
        ON CONFLICT DO NOTHING
        """,
        KEY_VERSION,
        fingerprint(master),
    )
    # A statement of its own, so that it sees what another process stored in the same moment.
    known = await conn.fetchval("SELECT fingerprint FROM vault_key WHERE version = $1", KEY_VERSION)
    if known is None or not hmac.compare_digest(known, fingerprint(master)):
        raise VaultKeyError("this master key is not the one that sealed this database")


def _load(path: Path) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            # The open file is asked, not the path: the answer is about the bytes that are read.
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            text = file.read(_FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        raise VaultKeyError(f"there is no master key at {path}") from None
    except OSError as error:
        raise VaultKeyError(f"the master key at {path} can't be read: {error.strerror}") from None
    if mode & _OTHERS:
        raise VaultKeyError(
            f"the master key at {path} is open to others (mode {mode:04o}); run chmod 600 on it"
        )
    master = _decode(text.strip())
    if master is None:
        raise VaultKeyError(f"the master key at {path} is not {MASTER_BYTES} bytes in hex or base64")
    return master


def _decode(text: bytes) -> bytes | None:
    """The key behind hex or base64; the two have different lengths, so neither is taken for the other."""
    try:
        if len(text) == 2 * MASTER_BYTES:
            return binascii.unhexlify(text)
        master = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    return master if len(master) == MASTER_BYTES else None


def new_master() -> bytes:
    """A master key that nobody has yet."""
    return os.urandom(MASTER_BYTES)


def _create(path: Path) -> None:
    """Write a new key to this place, unless somebody else has done so in the same moment."""
    write_master(path, new_master())


def write_master(path: Path, master: bytes) -> None:
    """Write a key beside its place, then link it there: the second to come finds the first one's key."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(master.hex().encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
            os.link(draft, path)
            sync_folder(path.parent)
        finally:
            draft.unlink()
    except FileExistsError:
        return
    except OSError as error:
        raise VaultKeyError(f"no master key can be created at {path}: {error.strerror}") from None


def sync_folder(folder: Path) -> None:
    """Have the names in the folder on disk."""
    # A key that a power cut took away would take every code with it.
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
