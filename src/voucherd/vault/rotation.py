"""Rotation: a new data key, and everything sealed again with it, while the service runs (OP-95).

A new key is announced first, so that every process can open its seals; then it is active, and everything new is
sealed with it; then older seals are made again in small transactions. The mark in front of each seal tells its key, so
a rotation that was killed goes on wherever it stood. A row is replaced only where it still holds the seal that was
opened, so no change in between is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from voucherd import trail
from voucherd.actors import Actor
from voucherd.db import Connection, Pool, Tx, transaction
from voucherd.ids import derive
from voucherd.vault.key_ring import POLL_S, ROOT, KeyRing, key_purpose, master_fingerprint, unwrap, wrap
from voucherd.vault.master_key import KEY_VERSION, new_master
from voucherd.vault.resealing import Texts, left, reseal_codes, reseal_texts, sealed_with, total
from voucherd.vault.seal import VERSION_MAX

NOTICE_S: Final = 4 * POLL_S
"""Between the announcement of a key and its use."""
GRACE_S: Final = 4 * POLL_S
"""What began so long after a key became active seals with it."""
WAIT_S_MAX: Final = 3_600.0
"""How long a rotation waits for transactions that began with the old key, such as imports."""
ROUNDS_MAX: Final = 10


class KeyRow(Struct, frozen=True):
    """One version of the data key."""

    version: int
    created_at: datetime
    active_at: datetime | None
    retired_at: datetime | None


class Count(Struct):
    """How far a rotation has come."""

    total: int = 0
    codes: int = 0
    texts: int = 0


class StillUsed(Exception):
    """The key seals something, or may do so yet."""


class NoSuchKey(Exception):
    """There is no such key, or it is retired already."""


class SomebodyWrites(Exception):
    """A transaction that began with the old key does not end."""


async def keys(conn: Connection) -> list[KeyRow]:
    """Every version, oldest first."""
    rows = await conn.fetch(
        "SELECT version, created_at, active_at, retired_at FROM vault_key ORDER BY version"
    )
    return [KeyRow(*row) for row in rows]


async def begin(pool: Pool, key_ring: KeyRing, texts: Sequence[Texts]) -> int:
    """The version to rotate to: a new one, unless the last rotation is not over."""
    async with transaction(pool) as tx:
        # Two that begin at once make one key.
        await tx.execute("LOCK TABLE vault_key IN SHARE ROW EXCLUSIVE MODE")
        newest = (await keys(tx))[-1]
        if newest.version > KEY_VERSION and (
            newest.active_at is None or await left(tx, newest.version, texts) > 0
        ):
            return newest.version
        version = newest.version + 1
        assert version <= VERSION_MAX
        key = new_master()
        await tx.execute(
            "INSERT INTO vault_key (version, fingerprint, wrapped, active_at) VALUES ($1, $2, $3, NULL)",
            version,
            derive(key, f"vault/fingerprint/{version}"),
            wrap(key_ring.master, key_purpose(version), key),
        )
    return version


async def activate(
    pool: Pool, actor: Actor, key_ring: KeyRing, version: int, *, notice_s: float = NOTICE_S
) -> datetime:
    """Let every process seal with this version, once all have heard of it; since when."""
    if await pool.fetchval("SELECT active_at IS NULL FROM vault_key WHERE version = $1", version):
        await asyncio.sleep(notice_s)
        async with transaction(pool) as tx:
            done = await tx.fetchval(
                """UPDATE vault_key SET active_at = clock_timestamp()
                   WHERE version = $1 AND active_at IS NULL RETURNING true""",
                version,
            )
            if done:
                await trail.record(tx, actor, "vault.rotate", f"key {version} of the vault")
    async with pool.acquire() as conn:
        await key_ring.refresh(conn)
    since: datetime = await pool.fetchval("SELECT active_at FROM vault_key WHERE version = $1", version)
    return since


async def reseal_all(
    pool: Pool,
    key_ring: KeyRing,
    version: int,
    texts: Sequence[Texts],
    since: datetime,
    told: Callable[[Count], None],
) -> Count:
    """Seal everything with this version; comes back when nothing of an older one is left or can still come."""
    count = Count(await total(pool, version, texts))
    for _ in range(ROUNDS_MAX):
        # What an older transaction seals is seen when it has ended: the last round begins after that.
        alone = not await _old_writers(pool, since)
        async for codes in reseal_codes(pool, key_ring.sealer, version):
            count.codes += codes
            told(count)
        for one in texts:
            async for done in reseal_texts(pool, key_ring.sealer, version, one):
                count.texts += done
                told(count)
        if alone:
            return count
        await _no_old_writers(pool, since)
    raise SomebodyWrites


async def retire(pool: Pool, actor: Actor, version: int, texts: Sequence[Texts]) -> None:
    """Destroy a key that seals nothing and never will."""
    async with transaction(pool) as tx:
        known = {key.version: key for key in await keys(tx)}
        key = known.get(version)
        if key is None or key.retired_at is not None:
            raise NoSuchKey
        newer = [
            one.active_at for one in known.values() if one.version > version and one.active_at is not None
        ]
        if not newer or version in await sealed_with(tx, texts) or await _old_writers(tx, min(newer)):
            raise StillUsed
        await tx.execute(
            "UPDATE vault_key SET retired_at = now(), wrapped = NULL WHERE version = $1", version
        )
        await trail.record(tx, actor, "vault.retire", f"key {version} of the vault")


async def replace_master(tx: Tx, actor: Actor, key_ring: KeyRing, fresh: bytes) -> None:
    """Wrap the root and all data keys with another master key; it counts when the transaction commits."""
    rows = await tx.fetch("SELECT version, wrapped FROM vault_key WHERE wrapped IS NOT NULL FOR UPDATE")
    for row in rows:
        purpose = key_purpose(row["version"])
        await tx.execute(
            "UPDATE vault_key SET wrapped = $2 WHERE version = $1",
            row["version"],
            wrap(fresh, purpose, unwrap(key_ring.master, purpose, row["wrapped"])),
        )
    await tx.execute(
        "UPDATE vault_master SET generation = generation + 1, fingerprint = $1, root = $2, changed_at = now()",
        master_fingerprint(fresh),
        wrap(fresh, ROOT, key_ring.root),
    )
    await trail.record(tx, actor, "vault.rotate", "master key")


async def _old_writers(conn: Connection | Pool, since: datetime) -> bool:
    """Whether a transaction is open that may have begun before everybody used the new key."""
    return bool(
        await conn.fetchval(
            """
            SELECT clock_timestamp() < $1::timestamptz + $2::interval OR EXISTS (
                SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
                  AND xact_start < $1::timestamptz + $2::interval AND backend_type = 'client backend')
            """,
            since,
            timedelta(seconds=GRACE_S),
        )
    )


async def _no_old_writers(pool: Pool, since: datetime) -> None:
    try:
        async with asyncio.timeout(WAIT_S_MAX):
            while await _old_writers(pool, since):  # noqa: ASYNC110 - It is the database that is asked.
                await asyncio.sleep(POLL_S / 2)
    except TimeoutError:
        raise SomebodyWrites from None
