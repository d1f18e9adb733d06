"""The key ring: the root and the data keys of a database, opened with its master key and kept up to date (OP-95).

The master key seals nothing itself. It wraps the root, from which identifiers, blind indexes and version 1 are derived,
and the data keys of later versions. So it can be replaced without sealing anything again, and what it wraps can be
replaced without anybody noticing.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import os
from pathlib import Path
from typing import Final

import asyncpg
import structlog
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV

from voucherd.db import Connection, Pool
from voucherd.ids import Identifiers, derive
from voucherd.settings import Settings
from voucherd.vault.master_key import (
    KEY_VERSION,
    VaultKeyError,
    check_fingerprint,
    fingerprint,
    load_or_create_master,
    read_master,
)
from voucherd.vault.seal import Sealer

POLL_S: Final = 0.5
"""A new key is known, and used, so much later at most."""
NEXT: Final = ".next"
"""Behind the name of the key's file: the key that is to replace it."""
NOT_THIS_ONE: Final = "this master key is not the one that sealed this database"

_NONCE_BYTES: Final = 12

logger = structlog.get_logger(__name__)


def wrap(master: bytes, purpose: str, key: bytes) -> bytes:
    """A key that only this master key gives back, for this purpose."""
    nonce = os.urandom(_NONCE_BYTES)
    return nonce + AESGCMSIV(derive(master, "vault/wrap")).encrypt(nonce, key, purpose.encode())


def unwrap(master: bytes, purpose: str, wrapped: bytes) -> bytes:
    """The key that was wrapped for this purpose."""
    nonce, body = wrapped[:_NONCE_BYTES], wrapped[_NONCE_BYTES:]
    try:
        return AESGCMSIV(derive(master, "vault/wrap")).decrypt(nonce, body, purpose.encode())
    except InvalidTag:
        raise VaultKeyError(f"{purpose} was altered, or wrapped with another master key") from None


def master_fingerprint(master: bytes) -> bytes:
    """What the database keeps to recognise its master key; it opens nothing."""
    return derive(master, "vault/master")


class KeyRing:
    """The keys of one database, as far as this process knows them."""

    def __init__(self, settings: Settings, master: bytes, root: bytes) -> None:
        self._settings = settings
        self.master = master
        self.root = root
        self.sealer = Sealer(root)
        self.sealer.refresh = self.refresh
        self._task: asyncio.Task[None] | None = None

    def identifiers(self) -> Identifiers:
        """What turns numbers into what clients know; the same after any rotation."""
        return Identifiers(self.root)

    async def refresh(self, conn: Connection) -> None:
        """Learn keys that are new, use the newest that is active, and forget those that are retired."""
        rows = await conn.fetch(
            """
            SELECT version, wrapped, active_at IS NOT NULL AS active, retired_at IS NOT NULL AS retired
            FROM vault_key ORDER BY version
            """
        )
        known = self.sealer.versions
        for row in rows:
            if row["wrapped"] is not None and row["version"] not in known:
                self.sealer.learn(row["version"], await self._unwrap(conn, row))
        usable = [row["version"] for row in rows if row["active"] and not row["retired"]]
        if usable and usable[-1] != self.sealer.version:
            self.sealer.use(usable[-1])
        for row in rows:
            if row["retired"] and row["version"] in known and row["version"] != self.sealer.version:
                self.sealer.forget(row["version"])

    async def _unwrap(self, conn: Connection, row: asyncpg.Record) -> bytes:
        purpose = key_purpose(row["version"])
        try:
            return unwrap(self.master, purpose, row["wrapped"])
        except VaultKeyError:
            # The master key was replaced since this process began: its place tells the new one.
            self.master, _ = await _fitting(conn, self._settings)
            return unwrap(self.master, purpose, row["wrapped"])

    def start(self, pool: Pool) -> None:
        """Look for new keys from now on."""
        self._task = asyncio.create_task(self._watch(pool))

    async def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _watch(self, pool: Pool) -> None:
        failing = False
        while True:
            await asyncio.sleep(POLL_S)
            try:
                async with pool.acquire() as conn:
                    await self.refresh(conn)
                failing = False
            except Exception as error:  # noqa: BLE001 - It goes on when the database is back.
                if not failing:
                    logger.warning("keys_not_read", error=repr(error))
                failing = True


async def open_key_ring(conn: Connection, settings: Settings) -> KeyRing:
    """The keys of this database; made at the first start and never again."""
    if await conn.fetchval("SELECT NOT EXISTS (SELECT FROM vault_master)"):
        await _begin(conn, settings)
    master, wrapped_root = await _fitting(conn, settings)
    root = unwrap(master, ROOT, wrapped_root)
    known = await conn.fetchval("SELECT fingerprint FROM vault_key WHERE version = $1", KEY_VERSION)
    if known is None or not hmac.compare_digest(known, fingerprint(root)):
        raise VaultKeyError(NOT_THIS_ONE)
    key_ring = KeyRing(settings, master, root)
    await key_ring.refresh(conn)
    return key_ring


ROOT: Final = "vault/root"


def key_purpose(version: int) -> str:
    """What a data key is wrapped for."""
    return f"vault/key/{version}"


def next_file(file: Path) -> Path:
    """Where the key that is to replace this one waits."""
    return file.with_name(file.name + NEXT)


async def _begin(conn: Connection, settings: Settings) -> None:
    """Take the master key of a database that has no root yet for its root: version 1 is derived from it."""
    # A new key beside codes that another one sealed would only hide that the right one is lost.
    first_start = not await conn.fetchval("SELECT EXISTS (SELECT FROM vault_key)")
    master = read_master(settings, create=first_start)
    await check_fingerprint(conn, master)
    await conn.execute(
        "INSERT INTO vault_master (fingerprint, root) VALUES ($1, $2) ON CONFLICT DO NOTHING",
        master_fingerprint(master),
        wrap(master, ROOT, master),
    )


async def _fitting(conn: Connection, settings: Settings) -> tuple[bytes, bytes]:
    """The master key that fits this database, and the root under it.

    While it is being replaced there are two files; which of them fits is decided by the database alone.
    """
    row = await conn.fetchrow("SELECT fingerprint, root FROM vault_master")
    assert row is not None, "it was made at the first start"
    problem: VaultKeyError | None = None
    try:
        master = await asyncio.to_thread(read_master, settings)
        if hmac.compare_digest(row["fingerprint"], master_fingerprint(master)):
            return master, row["root"]
    except VaultKeyError as error:
        problem = error
    waiting = next_file(settings.master_key_file)
    if settings.master_key is None and not settings.master_key_command and waiting.exists():
        master = load_or_create_master(waiting)
        if hmac.compare_digest(row["fingerprint"], master_fingerprint(master)):
            logger.warning("master_key_half_replaced", file=str(waiting))
            return master, row["root"]
    raise problem or VaultKeyError(NOT_THIS_ONE)
