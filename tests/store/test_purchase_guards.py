"""The database's triggers around purchases bite: what was bought stays bought, a line waits once and is bought once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import asyncpg
import pytest

from voucherd.db import Pool, Tx, transaction

ATTEMPT: Final = "00000000-0000-0000-0000-000000000001"
OTHER: Final = "00000000-0000-0000-0000-000000000002"
CALLING, ASKING, UNKNOWN, BOUGHT, FAILED = range(5)

# What goes with each status of a purchase.
FITTING: Final = {
    CALLING: "ask_at = NULL, ended_at = NULL",
    ASKING: "ask_at = now(), ended_at = NULL",
    UNKNOWN: "ask_at = NULL, ended_at = NULL",
    BOUGHT: "ask_at = NULL, ended_at = now()",
    FAILED: "ask_at = NULL, ended_at = now()",
}

GROUND: Final = f"""
INSERT INTO company (name, country) VALUES ('Acme', 'NL');
INSERT INTO brand (slug, name) VALUES ('play', 'Play');
INSERT INTO product (slug, version_id) VALUES ('play-10', 1);
INSERT INTO product_version (product_id, brand_id, name, product_type, category, redeem_type, region, vat_category,
    async_delivery, face_currency, face_minor, price_minor, price_currency)
VALUES (1, 1, 'Play 10', 'giftcard', 'games', 'currency', 'ww', 'exempt', true, 'EUR', 1000, 990, 'EUR');
INSERT INTO orders (id, company_id, type, status, payment_currency, payment_fx_e8, price_minor, vat_minor, lines,
    created_at, expires_at, updated_at)
SELECT id, 1, 0, 1, 'EUR', 100000000, 100, 21, 20, now(), now(), now() FROM unnest(ARRAY[2, 4]) AS id;
INSERT INTO supplier (name, kind, state, config) VALUES ('wholesaler', 'http', 0, '{{}}');
INSERT INTO supplier_health (supplier_id) VALUES (1);
INSERT INTO quote (id, supplier_id, state, product_id, face_minor, price_minor, currency, fx_e8)
VALUES (2, 1, 0, 1, 1000, 900, 'EUR', 100000000), (4, 1, 0, 1, 1000, 901, 'EUR', 100000000);
INSERT INTO offer (supplier_id, state, product_id, face_minor, sku, quote_id, stock, quoted_at)
VALUES (1, 0, 1, 1000, 'P10', 2, 5, now());
INSERT INTO attempt (id, supplier_id, state, product_id, face_minor, sku, quote_id, price_minor, price_max_minor, count,
    urgent, status, worker, lease_until, settles_at)
SELECT id::uuid, 1, 0, 1, 1000, 'P10', 2, 900, 909, 3, false, 0, 'w', now(), now()
FROM unnest(ARRAY['{ATTEMPT}', '{OTHER}']) AS id;
INSERT INTO attempt_line VALUES ('{ATTEMPT}', 2, 0, 3);
INSERT INTO lot (id, product_id, face_minor, state, generated, supplier, purchase_minor, purchase_currency,
    purchase_fx_e8, size, cursor, attempt_id, external_id, spare)
VALUES (2, 1, 1000, 0, false, 'wholesaler', 900, 'EUR', 100000000, 3, 0, '{ATTEMPT}', 'x1', 1);
INSERT INTO quarantined_code (attempt_id, place, sealed, blind, reason)
VALUES ('{ATTEMPT}', 0, 'x', '0123456789abcdef', 'known');
"""  # noqa: S608 - Constants only.


@pytest.fixture
async def tx(pool: Pool) -> AsyncIterator[Tx]:
    """A transaction on a shop with a supplier that is being asked."""
    async with transaction(pool) as opened:
        await opened.execute(GROUND)
    async with transaction(pool) as opened:
        yield opened


async def refused(tx: Tx, sql: str, match: str) -> None:
    """The statement is refused in these words, and its transaction can go on."""
    with pytest.raises(asyncpg.IntegrityConstraintViolationError, match=match):
        async with tx.transaction():
            await tx.execute(sql)


async def become(tx: Tx, status: int, also: str = "") -> None:
    """Move the first purchase to a status, with all that goes with it."""
    await tx.execute(
        f"UPDATE attempt SET status = {status}, {FITTING[status]}{also} WHERE id = '{ATTEMPT}'"  # noqa: S608 - Ours.
    )


async def wait(tx: Tx, *ranges: tuple[int, int, int], attempt: str | None = None) -> None:
    """Let ranges of (order, first line, the line after the last) wait, in one statement."""
    await tx.execute(
        "INSERT INTO waiting (state, product_id, face_minor, company_id, order_id, line_from, line_to, not_before,"
        " deadline_at, attempt_id) SELECT 0, 1, 1000, 1, o, f, t, now(), now(), $4::uuid"
        " FROM unnest($1::bigint[], $2::int[], $3::int[]) AS w (o, f, t)",
        *([one[column] for one in ranges] for column in range(3)),
        attempt,
    )


# ── purchases ───────────────────────────────────────────────────────────────────────────────────────────


async def test_a_purchase_only_goes_forwards(tx: Tx) -> None:
    """Invariant 4: a supplier's yes is for ever, its no until a yes turns up, and nobody calls twice."""
    allowed = {
        CALLING: {CALLING, ASKING, UNKNOWN, BOUGHT, FAILED},
        ASKING: {ASKING, UNKNOWN, BOUGHT, FAILED},
        UNKNOWN: {ASKING, UNKNOWN, BOUGHT, FAILED},
        BOUGHT: {BOUGHT},
        FAILED: {BOUGHT, FAILED},
    }
    for before, afters in allowed.items():
        for after in FITTING:
            undone = tx.transaction()
            await undone.start()
            await become(tx, before)
            if after in afters:
                await become(tx, after)
            else:
                with pytest.raises(asyncpg.IntegrityConstraintViolationError, match="attempt is append-only"):
                    await become(tx, after)
            await undone.rollback()


async def test_codes_and_owners_of_a_purchase_never_go_back(tx: Tx) -> None:
    """A code that came stays, and an owner that was replaced stays replaced."""
    await become(tx, ASKING, ", fence = 3, codes = 2")
    await refused(tx, "UPDATE attempt SET fence = 2", "attempt is append-only")
    await refused(tx, "UPDATE attempt SET codes = 1", "attempt is append-only")
    await tx.execute("UPDATE attempt SET fence = 4, codes = 3")


@pytest.mark.parametrize(
    "change",
    [
        "id = id",
        "supplier_id = 1",
        "state = 0",
        "product_id = 1",
        "face_minor = 2000",
        "sku = 'P20'",
        "quote_id = 4",
        "price_minor = 1",
        "price_max_minor = 5000",
        "count = 4",
        "urgent = true",
        "placed_at = now()",
    ],
)
async def test_what_was_ordered_from_a_supplier_never_changes(tx: Tx, change: str) -> None:
    """Its id is our reference there: asked again, it must mean the same purchase."""
    await refused(tx, f"UPDATE attempt SET {change}", "attempt is append-only")  # noqa: S608 - The words above.


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("attempt", "DELETE FROM attempt"),
        ("attempt", "TRUNCATE attempt CASCADE"),
        ("attempt_line", "UPDATE attempt_line SET line_to = 2"),
        ("attempt_line", "DELETE FROM attempt_line"),
        ("attempt_line", "TRUNCATE attempt_line"),
        ("quote", "UPDATE quote SET price_minor = 1"),
        ("quote", "DELETE FROM quote"),
        ("quote", "TRUNCATE quote CASCADE"),
        ("quarantined_code", "UPDATE quarantined_code SET reason = 'expired'"),
        ("quarantined_code", "DELETE FROM quarantined_code"),
        ("quarantined_code", "TRUNCATE quarantined_code"),
        ("lot", "UPDATE lot SET attempt_id = NULL, spare = 0"),
        ("lot", "UPDATE lot SET external_id = 'x2'"),
        ("lot", "UPDATE lot SET spare = 0"),
    ],
)
async def test_what_was_bought_for_whom_never_changes(tx: Tx, table: str, change: str) -> None:
    """Invariant 4: what a supplier sold us, at which price and for whom, is history."""
    await refused(tx, change, f"{table} is append-only")


# ── waits ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_line_waits_once(tx: Tx) -> None:
    """Invariant 4: a line in two waits could be bought twice."""
    await wait(tx, (2, 5, 10))
    await wait(tx, (2, 1, 5), (2, 10, 12), (4, 5, 10))
    for lines in ((2, 4, 6), (2, 9, 20), (2, 6, 7), (2, 0, 20), (2, 11, 13)):
        with pytest.raises(asyncpg.ExclusionViolationError, match="a line would wait twice"):
            async with tx.transaction():
                await wait(tx, lines)
    with pytest.raises(asyncpg.UniqueViolationError, match=r"waiting_pkey|waiting_order"):
        async with tx.transaction():
            await wait(tx, (2, 5, 6))
    with pytest.raises(asyncpg.ExclusionViolationError, match="a line would wait twice"):
        async with tx.transaction():
            await wait(tx, (4, 12, 15), (4, 14, 16))


async def test_a_wait_does_not_leave_a_purchase_that_is_under_way(tx: Tx) -> None:
    """Invariant 4: at most one live purchase a line."""
    await wait(tx, (2, 0, 3), attempt=ATTEMPT)
    away = "UPDATE waiting SET attempt_id = NULL, ask_at = now()"
    over = f"UPDATE waiting SET attempt_id = '{OTHER}'"  # noqa: S608 - A constant.
    for status, leaves in (
        (CALLING, False),
        (ASKING, False),
        (UNKNOWN, True),
        (BOUGHT, True),
        (FAILED, True),
    ):
        undone = tx.transaction()
        await undone.start()
        await become(tx, status)
        await refused(tx, over, "a purchase is under way for these lines")
        if leaves:
            await tx.execute(away)
        else:
            await refused(tx, away, "a purchase is under way for these lines")
        await undone.rollback()


# ── offers ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("change", "moves"),
    [
        ("UPDATE offer SET active = false", True),
        ("DELETE FROM offer", True),
        (
            "INSERT INTO offer (supplier_id, state, product_id, face_minor, sku) VALUES (1, 0, 1, 2000, 'P20')",
            True,
        ),
        ("UPDATE supplier SET active = false", True),
        ("UPDATE offer SET stock = 3, quoted_at = now(), quote_id = 4", False),
        ("UPDATE supplier SET timeout_s = 3", False),
    ],
)
async def test_who_sells_what_moves_the_epoch(tx: Tx, change: str, moves: bool) -> None:
    """Every process polls one number: it moves when an offer comes or goes, and not with every price."""
    before = await tx.fetchval("SELECT epoch FROM offer_epoch")

    await tx.execute(change)

    assert await tx.fetchval("SELECT epoch FROM offer_epoch") == before + moves
