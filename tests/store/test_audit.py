"""The audit: silent about a shop that has seen everything, and loud about every single thing that can break.

Each test breaks the database by hand, inside a transaction that is undone: constraints dropped, triggers off.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Final

import asyncpg
import pytest

from tests.patience import HANG_S, until
from tests.store import purchases
from tests.store.purchases import Break
from voucherd.archive import store as archive
from voucherd.archive.model import ArchiveFile, start_of
from voucherd.audit import CHECKS, ROWS_SHOWN_MAX, SEALS, Finding, audit, findings_of
from voucherd.audit.since import AuditMark, gather
from voucherd.cli.demo_shop import seed
from voucherd.db import Connection, Pool, open_pool, transaction
from voucherd.ids import State
from voucherd.migrate import migrate
from voucherd.orders.rules.cart import CartLine, Create
from voucherd.orders.rules.decide import Cancel, Finalise
from voucherd.orders.rules.sandbox import SandboxOutcome
from voucherd.orders.service import OrderService
from voucherd.settings import Settings
from voucherd.vault.seal import Sealer

MASTER: Final = bytes(range(32))
PLAIN, VAT, LATER, VARIABLE = (
    "nimbari-play-10-eur",
    "krowkettle-coffee-5-eur",
    "runevault-founder-edition",
    "velfox-any-eur",
)


BEGINNING: Final = AuditMark(datetime(2020, 1, 1, tzinfo=UTC), 0, [])

BREAKS: Final = purchases.BREAKS | {
    "a balance is not the one before plus the amount": Break(
        "entries-continue", "UPDATE entry SET balance_after_minor = balance_after_minor + 1 WHERE seq = 1"
    ),
    "an entry is missing from the chain": Break(
        "entries-continue",
        "DELETE FROM entry WHERE seq = 1 AND wallet_id IN (SELECT id FROM wallet WHERE seq > 1)",
    ),
    "a top-up has lost its row of the trail": Break("payments-are-told", "DELETE FROM payment_deed"),
    "a balance was changed by hand": Break(
        "wallet-is-its-entries", "UPDATE wallet SET balance_minor = balance_minor + 1 WHERE currency = 'USD'"
    ),
    "a hold was changed by hand": Break(
        "wallet-is-its-entries", "UPDATE wallet SET held_minor = held_minor + 1 WHERE currency = 'USD'"
    ),
    "a wallet is overdrawn": Break(
        "wallet-not-negative", "UPDATE wallet SET balance_minor = -1 WHERE currency = 'GBP'"
    ),
    "an entry left less than was held": Break(
        "wallet-not-negative", "UPDATE entry SET held_after_minor = balance_after_minor + 1 WHERE seq = 1"
    ),
    "a transfer has only one leg": Break(
        "legs-sum-to-zero",
        "CREATE OR REPLACE VIEW ledger_leg AS SELECT e.wallet_id, e.seq, w.currency, w.state, 'wallet' AS account,"
        " e.amount_minor FROM entry e JOIN wallet w ON w.id = e.wallet_id",
    ),
    "a wallet holds what no order holds": Break(
        "wallet-holds-are-orders", "UPDATE orders SET held_minor = 0 WHERE held_minor > 0"
    ),
    "an order was charged more than its entries": Break(
        "order-entries-fit",
        "UPDATE entry SET amount_minor = amount_minor + 1 WHERE kind = 2 AND order_id IS NOT NULL",
    ),
    "an order's entry is in another company's wallet": Break(
        "order-entries-fit",
        "INSERT INTO company (name, country) VALUES ('Other', 'NL');"
        "UPDATE orders SET company_id = (SELECT id FROM company WHERE name = 'Other') WHERE status = 2",
    ),
    "an entry is of an order that is gone": Break(
        "order-entries-fit", "DELETE FROM order_item; DELETE FROM waiting; DELETE FROM orders"
    ),
    "an order's price is not that of its items": Break(
        "order-is-its-items", "UPDATE order_item SET pay_price_minor = pay_price_minor + 1"
    ),
    "items leave a gap between their lines": Break(
        "order-is-its-items", "UPDATE order_item SET first_line = first_line + 1 WHERE item_no = 1"
    ),
    "a cancelled line was not refunded": Break(
        "order-charge-fits-lines", "UPDATE orders SET refunded_minor = 0 WHERE payment_status = 2"
    ),
    "the VAT of an order was booked wrongly": Break(
        "order-charge-fits-lines", "UPDATE entry SET vat_minor = vat_minor - 1 WHERE kind = 2"
    ),
    "an order counts a line too many": Break(
        "order-counts-its-outcomes", "UPDATE orders SET lines_finished = lines_finished + 1 WHERE status = 1"
    ),
    "an outcome is of an order that is gone": Break(
        "order-counts-its-outcomes", "UPDATE outcome SET order_id = order_id + 2000000"
    ),
    "a finished order has open lines": Break(
        "order-status-fits", "UPDATE orders SET status = 2 WHERE status = 1 AND lines_finished < lines"
    ),
    "an unpaid order has delivered lines": Break(
        "order-status-fits", "UPDATE orders SET payment_status = 0, charged_minor = 0 WHERE status = 2"
    ),
    "a deleted order has cancelled lines": Break(
        "order-status-fits", "UPDATE orders SET status = 4 WHERE status = 3"
    ),
    "an open line does not wait": Break("waiting-is-what-is-open", "DELETE FROM waiting"),
    "a line waits twice as long": Break(
        "waiting-is-what-is-open", "UPDATE waiting SET deadline_at = deadline_at + interval '1 day'"
    ),
    "a delivered line waits": Break(
        "waiting-is-what-is-open",
        "INSERT INTO waiting SELECT 0, 1, 1000, company_id, id, 0, 1, now(), now() FROM orders WHERE status = 2",
    ),
    "an event is missing": Break(
        "events-tell-every-version", "DELETE FROM event WHERE order_id IS NOT NULL AND seq = 1"
    ),
    "an event was removed before its time": Break(
        "events-tell-every-version",
        "UPDATE event_mark SET seen = 1, settled = 1, removed = 1, removed_at = now() - interval '1 day';"
        "DELETE FROM event WHERE order_id IS NOT NULL AND seq = 1",
    ),
    "all events of an order were removed before their time": Break(
        "events-tell-every-version",
        "UPDATE event_mark SET seen = 1, settled = 1, removed = 1, removed_at = now() - interval '1 day';"
        "DELETE FROM event WHERE order_id IS NOT NULL",
    ),
    "an event is missing in between": Break(
        "events-tell-every-version",
        "UPDATE event_mark SET seen = 1, settled = 1, removed = 1, removed_at = now();"
        "DELETE FROM event e USING orders o WHERE e.order_id = o.id AND e.seq = o.version - 1 AND o.version > 2",
    ),
    "an event was told twice": Break(
        "events-tell-every-version",
        "INSERT INTO event (at, company_id, state, type, order_id, seq)"
        " SELECT at, company_id, state, type, order_id, seq FROM event WHERE order_id IS NOT NULL",
    ),
    "a wallet changed sides": Break(
        "states-never-meet", "UPDATE wallet SET state = 1 - state WHERE currency = 'PLN' AND state = 0"
    ),
    "a sandbox order got live codes": Break(
        "states-never-meet", "UPDATE outcome SET lot_id = lot_id - 1 WHERE (lot_id & 1) = 1"
    ),
    "an event is of the other state": Break(
        "states-never-meet", "UPDATE event SET state = 1 - state WHERE order_id IS NOT NULL"
    ),
    "an offer is of the other state": Break(
        "states-never-meet", "UPDATE order_item SET offers[1] = offers[1] + 1 WHERE offers[1] IS NOT NULL"
    ),
    "a line has two outcomes": Break(
        "line-once",
        "INSERT INTO outcome SELECT order_id, line_from + 1, line_to, NULL, NULL, now() FROM outcome"
        " WHERE line_to - line_from > 1",
    ),
    "an outcome lies outside its order": Break(
        "line-once", "UPDATE outcome SET line_from = line_from + 5000, line_to = line_to + 5000"
    ),
    "a code is on two lines": Break(
        "code-once", "UPDATE outcome SET seq_from = 0 WHERE lot_id IS NOT NULL AND seq_from > 0"
    ),
    "a withheld code is on a line": Break(
        "code-once",
        "INSERT INTO withheld (recovery_id, lot_id, seq_from, seq_to)"
        " SELECT 1, lot_id, seq_from, seq_from + 1 FROM outcome WHERE lot_id IS NOT NULL",
    ),
    "a line got a code of another product": Break(
        "code-of-its-product", "UPDATE lot SET product_id = product_id + 1 WHERE cursor > 0"
    ),
    "a line got a code of another face value": Break(
        "code-of-its-product", "UPDATE lot SET face_minor = face_minor + 1 WHERE cursor > 0"
    ),
    "a cursor passed what was sold": Break(
        "cursor-is-what-is-sold", "UPDATE lot SET cursor = cursor + 1 WHERE size > 100"
    ),
    "a gap between two sales": Break(
        "cursor-is-what-is-sold",
        "UPDATE outcome SET seq_from = seq_from + 1 WHERE seq_from > 0;"
        "UPDATE lot SET cursor = cursor + 1 WHERE id IN (SELECT lot_id FROM outcome WHERE seq_from > 0)",
    ),
    "a code is missing": Break("lot-has-its-codes", "DELETE FROM code WHERE seq = 1"),
    "a released code is still in the lot that it left": Break(
        "lot-has-its-codes",
        "WITH held AS (INSERT INTO withheld (recovery_id, lot_id, seq_from, seq_to)"
        " SELECT 1, id, 0, 1 FROM lot WHERE NOT generated LIMIT 1 RETURNING id)"
        " INSERT INTO withheld_release (lot_id, withheld_id, seq_from, seq_to) SELECT -id, id, 0, 1 FROM held",
    ),
    "a generated lot has a code": Break(
        "lot-has-its-codes",
        "INSERT INTO code SELECT id, 0, 'x', decode(md5('x'), 'hex') FROM lot WHERE generated LIMIT 1",
    ),
    "an archived order was charged what no entry tells": Break(
        "archived-entries-fit",
        "INSERT INTO archived_wallet SELECT id, '2020-01-01', 1, 1, 0 FROM wallet LIMIT 1",
    ),
    "a wallet stood otherwise when its entries left": Break(
        "archived-entries-fit",
        "INSERT INTO archived_ledger SELECT wallet_id, seq, balance_after_minor + 1, held_after_minor FROM entry"
        " WHERE seq = 1",
    ),
    "an archived code is on a line": Break(
        "code-once",
        "INSERT INTO archived_codes (lot_id, seq_from, seq_to)"
        " SELECT lot_id, seq_from, seq_from + 1 FROM outcome WHERE lot_id IS NOT NULL",
    ),
    "codes were swapped": Break(SEALS, "UPDATE code SET sealed = sealed || 'x'"),
}


@pytest.fixture(scope="module")
async def sold(server_url: str) -> AsyncIterator[Pool]:
    """The demo's shop, after one order of every kind."""
    schema = f"t_{secrets.token_hex(6)}"
    setup = await asyncpg.connect(server_url, server_settings={"client_min_messages": "warning"})
    await setup.execute(f"CREATE SCHEMA {schema}")
    url = f"{server_url}{'&' if '?' in server_url else '?'}search_path={schema}"
    await migrate(url)
    pool = await open_pool(url)
    try:
        await _sell(pool)
        yield pool
    finally:
        await pool.close()
        await setup.execute(f"DROP SCHEMA {schema} CASCADE")
        await setup.close()


async def _sell(pool: Pool) -> None:
    sealer = Sealer(MASTER)
    async with transaction(pool) as tx:
        company = await seed.open_shop(tx, sealer)
    order_service = OrderService(
        pool,
        sealer,
        Settings.load({"confirm_wait_s": 0, "transaction_s_max": HANG_S, "data": Path("nowhere")}, {}),
    )

    async def create(*cart: tuple[str, int], state: State = State.LIVE) -> int:
        lines = tuple(
            CartLine(slug, amount, Decimal(25) if slug == VARIABLE else None) for slug, amount in cart
        )
        answer = await order_service.create(Create(company.id, state, 0, lines, "EUR"))
        return answer.order.id

    async def confirm(order_id: int, sandbox_outcome: SandboxOutcome = SandboxOutcome.FINISHED) -> None:
        await order_service.confirm(
            Finalise(
                order_id, company.id, State(order_id & 1), resolve=False, sandbox_outcome=sandbox_outcome
            )
        )

    await confirm(await create((PLAIN, 3), (VAT, 2), (VARIABLE, 1)))
    await confirm(await create((PLAIN, 1), (LATER, 2)))
    refunded = await create((PLAIN, 2), (LATER, 2), (VAT, 1))
    await confirm(refunded)
    await order_service.cancel(Cancel(refunded, company.id, State.LIVE))
    await create((PLAIN, 1))
    await order_service.cancel(Cancel(await create((PLAIN, 1)), company.id, State.LIVE))
    await confirm(await create((PLAIN, 2), (VAT, 1), state=State.SANDBOX))
    await confirm(await create((PLAIN, 2), state=State.SANDBOX), SandboxOutcome.CANCELLED)
    held = await create((LATER, 1))
    resolving = asyncio.create_task(
        order_service.resolve(Finalise(held, company.id, State.LIVE, resolve=True))
    )
    await until(lambda: pool.fetchval("SELECT held_minor FROM orders WHERE id = $1", held))
    # The call is lost, as in a crash: the hold stays until the sweeper comes.
    resolving.cancel()
    await asyncio.gather(resolving, return_exceptions=True)
    await purchases.buy(pool, sealer, order_service, company.id)
    await order_service.stop()


@asynccontextmanager
async def _loosened(pool: Pool) -> AsyncIterator[Connection]:
    """A connection on which nothing protects the books, and whose changes are all undone."""
    async with pool.acquire() as conn:
        undone = conn.transaction(isolation="repeatable_read")
        await undone.start()
        try:
            await conn.execute(
                """
                DO $$ DECLARE found record; BEGIN
                    FOR found IN SELECT conrelid::regclass AS place, conname FROM pg_constraint
                                 WHERE connamespace = current_schema()::regnamespace AND contype IN ('c', 'f', 'u')
                                 AND conrelid NOT IN ('product'::regclass, 'product_version'::regclass)
                                 ORDER BY contype <> 'f' LOOP  -- What refers to others goes before what it refers to.
                        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', found.place, found.conname);
                    END LOOP;
                    FOR found IN SELECT tablename AS place FROM pg_tables WHERE schemaname = current_schema() LOOP
                        EXECUTE format('ALTER TABLE %I DISABLE TRIGGER USER', found.place);
                    END LOOP;
                    DROP INDEX outcome_lot;
                END $$
                """
            )
            yield conn
        finally:
            await undone.rollback()


async def test_a_shop_that_has_seen_everything_passes(sold: Pool) -> None:
    """The command line: `audit` checks every invariant on the live database, and exits 0 when all hold."""
    async with sold.acquire() as conn:
        statuses = await conn.fetch("SELECT DISTINCT status, payment_status FROM orders ORDER BY 1, 2")
        findings = await audit(conn, Sealer(MASTER))

    assert findings == []
    assert [tuple(row) for row in statuses] == [
        (0, 0),
        (1, 0),
        (1, 1),
        (2, 1),
        (3, 0),
        (3, 2),
        (3, 3),
        (4, 0),
    ]


@pytest.mark.parametrize("case", BREAKS, ids=lambda case: case.replace(" ", "-"))
async def test_whatever_is_broken_by_hand_is_reported(sold: Pool, case: str) -> None:
    """Invariants 1 to 5, OP-117: by the whole audit, and by one since a mark, where that is before the first order."""
    broken = BREAKS[case]
    async with _loosened(sold) as conn:
        await conn.execute(broken.sql)

        findings = await audit(conn, Sealer(MASTER))
        await gather(conn, BEGINNING)
        changed = await findings_of(conn, BEGINNING, Sealer(MASTER))

    assert broken.check in {finding.check for finding in changed}, changed
    assert broken.check in {finding.check for finding in findings}, findings
    assert all(0 < len(finding.rows) <= ROWS_SHOWN_MAX for finding in findings)


async def test_the_books_balance_when_all_that_is_over_has_left_for_the_archive(sold: Pool) -> None:
    """OP-129: orders of every kind, purchases among them; by the whole audit, and by one since a mark before them."""
    day = date(2020, 1, 15)
    async with sold.acquire() as conn:
        undone = conn.transaction(isolation="repeatable_read")
        await undone.start()
        try:
            await conn.execute("UPDATE orders SET created_at = $1 WHERE status IN (2, 3, 4)", start_of(day))
            ids = await archive.numbers(conn, day)
            file = ArchiveFile(day.replace(day=1), "a.parquet", min(ids), max(ids), len(ids), 1, bytes(32))
            await archive.note_month(conn, file.month, start_of(day), [file])
            assert await archive.remove(conn, file.month, ids) == len(ids)
            assert await conn.fetchval("SELECT sum(lines) FROM archived_purchase") > 0

            findings = await audit(conn, Sealer(MASTER))
            await gather(conn, BEGINNING)
            findings += await findings_of(conn, BEGINNING, Sealer(MASTER))
        finally:
            await undone.rollback()

    assert findings == []


async def test_what_changed_is_well_where_everything_is_well(sold: Pool) -> None:
    """OP-117: a part of the tables is no reason to find something that is not there."""
    async with _loosened(sold) as conn:
        assert await audit(conn, Sealer(MASTER)) == []
        assert await gather(conn, BEGINNING) == await conn.fetchval("SELECT count(*) FROM orders")
        assert await findings_of(conn, BEGINNING, Sealer(MASTER)) == []


def test_every_check_has_been_seen_to_fail() -> None:
    """A check that never fails proves nothing: each has a case of its own above."""
    assert {broken.check for broken in BREAKS.values()} == {check.name for check in CHECKS} | {SEALS}


async def test_a_finding_names_the_rows_but_not_all_of_them(sold: Pool) -> None:
    """The command line: `audit` exits 1 and prints the offending rows."""
    async with _loosened(sold) as conn:
        await conn.execute("DELETE FROM code WHERE seq = 0")
        findings = await audit(conn)

    holes = _only(findings, "lot-has-its-codes")
    assert len(holes.rows) == ROWS_SHOWN_MAX
    assert holes.more
    assert {"lot_id", "size", "codes"} <= holes.rows[0].keys()


async def test_the_wrong_master_key_opens_nothing(sold: Pool) -> None:
    """The vault: a code is readable only with the key that sealed it."""
    async with sold.acquire() as conn:
        findings = await audit(conn, Sealer(bytes(32)))

    assert [finding.check for finding in findings] == [SEALS]
    assert findings[0].rows[0].keys() == {"lot_id", "seq"}


async def test_the_audit_writes_nothing(sold: Pool) -> None:
    """The command line: `audit` checks; it repairs nothing and may run beside the sales."""
    async with sold.acquire() as conn:
        before = await conn.fetchval("SELECT pg_current_xact_id_if_assigned()")
        await audit(conn, Sealer(MASTER))
        assert before is None
        assert await conn.fetchval("SELECT pg_current_xact_id_if_assigned()") is None


def _only(findings: list[Finding], check: str) -> Finding:
    [finding] = [finding for finding in findings if finding.check == check]
    return finding
