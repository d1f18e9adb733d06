"""The archive of the audit trail: sealed blocks leave their tables, and what they say can still be proved (OP-134)."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.scenarios.test_archive import Cut, _cut_async, archive, make_old, month_of, sold_in
from tests.shop import Company, Shop
from voucherd import trail
from voucherd.actors import SYSTEM
from voucherd.archive import blocks
from voucherd.archive.block_files import BlockReader
from voucherd.archive.blocks import ArchivedBook
from voucherd.archive.files import hash_of
from voucherd.archive.model import ArchiveRefused, start_of
from voucherd.audit import audit, audit_since
from voucherd.db import transaction
from voucherd.trail import archived, chain
from voucherd.trail.chain import BOOKS, REVEAL, TRAIL, TrailSealing
from voucherd.vault import reveals

MONTHS = 13
SALES_MAX = 10
"""While blocks leave, however long that takes."""


async def seal_as_old(shop: Shop, back: int = 20) -> None:
    """Seal the rows that are not sealed yet, as rows of a month long ago."""
    moment = start_of(await month_of(shop.pool, back)) + timedelta(hours=1)
    for book in BOOKS:
        await shop.pool.execute(f"ALTER TABLE {book.name} DISABLE TRIGGER USER")
        await shop.pool.execute(
            f"UPDATE {book.name} SET at = $1::timestamptz + id * interval '1 second' WHERE id > coalesce("  # noqa: S608 - Ours.
            "(SELECT max(last_id) FROM trail_seal WHERE book = $2), 0)",
            moment,
            book.name,
        )
        await shop.pool.execute(f"ALTER TABLE {book.name} ENABLE TRIGGER USER")
    await TrailSealing(shop.pool, shop.sealer.trail_key).round()


async def archive_trail(shop: Shop) -> list[ArchivedBook]:
    """One run, as the command does it after the orders."""
    async with shop.pool.acquire() as conn:
        before = start_of(await month_of(shop.pool, MONTHS))
        try:
            return await blocks.archive_books(
                conn,
                SYSTEM,
                shop.settings.archive_folder,
                shop.sealer.trail_key,
                before,
                lambda _words, _done, _total: None,
            )
        finally:
            await conn.execute("SELECT pg_advisory_unlock_all()")


async def sold_and_sealed(shop: Shop, count: int = 3) -> Company:
    """A company with orders whose codes were seen, and with deeds; each in a block of its own."""
    company = await shop.company()
    await shop.product("gift-10", stock=20)
    for number in range(count):
        order = await shop.create(company, ("gift-10", 1))
        await shop.confirm(company, order["trx"])
        async with transaction(shop.pool) as tx:
            await trail.record(
                tx, SYSTEM, "test.deed", f"deed {number}", {"why": "ünlike 1.50", "at": number}
            )
        await seal_as_old(shop)
    return company


async def flaws(shop: Shop, folder: Path | None = None) -> list[str]:
    """What the whole audit says of the trail; without a folder it reads no file."""
    source = None if folder is None else BlockReader(folder)
    async with shop.pool.acquire() as conn:
        found = await audit(conn, shop.sealer, archive=source)
    return [f"{row['book']} {row['block']}: {row['wrong']}" for one in found for row in one.rows]


async def left(shop: Shop, book: str) -> int:
    """How many old rows are in the table still."""
    before = start_of(await month_of(shop.pool, MONTHS))
    return int(await shop.pool.fetchval(f"SELECT count(*) FROM {book} WHERE at < $1", before))  # noqa: S608 - Ours.


async def filed(shop: Shop, book: str) -> int:
    """How many blocks of a book are noted to be in files."""
    async with shop.pool.acquire() as conn:
        return sum(file.blocks for file in await archived.files(conn, book))


async def test_old_blocks_leave_their_tables_and_their_hashes_can_still_be_made(quick_shop: Shop) -> None:
    """OP-134: every row is in a file as it was hashed; the chain stays; rows that payments are tied to stay, too."""
    shop = quick_shop
    company = await sold_and_sealed(shop)
    looks = await shop.pool.fetchval("SELECT count(*) FROM reveal")
    deeds = await shop.pool.fetchval("SELECT count(*) FROM trail")
    tied = await shop.pool.fetchval("SELECT count(*) FROM payment_deed")
    seals = await shop.pool.fetchval("SELECT count(*) FROM trail_seal")
    assert min(looks, tied, deeds - tied) > 0

    assert await archive_trail(shop) == [
        ArchivedBook("trail", 3, deeds - tied),
        ArchivedBook("reveal", 3, looks),
    ]

    assert (await left(shop, "reveal"), await left(shop, "trail")) == (0, tied)
    assert await shop.pool.fetchval("SELECT count(*) FROM trail_seal") == seals
    folder = shop.settings.archive_folder
    assert sorted(path.parent.name for path in folder.rglob("*.parquet")) == ["reveal", "trail"]
    assert await flaws(shop) == await flaws(shop, folder) == []
    assert await archive_trail(shop) == [ArchivedBook("trail", 0, 0), ArchivedBook("reveal", 0, 0)]
    order = await shop.create(company, ("gift-10", 1))
    await shop.confirm(company, order["trx"])
    await TrailSealing(shop.pool, shop.sealer.trail_key).round()
    async with shop.pool.acquire() as conn:
        # Blocks that nobody has read are not to be taken for checked by the next run.
        assert not (await audit_since(conn, SYSTEM, shop.sealer)).marked
        assert (await audit_since(conn, SYSTEM, shop.sealer, archive=BlockReader(folder))).marked
        assert (await audit_since(conn, SYSTEM, shop.sealer)).findings == []
    await shop.top_up(company, "5.00 EUR")
    await shop.assert_books_balance()


async def test_only_blocks_whose_youngest_row_is_old_leave_and_none_before_those_ahead_of_it(
    quick_shop: Shop,
) -> None:
    """OP-134: a prefix of the chain leaves; an old block behind a young one stays."""
    shop = quick_shop
    company = await sold_and_sealed(shop, 1)
    order = await shop.create(company, ("gift-10", 1))
    await shop.confirm(company, order["trx"])
    await seal_as_old(shop, MONTHS - 1)
    await shop.find(company, order["trx"])
    await seal_as_old(shop)

    assert (await archive_trail(shop))[1] == ArchivedBook("reveal", 1, 1)

    assert await left(shop, "reveal") == 1
    assert await filed(shop, "reveal") == 1
    await shop.assert_books_balance()


async def test_what_is_done_to_archived_blocks_shows(quick_shop: Shop) -> None:
    """OP-134: a changed file, a lost one, one that was made anew, rows that were put back, and rows nobody archived."""
    shop = quick_shop
    await sold_and_sealed(shop)
    await archive_trail(shop)
    folder = shop.settings.archive_folder
    path = next((folder / "reveal").glob("*.parquet"))
    whole = path.read_bytes()

    path.write_bytes(whole[:-20] + bytes([whole[-20] ^ 1]) + whole[-19:])
    assert await flaws(shop, folder) == [
        f"reveal {n}: {path} is not the file that was written" for n in (1, 2, 3)
    ]
    assert await flaws(shop) == []
    path.unlink()
    assert "can't be read: No such file" in (await flaws(shop, folder))[0]
    _rewrite(path, whole)
    await shop.pool.execute("ALTER TABLE archived_blocks DISABLE TRIGGER USER")
    noted = await shop.pool.fetchrow("SELECT bytes, sha256 FROM archived_blocks WHERE book = 'reveal'")
    assert noted is not None
    change = "UPDATE archived_blocks SET bytes = $1, sha256 = $2 WHERE book = 'reveal'"
    await shop.pool.execute(change, path.stat().st_size, hash_of(path))
    assert await flaws(shop, folder) == ["reveal 2: rows were changed"]
    path.write_bytes(whole)
    await shop.pool.execute(change, *noted)
    await shop.pool.execute(
        "INSERT INTO reveal (id, order_id, company_id, line_from, lines, via, actor_kind) OVERRIDING SYSTEM VALUE"
        " VALUES (1, 2, 1, 0, 1, 0, 4)"
    )
    # A block of one row that came back changed is a block in the table.
    assert await flaws(shop) == ["reveal 1: rows were changed"]
    await shop.pool.execute("ALTER TABLE reveal DISABLE TRIGGER USER")
    await shop.pool.execute("DELETE FROM reveal")
    assert await flaws(shop, folder) == []
    await shop.pool.execute("DELETE FROM archived_blocks WHERE book = 'reveal'")
    assert await flaws(shop, folder) == [f"reveal {number}: rows are missing" for number in (1, 2, 3)]


def _rewrite(path: Path, whole: bytes) -> None:
    """Another file, in which a key saw the second code instead of another."""
    opened = pq.ParquetFile(pa.BufferReader(whole))
    with pq.ParquetWriter(path, opened.schema_arrow, write_statistics=["id", "order_id"]) as writer:
        for at in range(opened.num_row_groups):
            rows: list[dict[str, Any]] = opened.read_row_group(at).to_pylist()
            changed = [row | {"actor_id": 99 if row["id"] == 2 else row["actor_id"]} for row in rows]
            writer.write_table(pa.Table.from_pylist(changed, schema=opened.schema_arrow))


async def test_a_tied_row_of_the_trail_must_be_as_in_the_file(quick_shop: Shop) -> None:
    """OP-134: what stays because a payment needs it is compared with the archive; nothing else stays."""
    shop = quick_shop
    async with transaction(shop.pool) as tx:
        await trail.record(tx, SYSTEM, "test.deed", "one more in the block of the payments")
    await sold_and_sealed(shop)
    await archive_trail(shop)
    await shop.pool.execute("ALTER TABLE trail DISABLE TRIGGER USER")
    await shop.pool.execute(
        "UPDATE trail SET actor = 'somebody else' WHERE id = (SELECT min(trail_id) FROM payment_deed)"
    )
    assert await flaws(shop, shop.settings.archive_folder) == ["trail 1: rows were changed"]
    await shop.pool.execute(
        "INSERT INTO trail (id, actor_kind, actor, action, subject) OVERRIDING SYSTEM VALUE"
        " VALUES (-5, 4, 'x', 'a.b', 'x')"
    )
    assert await flaws(shop) == ["trail 1: its rows are neither all in the table nor all in the archive"]


async def _everything(shop: Shop) -> dict[str, set[int]]:
    """The ids of the rows of each book, in the table or in a file that is noted."""
    found: dict[str, set[int]] = {}
    async with shop.pool.acquire() as conn:
        for book in BOOKS:
            ids = {row[0] for row in await conn.fetch(f"SELECT id FROM {book.name}")}  # noqa: S608 - Ours.
            reader = BlockReader(shop.settings.archive_folder)
            for file in await archived.files(conn, book.name):
                for block in await chain.blocks_after(conn, book, file.first_block - 1, file.blocks):
                    ids |= {row[0] for row in reader.rows(file, block)}
            found[book.name] = ids
    return found


async def test_a_run_that_is_cut_off_loses_no_row_and_the_next_one_goes_on(
    quick_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-134: wherever it ends, each row is in its table or in a file that is noted, and the chain is whole."""
    shop = quick_shop
    await sold_and_sealed(shop)
    before = await _everything(shop)
    monkeypatch.setattr(blocks, "GROUP_ROWS", 1)
    gone = []
    for place, step, after in (
        (chain, chain.rows_between, 1),
        (blocks, blocks.check_file, 0),
        (archived, archived.note_file, 0),
        (archived, archived.remove, 0),
        (archived, archived.remove, 1),
        (archived, archived.note_removed, 0),
        (archived, archived.remove, 2),
        (archived, archived.note_removed, 0),
    ):
        with monkeypatch.context() as cut:
            cut.setattr(place, step.__name__, _cut_async(after, step))
            with pytest.raises(Cut):
                await archive_trail(shop)
        now = await _everything(shop)
        assert all(ids <= now[book] for book, ids in before.items()), step
        assert await flaws(shop) == await flaws(shop, shop.settings.archive_folder) == [], step
        gone.append((len(before["reveal"]) - await left(shop, "reveal"), await filed(shop, "trail")))

    assert gone[2:4] == [(0, 0), (0, 3)]
    assert gone[-1] == (len(before["reveal"]), 3)
    await archive_trail(shop)
    assert not await shop.pool.fetchval("SELECT count(*) FROM archived_blocks WHERE removed_at IS NULL")
    assert await left(shop, "reveal") == 0
    await shop.assert_books_balance()


async def test_sales_and_sealing_go_on_and_the_chain_is_whole_at_every_moment_while_blocks_leave(
    quick_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-134: an audit beside a run sees each block in its table or in its file; new blocks are sealed behind."""
    shop = quick_shop
    company = await sold_and_sealed(shop)
    monkeypatch.setattr(blocks, "GROUP_ROWS", 1)
    sealing = TrailSealing(shop.pool, shop.sealer.trail_key)

    running = asyncio.create_task(archive_trail(shop))
    said = []
    while not running.done():
        said.append(await flaws(shop, shop.settings.archive_folder))
        if len(said) <= SALES_MAX:
            order = await shop.create(company, ("gift-10", 1))
            await shop.confirm(company, order["trx"])
            await sealing.round()
    await running

    assert said
    assert not any(said)
    assert await left(shop, "reveal") == 0
    await shop.assert_books_balance()


async def test_a_chain_that_is_not_as_it_was_sealed_stays(quick_shop: Shop) -> None:
    """OP-134: nothing is noted, and no row leaves, when its hash is not the one in the chain, or its key is another."""
    shop = quick_shop
    await sold_and_sealed(shop)
    await shop.pool.execute("ALTER TABLE reveal DISABLE TRIGGER USER")
    await shop.pool.execute("UPDATE reveal SET actor_id = 99 WHERE id = 2")
    with pytest.raises(
        ArchiveRefused, match=r"block 2 of reveal, in reveal/000000000001\.parquet: rows were changed"
    ):
        await archive_trail(shop)
    await shop.pool.execute("DELETE FROM reveal WHERE id = 2")
    with pytest.raises(ArchiveRefused, match="reveal is not as it was sealed: run `voucherd audit`"):
        await archive_trail(shop)
    assert await filed(shop, "reveal") == 0
    assert await left(shop, "reveal") == 2


async def test_two_runs_at_once_are_refused(quick_shop: Shop) -> None:
    """OP-134: the orders' run and the trail's take the same lock."""
    shop = quick_shop
    await sold_and_sealed(shop, 1)
    async with shop.pool.acquire() as conn:
        await conn.execute("SELECT pg_advisory_lock(hashtext('orders to files/' || current_schema()))")
        with pytest.raises(ArchiveRefused, match="another run of the archive is under way"):
            await archive_trail(shop)
        await conn.execute("SELECT pg_advisory_unlock_all()")


async def test_a_file_of_another_time_is_put_aside(quick_shop: Shop) -> None:
    """OP-134: a restored database writes its blocks again; the file that is there already is never written over."""
    shop = quick_shop
    await sold_and_sealed(shop)
    folder = shop.settings.archive_folder / "reveal"
    folder.mkdir(parents=True)
    (folder / "000000000001.parquet").write_bytes(b"of another time")
    await archive_trail(shop)
    assert (folder / "000000000001.parquet.old-1").read_bytes() == b"of another time"
    assert {path.name for path in folder.iterdir()} == {"000000000001.parquet", "000000000001.parquet.old-1"}
    await shop.assert_books_balance()


async def test_who_asks_for_looks_at_an_order_is_told_where_they_are(quick_shop: Shop) -> None:
    """OP-134: never a wrong "nobody": of an order from before its end it is told up to when looks are archived."""
    shop = quick_shop
    company = await sold_and_sealed(shop)
    order_id = await shop.pool.fetchval("SELECT min(order_id) FROM reveal")
    created_at: datetime = await shop.pool.fetchval("SELECT created_at FROM orders WHERE id = $1", order_id)
    await archive_trail(shop)
    async with shop.pool.acquire() as conn:
        until = await archived.until(conn, REVEAL.name)
        assert until is not None
        assert await reveals.of_order(conn, order_id, 10) == ([], until)
        assert await reveals.of_order(conn, order_id, 10, created_at=created_at) == ([], None)
        files = await archived.files(conn, REVEAL.name)
        assert (await trail.page(conn)).archived_until == await archived.until(conn, TRAIL.name)
        assert (await trail.page(conn, since=created_at)).archived_until is None
        assert (await trail.page(conn, limit=1)).archived_until is None
    (found,) = blocks.find_reveals(shop.settings.archive_folder, files, order_id, 10)
    assert (found["order_id"], found["company_id"], found["lines"]) == (order_id, company.id, 1)


async def test_confirm_resolve_and_cancel_of_an_archived_order_answer_as_before(quick_shop: Shop) -> None:
    """Contract 7, OP-129: 400 in the words for its status, of a deleted one 404, by the same order of refusals."""
    shop = quick_shop
    sold = await sold_in(shop)
    deleted = await shop.create(sold.company, ("gift-10", 1))
    await shop.cancel(sold.company, deleted["trx"])
    other = await shop.company()
    calls = [
        (f"/api/{path}/{trx}", whose, state)
        for trx, state in [*sold.trx[:3], (deleted["trx"], sold.trx[0][1])]
        for whose in (sold.company, other)
        for path in ("1.00/order/confirm", "1.03/order/confirm", "1.03/order/resolve", "1.03/order/cancel")
    ]

    async def answers() -> list[tuple[int, str]]:
        said = [await shop.call("PATCH", path, whose, state=state) for path, whose, state in calls]
        return [(one.status_code, one.text) for one in said]

    before = await answers()
    assert {status for status, _ in before} >= {400, 404}
    await shop.set_company(sold.company, verified=False)
    unverified = await answers()
    assert unverified != before
    await shop.set_company(sold.company, verified=True)
    await make_old(shop)
    await archive(shop)

    assert await answers() == before
    await shop.set_company(sold.company, verified=False)
    assert await answers() == unverified
    order_id = shop.ids.order_id(sold.trx[0][0]) or 0
    again = await shop.order_service.look_again(order_id, sold.company.id, sold.trx[0][1], resolve=False)
    assert again.order.id == order_id
    folder = shop.settings.archive_folder
    folder.rename(folder.with_name("elsewhere"))
    shop.order_service.archive._opened.clear()
    away = await shop.call("PATCH", f"/api/1.03/order/confirm/{sold.trx[0][0]}", sold.company)
    assert away.status_code == 503
    folder.with_name("elsewhere").rename(folder)
    await shop.assert_books_balance()
