"""The vault's tables: reading what was stored, the sandbox's lots, the list, and what the database refuses."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import asyncpg
import pytest

from voucherd.db import Pool, transaction
from voucherd.ids import State
from voucherd.money import RATE_ONE, Money
from voucherd.vault import store
from voucherd.vault.imports import CodesAlreadyThere, StockTarget, append_codes
from voucherd.vault.master_key import VaultKeyError, check_fingerprint
from voucherd.vault.seal import SealBroken, Sealer
from voucherd.vault.store import LotBook, VaultHole, ensure_generated_lot, list_lots, read_codes

PRICE = Money.read("46.90 EUR")
EXPIRES = datetime(2090, 1, 31, 23, 59, 59, tzinfo=UTC)


@pytest.fixture
async def target(pool: Pool) -> StockTarget:
    """One product of 50 EUR."""
    brand_id = await pool.fetchval("INSERT INTO brand (slug, name) VALUES ('acme', 'Acme') RETURNING id")
    async with transaction(pool) as tx:
        product_id = await tx.fetchval(
            "INSERT INTO product (slug, version_id) VALUES ('acme-50', 0) RETURNING id"
        )
        await tx.execute(
            """
            WITH v AS (
                INSERT INTO product_version (product_id, brand_id, name, product_type, category, redeem_type, region,
                    vat_category, async_delivery, face_currency, face_minor, price_minor, price_currency)
                VALUES ($1, $2, 'Acme 50', 'giftcard', 'shopping', 'currency', 'ww', 'exempt', false,
                        'EUR', 5000, 4810, 'EUR') RETURNING id)
            UPDATE product SET version_id = v.id FROM v WHERE product.id = $1
            """,
            product_id,
            brand_id,
        )
    return StockTarget(product_id, brand_id, 5000)


@pytest.fixture
def sealer(master: bytes) -> Sealer:
    """The sealer of the tests' master key."""
    return Sealer(master)


async def append(pool: Pool, sealer: Sealer, target: StockTarget, *codes: str) -> int:
    """A lot with these codes; the serial of each is its code in lower case."""
    async with transaction(pool) as tx:
        return await append_codes(
            tx,
            sealer,
            target=target,
            supplier="acme",
            purchase=PRICE,
            purchase_fx_e8=RATE_ONE,
            expires=EXPIRES,
            codes=[(code, code.lower()) for code in codes],
        )


# ── the master key and its database ──────────────────────────────────────────────────────────────────


async def test_a_database_remembers_the_key_that_sealed_it(pool: Pool, master: bytes) -> None:
    """Decision 3: a wrong key file is noticed at the start, not at the first sale."""
    async with pool.acquire() as conn:
        await check_fingerprint(conn, master)
        await check_fingerprint(conn, master)
        with pytest.raises(VaultKeyError) as refusal:
            await check_fingerprint(conn, bytes(32))
        stored = await conn.fetchval("SELECT fingerprint FROM vault_key")
    assert str(refusal.value) == "this master key is not the one that sealed this database"
    assert master not in stored


async def test_of_two_keys_that_come_first_at_once_one_is_refused(pool: Pool) -> None:
    """Many processes may start on one empty database."""

    async def start(master: bytes) -> bool:
        async with pool.acquire() as conn:
            try:
                await check_fingerprint(conn, master)
            except VaultKeyError:
                return False
            return True

    accepted = await asyncio.gather(*(start(bytes([number % 2]) * 32) for number in range(8)))
    assert sum(accepted) == 4


# ── appending and reading ────────────────────────────────────────────────────────────────────────────


async def test_ranges_are_read_in_the_order_they_were_asked_for(
    pool: Pool, sealer: Sealer, target: StockTarget
) -> None:
    """Decision 5: a delivery maps a range of lines to a range of a lot."""
    first = await append(pool, sealer, target, "A0", "A1", "A2", "A3")
    second = await append(pool, sealer, target, "B0", "B1")
    async with transaction(pool) as tx:
        sandbox = await ensure_generated_lot(tx, target.product_id, 5000, PRICE, RATE_ONE)
        read = await read_codes(
            tx, sealer, [(second, 1, 2), (sandbox, 7, 9), (first, 1, 4), (second, 0, 1), (first, 1, 2)]
        )
        assert await read_codes(tx, sealer, []) == []
    assert read == [
        [("B1", "b1")],
        sealer.generated_range(sandbox, 7, 9),
        [("A1", "a1"), ("A2", "a2"), ("A3", "a3")],
        [("B0", "b0")],
        [("A1", "a1")],
    ]


async def test_a_missing_code_is_an_error_and_never_a_shorter_answer(
    pool: Pool, sealer: Sealer, target: StockTarget
) -> None:
    """Invariant 3: no line without its code."""
    lot_id = await append(pool, sealer, target, "A0", "A1")
    async with pool.acquire() as conn:
        for hole in [(lot_id, 1, 3), (lot_id, 5, 6), (lot_id + 2, 0, 1)]:
            with pytest.raises(VaultHole):
                await read_codes(conn, sealer, [(lot_id, 0, 1), hole])
        with pytest.raises(ValueError, match="in one read"):
            await read_codes(conn, sealer, [(lot_id, 0, store.READ_CODES_MAX + 1)])


async def test_sealed_codes_that_were_swapped_in_the_database_do_not_open(
    pool: Pool, sealer: Sealer, target: StockTarget
) -> None:
    """Invariant 3: the database lets a key rotation reseal a row, but not a code change its place."""
    lot_id = await append(pool, sealer, target, "A0", "A1")
    await pool.execute(
        "UPDATE code SET sealed = other.sealed FROM code other WHERE other.seq = 1 - code.seq AND code.seq = 0"
    )
    async with pool.acquire() as conn:
        assert await read_codes(conn, sealer, [(lot_id, 1, 2)]) == [[("A1", "a1")]]
        with pytest.raises(SealBroken):
            await read_codes(conn, sealer, [(lot_id, 0, 1)])


async def test_appending_a_known_code_changes_nothing_and_says_which(
    pool: Pool, sealer: Sealer, target: StockTarget
) -> None:
    """Decision 3: a code enters once; the caller can still append the others, so none is lost."""
    await append(pool, sealer, target, "A", "B")
    async with transaction(pool) as tx:
        with pytest.raises(CodesAlreadyThere) as refusal:
            await append_codes(
                tx,
                sealer,
                target=target,
                supplier="acme",
                purchase=PRICE,
                purchase_fx_e8=RATE_ONE,
                expires=None,
                codes=[(code, "") for code in ("C", "B", "D", " C")],
            )
        assert await tx.fetchval("SELECT count(*) FROM lot") == 1
    assert refusal.value.positions == [1, 3]
    assert await append(pool, sealer, target, "C", "D")


async def test_the_same_code_appended_twice_at_once_enters_once(
    pool: Pool, sealer: Sealer, target: StockTarget
) -> None:
    """Invariant 3: no code is on two lines, whoever brings it."""
    results = await asyncio.gather(
        *(append(pool, sealer, target, "A") for _ in range(5)), return_exceptions=True
    )
    assert sum(isinstance(result, int) for result in results) == 1
    assert sum(isinstance(result, CodesAlreadyThere) for result in results) == 4
    assert await pool.fetchval("SELECT sum(size) FROM lot") == 1


# ── lots ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_sandbox_gets_one_lot_a_product_and_face_value_however_many_ask(
    pool: Pool, target: StockTarget
) -> None:
    """OP-49: the sandbox has its own generated codes; nothing crosses to live."""

    async def ask(face_minor: int) -> int:
        async with transaction(pool) as tx:
            return await ensure_generated_lot(tx, target.product_id, face_minor, PRICE, RATE_ONE)

    asked = await asyncio.gather(*(ask(face_minor) for face_minor in [5000, 2500] * 8))
    assert len(set(asked)) == 2
    rows = await pool.fetch("SELECT * FROM lot")
    assert {row["id"] for row in rows} == set(asked)
    for row in rows:
        assert (row["id"] & 1, row["state"], row["generated"], row["supplier"]) == (1, 1, True, "sandbox")
        assert row["size"] == 2_000_000_000


async def test_the_list_shows_what_is_left_and_what_it_cost(
    pool: Pool, sealer: Sealer, target: StockTarget
) -> None:
    """`stock list`: lots, what is left, value, expiry."""
    first = await append(pool, sealer, target, "A0", "A1", "A2")
    second = await append(pool, sealer, target, "B0")
    async with transaction(pool) as tx:
        sandbox = await ensure_generated_lot(tx, target.product_id, 5000, PRICE, RATE_ONE)
        await tx.execute("UPDATE lot SET cursor = 1 WHERE id = ANY($1)", [first, second])
        listed = await list_lots(tx)
        live = await list_lots(tx, slug="acme-50", state=State.LIVE, sold_out=True)
        assert [lot.id for lot in await list_lots(tx, sold_out=True, before=second, limit=5)] == [first]
        assert await list_lots(tx, slug="other") == []
    assert [lot.id for lot in listed] == [sandbox, first]
    assert [(lot.id, lot.left) for lot in live] == [(second, 0), (first, 2)]
    lot = listed[1]
    assert (lot.slug, lot.supplier, lot.size, lot.left, lot.expires_at) == ("acme-50", "acme", 3, 2, EXPIRES)
    assert (str(lot.face), str(lot.purchase), str(lot.value_left)) == ("50.00 EUR", "46.90 EUR", "93.80 EUR")
    assert str(listed[0].value_left) == "0.00 EUR"


async def test_the_facts_of_a_lot_are_asked_for_once(pool: Pool, sealer: Sealer, target: StockTarget) -> None:
    """OP-58: every delivered line shows its purchase; facts that never change are remembered, within bounds."""
    ids = [await append(pool, sealer, target, code) for code in "ABC"]
    book = LotBook(kept_max=2)
    conn = await pool.acquire()
    facts = await book.lots(conn, ids)
    assert set(facts) == set(ids)
    assert facts[ids[0]].expires_at == EXPIRES
    assert (facts[ids[0]].purchase_minor, facts[ids[0]].purchase_currency) == (4690, "EUR")
    with pytest.raises(KeyError):
        await book.lots(conn, [999_998])
    await pool.release(conn)

    kept = 0
    for lot_id in ids:
        try:
            # A connection that was given back can't answer: what still comes was remembered.
            assert (await book.lots(conn, [lot_id]))[lot_id] == facts[lot_id]
            kept += 1
        except asyncpg.InterfaceError:
            pass
    assert kept == 2


# ── what the database refuses ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE code SET seq = 9",
        "UPDATE code SET lot_id = lot_id + 2",
        "UPDATE code SET blind = sealed",
        "DELETE FROM code",
        "TRUNCATE code",
        "TRUNCATE lot CASCADE",
        "DELETE FROM lot",
        "INSERT INTO code SELECT lot_id, 9, sealed, blind FROM code",
        "INSERT INTO code SELECT lot_id, seq, sealed, decode(repeat('00', 16), 'hex') FROM code",
        "INSERT INTO code SELECT 998, 0, sealed, decode(repeat('00', 16), 'hex') FROM code",
        "INSERT INTO code SELECT lot_id, -1, sealed, decode(repeat('00', 16), 'hex') FROM code",
        "INSERT INTO code SELECT lot_id, 9, sealed, 'short' FROM code",
        "UPDATE lot SET cursor = size + 1",
        "UPDATE lot SET cursor = -1",
        "UPDATE lot SET state = 1",
        "UPDATE lot SET generated = true",
        "UPDATE lot SET size = 0",
    ],
)
async def test_the_database_itself_refuses_to_bend_a_lot_or_its_codes(
    pool: Pool, sealer: Sealer, target: StockTarget, change: str
) -> None:
    """Decision 3: codes are immutable rows; invariants 3 and 5 hold against any client."""
    lot_id = await append(pool, sealer, target, "A0")
    with pytest.raises(asyncpg.IntegrityConstraintViolationError) as refusal:
        await pool.execute(change)
    assert "A0" not in str(refusal.value)
    async with pool.acquire() as conn:
        assert await read_codes(conn, sealer, [(lot_id, 0, 1)]) == [[("A0", "a0")]]
