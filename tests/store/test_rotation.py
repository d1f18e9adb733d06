"""Rotation of the vault's keys: everything reads the same afterwards, and no key that is needed can be lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Final

import asyncpg
import pytest

from tests.apps import set_up
from tests.patience import until_true
from tests.shop import Shop, open_shop
from voucherd.actors import SYSTEM
from voucherd.cli.vault import TEXTS, plan_master
from voucherd.db import Pool, transaction
from voucherd.ids import Identifiers, State
from voucherd.people import second_factors, totp
from voucherd.settings import Settings
from voucherd.vault import resealing, rotation
from voucherd.vault.key_ring import KeyRing, next_file, open_key_ring
from voucherd.vault.master_key import VaultKeyError, check_fingerprint, load_or_create_master
from voucherd.vault.rotation import Count
from voucherd.webhooks.endpoints import Draft, add

CODES: Final = [f"GIFT-{number:04}" for number in range(30)]


@pytest.fixture
async def shop(
    pool: Pool, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Shop]:
    """A shop with something of everything that is sealed, and no time to lose."""
    monkeypatch.setattr(rotation, "GRACE_S", 0.0)
    monkeypatch.setattr(resealing, "BATCH_MAX", 7)
    async with open_shop(pool, database_url, tmp_path) as opened:
        await opened.product("gift")
        await opened.stock("gift", 30)
        yield opened


async def ring_of(shop: Shop) -> KeyRing:
    """The keys as a process that starts now finds them."""
    async with shop.pool.acquire() as conn:
        return await open_key_ring(conn, shop.settings)


async def rotated(shop: Shop) -> int:
    """Rotate from beginning to end; the version."""
    key_ring = await ring_of(shop)
    version = await rotation.begin(shop.pool, key_ring, TEXTS)
    since = await rotation.activate(shop.pool, SYSTEM, key_ring, version, notice_s=0)
    seen: list[int] = []
    await rotation.reseal_all(
        shop.pool, key_ring, version, TEXTS, since, lambda count: seen.append(count.codes + count.texts)
    )
    assert seen == sorted(seen)
    return version


async def test_everything_is_sealed_again_and_reads_the_same(shop: Shop) -> None:
    """OP-95: codes, suppliers' and webhooks' secrets, kept answers, second factors; identifiers and blinds stay."""
    company = await shop.company(balance="500.00 EUR")
    trx = (await shop.create(company, ("gift", 5)))["trx"]
    path, key = f"/api/1.03/order/confirm/{trx}", {"idempotency-key": "k"}
    first = await shop.call("PATCH", path, company, headers=key)
    async with transaction(shop.pool) as tx:
        _, secret = await add(
            tx, shop.sealer, company.id, State.LIVE, Draft("https://a.example/", headers={"X-A": "b"})
        )
        user = await tx.fetchval(
            "INSERT INTO app_user (email, role, password_hash) VALUES ('a@b.example', 'admin', 'x') RETURNING id"
        )
        app = await set_up(tx, shop.sealer, user)
    blinds = await shop.pool.fetch("SELECT lot_id, seq, blind FROM code ORDER BY 1, 2")

    assert await rotated(shop) == 2

    assert (
        await shop.pool.fetchval("SELECT count(*) FROM code WHERE substring(sealed FOR 3) = '\\xe50002'")
        == 30
    )
    assert await shop.pool.fetchval("SELECT bool_and(key_version = 2) FROM lot WHERE NOT generated")
    assert await shop.pool.fetch("SELECT lot_id, seq, blind FROM code ORDER BY 1, 2") == blinds
    async with shop.pool.acquire() as conn:
        assert await resealing.left(conn, 2, TEXTS) == 0
    again = await shop.call("PATCH", path, company, headers=key)
    assert (again.content, again.headers["idempotent-replayed"]) == (first.content, "true")
    assert (await shop.find(company, trx))["items"] == first.json()["items"]
    key_ring = await ring_of(shop)
    assert key_ring.identifiers().trx(2) == Identifiers(shop.master).trx(2)
    row = await shop.pool.fetchrow("SELECT id, secret, headers FROM webhook")
    assert row is not None
    assert key_ring.sealer.open_text(TEXTS[1].place(row["id"]), row["secret"]) == secret
    following = totp.code(app.secret, app.step + 1)
    assert await second_factors.use_totp(shop.pool, key_ring.sealer, user, following)
    # Everything new is sealed with the new key, here and in the service; what is old can be destroyed.
    await rotation.retire(shop.pool, SYSTEM, 1, TEXTS)
    await shop.until(company, trx, lambda order: order["orderStatus"] == "finished")
    assert await rotated(shop) == 3
    await rotation.retire(shop.pool, SYSTEM, 2, TEXTS)
    rows = await shop.pool.fetch("SELECT action, subject FROM trail WHERE action LIKE 'vault.%' ORDER BY id")
    assert [tuple(row) for row in rows] == [
        ("vault.rotate", "key 2 of the vault"),
        ("vault.retire", "key 1 of the vault"),
        ("vault.rotate", "key 3 of the vault"),
        ("vault.retire", "key 2 of the vault"),
    ]
    shop.sealer = (await ring_of(shop)).sealer
    assert (await shop.find(company, trx))["items"] == first.json()["items"]
    await shop.assert_books_balance()


async def test_no_sealed_column_is_forgotten(pool: Pool) -> None:
    """OP-95: whoever adds bytes to the schema says here that they are sealed, or why they need not be."""
    rows = await pool.fetch(
        "SELECT table_name || '.' || column_name FROM information_schema.columns"
        " WHERE table_schema = current_schema() AND data_type = 'bytea'"
    )
    open_to_all = {
        *("code.blind", "quarantined_code.blind"),  # Keyed hashes of codes.
        "code_serial.blind",  # Of serials.
        *(
            "idempotency.key",
            "idempotency.request",
            "archive_file.sha256",
            "archived_blocks.sha256",
        ),  # Hashes.
        *("passkey.credential", "passkey.public_key"),  # Of a key that never leaves its device.
        *("vault_key.wrapped", "vault_master.root"),  # Wrapped with the master key.
        *("session.key", "session.csrf", "throttle.key", "mail.link"),  # Hashes.
        *("brand_logo.content", "operator_logo.content"),  # Pictures for everybody.
        "setup_link.nonce",  # Opens nothing without the root of the vault.
    }
    hashed = {"hash", "fingerprint", "previous"}
    found = {row[0] for row in rows if row[0].split(".")[1] not in hashed} - open_to_all
    assert found == {f"{one.table}.{one.column}" for one in TEXTS} | {"code.sealed"}


async def test_a_rotation_that_stopped_anywhere_goes_on(shop: Shop) -> None:
    """OP-95: a crash at any moment loses nothing; the next try makes no other key and does nothing twice."""
    company = await shop.company(balance="500.00 EUR")
    trx = (await shop.create(company, ("gift", 5)))["trx"]
    codes = (await shop.confirm(company, trx))["items"]
    key_ring = await ring_of(shop)
    version = await rotation.begin(shop.pool, key_ring, TEXTS)
    assert await rotation.begin(shop.pool, key_ring, TEXTS) == version, "announced, and not active yet"
    since = await rotation.activate(shop.pool, SYSTEM, key_ring, version, notice_s=0)

    def stop(count: Count) -> None:
        if count.codes >= 14:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await rotation.reseal_all(shop.pool, key_ring, version, TEXTS, since, stop)
    assert (
        await shop.pool.fetchval("SELECT count(*) FROM code WHERE substring(sealed FOR 3) = '\\xe50002'")
        == 14
    )
    assert (await shop.find(company, trx))["items"] == codes, "of a lot that two keys seal"
    with pytest.raises(rotation.StillUsed):
        await rotation.retire(shop.pool, SYSTEM, 1, TEXTS)

    assert await rotated(shop) == version
    assert await shop.pool.fetchval("SELECT count(DISTINCT substring(sealed FOR 3)) FROM code") == 1
    shop.sealer = (await ring_of(shop)).sealer
    await shop.assert_books_balance()


async def test_a_transaction_of_the_old_key_is_waited_for(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-95: what an import seals with the old key becomes visible when it commits, and is sealed again then."""
    key_ring = await ring_of(shop)
    version = await rotation.begin(shop.pool, key_ring, TEXTS)
    slow = await shop.pool.acquire()
    import_ = slow.transaction()
    await import_.start()
    await slow.execute("SELECT now()")
    since = await rotation.activate(shop.pool, SYSTEM, key_ring, version, notice_s=0)
    told: list[Count] = []
    lot = await slow.fetchval("SELECT max(id) + 1000 FROM lot WHERE state = 0")
    await slow.execute(
        "INSERT INTO lot (id, product_id, face_minor, state, generated, supplier, purchase_minor, purchase_currency,"
        " purchase_fx_e8, size) SELECT $1, product_id, face_minor, 0, false, 'own', 1, 'EUR', 1, 1 FROM lot"
        " WHERE state = 0 LIMIT 1",
        lot,
    )
    blind = key_ring.sealer.blind(1, "LATE")
    await slow.execute(
        "INSERT INTO code VALUES ($1, 0, $2, $3)", lot, shop.sealer.seal(lot, 0, "LATE", ""), blind
    )

    looks: list[bool] = []
    old_writers = rotation._old_writers

    async def looked(conn: Pool, since: datetime) -> bool:
        looks.append(await old_writers(conn, since))
        return looks[-1]

    monkeypatch.setattr(rotation, "_old_writers", looked)

    async def commit() -> None:
        await import_.commit()
        await shop.pool.release(slow)

    async with asyncio.TaskGroup() as group:
        sealing = group.create_task(
            rotation.reseal_all(shop.pool, key_ring, version, TEXTS, since, told.append)
        )
        await until_true(lambda: len(looks) > 1)
        assert looks[0]
        assert not sealing.done()
        group.create_task(commit())

    sealed = await shop.pool.fetchval("SELECT sealed FROM code WHERE lot_id = $1", lot)
    assert sealed.startswith(b"\xe5\x00\x02")
    assert key_ring.sealer.open(lot, 0, sealed) == ("LATE", "")


async def test_keys_that_are_needed_can_not_be_lost(shop: Shop) -> None:
    """OP-95: the database itself refuses to drop, change or revive keys, or to seal with one that is gone."""
    with pytest.raises(rotation.StillUsed):
        await rotation.retire(shop.pool, SYSTEM, 1, TEXTS)
    with pytest.raises(rotation.NoSuchKey):
        await rotation.retire(shop.pool, SYSTEM, 9, TEXTS)
    for change in (
        "DELETE FROM vault_key",
        "TRUNCATE vault_key",
        "UPDATE vault_key SET fingerprint = sha256('x')",
        "UPDATE vault_key SET active_at = NULL",
        "UPDATE vault_key SET retired_at = now()",
        "DELETE FROM vault_master",
    ):
        with pytest.raises(asyncpg.IntegrityConstraintViolationError, match=r"append-only|still seals lots"):
            await shop.pool.execute(change)
    await rotated(shop)
    await rotation.retire(shop.pool, SYSTEM, 1, TEXTS)
    for change in (
        "UPDATE vault_key SET retired_at = NULL WHERE version = 1",
        "INSERT INTO lot (id, product_id, face_minor, state, supplier, purchase_minor, purchase_currency,"
        " purchase_fx_e8, size, key_version)"
        " SELECT 9000, product_id, face_minor, 0, 'own', 1, 'EUR', 1, 1, 1 FROM lot LIMIT 1",
        "UPDATE code SET blind = sealed",
    ):
        with pytest.raises(asyncpg.IntegrityConstraintViolationError, match=r"append-only|is retired"):
            await shop.pool.execute(change)


async def test_a_database_from_before_opens_and_its_master_key_can_be_replaced(
    pool: Pool, tmp_path: Path
) -> None:
    """OP-95: version 1 is derived from the first master key; a crash between database and file loses nothing."""
    settings = Settings.load({"data": tmp_path}, {})
    file = settings.master_key_file
    first = load_or_create_master(file, create=True)
    async with pool.acquire() as conn:
        await check_fingerprint(conn, first)
        key_ring = await open_key_ring(conn, settings)
        assert key_ring.root == key_ring.master == first
        version = await rotation.begin(pool, key_ring, ())
        await rotation.activate(pool, SYSTEM, key_ring, version, notice_s=0)
        sealed = key_ring.sealer.seal_text(b"p", "secret")

        change = plan_master(settings, None)
        assert (next_file(file).stat().st_mode & 0o777, repr(change)) == (0o600, f"Change(file={file!r})")
        assert (await open_key_ring(conn, settings)).master == first, "only the new file is there yet"
        async with conn.transaction():
            await rotation.replace_master(conn, SYSTEM, key_ring, change.fresh)
        half = await open_key_ring(conn, settings)
        assert half.master == change.fresh == plan_master(settings, None).fresh
        assert change.done(half.master)
        old = change.finish(1)
        whole = await open_key_ring(conn, settings)

        assert old is not None
        assert (load_or_create_master(old), load_or_create_master(file)) == (first, change.fresh)
        assert not next_file(file).exists()
        assert (whole.root, whole.sealer.open_text(b"p", sealed)) == (first, "secret")
        # A process from before learns a key that the new master key wraps: it reads the file again.
        await rotation.activate(pool, SYSTEM, whole, await rotation.begin(pool, whole, ()), notice_s=0)
        await key_ring.refresh(conn)
        assert key_ring.sealer.version == 3
        file.unlink()
        old.rename(file)
        with pytest.raises(VaultKeyError, match="not the one that sealed this database"):
            await open_key_ring(conn, settings)
