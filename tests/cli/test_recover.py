"""A restored database sells nothing twice: `recover` withholds codes, lets numbers jump, and tells what is at risk."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import Terminal, assert_refused, assert_wrong_usage
from tests.shop import Company, Shop, open_shop
from voucherd.actors import SYSTEM
from voucherd.db import Pool, open_pool, transaction
from voucherd.embedded import running
from voucherd.ids import State
from voucherd.migrate import migrate
from voucherd.recovery import deeds, store
from voucherd.recovery.deeds import NothingToRecover, Plan
from voucherd.trail.chain import TrailSealing
from voucherd.trail.heads import HeadPublisher

SOLD_BEFORE, SOLD_AFTER, STOCK = 2, 3, 12


@dataclass
class Handed:
    """What clients were given: every code, and every name of anything."""

    codes: list[str] = field(default_factory=list)
    names: list[str | int] = field(default_factory=list)


@asynccontextmanager
async def _shop(data: Path) -> AsyncIterator[Shop]:
    with running(data, exclusive=False) as url:
        await migrate(url)
        pool = await open_pool(url)
        async with open_shop(pool, url, data, with_worker=False, confirm_wait_s=0) as shop:
            yield shop
        await pool.close()


async def _sell(shop: Shop, company: Company, count: int, state: State = State.LIVE) -> Handed:
    """Sell that many orders of one code; what the client got to see."""
    handed = Handed()
    last = await shop.pool.fetchval("SELECT coalesce(max(id), 0) FROM event")
    for _ in range(count):
        trx = (await shop.create(company, ("gift", 1), state=state))["trx"]
        told = await shop.confirm(company, trx, state=state, outcome="finished" if state else None)
        line = told["items"][0]["orderLines"][0]
        order_id = shop.ids.order_id(trx)
        assert order_id is not None
        handed.codes.append(line["voucherCode"])
        handed.names += [trx, shop.ids.order_number(order_id), line["tag"]]
    rows = await shop.pool.fetch("SELECT id FROM event WHERE id > $1", last)
    handed.names += [shop.ids.event(row[0]) for row in rows]
    return handed


def _all_different(parts: Sequence[Handed]) -> bool:
    codes = [code for part in parts for code in part.codes]
    names = [name for part in parts for name in part.names]
    return len(set(codes)) == len(codes) and len(set(names)) == len(names)


async def _first_life(first: Terminal, file: Path) -> tuple[Company, Handed, Handed]:
    """Sell, back up, and sell more in a time that the backup does not know."""
    async with _shop(first.data) as shop:
        await shop.product("gift", stock=STOCK)
        company = await shop.company(balance="1000.00 EUR")
        before = await _sell(shop, company, SOLD_BEFORE)
        first.json("backup", str(file))
        lost = await _sell(shop, company, SOLD_AFTER)
        for_play = await _sell(shop, company, 1, State.SANDBOX)
        return company, before, Handed(lost.codes + for_play.codes, lost.names + for_play.names)


async def test_after_a_restore_no_code_and_no_number_goes_out_twice(bare_terminal: Terminal) -> None:
    """OP-119, OP-120, OP-121: sell, back up, sell more, restore, recover, sell; the books are right in the end."""
    first, folder = bare_terminal, bare_terminal.data.parent
    file = folder / "shop.backup"
    company, before, lost = await _first_life(first, file)

    second = Terminal(folder / "second")
    second.data.mkdir(mode=0o711)
    shutil.copy(first.data / "master.key", second.data / "master.key")
    assert "run `voucherd recover`" in second.view("restore", str(file))
    with running(second.data, exclusive=False):
        for command in (("serve", "--port", "0"), ("worker",)):
            assert_refused(second.run(*command), "was restored from", "run `voucherd recover` first")
        planned = second.json("recover", "--dry-run")
        done = second.json("recover")
        (lot,) = done["lots"]
        assert (planned["done"], done["done"]) == (False, True)
        assert (lot["withheld"], lot["goesOn"], done["codes"]) == (STOCK - SOLD_BEFORE,) * 1 + (0, 10)
        assert lot["firstSerial"] != lot["lastSerial"]
        assert not any(code in str(done) for code in before.codes + lost.codes)
        assert "trx answers 404" in done["tellClients"]
        assert_refused(second.run("recover"), "nothing tells that this database was restored")
        assert second.json("audit")["ok"] is True

        serials = second.json("stock", "withheld", str(lot["lot"]))
        assert (serials[0], len(serials)) == (lot["firstSerial"], STOCK - SOLD_BEFORE)
        assert_refused(second.run("stock", "release", str(lot["lot"]), "--sold", "10"), "none is left behind")
        released = second.json("stock", "release", str(lot["lot"]), "--sold", str(SOLD_AFTER))
        assert released["codes"] == STOCK - SOLD_BEFORE - SOLD_AFTER
        assert second.json("stock", "withheld")[0]["count"] == SOLD_AFTER

        async with _shop(second.data) as shop:
            for trx in before.names[::3][:SOLD_BEFORE]:
                found = await shop.find(company, str(trx))
                assert found["items"][0]["orderLines"][0]["voucherCode"] in before.codes
            gone = await shop.call("GET", f"/api/1.03/order/{lost.names[0]}", company)
            assert gone.status_code == 404
            again = await _sell(shop, company, STOCK - SOLD_BEFORE - SOLD_AFTER)
            for_play = await _sell(shop, company, 1, State.SANDBOX)
            assert _all_different((before, lost, again, for_play))
            await shop.assert_books_balance()
        assert second.json("audit")["ok"] is True


# ── on a database of one's own ───────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def _restored(
    pool: Pool, database_url: str, data: Path, stock: Sequence[int] = (10,)
) -> AsyncIterator[tuple[Shop, Company, list[int]]]:
    """A shop with these lots whose database says that it was restored."""
    async with open_shop(pool, database_url, data, with_worker=False, confirm_wait_s=0) as shop:
        await shop.product("gift")
        for count in stock:
            await shop.stock("gift", count)
        company = await shop.company(balance="1000.00 EUR")
        async with transaction(pool) as tx:
            await store.note_restore(tx, await tx.fetchval("SELECT now()"), "file x")
        lots = await pool.fetch("SELECT id FROM lot WHERE NOT generated ORDER BY id")
        yield shop, company, [row[0] for row in lots]


async def _cursors(pool: Pool) -> list[int]:
    rows = await pool.fetch("SELECT cursor FROM lot WHERE NOT generated ORDER BY id")
    return [row[0] for row in rows]


async def test_the_operator_says_how_many_may_have_been_sold(
    terminal: Terminal, pool: Pool, database_url: str
) -> None:
    """OP-120: a lot with a bound moves on by it and sells the rest; all of a lot without one is withheld."""
    async with _restored(pool, database_url, terminal.data, (10, 10, 10)) as (shop, company, lots):
        assert_wrong_usage(terminal.run("recover", "--sold", "many"), "is not a lot and a number of codes")
        assert_refused(terminal.run("recover", "--sold", "7777=1"), "lot 7777 has no code")
        assert await _cursors(pool) == [0, 0, 0]
        done = terminal.json("recover", "--sold", f"{lots[0]}=4", "--sold", f"{lots[1]}=0")
        assert [(one["lot"], one["withheld"], one["goesOn"]) for one in done["lots"]] == [
            (lots[0], 4, 6),
            (lots[2], 10, 0),
        ]
        assert await _cursors(pool) == [4, 0, 10]
        terminal.json("stock", "release", str(lots[0]), "--sold", "3")
        terminal.json("stock", "release", str(lots[0]), "--sold", "1")
        sold = await _sell(shop, company, 6 + 10 + 3)
        assert len(set(sold.codes)) == 19
        assert await shop.left("gift") == 0
        await shop.assert_books_balance()


async def test_nothing_is_withheld_of_a_database_that_lost_nothing(
    terminal: Terminal, pool: Pool, database_url: str
) -> None:
    """OP-120: the operator may know that nothing was sold, from the lost database itself if need be."""
    async with _restored(pool, database_url, terminal.data) as (shop, _, _lots):
        same = terminal.json("recover", "--dry-run", "--old-database", database_url)
        assert same["lots"] == []
        assert terminal.json("recover", "--nothing-sold")["codes"] == 0
        assert await shop.left("gift") == 10
        await shop.assert_books_balance()


async def test_a_lost_head_tells_of_a_restore_by_other_tools(
    terminal: Terminal, pool: Pool, database_url: str
) -> None:
    """OP-119: heads that a machine has noted and the database lacks refuse the start, until the operator recovers."""
    async with _restored(pool, database_url, terminal.data) as (shop, company, _):
        terminal.json("recover", "--nothing-sold")
        sealing = TrailSealing(pool, shop.sealer.trail_key)
        publisher = HeadPublisher(pool, terminal.data)
        await _sell(shop, company, 1)
        await sealing.round()
        await publisher.publish()
        assert_refused(terminal.run("recover"), "nothing tells that this database was restored")

        # As it was before that block: other tools restored it, so nothing in it says so.
        await pool.execute("ALTER TABLE trail_seal DISABLE TRIGGER USER; DELETE FROM trail_seal")
        await sealing.round()
        await pool.execute(
            "UPDATE trail_seal SET hash = sha256('x'); ALTER TABLE trail_seal ENABLE TRIGGER USER"
        )
        assert_refused(terminal.run("serve", "--port", "0"), "lacks block", "run `voucherd recover` first")
        assert terminal.json("recover")["codes"] == 9
        await publisher.publish()
        assert_refused(terminal.run("recover"), "nothing tells")


async def test_a_second_recovery_of_a_restore_is_refused(
    terminal: Terminal, pool: Pool, database_url: str
) -> None:
    """OP-120: a recovery of the same restore withholds nothing a second time, whenever it comes."""
    moment = "2026-11-15T12:00:00+00:00"
    async with _restored(pool, database_url, terminal.data) as (_, _, lots):
        first: dict[str, Any] = terminal.json("recover", "--moment", moment, "--sold", f"{lots[0]}=2")
        assert first["codes"] == 2
        assert_refused(
            terminal.run("recover", "--moment", moment, "--sold", f"{lots[0]}=2"),
            "was recovered after that moment already",
        )
        assert await _cursors(pool) == [2]


async def test_of_two_recoveries_at_once_one_finds_nothing_to_do(
    terminal: Terminal, pool: Pool, database_url: str
) -> None:
    """OP-120: the second waits for the first, and then sees that nothing is left to recover."""
    async with _restored(pool, database_url, terminal.data) as (shop, _, lots):

        async def once() -> Plan:
            async with transaction(pool) as tx:
                return await deeds.recover(tx, SYSTEM, terminal.data, None, {lots[0]: 2})

        ends = await asyncio.gather(once(), once(), return_exceptions=True)
        assert {type(end) for end in ends} == {Plan, NothingToRecover}
        assert await _cursors(pool) == [2]
        await shop.assert_books_balance()


@pytest.mark.parametrize("words", [("--moment", "yesterday"), ("--sold", "1="), ("--sold", "-1=5")])
def test_nonsense_recovers_nothing(terminal: Terminal, words: tuple[str, str]) -> None:
    """The command line: wrong usage says so, and changes nothing."""
    assert_wrong_usage(terminal.run("recover", *words))
