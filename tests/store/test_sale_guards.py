"""What a sale names stays, is there, and is remembered only as long as it is true."""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest

from tests.store.test_guards import GROUND
from voucherd.db import Pool, Tx, transaction

ITEM = """
    INSERT INTO order_item (order_id, item_no, version_id, amount, first_line, face_minor, face_fx_e8, price_currency,
        price_fx_e8, price_minor, vat_minor, turnover_minor, pay_price_minor, pay_vat_minor, pay_turnover_minor, offers)
    VALUES ($1, 0, $2, 1, 0, 1000, 1, 'EUR', 1, 100, 21, 100, 100, 21, 100, '{}')
"""


@pytest.fixture
async def tx(pool: Pool) -> AsyncIterator[Tx]:
    """A transaction on a small shop."""
    async with transaction(pool) as opened:
        await opened.execute(GROUND)
    async with transaction(pool) as opened:
        yield opened


async def test_an_item_needs_an_order_of_a_company_and_a_version_of_a_product(tx: Tx) -> None:
    """Nothing was ordered that is not there."""
    await tx.execute(ITEM, 2, 1)
    await tx.execute(
        "INSERT INTO orders (id, company_id, type, status, payment_currency, payment_fx_e8, price_minor, vat_minor,"
        " lines, created_at, expires_at, updated_at) SELECT 8, 77, 0, 0, 'EUR', 1, 1, 0, 1, now(), now(), now()"
    )

    for order_id, version_id in ((6, 1), (4, 7), (8, 1)):
        with pytest.raises(asyncpg.ForeignKeyViolationError, match="an item needs an order"):
            async with tx.transaction():
                await tx.execute(ITEM, order_id, version_id)


async def test_the_items_of_an_order_go_with_it(tx: Tx) -> None:
    """OP-40: an order that was never confirmed is removed as a whole, and no other one's items are."""
    await tx.execute(ITEM, 2, 1)
    await tx.execute(ITEM, 4, 1)
    await tx.execute("UPDATE orders SET status = 0 WHERE id = 2")

    await tx.execute("DELETE FROM orders WHERE id = 2")

    assert [row[0] for row in await tx.fetch("SELECT order_id FROM order_item")] == [4]


@pytest.mark.parametrize("table", ["company", "wallet"])
@pytest.mark.parametrize("change", ["DELETE FROM {}", "UPDATE {} SET id = DEFAULT", "TRUNCATE {} CASCADE"])
async def test_what_orders_and_entries_name_stays(tx: Tx, table: str, change: str) -> None:
    """Orders name companies and entries name wallets, without a foreign key."""
    with pytest.raises(asyncpg.PostgresError, match=f"{table} is append-only"):
        await tx.execute(change.format(table))


async def test_an_entry_needs_a_wallet(tx: Tx) -> None:
    """The trigger that carries the balance finds none to carry it to."""
    with pytest.raises(asyncpg.IntegrityConstraintViolationError, match="do not continue their wallet"):
        await tx.execute(
            "INSERT INTO entry (wallet_id, seq, kind, amount_minor, balance_after_minor, held_after_minor, reference,"
            " at) VALUES (12, 1, 6, 1, 1, 0, 'r', now())"
        )


@pytest.mark.parametrize(
    ("change", "moves"),
    [
        ("UPDATE product SET active = false", True),
        ("UPDATE product SET version_id = version_id", True),
        ("UPDATE product SET allow_loss = true", True),
        ("INSERT INTO fx_rate (currency, day, eur_e8, source) VALUES ('XTS', '2026-01-01', 1, 'test')", True),
        ("UPDATE fx_rate SET eur_e8 = 2", True),
        ("DELETE FROM fx_rate", True),
        ("INSERT INTO vat_rate (country, valid_from, rate_bp) VALUES ('XX', '2026-01-01', 2100)", True),
        ("UPDATE vat_rate SET rate_bp = 2000 WHERE country = 'NL'", True),
        ("DELETE FROM vat_rate WHERE country = 'NL'", True),
        (
            "INSERT INTO product (slug, version_id) SELECT 'play-20', version_id FROM product WHERE false",
            False,
        ),
    ],
)
async def test_what_prices_depend_on_moves_the_epoch(tx: Tx, change: str, moves: bool) -> None:
    """A process that remembers prices hears of every change, and of nothing else."""
    before = await tx.fetchval("SELECT epoch FROM price_epoch")

    await tx.execute(change)

    assert await tx.fetchval("SELECT epoch FROM price_epoch") == before + moves
