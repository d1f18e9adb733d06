"""Payments: the database takes no top-up and no correction that nothing tells of, whoever writes it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import asyncpg
import pytest

from tests.shop import corrected, paid_in
from voucherd import trail
from voucherd.actors import SYSTEM, Actor, ActorKind
from voucherd.audit import Finding, audit
from voucherd.companies import store as company_store
from voucherd.companies.model import Company, CompanyDraft
from voucherd.db import Pool, Tx, transaction
from voucherd.ids import State
from voucherd.money import Money
from voucherd.wallet import store as wallets

TEN = Money.read("10.00 EUR")
PERSON = Actor(ActorKind.OPERATOR, "ann@shop.example", 1)


async def acme(pool: Pool) -> Company:
    """A company without money."""
    async with transaction(pool) as tx:
        return await company_store.add_company(tx, CompanyDraft("Acme", "NL"))


async def tell(
    tx: Tx,
    company: Company,
    money: Money,
    reference: str,
    actor: Actor = SYSTEM,
    action: str = "wallet.top-up",
) -> None:
    """A row of the trail, as if somebody had paid in."""
    detail = {"amount": str(money), "reference": reference}
    await trail.record(tx, actor, action, "payment 1", detail, company_id=company.id, state=State.LIVE)


async def refused(pool: Pool, why: str, *work: Callable[[Tx], Awaitable[object]]) -> None:
    """All this in one transaction, which the database does not let commit."""

    async def together() -> None:
        async with transaction(pool) as tx:
            for one in work:
                await one(tx)

    with pytest.raises(asyncpg.IntegrityConstraintViolationError, match=why):
        await together()


async def test_a_payment_that_nothing_tells_of_is_refused(pool: Pool) -> None:
    """OP-105: a plain INSERT does not commit, nor with the row of another amount, currency or payment."""
    company, untold = await acme(pool), "needs its row of the trail"

    async def top_up(tx: Tx) -> None:
        await wallets.top_up(tx, company.id, State.LIVE, TEN, "bank 1")

    await refused(pool, untold, top_up)
    for amount, reference in (
        ("10.01 EUR", "bank 1"),
        ("10.00 USD", "bank 1"),
        ("-10.00 EUR", "bank 1"),
        ("10.00 EUR", "bank 2"),
    ):
        told = partial(tell, company=company, money=Money.read(amount), reference=reference)
        await refused(pool, untold, top_up, told)
    async with transaction(pool) as tx:
        await tell(tx, company, TEN, "bank 1")
    # A row of an earlier transaction tells of nothing that happens now.
    await refused(pool, untold, top_up)
    assert await pool.fetchval("SELECT count(*) FROM entry") == 0


async def test_one_row_of_the_trail_tells_of_one_payment(pool: Pool) -> None:
    """OP-105: two entries with one row between them are refused; a correction may repeat a top-up's reference."""
    company = await acme(pool)
    await refused(
        pool,
        "needs its row of the trail",
        lambda tx: paid_in(tx, company.id, State.LIVE, TEN, "bank 1"),
        lambda tx: wallets.correct(tx, company.id, State.LIVE, TEN, "bank 1"),
    )


async def test_people_move_money_only_with_an_approval(pool: Pool) -> None:
    """OP-93, OP-105: a correction always takes one, a top-up unless a command or the program makes it."""
    company = await acme(pool)
    for pay, actor, action in (
        (wallets.top_up, PERSON, "wallet.top-up"),
        (wallets.top_up, PERSON, "money.approve"),
        (wallets.top_up, SYSTEM, "money.approve"),
        (wallets.correct, SYSTEM, "wallet.top-up"),
    ):
        paid = partial(pay, company_id=company.id, state=State.LIVE, money=TEN, reference="bank 1")
        told = partial(tell, company=company, money=TEN, reference="bank 1", actor=actor, action=action)
        await refused(pool, "needs an approval", paid, told)
    async with transaction(pool) as tx:
        await paid_in(tx, company.id, State.LIVE, Money.read("1000 JPY"))
        await paid_in(tx, company.id, State.LIVE, Money.read("0.05 EUR"))
        await corrected(tx, company.name, Money.read("-0.05 EUR"), "typing error")
    tied = await pool.fetch("SELECT trail_id IS NOT NULL, approval_id FROM payment_deed ORDER BY trail_id")
    assert [tuple(row) for row in tied] == [(True, None), (True, None), (True, 1)]
    untold = "INSERT INTO payment_deed (wallet_id, seq) SELECT id, seq + 1 FROM wallet"
    for change in (
        "DELETE FROM payment_deed",
        "UPDATE payment_deed SET seq = 9",
        "TRUNCATE payment_deed",
        untold,
    ):
        with pytest.raises(asyncpg.IntegrityConstraintViolationError, match="payment_deed is append-only"):
            await pool.execute(change)
    assert await faults(pool) == []


FORGED = """
    INSERT INTO entry (wallet_id, seq, kind, amount_minor, balance_after_minor, held_after_minor, reference, at)
    SELECT id, seq + 1, {kind}, 100, balance_minor + 100, held_minor, 'forged', clock_timestamp() FROM wallet
"""


async def faults(pool: Pool) -> list[Finding]:
    """What the audit says."""
    async with pool.acquire() as conn:
        return await audit(conn)


@pytest.mark.parametrize("kind", [1, 6])
async def test_the_audit_finds_a_payment_that_was_forged_with_the_guard_off(pool: Pool, kind: int) -> None:
    """OP-105: it trusts no trigger: no tie, one to nothing, and one to somebody else's row are all found."""
    company = await acme(pool)
    async with transaction(pool) as tx:
        await paid_in(tx, company.id, State.LIVE, TEN)
    assert await faults(pool) == []
    await pool.execute("ALTER TABLE entry DISABLE TRIGGER entry_payment_tied")
    await pool.execute(FORGED.format(kind=kind))
    await pool.execute("ALTER TABLE payment_deed DISABLE TRIGGER USER")
    for tie in (None, "NULL", "(SELECT max(id) FROM trail)"):
        if tie is not None:
            await pool.execute("DELETE FROM payment_deed WHERE seq = 2")
            if tie != "NULL":
                async with transaction(pool) as tx:
                    await tell(tx, company, TEN, "another")
            await pool.execute(f"INSERT INTO payment_deed SELECT id, 2, {tie} FROM wallet")  # noqa: S608
        (found,) = await faults(pool)
        assert (found.check, [row["seq"] for row in found.rows]) == ("payments-are-told", [2])
