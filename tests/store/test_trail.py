"""The audit trail: rows become blocks without their writers waiting, and whatever is done to them afterwards shows."""

from __future__ import annotations

import asyncio
import hmac
import random
from pathlib import Path
from typing import Final

import asyncpg
import pytest

from voucherd import trail
from voucherd.actors import SYSTEM, Actor, ActorKind, TrailEntry
from voucherd.db import Connection, Pool, Tx, transaction
from voucherd.ids import State
from voucherd.trail import chain, heads
from voucherd.trail.chain import GENESIS, Head, TrailSealing
from voucherd.trail.heads import HeadPublisher
from voucherd.trail.verification import verify

KEY: Final = bytes(range(32))
WRITERS = 6
DEEDS = 20
"""Of each writer."""
BLOCKS = 4
"""Of three rows each, in the tests of what is done to them."""


async def flaws(conn: Connection, *noted: Head) -> list[str]:
    """What the verification says, in words."""
    return [f"{flaw.book} {flaw.block}: {flaw.wrong}" async for flaw in verify(conn, KEY, noted)]


async def deeds(pool: Pool, count: int) -> None:
    """Write rows, each in a transaction of its own."""
    for number in range(count):
        async with transaction(pool) as tx:
            await trail.record_all(tx, [TrailEntry(SYSTEM, "test.deed", f"deed {number}")])


async def test_a_row_tells_who_did_what_to_what_from_where(pool: Pool) -> None:
    """OP-94: actor, action, subject, company, state, address and request; the newest first, and filtered."""
    key = Actor(ActorKind.KEY, "key 7 (vk_live_abc)", 7)
    async with transaction(pool) as tx:
        await trail.record_all(
            tx,
            [
                TrailEntry(
                    key,
                    "webhook.add",
                    "webhook wh_1",
                    3,
                    State.LIVE,
                    "203.0.113.9",
                    "req-1",
                    {"url": "https://a.example"},
                ),
                TrailEntry(key, "webhook.remove", "x" * 900, 3, State.LIVE, "2001:db8::1"),
                TrailEntry(
                    Actor(ActorKind.COMMAND, "ann\0@host", 1000), "key.revoke", "", detail={"note": "a\0b"}
                ),
            ],
        )

    async with pool.acquire() as conn:
        revoked, removed, added = (await trail.page(conn)).rows
        of_company = (await trail.page(conn, company_id=3, action="webhook", limit=1)).rows
        earlier = (await trail.page(conn, actor="vk_live_abc", before=removed.id)).rows

    assert (added.actor_kind, added.actor_id, added.actor) == (ActorKind.KEY, 7, "key 7 (vk_live_abc)")
    assert (added.action, added.subject, added.company_id, added.state) == (
        "webhook.add",
        "webhook wh_1",
        3,
        State.LIVE,
    )
    assert (added.address, added.request_id, added.detail) == (
        "203.0.113.9",
        "req-1",
        {"url": "https://a.example"},
    )
    assert (len(removed.subject), removed.address) == (trail.SUBJECT_CHARS_MAX, "2001:db8::1")
    assert (revoked.actor, revoked.subject, revoked.detail) == ("ann\ufffd@host", "–", {"note": "a\ufffdb"})
    assert (of_company, earlier) == ([removed], [added])


async def test_blocks_hold_every_row_once_whoever_commits_when(pool: Pool) -> None:
    """OP-94: only rows that no open transaction can still precede are sealed, and writers wait for nobody."""
    chance = random.Random(94)
    sealings = [TrailSealing(pool, KEY), TrailSealing(pool, KEY)]
    done = asyncio.Event()

    async def write() -> None:
        for number in range(DEEDS):
            async with pool.acquire() as conn:
                deed = conn.transaction()
                await deed.start()
                await trail.record_all(conn, [TrailEntry(SYSTEM, "test.deed", f"deed {number}")])
                await asyncio.sleep(chance.choice([0, 0, 0.002, 0.02]))
                await (deed.rollback() if chance.random() < 0.2 else deed.commit())

    async def seal(sealing: TrailSealing) -> None:
        while not done.is_set():
            await sealing.round()
            await asyncio.sleep(0.001)

    sealers = [asyncio.create_task(seal(sealing)) for sealing in sealings]
    await asyncio.gather(*(write() for _ in range(WRITERS)))
    while not await pool.fetchval("SELECT count(*) > 5 FROM trail_seal"):
        await write()
    done.set()
    await asyncio.gather(*sealers)
    await sealings[0].round()

    async with transaction(pool) as tx:
        assert await flaws(tx) == []
        rows, blocks, sealed = tuple(
            await tx.fetchrow("SELECT (SELECT count(*) FROM trail), count(*), sum(rows) FROM trail_seal")
            or ()
        )
    assert rows == sealed
    assert blocks > 5, "blocks were made while there were writers"


async def test_a_transaction_that_is_open_holds_back_what_it_may_precede(pool: Pool) -> None:
    """OP-94: a row that commits late is in the chain in its place, not beside it."""
    sealing = TrailSealing(pool, KEY)
    async with transaction(pool) as slow:
        await trail.record_all(slow, [TrailEntry(SYSTEM, "test.slow", "first")])
        await deeds(pool, 2)
        assert [await sealing.round() for _ in range(3)] == [0, 0, 0]
    assert await sealing.round() == 3


async def test_the_form_that_is_hashed_is_for_good(pool: Pool) -> None:
    """OP-94: who wants to can compute the chain without this program; docs/decisions/0023 says how."""
    await pool.execute(
        """
        INSERT INTO trail (at, actor_kind, actor_id, actor, action, subject, company_id, state, address, detail)
        VALUES ('2026-01-02T03:04:05.000006Z', 2, 7, 'key 7', 'key.revoke', 'key "ü"', 3, 0, '203.0.113.9',
                '{"b": 1, "a": [true]}')
        """
    )
    await TrailSealing(pool, KEY).round()
    line = (
        '[1,1767323045000006,2,7,"key 7","key.revoke","key \\"ü\\"",3,0,"203.0.113.9/32",null,'
        '"{\\"a\\": [true], \\"b\\": 1}"]\n'
    )

    async with pool.acquire() as conn:
        (head,) = await chain.heads(conn)
        assert head.hash == hmac.digest(KEY, GENESIS + line.encode(), "sha256")
        assert str(head) == f"trail:1:{head.hash.hex()}"
        assert await chain.holds(conn, head)
        assert not await chain.holds(conn, Head("trail", 1, bytes(32)))


CHANGES: Final[list[tuple[str, list[str]]]] = [
    ("UPDATE trail SET subject = 'another' WHERE id = 5", ["trail 2: rows were changed"]),
    ("UPDATE trail SET at = at + interval '1 microsecond' WHERE id = 5", ["trail 2: rows were changed"]),
    ("DELETE FROM trail WHERE id = 5", ["trail 2: rows are missing"]),
    ("DELETE FROM trail WHERE id > 9", ["trail 4: rows are missing"]),
    (
        "DELETE FROM trail WHERE id = 5; INSERT INTO trail OVERRIDING SYSTEM VALUE"
        " SELECT 5, at, actor_kind, actor_id, actor, action, 'forged' FROM trail WHERE id = 4",
        ["trail 2: rows were changed"],
    ),
    (
        "INSERT INTO trail (id, actor_kind, actor, action, subject) OVERRIDING SYSTEM VALUE"
        " VALUES (0 - 1, 4, 'x', 'a.b', 'x')",
        ["trail 1: rows were added"],
    ),
    (
        "DELETE FROM trail_seal WHERE block = 2",
        ["trail 3: block 2 is missing", "trail 3: rows were added"],
    ),
    (
        "UPDATE trail_seal SET previous = sha256('x') WHERE block = 3",
        ["trail 3: does not follow", "trail 3: rows were"],
    ),
    (
        "UPDATE trail_seal SET hash = sha256('x') WHERE block = 3",
        ["trail 3: rows were changed", "trail 4: does not"],
    ),
    (
        "DELETE FROM trail_seal WHERE block = 4; UPDATE trail SET at = now() - interval '2 hours' WHERE id = 11",
        ["trail None: not sealed for an hour"],
    ),
]


async def test_what_is_done_to_sealed_rows_shows(pool: Pool) -> None:
    """OP-94: altered, removed and added rows, broken links, and rows that nobody seals."""
    sealing = TrailSealing(pool, KEY)
    for _ in range(BLOCKS):
        await deeds(pool, 3)
        assert await sealing.round() == 3

    async with transaction(pool) as tx:
        assert await flaws(tx) == []
        # Somebody with all rights on the database.
        await tx.execute(
            "ALTER TABLE trail DISABLE TRIGGER USER; ALTER TABLE trail_seal DISABLE TRIGGER USER"
        )
        for change, said in CHANGES:
            attempt = tx.transaction()
            await attempt.start()
            await tx.execute(change)
            found = await flaws(tx)
            await attempt.rollback()
            assert [one[: len(words)] for one, words in zip(found, said, strict=False)] == said, change
            assert len(found) == len(said), change


async def _rewrite(tx: Tx, key: bytes | None) -> None:
    """Change an old row and make the whole chain anew, as somebody with all rights on the database can."""
    await tx.execute("ALTER TABLE trail DISABLE TRIGGER USER; ALTER TABLE trail_seal DISABLE TRIGGER USER")
    await tx.execute("UPDATE trail SET subject = 'another' WHERE id = 2")
    previous, place = GENESIS, 0
    for row in await tx.fetch("SELECT block, last_id FROM trail_seal WHERE book = 'trail' ORDER BY block"):
        rows = await tx.fetch(
            f"SELECT {chain.TRAIL.columns} FROM trail WHERE id > $1 AND id <= $2 ORDER BY id",  # noqa: S608
            place,
            row["last_id"],
        )
        hashed = chain.digest(previous, rows, key)
        await tx.execute(
            "UPDATE trail_seal SET previous = $2, hash = $3, version = $4 WHERE block = $1",
            row["block"],
            previous,
            hashed,
            chain.PLAIN if key is None else chain.KEYED,
        )
        previous, place = hashed, row["last_id"]


async def test_a_chain_that_is_rewritten_or_cut_shows(pool: Pool, tmp_path: Path) -> None:
    """OP-105: without the vault's key nobody makes a block; whole ends show against the head that was published."""
    sealing, publisher = TrailSealing(pool, KEY), HeadPublisher(pool, tmp_path)
    for _ in range(BLOCKS):
        await deeds(pool, 3)
        assert await sealing.round() == 3
        await publisher.publish()
    file = tmp_path / heads.FILE
    assert file.stat().st_mode & 0o777 == 0o600
    (noted,) = heads.read_file(file)
    assert noted.block == BLOCKS

    async with pool.acquire() as conn:
        for key in (None, bytes(32), bytes(31) + b"x"):
            attempt = conn.transaction()
            await attempt.start()
            await _rewrite(conn, key)
            found = await flaws(conn, noted)
            assert found[0].startswith(f"trail {BLOCKS}: was noted and is not there")
            # Even where nobody noted a head, a key that is not the vault's shows in every block.
            assert len(await flaws(conn)) == (0 if key is None else BLOCKS)
            await attempt.rollback()

    async with transaction(pool) as tx:
        await tx.execute(
            "ALTER TABLE trail DISABLE TRIGGER USER; ALTER TABLE trail_seal DISABLE TRIGGER USER"
        )
        await tx.execute("DELETE FROM trail_seal WHERE block >= 3; DELETE FROM trail WHERE id > 6")
        assert await flaws(tx) == []
        assert [one[:27] for one in await flaws(tx, noted)] == ["trail 4: was noted and is n"]
    # The worker goes on sealing, and still the file says what was there.
    for _ in range(BLOCKS):
        await deeds(pool, 3)
        await sealing.round()
        await publisher.publish()
    assert heads.read_file(file) == [noted]


async def test_blocks_of_the_program_before_stay_in_the_chain_and_none_follows_a_keyed_one(
    pool: Pool,
) -> None:
    """OP-105: a plain block is verified as it was made; behind a keyed one the database takes no plain one."""
    await deeds(pool, 3)
    rows = await pool.fetch(f"SELECT {chain.TRAIL.columns} FROM trail ORDER BY id")  # noqa: S608
    plain = """INSERT INTO trail_seal (book, block, first_id, last_id, rows, previous, hash)
               VALUES ('trail', $1, $2, $3, 3, $4, $5)"""
    await pool.execute(plain, 1, 1, 3, GENESIS, chain.digest(GENESIS, rows, None))
    await deeds(pool, 3)
    await TrailSealing(pool, KEY).round()
    async with transaction(pool) as tx:
        assert [row[0] for row in await tx.fetch("SELECT version FROM trail_seal ORDER BY block")] == [1, 2]
        assert await flaws(tx) == []
    await deeds(pool, 3)
    with pytest.raises(asyncpg.IntegrityConstraintViolationError, match="without a key"):
        await pool.execute(plain, 3, 7, 9, bytes(32), bytes(32))
    async with transaction(pool) as tx:
        await tx.execute("ALTER TABLE trail_seal DISABLE TRIGGER USER")
        await tx.execute(plain, 3, 7, 9, bytes(32), bytes(32))
        await tx.execute(
            "UPDATE trail_seal SET previous = (SELECT hash FROM trail_seal WHERE block = 2) WHERE block = 3"
        )
        assert "trail 3: has no key, although the block before it has one" in await flaws(tx)


async def test_the_trail_is_only_ever_added_to(pool: Pool) -> None:
    """OP-94: append-only, whoever asks."""
    for table in ("trail", "reveal", "trail_seal"):
        for change in (f"UPDATE {table} SET at = now()", f"DELETE FROM {table}", f"TRUNCATE {table} CASCADE"):  # noqa: S608
            with pytest.raises(asyncpg.IntegrityConstraintViolationError, match=f"{table} is append-only"):
                await pool.execute(change)
