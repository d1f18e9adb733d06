"""The archive: orders of closed months leave the tables, are found as before, and the books still balance."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import pytest

from tests.patience import until_true
from tests.shop import Company, Shop
from voucherd import clock
from voucherd.actors import SYSTEM
from voucherd.archive import deeds, model, store
from voucherd.archive.deeds import Archived
from voucherd.archive.files import MonthWriter
from voucherd.archive.model import ArchiveRefused, months_back
from voucherd.audit import audit_since
from voucherd.catalogue.cache import VersionCache
from voucherd.db import Pool, transaction
from voucherd.ids import State
from voucherd.orders import archived
from voucherd.recipients import vouchers
from voucherd.reports.sold import SalesArchived, Span, sales
from voucherd.wallet.ledger import EntryKind
from voucherd.wallet.statement import StatementFilters

MONTHS = 13


class Cut(Exception):
    """The process ends here."""


async def month_of(pool: Pool, back: int = 20) -> date:
    """The first day of a month long ago."""
    return months_back(await pool.fetchval("SELECT now()::date"), back)


async def make_old(shop: Shop, back: int = 20) -> date:
    """Let every order that is in the tables have been made in a month long ago, a few on each day."""
    month = await month_of(shop.pool, back)
    await shop.pool.execute(
        "UPDATE orders SET created_at = moment, updated_at = moment, expires_at = moment + interval '1 day'"
        " FROM (SELECT id AS number, $1::date + (row_number() OVER (ORDER BY id) % 5) * interval '1 day'"
        " + interval '1 hour' AS moment FROM orders) old WHERE id = number",
        month,
    )
    return month


async def archive(shop: Shop) -> list[Archived]:
    """One run, as the command does it."""
    async with shop.pool.acquire() as conn:
        try:
            months = await deeds.closed_months(conn, None, MONTHS)
            return await deeds.archive(
                conn, SYSTEM, shop.settings.archive_folder, months, lambda _words, _done, _total: None
            )
        finally:
            await conn.execute("SELECT pg_advisory_unlock_all()")


class Sold:
    """Orders of every kind that ends, and what Find says of each."""

    def __init__(self, shop: Shop, company: Company) -> None:
        self.shop = shop
        self.company = company
        self.trx: list[tuple[str, State]] = []

    async def sell(self, *items: tuple[str, int], state: State = State.LIVE, cancel: bool = False) -> str:
        """One order, confirmed; or what is left of it cancelled."""
        order = await self.shop.create(self.company, *items, state=state, reference="a reference")
        outcome = "finished" if state else None
        await self.shop.confirm(self.company, order["trx"], state=state, outcome=outcome)
        if cancel:
            assert (await self.shop.cancel(self.company, order["trx"])).status_code == 200
        self.trx.append((order["trx"], state))
        return str(order["trx"])

    async def found(self) -> list[dict[str, Any]]:
        """What Find says of all of them, in both versions of the API."""
        return [
            await self.shop.find(self.company, trx, state=state, version=version)
            for trx, state in self.trx
            for version in ("1.00", "1.03")
        ]


async def sold_in(shop: Shop) -> Sold:
    """A company with orders of every kind that ends."""
    company = await shop.company()
    await shop.product("gift-10", stock=20)
    await shop.product("later", async_delivery=True)
    sold = Sold(shop, company)
    await sold.sell(("gift-10", 2))
    await sold.sell(("gift-10", 1), ("later", 2), cancel=True)
    await sold.sell(("gift-10", 1), state=State.SANDBOX)
    for _ in range(3):
        await sold.sell(("gift-10", 1))
    deleted = await shop.create(company, ("gift-10", 1))
    assert (await shop.cancel(company, deleted["trx"])).status_code == 204
    return sold


async def test_an_order_that_left_the_tables_is_found_as_before(quick_shop: Shop) -> None:
    """OP-129: with its codes, under the same rules, and each look at them is written down; the books balance."""
    shop = quick_shop
    sold = await sold_in(shop)
    month = await make_old(shop)
    before = await sold.found()
    balance = await shop.balance(sold.company)

    async with shop.pool.acquire() as conn:
        assert (await audit_since(conn, SYSTEM, shop.sealer)).marked

    assert await archive(shop) == [Archived(month, 7, 7)]

    assert await shop.pool.fetchval("SELECT count(*) FROM orders") == 0
    assert await shop.pool.fetchval("SELECT count(*) FROM outcome") == 0
    looks = await shop.pool.fetchval("SELECT count(*) FROM reveal")
    assert await sold.found() == before
    assert await shop.pool.fetchval("SELECT count(*) FROM reveal") > looks
    assert await shop.balance(sold.company) == balance
    other = await shop.company()
    assert (await shop.call("GET", f"/api/1.03/order/{sold.trx[0][0]}", other)).status_code == 404
    assert await archive(shop) == []
    await shop.assert_books_balance()
    # The shelf goes on where it was, beside what is archived.
    await sold.sell(("gift-10", 1))
    async with shop.pool.acquire() as conn:
        assert (await audit_since(conn, SYSTEM, shop.sealer)).findings == []
    await sold.sell(("gift-10", 1))
    async with shop.pool.acquire() as conn:
        assert (await audit_since(conn, SYSTEM, shop.sealer)).findings == []
    await shop.assert_books_balance()


async def test_sales_go_on_while_many_wait_for_a_file_of_the_archive(quick_shop: Shop) -> None:
    """OP-129: whoever waits for a file keeps no connection, however many they are."""
    shop = quick_shop
    sold = await sold_in(shop)
    token = shop.ids.tokens(shop.ids.order_id(sold.trx[0][0]) or 0, range(1))[0]
    await make_old(shop)
    await archive(shop)
    finds = 2 * shop.settings.pool_size
    turn = shop.order_service.archive._turn
    async with turn:  # A file that takes long.
        waiting: list[asyncio.Task[Any]] = [
            asyncio.create_task(shop.find(sold.company, trx, state=state))
            for trx, state in (sold.trx[at % len(sold.trx)] for at in range(finds))
        ]
        waiting += [asyncio.create_task(shop.client.get(f"/r/{token}")) for _ in range(finds)]
        confirm = f"/api/1.03/order/confirm/{sold.trx[0][0]}"
        waiting += [asyncio.create_task(shop.call("PATCH", confirm, sold.company)) for _ in range(finds)]
        own, cache, order_id = (
            shop.program.services.pool,
            VersionCache(),
            shop.ids.order_id(sold.trx[0][0]) or 0,
        )
        waiting += [
            asyncio.create_task(archived.read_anywhere(own, shop.order_service.archive, order_id, cache))
            for _ in range(finds)
        ]
        await until_true(lambda: len(turn._waiters or ()) == len(waiting))
        await sold.sell(("gift-10", 1))
    await asyncio.gather(*waiting)
    await shop.assert_books_balance()


async def test_a_code_is_not_taken_back_of_an_order_that_left_since_it_was_looked_at(
    quick_shop: Shop,
) -> None:
    """OP-129: whoever takes it back is told to look again, and then it is written down in the archive."""
    shop = quick_shop
    sold = await sold_in(shop)
    trx, _ = sold.trx[0]
    order_id = shop.ids.order_id(trx) or 0
    await make_old(shop)
    before = await vouchers.look(shop.pool, order_id, 0)
    await archive(shop)
    with pytest.raises(vouchers.LeftForArchive):
        async with transaction(shop.pool) as tx:
            await vouchers.take_back(tx, SYSTEM, trx, before)
    assert await shop.pool.fetchval("SELECT count(*) FROM trail WHERE action = 'order.return'") == 0
    now = await vouchers.look(shop.pool, order_id, 0, shop.order_service.archive)
    async with transaction(shop.pool) as tx:
        returned_at = await vouchers.take_back(tx, SYSTEM, trx, now)
    found = await shop.find(sold.company, trx)
    assert found["items"][0]["orderLines"][0]["dateReturned"] == clock.iso(returned_at)
    await shop.assert_books_balance()


Step = Callable[..., Any]


def _cut_async(after: int, step: Step) -> Step:
    """The step, whose process ends after so many of it."""
    count = 0

    async def cut(*arguments: Any, **options: Any) -> Any:
        nonlocal count
        count += 1
        if count > after:
            raise Cut
        return await step(*arguments, **options)

    return cut


async def test_a_run_that_is_cut_off_loses_nothing_and_the_next_one_goes_on(
    quick_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-129: wherever it ends, each order is found once, in the tables or in the files, and the books balance."""
    shop = quick_shop
    sold = await sold_in(shop)
    month = await make_old(shop)
    before = await sold.found()
    monkeypatch.setattr(deeds, "REMOVE_MAX", 1)
    left = []
    for place, step, after in (
        (store, store.read, 1),
        (deeds, deeds.read_back, 0),
        (store, store.note_month, 0),
        (store, store.remove, 0),
        (store, store.remove, 2),
        (store, store.note_removed, 0),
    ):
        with monkeypatch.context() as cut:
            is_async = asyncio.iscoroutinefunction(step)
            cut.setattr(place, step.__name__, _cut_async(after, step) if is_async else _raise_cut)
            with pytest.raises(Cut):
                await archive(shop)
        assert await sold.found() == before, step
        await shop.assert_books_balance()
        left.append(await shop.pool.fetchval("SELECT count(*) FROM orders"))

    assert left == [7, 7, 7, 7, 5, 0]
    assert await archive(shop) == [Archived(month, 7, 0)]
    assert await sold.found() == before
    await shop.assert_books_balance()


def _raise_cut(*_arguments: Any) -> None:
    raise Cut


async def test_orders_are_found_at_every_moment_while_they_leave(
    quick_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-129: a Find that reads the order and then its lines may have lost it in between, and looks on."""
    shop = quick_shop
    sold = await sold_in(shop)
    await make_old(shop)
    before = await sold.found()
    monkeypatch.setattr(deeds, "REMOVE_MAX", 1)

    running = asyncio.create_task(archive(shop))
    answers = []
    while not running.done():
        answers.append(await sold.found())
    await running

    assert answers
    assert all(answer == before for answer in answers)
    await shop.assert_books_balance()


async def test_what_is_not_in_a_file_that_can_be_trusted_stays_in_the_tables(
    quick_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-129: a file that changed is refused; an order that changed since it was written stays where it is."""
    shop = quick_shop
    sold = await sold_in(shop)
    await make_old(shop)
    with monkeypatch.context() as cut:
        cut.setattr(store, "remove", _cut_async(0, store.remove))
        with pytest.raises(Cut):
            await archive(shop)
    (path, *_) = sorted(shop.settings.archive_folder.rglob("*.parquet"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-20] + bytes([whole[-20] ^ 1]) + whole[-19:])
    with pytest.raises(ArchiveRefused, match="is not the file that was written"):
        await archive(shop)
    assert await shop.pool.fetchval("SELECT count(*) FROM orders") == 7
    path.write_bytes(whole)
    changed = shop.ids.order_id(sold.trx[0][0])
    await shop.pool.execute("UPDATE orders SET downloaded = true WHERE id = $1", changed)

    await archive(shop)

    assert [row[0] for row in await shop.pool.fetch("SELECT id FROM orders")] == [changed]
    await sold.found()
    await shop.assert_books_balance()


async def test_files_that_are_away_are_no_reason_to_say_that_there_is_no_order(quick_shop: Shop) -> None:
    """OP-129, OP-46: the answer is 503 and may be asked for again; a trx that nobody has is not found."""
    shop = quick_shop
    sold = await sold_in(shop)
    await make_old(shop)
    await archive(shop)
    folder = shop.settings.archive_folder
    folder.rename(folder.with_name("elsewhere"))

    away = await shop.call("GET", f"/api/1.03/order/{sold.trx[0][0]}", sold.company)
    assert (away.status_code, away.headers["retry-after"]) == (503, "1")
    made_up = await shop.call("GET", "/api/1.03/order/nobody-has-this", sold.company)
    assert made_up.status_code == 404

    folder.with_name("elsewhere").rename(folder)
    assert (await shop.find(sold.company, sold.trx[0][0]))["trx"] == sold.trx[0][0]


async def test_a_month_that_is_young_or_not_closed_stays(quick_shop: Shop) -> None:
    """OP-129: thirteen whole months stay; a month with an order that is not over is refused as a whole."""
    shop = quick_shop
    sold = await sold_in(shop)
    await make_old(shop, MONTHS)
    assert await archive(shop) == []
    async with shop.pool.acquire() as conn:
        latest = await month_of(shop.pool, MONTHS)
        for wrong in (latest.replace(day=2), await month_of(shop.pool, MONTHS - 1)):
            with pytest.raises(ArchiveRefused, match="is not the first day of a month"):
                await deeds.closed_months(conn, wrong, MONTHS)
    await sold.sell(("later", 1))
    await make_old(shop)

    with pytest.raises(ArchiveRefused, match="is not closed: 1 of its orders are not over"):
        await archive(shop)

    assert not shop.settings.archive_folder.exists()
    await shop.assert_books_balance()


async def test_a_link_of_an_archived_order_shows_its_code(quick_shop: Shop) -> None:
    """OP-57, OP-129: a gift is opened years later, too; when, is seen in the order."""
    shop = quick_shop
    company = await shop.company()
    await shop.product("gift-10", stock=3)
    sold = Sold(shop, company)
    trx = await sold.sell(("gift-10", 1))
    order_id = shop.ids.order_id(trx)
    assert order_id is not None
    await make_old(shop)
    await archive(shop)
    token = shop.ids.tokens(order_id, range(1))[0]
    recipients = shop.program.services.recipients

    opened = await recipients.open(token, person=True)
    assert opened is not None
    assert opened.voucher.archived
    shown = await recipients.reveal(token, "", "192.0.2.1")

    line = (await shop.find(company, trx))["items"][0]["orderLines"][0]
    assert getattr(shown, "code", None) == line["voucherCode"]
    assert await shop.pool.fetchval("SELECT voucher_viewed_at IS NOT NULL FROM archived_view")
    order = (await shop.order_service.find(order_id, company.id, State.LIVE)).order
    assert [view.line for view in order.views] == [0]
    assert order.views[0].voucher_at is not None
    await shop.assert_books_balance()


async def test_a_statement_goes_on_behind_the_movements_that_are_archived(quick_shop: Shop) -> None:
    """OP-130, invariant 1: the entries of archived orders leave with them; the balance carries on from there."""
    shop = quick_shop
    sold = await sold_in(shop)
    before = await shop.balance(sold.company)
    await make_old(shop)
    await archive(shop)
    assert {row[0] for row in await shop.pool.fetch("SELECT kind FROM entry")} == {EntryKind.TOP_UP}
    moments = [clock.now() - timedelta(days=30), clock.now() + timedelta(days=1)]
    await sold.sell(("gift-10", 1))
    after = await shop.balance(sold.company)

    statements = shop.program.services.statements
    account = await statements.account(sold.company.id, "EUR", State.LIVE)
    assert account is not None
    for filters in (StatementFilters(), StatementFilters(date_from=moments[0], date_to=moments[1])):
        part = await statements.page(account, filters, after=None, size=100)
        assert [line.balance_after_minor for line in part.lines] == [after.minor]
        assert part.lines[0].amount_minor == after.minor - before.minor
    assert (await statements.balances_at(account, moments))[1] == after.minor
    await shop.top_up(sold.company, "5.00 EUR")
    await shop.assert_books_balance()


async def test_lists_and_reports_say_where_the_archive_begins(quick_shop: Shop) -> None:
    """OP-130: the last page of Find all names the moment; a report that would lack sales is refused."""
    shop = quick_shop
    sold = await sold_in(shop)
    assert (
        "archivedBefore" not in (await shop.call("GET", "/api/1.03/order", sold.company)).json()["metadata"]
    )
    month = await make_old(shop)
    await archive(shop)
    await sold.sell(("gift-10", 1))

    page = (await shop.call("GET", "/api/1.03/order", sold.company)).json()

    assert len(page["data"]) == 1
    assert page["metadata"]["archivedBefore"] == f"{model.next_month(month)}T00:00:00.000Z"
    async with shop.pool.acquire() as conn:
        until = await store.sold_until(conn)
        assert until is not None
        with pytest.raises(SalesArchived, match="are in the archive: choose a later day"):
            await sales(conn, Span(until, until + timedelta(days=1), State.LIVE), [])
        later = until + timedelta(microseconds=1)
        report = await sales(conn, Span(later, later + timedelta(days=1), State.LIVE), [])
    assert report.lines[0].figures[0] == 1


async def test_the_archive_knows_every_column_of_what_it_takes(pool: Pool) -> None:
    """OP-129: a column that a later migration adds must be kept as well."""
    tables = {"orders": model.ORDER.keys()} | {
        table: {"order_id", *columns} for table, columns, _ in model.PARTS.values()
    }
    for table, columns in tables.items():
        rows = await pool.fetch(
            "SELECT attname FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped",
            table,
        )
        assert {row[0] for row in rows} == set(columns), table


def test_half_a_month_is_written_anew_and_a_whole_one_is_kept(tmp_path: Any) -> None:
    """OP-129: files of another time of this database are put aside, never written over."""
    month = date(2024, 2, 1)
    MonthWriter(tmp_path, month)
    assert [path.name for path in tmp_path.iterdir()] == ["2024-02"]
    MonthWriter(tmp_path, month).finish({})
    MonthWriter(tmp_path, month).finish({})
    assert {path.name for path in tmp_path.iterdir()} == {"2024-02", "2024-02.old-1"}
