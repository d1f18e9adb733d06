"""The database's triggers bite: balances follow entries, no line and no code twice, history never changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Literal

import asyncpg
import pytest

from tests.patience import until_blocked
from voucherd.db import Pool, Tx, transaction

LIVE, SANDBOX = 2, 3
"""The ids of the order, wallet and lot of each state: the lowest bit says which."""

GROUND = """
INSERT INTO company (name, country) VALUES ('Acme', 'NL');
INSERT INTO brand (slug, name) VALUES ('play', 'Play');
INSERT INTO product (slug, version_id) VALUES ('play-10', 1);
INSERT INTO product_version (product_id, brand_id, name, product_type, category, redeem_type, region, vat_category,
    async_delivery, face_currency, face_minor, price_minor, price_currency)
VALUES (1, 1, 'Play 10', 'giftcard', 'games', 'currency', 'ww', 'exempt', false, 'EUR', 1000, 990, 'EUR');
INSERT INTO wallet (id, company_id, currency, state) VALUES (2, 1, 'EUR', 0), (3, 1, 'EUR', 1), (4, 1, 'USD', 0);
INSERT INTO lot (id, product_id, face_minor, state, generated, supplier, purchase_minor, purchase_currency,
    purchase_fx_e8, size, cursor)
VALUES (2, 1, 1000, 0, false, 'own', 900, 'EUR', 100000000, 100, 50),
       (3, 1, 1000, 1, true, 'own', 900, 'EUR', 100000000, 100, 50);
INSERT INTO code (lot_id, seq, sealed, blind) VALUES (2, 0, 'x', '0123456789abcdef');
INSERT INTO orders (id, company_id, type, status, payment_currency, payment_fx_e8, price_minor, vat_minor, lines,
    created_at, expires_at, updated_at)
SELECT id, 1, 0, 1, 'EUR', 100000000, 100, 21, 20, now(), now(), now() FROM unnest(ARRAY[2, 3, 4]) AS id;
INSERT INTO event (at, type) VALUES (now(), 'ping');
"""


@pytest.fixture
async def tx(pool: Pool) -> AsyncIterator[Tx]:
    """A transaction on a small shop."""
    async with transaction(pool) as opened:
        await opened.execute(GROUND)
    async with pool.acquire() as conn:
        # Undone in the end: payments that only test another guard have no row of the trail, and could not commit.
        undone = conn.transaction()
        await undone.start()
        yield conn
        await undone.rollback()


async def enter(tx: Tx, *entries: tuple[int, int, int, int], wallet: int = LIVE) -> None:
    """Write entries of (seq, amount, balance after, held after) in one statement; corrections, or holds of 0."""
    await tx.execute(
        "INSERT INTO entry (wallet_id, seq, kind, amount_minor, balance_after_minor, held_after_minor, reference, at)"
        " SELECT $1, seq, 6, amount, balance, held, 'r', now()"
        " FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[]) AS e (seq, amount, balance, held)",
        wallet,
        *([entry[column] for entry in entries] for column in range(4)),
    )


async def deliver(
    tx: Tx, line_from: int, line_to: int, seq_from: int, order: int = LIVE, lot: int = LIVE
) -> None:
    """Write down that these lines got the codes from there on."""
    await tx.execute(
        "INSERT INTO outcome (order_id, line_from, line_to, lot_id, seq_from, at) VALUES ($1, $2, $3, $4, $5, now())",
        order,
        line_from,
        line_to,
        lot,
        seq_from,
    )


async def cancel(tx: Tx, line_from: int, line_to: int, order: int = LIVE) -> None:
    """Write down that these lines were cancelled."""
    await tx.execute(
        "INSERT INTO outcome (order_id, line_from, line_to, at) VALUES ($1, $2, $3, now())",
        order,
        line_from,
        line_to,
    )


async def refused(tx: Tx, sql: str, match: str) -> None:
    """The statement is refused in these words, and its transaction can go on."""
    with pytest.raises(asyncpg.IntegrityConstraintViolationError, match=match):
        async with tx.transaction():
            await tx.execute(sql)


# ── wallet ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_wallet_follows_its_entries(tx: Tx) -> None:
    """Invariant 1: a wallet's balance is the sum of its entries; several may come in one statement."""
    await enter(tx, (1, 100, 100, 0), (2, -30, 70, 0))
    await enter(tx, (3, 5, 75, 0))

    row = await tx.fetchrow("SELECT balance_minor, held_minor, seq FROM wallet WHERE id = $1", LIVE)
    assert tuple(row or ()) == (75, 0, 3)


async def test_a_hold_moves_what_is_held_and_not_the_balance(tx: Tx) -> None:
    """Resolve holds first and settles or releases."""
    await enter(tx, (1, 100, 100, 0))
    hold = (
        "INSERT INTO entry (wallet_id, seq, kind, amount_minor, hold_minor, balance_after_minor, held_after_minor,"
        " order_id, at) VALUES (2, {}, {}, {}, {}, {}, {}, 2, now())"
    )
    await tx.execute(hold.format(2, 4, 0, 60, 100, 60))
    await refused(tx, hold.format(3, 4, 0, 41, 100, 101), "entry_not_overdrawn")
    await refused(tx, hold.format(3, 5, 0, -61, 100, 0), "do not continue their wallet")
    await tx.execute(hold.format(3, 2, -60, -60, 40, 0))

    row = await tx.fetchrow("SELECT balance_minor, held_minor FROM wallet WHERE id = $1", LIVE)
    assert tuple(row or ()) == (40, 0)


@pytest.mark.parametrize(
    "entries",
    [
        [(2, 100, 100, 0)],  # The first is missing.
        [(1, 100, 101, 0)],  # The sum is wrong.
        [(1, 100, 100, 1)],  # Held, without a hold.
        [(1, 100, 100, 0), (3, 5, 105, 0)],  # A gap.
        [(1, 100, 100, 0), (2, 5, 106, 0)],  # The second's sum is wrong.
        [(1, 100, 100, 0), (2, 5, 105, 1)],
    ],
)
async def test_entries_that_do_not_continue_the_chain_are_refused(
    tx: Tx, entries: list[tuple[int, int, int, int]]
) -> None:
    """Invariant 1: each entry carries the balance after it, without a gap."""
    with pytest.raises(asyncpg.IntegrityConstraintViolationError, match="do not continue"):
        await enter(tx, *entries)


async def test_the_same_place_in_the_chain_is_taken_once(tx: Tx) -> None:
    """Two processes that read the same balance can't both spend it."""
    await enter(tx, (1, 100, 100, 0))

    with pytest.raises(asyncpg.UniqueViolationError):
        await enter(tx, (1, 50, 50, 0))


async def test_a_wallet_is_never_overdrawn(tx: Tx) -> None:
    """Invariant 1: none is negative."""
    await enter(tx, (1, 100, 100, 0))

    with pytest.raises(asyncpg.CheckViolationError, match="entry_not_overdrawn"):
        await enter(tx, (2, -101, -1, 0))


async def test_one_wallet_that_does_not_fit_undoes_the_others_of_its_statement(tx: Tx) -> None:
    """A batch is written as a whole or not at all."""
    await refused(
        tx,
        "INSERT INTO entry (wallet_id, seq, kind, amount_minor, balance_after_minor, held_after_minor, reference, at)"
        " VALUES (2, 1, 1, 5, 5, 0, 'a', now()), (4, 2, 1, 5, 5, 0, 'a', now())",
        "do not continue their wallet",
    )
    assert await tx.fetchval("SELECT balance_minor FROM wallet WHERE id = $1", LIVE) == 0


async def test_the_same_top_up_is_written_once(tx: Tx) -> None:
    """A repeated reference tops up once."""
    top_up = (
        "INSERT INTO entry (wallet_id, seq, kind, amount_minor, balance_after_minor, held_after_minor, reference, at)"
        " VALUES (2, {0}, 1, 5, {0} * 5, 0, 'invoice 7', now())"
    )
    await tx.execute(top_up.format(1))
    await refused(tx, top_up.format(2), "entry_top_up_once")


async def test_a_balance_is_not_changed_directly(tx: Tx) -> None:
    """A balance changes through entries only."""
    for change in (
        "UPDATE wallet SET balance_minor = 1000",
        "UPDATE wallet SET held_minor = 0 WHERE id = 2",
        "UPDATE wallet SET seq = 5",
        "UPDATE wallet SET company_id = 1",
    ):
        await refused(tx, change, "a balance changes through entries only")


@pytest.mark.parametrize("column", ["balance_minor", "held_minor", "seq"])
async def test_a_wallet_starts_empty(tx: Tx, column: str) -> None:
    """Invariant 1: a balance without an entry behind it is no balance."""
    new = "INSERT INTO wallet (id, company_id, currency, state, {}) VALUES (6, 1, 'GBP', 0, {})"
    await refused(tx, new.format(column, 1), "a balance changes through entries only")
    await refused(tx, new.format(column, -1), "a balance changes through entries only")
    await tx.execute(new.format(column, 0))


async def test_the_legs_of_every_entry_sum_to_zero(tx: Tx) -> None:
    """Invariant 1: entries of every transfer sum to zero."""
    await enter(tx, (1, 1000, 1000, 0))
    await tx.execute(
        "INSERT INTO entry (wallet_id, seq, kind, amount_minor, vat_minor, balance_after_minor, held_after_minor,"
        " order_id, at) VALUES (2, 2, 2, -121, -21, 879, 0, 2, now()), (2, 3, 3, 121, 21, 1000, 0, 2, now())"
    )

    sums = await tx.fetch("SELECT seq, sum(amount_minor)::bigint AS total FROM ledger_leg GROUP BY seq")
    accounts = await tx.fetch("SELECT account, amount_minor FROM ledger_leg WHERE seq = 2 ORDER BY account")

    assert {row["seq"]: row["total"] for row in sums} == {1: 0, 2: 0, 3: 0}
    assert [tuple(row) for row in accounts] == [("sales", 100), ("vat", 21), ("wallet", -121)]


# ── history ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("entry", "UPDATE entry SET amount_minor = 1"),
        ("entry", "DELETE FROM entry"),
        ("entry", "TRUNCATE entry CASCADE"),
        ("product_version", "UPDATE product_version SET name = 'x'"),
        ("product_version", "DELETE FROM product_version"),
        ("product_version", "TRUNCATE product_version CASCADE"),
        ("code", "UPDATE code SET blind = 'fedcba9876543210'"),
        ("code", "DELETE FROM code"),
        ("code", "TRUNCATE code"),
        ("outcome", "UPDATE outcome SET line_to = 2"),
        ("outcome", "DELETE FROM outcome"),
        ("outcome", "TRUNCATE outcome"),
        ("event", "UPDATE event SET type = 'x'"),
        ("event", "TRUNCATE event"),
        ("product_change", "UPDATE product_change SET stocked = true"),
        ("product_change", "DELETE FROM product_change"),
        ("product_change", "TRUNCATE product_change"),
    ],
)
async def test_history_never_changes(tx: Tx, table: str, change: str) -> None:
    """Append-only, whoever asks."""
    await tx.execute(
        "INSERT INTO entry (wallet_id, seq, kind, amount_minor, balance_after_minor, held_after_minor, order_id, at)"
        " VALUES (2, 1, 2, 0, 0, 0, 2, now())"
    )
    await deliver(tx, 0, 1, 0)
    # A constraint that waits for the commit would stand before TRUNCATE's own refusal.
    await tx.execute("SET CONSTRAINTS ALL IMMEDIATE")

    await refused(tx, change, f"{table} is append-only")


async def test_a_code_may_be_sealed_again(tx: Tx) -> None:
    """The master key can be rotated: what a code is does not change, only what it is sealed with."""
    await tx.execute("UPDATE code SET sealed = 'y'")


@pytest.mark.parametrize(
    "change",
    [
        "id = 8",
        "product_id = product_id",
        "face_minor = 2000",
        "state = 1",
        "generated = true",
        "supplier = 'another'",
        "purchase_minor = 1",
        "purchase_currency = 'USD'",
        "purchase_fx_e8 = 1",
        "expires_at = now()",
    ],
)
async def test_what_a_lot_is_never_changes(tx: Tx, change: str) -> None:
    """Processes keep a lot's facts in memory, and the audit of a sale needs them as they were."""
    await refused(tx, f"UPDATE lot SET {change} WHERE id = 2", "lot is append-only")  # noqa: S608 - The words above.


async def test_a_lot_is_never_removed(tx: Tx) -> None:
    """Its codes were sold, or will be: they are never without their lot."""
    await refused(tx, "DELETE FROM lot", "lot is append-only")
    await refused(tx, "TRUNCATE lot", "lot is append-only")


async def test_a_lot_only_sells_forwards(tx: Tx) -> None:
    """Invariant 3: a cursor that went back would sell a code again."""
    await refused(tx, "UPDATE lot SET cursor = cursor - 1 WHERE id = 2", "lot is append-only")
    await tx.execute("UPDATE lot SET cursor = cursor WHERE id = 2")
    await tx.execute("UPDATE lot SET cursor = cursor + 1 WHERE id = 2")


async def test_a_lot_may_grow_and_be_sealed_again(tx: Tx) -> None:
    """Late codes are appended to a lot, and the master key can be rotated."""
    await tx.execute("UPDATE lot SET size = size + 1, key_version = 2 WHERE id = 2")


@pytest.mark.parametrize("lot", [1000, SANDBOX], ids=["no lot", "a lot of computed codes"])
async def test_a_code_needs_a_lot_that_holds_codes(tx: Tx, lot: int) -> None:
    """Every code is in a lot; a sandbox's codes are computed, so a row of one would be a real code in play."""
    rows = "INSERT INTO code (lot_id, seq, sealed, blind) VALUES (2, 1, 'x', '{}'), ({}, 1, 'x', '{}')"
    await refused(
        tx, rows.format("fedcba9876543210", lot, "fedcba9876543211"), "a code needs a lot that holds codes"
    )
    assert await tx.fetchval("SELECT count(*) FROM code") == 1, "its neighbour in the statement went with it"


@pytest.mark.parametrize(
    ("now", "kept"),
    [
        ("status = 0", False),
        ("status = 1", True),
        ("status = 2, lines_finished = lines", True),
        ("status = 3, lines_cancelled = lines", True),
        ("status = 4", True),
    ],
)
async def test_only_an_order_that_was_never_confirmed_may_be_removed(tx: Tx, now: str, kept: bool) -> None:
    """OP-40 removes what expired unconfirmed; OP-53 keeps even the deleted for the operator's audit."""
    await tx.execute(f"UPDATE orders SET {now} WHERE id = 4")  # noqa: S608 - The words above.
    if kept:
        await refused(tx, "DELETE FROM orders WHERE id = 4", "orders is append-only")
    else:
        assert await tx.execute("DELETE FROM orders WHERE id = 4") == "DELETE 1"


async def test_codes_that_left_as_a_file_stay_so(tx: Tx) -> None:
    """OP-56: `downloaded` turns true once and never back."""
    await tx.execute("UPDATE orders SET lines_finished = 1, downloaded = true WHERE id = 4")
    await tx.execute("UPDATE orders SET downloaded = true WHERE id = 4")
    await refused(tx, "UPDATE orders SET downloaded = false WHERE id = 4", "orders is append-only")


async def test_what_was_viewed_first_stays_and_needs_a_code(tx: Tx) -> None:
    """OP-57: the dates of a link and its code are written once, and only for a line that has a code."""
    await deliver(tx, 0, 2, 10)
    await cancel(tx, 2, 4)
    view = "INSERT INTO line_view (order_id, line, link_viewed_at) VALUES"
    await tx.execute(f"{view} (2, 1, now())")
    for line in (2, 4, 20):
        await refused(tx, f"{view} (2, {line}, now())", "a line without a code can't be viewed")
    await tx.execute("UPDATE line_view SET voucher_viewed_at = now() + interval '1 minute'")
    await refused(tx, "UPDATE line_view SET voucher_viewed_at = now()", "line_view is append-only")
    await refused(tx, "UPDATE line_view SET voucher_viewed_at = NULL", "line_view is append-only")
    await refused(tx, "UPDATE line_view SET link_viewed_at = '2000-01-01'", "line_view is append-only")
    await refused(tx, "UPDATE line_view SET line = 0", "line_view is append-only")
    await refused(tx, "UPDATE line_view SET link_viewed_at = NULL", "line_view is append-only")
    await refused(tx, "DELETE FROM line_view", "line_view is append-only")
    await tx.execute("INSERT INTO line_view (order_id, line, returned_at) VALUES (2, 0, now())")
    await tx.execute("UPDATE line_view SET link_viewed_at = now() WHERE line = 0")
    await refused(tx, "UPDATE line_view SET returned_at = NULL WHERE line = 0", "line_view is append-only")


# ── orders and lots ─────────────────────────────────────────────────────────────────────────────────────


async def test_ranges_that_touch_do_not_overlap(tx: Tx) -> None:
    """Order lines are ranges: half open, so one ends where the next begins."""
    await deliver(tx, 0, 5, 10)
    await deliver(tx, 5, 10, 15)
    await deliver(tx, 10, 12, 5)
    await cancel(tx, 12, 20)


@pytest.mark.parametrize("lines", [(5, 10), (4, 6), (9, 12), (6, 7), (0, 20), (0, 6), (19, 21)], ids=str)
async def test_a_line_has_one_outcome(tx: Tx, lines: tuple[int, int]) -> None:
    """Invariant 3: no line has two codes; none is both delivered and cancelled; none lies past the order's end."""
    await deliver(tx, 5, 10, 10)

    with pytest.raises(asyncpg.IntegrityConstraintViolationError, match=r"two outcomes|outcome_pkey"):
        await cancel(tx, *lines)


@pytest.mark.parametrize("seq_from", [10, 6, 14, 12, 46])
async def test_a_code_is_on_one_line(tx: Tx, seq_from: int) -> None:
    """Invariant 3: no code is on two lines, of any order; none is sold before the cursor has passed it."""
    await deliver(tx, 0, 5, 10)

    with pytest.raises(asyncpg.IntegrityConstraintViolationError, match=r"on two lines|outcome_lot"):
        await deliver(tx, 0, 5, seq_from, order=4)


async def test_one_statement_can_not_deliver_a_code_twice_either(tx: Tx) -> None:
    """Invariant 3, within a batch."""
    two = "INSERT INTO outcome (order_id, line_from, line_to, lot_id, seq_from, at) VALUES "
    await refused(tx, two + "(2, 0, 5, 2, 0, now()), (4, 0, 5, 2, 4, now())", "on two lines")
    await refused(tx, two + "(2, 0, 5, 2, 0, now()), (2, 4, 6, 2, 5, now())", "two outcomes")


async def test_an_order_or_a_lot_that_does_not_exist_has_no_outcome(tx: Tx) -> None:
    """An outcome belongs to an order and a lot."""
    with pytest.raises(asyncpg.ExclusionViolationError, match="two outcomes"):
        async with tx.transaction():
            await cancel(tx, 0, 1, order=1000)
    with pytest.raises(asyncpg.ExclusionViolationError, match="on two lines"):
        async with tx.transaction():
            await deliver(tx, 0, 1, 0, lot=1000)


async def test_live_and_sandbox_never_meet(tx: Tx) -> None:
    """Invariant 5: sandbox and live never share a wallet, a lot, an order or an event."""
    with pytest.raises(asyncpg.CheckViolationError, match="outcome_same_state"):
        async with tx.transaction():
            await deliver(tx, 0, 1, 0, order=SANDBOX, lot=LIVE)
    with pytest.raises(asyncpg.CheckViolationError, match="outcome_same_state"):
        async with tx.transaction():
            await deliver(tx, 0, 1, 0, order=LIVE, lot=SANDBOX)
    crossing = (
        "INSERT INTO entry (wallet_id, seq, kind, amount_minor, balance_after_minor, held_after_minor, order_id, at)"
        " VALUES ({}, 1, 3, 5, 5, 0, {}, now())"
    )
    await refused(tx, crossing.format(LIVE, SANDBOX), "entry_same_state")
    await refused(tx, crossing.format(SANDBOX, LIVE), "entry_same_state")
    await refused(
        tx, "INSERT INTO event (at, type, state, order_id) VALUES (now(), 'x', 0, 3)", "event_same_state"
    )
    await refused(tx, "INSERT INTO event (at, type, order_id) VALUES (now(), 'x', 3)", "event_same_state")
    await tx.execute(crossing.format(SANDBOX, SANDBOX))


async def test_a_lot_is_not_sold_past_its_end(tx: Tx) -> None:
    """Invariant 3: a lot's cursor never passes its end."""
    await tx.execute("UPDATE lot SET cursor = size WHERE id = 2")
    assert await tx.fetchval("SELECT exhausted FROM lot WHERE id = 2")
    await refused(tx, "UPDATE lot SET cursor = cursor + 1 WHERE id = 2", "lot_check")


@pytest.mark.parametrize("by", ["line", "code"])
async def test_two_transactions_that_can_not_see_each_other_can_not_both_pass(pool: Pool, by: str) -> None:
    """Invariant 3 under concurrency: the second waits for the first, then sees it."""
    async with transaction(pool) as opened:
        await opened.execute(GROUND)

    async def second() -> None:
        async with transaction(pool) as tx:
            if by == "line":
                await cancel(tx, 3, 8)
            else:
                await deliver(tx, 0, 5, 3, order=4)

    async with transaction(pool) as first:
        await deliver(first, 0, 5, 0)
        waiting = asyncio.create_task(second())
        await until_blocked(pool)
        assert not waiting.done(), "it waits for the order or the lot"
    with pytest.raises(asyncpg.ExclusionViolationError):
        await waiting


@pytest.mark.parametrize("isolation", ["repeatable_read", "serializable"])
@pytest.mark.parametrize("by", ["line", "code"])
async def test_a_snapshot_that_is_too_old_to_see_a_sale_can_not_sell_again(
    pool: Pool, isolation: Literal["repeatable_read", "serializable"], by: str
) -> None:
    """Invariant 3: the guard's look needs a fresh snapshot after its lock, so other isolation levels are refused."""
    async with transaction(pool) as opened:
        await opened.execute(GROUND)

    async def sell_again() -> None:
        async with pool.acquire() as old, old.transaction(isolation=isolation):
            assert await old.fetchval("SELECT count(*) FROM outcome") == 0
            async with transaction(pool) as first:
                await deliver(first, 0, 5, 0)
            assert await old.fetchval("SELECT count(*) FROM outcome") == 0, "it can't see the sale"
            if by == "line":
                await cancel(old, 3, 8)
            else:
                await deliver(old, 0, 5, 3, order=4)

    with pytest.raises(asyncpg.InvalidTransactionStateError, match="written under read committed"):
        await sell_again()
    assert await pool.fetchval("SELECT count(*) FROM outcome") == 1


# ── catalogue and access ────────────────────────────────────────────────────────────────────────────────


async def test_a_product_points_at_a_version_of_its_own(pool: Pool, tx: Tx) -> None:
    """An order is priced with the version its product names."""
    await tx.execute("SET CONSTRAINTS ALL IMMEDIATE")
    await refused(
        tx, "INSERT INTO product (slug, version_id) VALUES ('other', 1)", "product_id_version_id_fkey"
    )
    await refused(tx, "UPDATE product SET version_id = 7", "product_id_version_id_fkey")


@pytest.mark.parametrize(
    ("change", "moves"),
    [
        ("UPDATE company SET active = false", True),
        ("UPDATE api_key SET revoked_at = now()", True),
        ("UPDATE api_key SET expires_at = now()", True),
        ("UPDATE api_key SET allow_ips = '{192.0.2.0/24}'", True),
        ("UPDATE api_key SET scopes = '{}'", True),
        ("UPDATE api_key SET rate_limit = 1", True),
        ("UPDATE api_key SET state = 1", True),
        ("UPDATE api_key SET company_id = company_id", True),
        ("UPDATE api_key SET hash = sha256('b')", True),
        ("UPDATE api_key SET spend_order_eur_minor = 1", True),
        ("UPDATE api_key SET spend_day_eur_minor = 1", True),
        ("UPDATE api_key SET confirms_alone = true", True),
        ("UPDATE api_key SET parent_id = NULL", True),
        ("UPDATE api_key SET first_id = 1", True),
        ("UPDATE api_key SET made_by = NULL", True),
        ("UPDATE company SET spend_day_eur_minor = 1", True),
        ("DELETE FROM api_key", True),
        ("UPDATE api_key SET last_used_at = now()", False),
    ],
)
async def test_what_decides_about_access_moves_the_epoch(tx: Tx, change: str, moves: bool) -> None:
    """Every process polls one number; whatever changes who may do what moves it, and nothing else does."""
    await tx.execute(
        "INSERT INTO api_key (company_id, state, prefix, hash, scopes) VALUES (1, 0, 'vk_live_a', sha256('a'), '{}')"
    )
    before = await tx.fetchval("SELECT epoch FROM access_epoch")

    await tx.execute(change)

    assert await tx.fetchval("SELECT epoch FROM access_epoch") == before + moves


async def test_an_answer_that_was_kept_stays_and_so_does_the_order_that_was_changed(tx: Tx) -> None:
    """OP-28: the first answer is the answer for good."""
    await tx.execute(
        "INSERT INTO idempotency (company_id, state, key, request, running_until)"
        " VALUES (1, 0, sha256('k'), sha256('r'), now())"
    )
    await tx.execute("UPDATE idempotency SET order_id = 2")
    await refused(tx, "UPDATE idempotency SET order_id = 4", "idempotency is append-only")
    await tx.execute("UPDATE idempotency SET answer = 'a'")
    await refused(tx, "UPDATE idempotency SET answer = 'b'", "idempotency is append-only")
    await refused(tx, "UPDATE idempotency SET running_until = now()", "idempotency is append-only")


async def test_what_was_spent_in_a_day_never_grows_less(tx: Tx) -> None:
    """OP-61: a limit can't be got round by taking back what was counted."""
    await tx.execute("INSERT INTO spend VALUES (1, 0, 0, '2026-01-01', 500)")
    await tx.execute("UPDATE spend SET spent_eur_minor = 600")
    await refused(tx, "UPDATE spend SET spent_eur_minor = 599", "spend is append-only")


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO fx_margin (from_currency, to_currency, margin_bp) VALUES ('EUR', 'JPY', 1)",
        "UPDATE fx_margin SET margin_bp = 2",
        "DELETE FROM fx_margin",
        "INSERT INTO price_list_company (company_id, list_id) VALUES (1, 1)",
        "UPDATE price_list_company SET list_id = list_id",
        "DELETE FROM price_list_company",
    ],
)
async def test_what_only_some_prices_depend_on_moves_the_epoch(tx: Tx, change: str) -> None:
    """Every process polls one number; whatever changes a margin, or who has a price list, moves it."""
    await tx.execute("INSERT INTO fx_margin (from_currency, to_currency, margin_bp) VALUES ('EUR', 'USD', 1)")
    await tx.execute("INSERT INTO price_list (name) VALUES ('gold')")
    if not change.startswith("INSERT"):
        await tx.execute("INSERT INTO price_list_company (company_id, list_id) VALUES (1, 1)")
    before = await tx.fetchval("SELECT epoch FROM price_epoch")

    await tx.execute(change)

    assert await tx.fetchval("SELECT epoch FROM price_epoch") == before + 1


@pytest.mark.parametrize("column", ["settled", "removed"])
async def test_the_mark_of_the_feed_never_goes_back(tx: Tx, column: str) -> None:
    """OP-80: what a reader was told is there stays so, and what is removed does not come back."""
    await tx.execute("UPDATE event_mark SET settled = 5, seen = 6, removed = 4, removed_at = now()")
    await refused(tx, f"UPDATE event_mark SET {column} = {column} - 1", "event_mark is append-only")  # noqa: S608


WEBHOOK = """
INSERT INTO webhook (id, company_id, state, slot, url, secret) VALUES (1, 1, 0, 1, 'https://a.com/', 'x');
INSERT INTO webhook_delivery (webhook_id, event_id, type, next_at) VALUES (1, 1, 'ping', now());
INSERT INTO webhook_attempt (webhook_id, event_id, number, sent_at, ms, url, http) VALUES (1, 1, 1, now(), 5, 'u', 200);
INSERT INTO order_webhook (order_id, url) VALUES (2, 'https://a.com/');
UPDATE webhook_cursor SET upto = 7;
UPDATE sales_cursor SET upto = 7;
"""


async def test_the_serial_of_a_code_stays_what_it_was(tx: Tx) -> None:
    """OP-161: a search leads to the code that was meant."""
    await tx.execute("INSERT INTO code_serial (lot_id, seq, blind) VALUES (2, 0, substr(sha256('x'), 1, 16))")
    await refused(tx, "UPDATE code_serial SET seq = 1", "code_serial is append-only")
    await refused(tx, "DELETE FROM code_serial", "code_serial is append-only")


async def test_a_backup_that_was_taken_stays_in_the_list(tx: Tx) -> None:
    """Whoever asks when the last one was taken is told the truth."""
    await tx.execute("INSERT INTO backup (bytes, seconds) VALUES (1, 0.5)")
    await refused(tx, "UPDATE backup SET at = now()", "backup is append-only")
    await refused(tx, "DELETE FROM backup", "backup is append-only")


async def test_what_was_sent_and_where_orders_send_to_never_changes(tx: Tx) -> None:
    """OP-54: the log of attempts is true, an order's address is that of its Create, and no event is passed twice."""
    await tx.execute(WEBHOOK)
    await refused(tx, "UPDATE webhook_attempt SET http = 204", "webhook_attempt is append-only")
    await refused(tx, "UPDATE order_webhook SET url = 'https://b.com/'", "order_webhook is append-only")
    await refused(tx, "UPDATE webhook_cursor SET upto = 6", "webhook_cursor is append-only")
    await refused(tx, "UPDATE sales_cursor SET upto = 6", "sales_cursor is append-only")
    await tx.execute("DELETE FROM webhook")
    assert await tx.fetchval("SELECT count(*) FROM webhook_attempt") == 0, "they go with their endpoint"


@pytest.mark.parametrize(
    "second",
    [
        "INSERT INTO webhook_delivery (webhook_id, event_id, type, next_at) VALUES (1, 1, 'ping', now())",
        "INSERT INTO webhook (id, company_id, state, slot, url, secret) VALUES (2, 1, 0, 1, 'https://b.com/', 'x')",
        "INSERT INTO webhook (id, company_id, state, slot, secret) VALUES (2, 1, 0, 2, 'x'), (3, 1, 0, 3, 'x')",
    ],
)
async def test_there_is_one_delivery_of_an_event_and_one_endpoint_in_a_slot(tx: Tx, second: str) -> None:
    """OP-54: one delivery for each event and endpoint, 20 endpoints at most, one of them for orders' own addresses."""
    await tx.execute(WEBHOOK)
    await refused(tx, second, "duplicate key")


PEOPLE = """
INSERT INTO app_user (email, company_id, role) VALUES ('a@b.example', 1, 'owner'), ('b@b.example', 1, 'owner');
INSERT INTO totp (user_id, secret, last_step) VALUES (1, 'x', 7);
INSERT INTO recovery_code (user_id, hash, used_at) VALUES (1, sha256('r'), now());
INSERT INTO approval (kind, company_id, state, order_id, amount_minor, currency, requested_by, ends_at)
VALUES (1, 1, 0, 2, 121, 'EUR', 1, now());
"""


async def test_what_opened_once_and_what_was_decided_stay_so(tx: Tx) -> None:
    """OP-92, OP-93, OP-102: a used code is used, a request stays as it was, who rests says no yes, a decision stays."""
    await tx.execute(PEOPLE)
    await refused(tx, "UPDATE totp SET last_step = 6", "totp is append-only")
    await refused(tx, "UPDATE recovery_code SET used_at = NULL", "recovery_code is append-only")
    await refused(tx, "UPDATE approval SET amount_minor = 1", "approval is append-only")
    await refused(
        tx,
        "INSERT INTO approval (kind, company_id, state, order_id, amount_minor, currency, requested_by, ends_at)"
        " VALUES (1, 1, 0, 2, 121, 'EUR', 2, now())",
        "duplicate key",
    )
    yes = "UPDATE approval SET status = 1, decided_by = 2, decided_at = now()"
    await refused(tx, yes, "no second person")
    await tx.execute("UPDATE app_user SET rests_until = now() WHERE id = 2")
    await tx.execute("UPDATE app_user SET rests_by = 2 WHERE id = 1")
    await refused(tx, yes, "no second person")
    await tx.execute("UPDATE app_user SET rests_by = NULL WHERE id = 1")
    await tx.execute(yes)
    await refused(tx, "UPDATE approval SET status = 2", "approval is append-only")


async def test_no_trigger_is_without_a_test(pool: Pool) -> None:
    """A guard that was never seen to bite may be asleep; whoever adds one adds its test and its name."""
    rows = await pool.fetch(
        "SELECT t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid"
        " WHERE NOT t.tgisinternal AND c.relnamespace = current_schema()::regnamespace"
    )

    assert (
        {row["tgname"] for row in rows}
        == {
            "api_key_epoch",
            "api_key_lineage",  # This and app_user_keys: tests/scenarios/test_makers_of_keys.py.
            "app_user_keys",
            "approval_by_known_people",
            "approval_decided_once",
            "attempt_forwards",  # This and all that follows of purchases: tests/store/test_purchase_guards.py.
            "archive_file_kept",  # These and those that let the archive take rows: tests/store/test_archive_guards.py.
            "archive_month_kept",
            "archived_blocks_follow",  # These and those that let blocks leave: tests/store/test_block_guards.py.
            "archived_blocks_kept",
            "archived_blocks_once",
            "archived_codes_kept",
            "archived_ledger_kept",
            "archived_purchase_kept",
            "archived_view_once",
            "archived_view_stays",
            "archived_wallet_kept",
            "attempt_line_append_only",
            "attempt_line_kept",
            "attempt_unchanging",
            "code_append_only",
            "backup_append_only",
            "code_has_lot",
            "code_serial_append_only",
            "code_stays",  # This and those of recoveries: tests/store/test_withheld_guards.py.
            "company_epoch",
            "drill_append_only",
            "entry_append_only",
            "entry_carry",
            "entry_kept",
            "entry_payment_tied",  # This and the ties themselves: tests/store/test_payment_guards.py.
            "event_append_only",
            "event_mark_forwards",
            "company_stays",  # The guards of what a sale names: tests/store/test_sale_guards.py.
            "fx_margin_epoch_moves",
            "fx_rate_epoch_moves",
            "idempotency_answered_once",
            "line_view_has_code",
            "line_view_once",
            "line_view_returned_once",
            "line_view_stays",
            "lot_bought_once",
            "lot_forwards",
            "lot_key_is_kept",  # This and those of the vault's keys: tests/store/test_rotation.py.
            "lot_unchanging",
            "offer_epoch_moves",
            "order_item_has_order",
            "order_webhook_unchanging",
            "orders_downloaded_stays",
            "orders_kept",
            "orders_take_items_along",
            "outcome_append_only",
            "outcome_guard",
            "outcome_kept",
            "payment_deed_append_only",
            "payment_deed_told",
            "price_list_company_epoch_moves",
            "product_added",  # These three: tests/store/test_listings.py.
            "product_change_append_only",
            "product_changed",
            "product_epoch_moves",
            "product_version_added",
            "product_version_append_only",
            "quarantined_code_append_only",
            "quote_append_only",
            "recovery_code_once",
            "recovery_kept",
            "recovery_once",
            "reveal_append_only",  # This and those of the trail: tests/store/test_trail.py.
            "reveal_kept",
            "sales_cursor_forwards",
            "spend_forwards",
            "supplier_epoch_moves",
            "totp_forwards",
            "trail_append_only",
            "trail_kept",
            "trail_seal_append_only",
            "trail_seal_stays_keyed",
            "vault_key_forwards",
            "vault_key_kept",
            "vault_key_seals_nothing",
            "vault_master_kept",
            "vat_rate_epoch_moves",
            "waiting_once",
            "waiting_one_attempt",
            "wallet_starts_empty",
            "wallet_stays",
            "wallet_through_entries",
            "webhook_attempt_append_only",
            "webhook_cursor_forwards",
            "withheld_append_only",
            "withheld_guard",
            "withheld_release_append_only",
            "withheld_release_guard",
        }
    )
