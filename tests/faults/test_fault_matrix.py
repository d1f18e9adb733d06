"""The fault matrix: whatever a supplier does and wherever the worker dies, nothing is bought twice and nothing lost."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.faults.cells import (
    AMOUNT,
    CONFIRM_WAIT_S,
    MARGIN_S,
    OVERTIME_S,
    REAL_SETTLE_S,
    RESOLVE_LIMIT_S,
    SURPLUS,
    Cell,
    Death,
    cells,
    pairs,
)
from tests.faults.matrix import Matrix
from tests.faults.processes import REAL_WORKER, Process, environment
from tests.faults.stumbling import open_stumbling_pool
from tests.purchasing.conftest import stopped_clock
from tests.shop import Shop, open_shop
from tests.suppliers.warehouse import warehouse
from voucherd.catalogue.store import brand_of
from voucherd.db import Pool
from voucherd.money import Money
from voucherd.purchasing import attempts
from voucherd.purchasing import dispatcher as dispatching

PRICE_MINOR = 950
COST_MINOR = 900
BALANCE_MINOR = 10_000


@pytest.fixture
async def matrix(
    pool: Pool, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Matrix]:
    """A shop, a wholesaler, and two workers of which one is doomed."""
    # Nobody is held up between a claim and its call by a slow machine: that would be another fault than the cell's.
    stopped_clock(monkeypatch)
    monkeypatch.setattr(attempts, "LEASE_MARGIN_S", MARGIN_S)
    monkeypatch.setattr(dispatching, "OVERTIME_S", OVERTIME_S)
    limits = {"confirm_wait_s": CONFIRM_WAIT_S, "resolve_limit_s": RESOLVE_LIMIT_S}
    doomed_pool = await open_stumbling_pool(database_url)
    async with (
        warehouse(tmp_path) as wholesaler,
        open_shop(pool, database_url, tmp_path, with_worker=False, **limits) as shop,
    ):
        opened = Matrix(shop, wholesaler, doomed_pool)
        yield opened
        await opened.heir.stop()
        await opened.doomed.stop()
    await doomed_pool.close()


@pytest.mark.parametrize(
    "chosen", [pairs, pytest.param(cells, marks=pytest.mark.soak)], ids=["pairs", "every cell"]
)
async def test_whatever_a_supplier_does_and_wherever_the_worker_dies_every_code_is_bought_once_and_kept(
    matrix: Matrix, chosen: Callable[[], list[Cell]]
) -> None:
    """OP-44 to OP-46, invariants 2 to 4: faults x operations x deaths, each cell checked code by code."""
    matrix.cells = chosen()
    await matrix.set_up()
    await matrix.run()
    await matrix.until_quiet()

    await _assert_nothing_is_bought_twice_or_lost(matrix)


@pytest.mark.soak
async def test_the_same_holds_for_real_workers_of_which_one_is_killed_while_it_buys(
    matrix: Matrix, database_url: str, tmp_path: Path
) -> None:
    """OP-44 to OP-46: `voucherd worker`, killed with every purchase begun, and another one with its real leases."""
    matrix.cells = cells([Death.ANYWHERE])
    matrix.settle_s = REAL_SETTLE_S
    surroundings = environment(database_url, tmp_path, resolve_limit_s=RESOLVE_LIMIT_S)
    doomed, heir = [Process(REAL_WORKER, surroundings, tmp_path / f"worker-{at}.log") for at in range(2)]
    await matrix.set_up()
    try:
        await matrix.run_with(doomed, heir)
        await matrix.until_quiet()
    finally:
        await doomed.kill()
        await heir.kill()

    await _assert_nothing_is_bought_twice_or_lost(matrix)


async def _assert_nothing_is_bought_twice_or_lost(matrix: Matrix) -> None:
    shop = matrix.shop
    assert await matrix.wholesaler.repeats() == []
    sales = await _sales_by_product(matrix)
    purchases = await _purchases_by_product(matrix)
    for cell in matrix.cells:
        sold = sales.get(cell.slug, {})
        await _assert_every_code_is_in_the_vault(shop, cell, sold, purchases.get(cell.slug, []))
        bought = [code for codes in sold.values() for code in codes]
        await _assert_the_client_got_what_was_paid(shop, cell, bought, purchases.get(cell.slug, []))
    await shop.assert_books_balance()


async def _sales_by_product(matrix: Matrix) -> dict[str, dict[UUID, list[str]]]:
    sales: dict[str, dict[UUID, list[str]]] = {}
    for reference, sale in (await matrix.wholesaler.sales()).items():
        sales.setdefault(sale["sku"], {})[UUID(reference)] = sale["codes"]
    return sales


async def _purchases_by_product(matrix: Matrix) -> dict[str, list[Any]]:
    rows = await matrix.shop.pool.fetch(
        "SELECT s.name, a.id, a.status, a.codes, a.spare, a.quarantined, a.fence FROM attempt a"
        " JOIN supplier s ON s.id = a.supplier_id ORDER BY a.placed_at"
    )
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(row["name"], []).append(row)
    return found


async def _assert_every_code_is_in_the_vault(
    shop: Shop, cell: Cell, sold: dict[UUID, list[str]], purchases: list[Any]
) -> None:
    """What the wholesaler sold under our references is in our lots with its cost, and nothing else is."""
    assert set(sold) <= {one["id"] for one in purchases}, cell
    for one in purchases:
        assert one["status"] == (3 if one["id"] in sold else 4), cell
        assert (one["codes"], one["quarantined"]) == (len(sold.get(one["id"], [])), 0), cell
    product_id = shop.products[cell.slug].product_id
    async with shop.pool.acquire() as conn:
        brand_id = await brand_of(conn, product_id)
        rows = await conn.fetch(
            "SELECT c.blind, l.attempt_id, l.purchase_minor FROM code c JOIN lot l ON l.id = c.lot_id"
            " WHERE l.product_id = $1",
            product_id,
        )
    kept = {(row["blind"], row["attempt_id"], row["purchase_minor"]) for row in rows}
    assert len(kept) == len(rows), cell
    bought = {
        (shop.sealer.blind(brand_id, code), reference, COST_MINOR)
        for reference, codes in sold.items()
        for code in codes
    }
    assert kept == bought, cell


def _may_be_bought(cell: Cell, purchases: list[Any]) -> set[int]:
    """How many codes a Cancel or a Resolve may find bought: none, if its purchase was taken back or never begun.

    A purchase that its first worker held to the end was neither.
    """
    held_to_the_end = bool(purchases) and all(one["fence"] == 1 for one in purchases)
    return cell.bought_first if held_to_the_end else cell.bought_first | {0}


async def _assert_the_client_got_what_was_paid(
    shop: Shop, cell: Cell, bought: list[str], purchases: list[Any]
) -> None:
    """The order has ended; its codes are ours, each once; the rest lies on the shelf; the charge is theirs."""
    order = await shop.find(cell.company, cell.trx)
    lines = order["items"][0]["orderLines"]
    got = [line["voucherCode"] for line in lines if line["status"] == "finished"]
    spare = len(bought) - len(got)
    assert len(set(got)) == len(got), cell
    assert set(got) <= set(bought), cell
    assert await shop.left(cell.slug) == spare, cell
    surplus = SURPLUS if cell.fault.mode == "too-many" and len(bought) > AMOUNT else 0
    match cell.operation:
        case "confirm":
            # All that was ordered, bought once: nothing is over but what nobody asked for.
            assert (order["orderStatus"], len(got), spare) == ("finished", AMOUNT, surplus), cell
        case "cancel":
            # What came before the Cancel is delivered, what comes after it lies on the shelf; nothing is bought then.
            ended = "finished" if len(got) == AMOUNT else "cancelled"
            assert (order["orderStatus"], len(got) <= len(bought)) == (ended, True), cell
            assert len(bought) in _may_be_bought(cell, purchases), cell
        case "resolve":
            # All or nothing, and one purchase at most: what came too late is on the shelf.
            assert (order["orderStatus"], len(got)) in {("finished", AMOUNT), ("cancelled", 0)}, cell
            assert len(bought) in _may_be_bought(cell, purchases), cell
    assert {line["status"] for line in lines} <= {"finished", "cancelled"}, cell
    assert await shop.balance(cell.company) == Money(BALANCE_MINOR - PRICE_MINOR * len(got), "EUR"), cell
    assert await shop.held(cell.company) == 0, cell
