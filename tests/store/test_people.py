"""Second factors, throttling, links and approvals on the real database: what happens when several come at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import UTC, datetime, timedelta

import pytest

from tests.apps import set_up
from tests.mailed import mailed
from tests.patience import a_day_later, pause_for_long, until_true
from voucherd.actors import Actor, ActorKind
from voucherd.approvals import lists
from voucherd.approvals import store as approvals
from voucherd.approvals.model import (
    AlreadyProposed,
    ApprovalClosed,
    ApprovalKind,
    ApprovalNotFound,
    ApprovalStatus,
    SamePerson,
)
from voucherd.companies import store as company_store
from voucherd.companies.model import CompanyDraft
from voucherd.db import Pool, transaction
from voucherd.ids import State
from voucherd.limits import allowances, throttle
from voucherd.limits.allowances import HERE, Devices
from voucherd.money import Money
from voucherd.people import links, second_factors, totp, user_store, users
from voucherd.people import members as people
from voucherd.people.links import LinkKind
from voucherd.people.sessions import Browser
from voucherd.people.sign_in import Origin, SignIn
from voucherd.people.users import User, UserDraft
from voucherd.vault.seal import Sealer
from voucherd.wallet import deeds as wallet_deeds
from voucherd.wallet import store as wallets

AT_ONCE = 8
PASSWORD = "correct horse battery"


@pytest.fixture
async def company_id(pool: Pool) -> int:
    """A company."""
    async with transaction(pool) as tx:
        return (await company_store.add_company(tx, CompanyDraft("Acme", "NL"))).id


async def person(
    pool: Pool, email: str, company_id: int | None, role: str, password: str | None = None
) -> User:
    """Somebody, with a password if one is given."""
    password_hash = "x" if password is None else await users.hash_password(password, [])
    async with transaction(pool) as tx:
        user = await user_store.add_user(tx, UserDraft(email, company_id, role), password_hash)
        await a_day_later(tx)
        return user


async def refused(call: Awaitable[object]) -> type[BaseException] | None:
    """The kind of refusal, None if there was none."""
    try:
        await call
    except Exception as refusal:  # noqa: BLE001 - Its kind is what is asked for.
        return type(refusal)
    return None


async def test_each_code_of_an_app_and_each_recovery_code_opens_once(
    pool: Pool, master: bytes, company_id: int
) -> None:
    """OP-92: of many that give the same code at once one gets in; a used code never opens again."""
    sealer = Sealer(master)
    ann = await person(pool, "ann@acme.example", company_id, "owner")
    async with transaction(pool) as tx:
        begun = await second_factors.begin_totp(tx, sealer, ann.id, b"s" * 32)
        wrong = await second_factors.confirm_totp(tx, sealer, ann.id, b"s" * 32, begun.word, "000000")
        assert wrong is None
        secret, step, codes = await set_up(tx, sealer, ann.id)
    assert await second_factors.factors(pool, ann.id) == second_factors.Factors(True, 0, 10)
    stored = await pool.fetchval("SELECT secret FROM totp")
    assert secret not in stored
    assert not await second_factors.use_totp(pool, sealer, ann.id, totp.code(secret, step))

    following = totp.code(secret, step + 1)
    used = await asyncio.gather(
        *(second_factors.use_totp(pool, sealer, ann.id, following) for _ in range(AT_ONCE))
    )
    assert sum(used) == 1
    used = await asyncio.gather(
        *(second_factors.use_recovery_code(pool, ann.id, codes[0]) for _ in range(AT_ONCE))
    )
    assert sum(used) == 1
    assert not await second_factors.use_recovery_code(pool, ann.id, "no code at all")

    async with transaction(pool) as tx:
        again = second_factors.begin_totp(tx, sealer, ann.id, b"s" * 32)
        assert await refused(again) is second_factors.SecondFactorSet
        await second_factors.remove_all(tx, ann.id)
    assert not (await second_factors.factors(pool, ann.id)).any


async def test_wrong_passwords_pause_those_who_try_and_nobody_else(
    pool: Pool, master: bytes, company_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-92: an account is never locked as a whole: elsewhere, or at a device that is known, its person gets in."""
    pause_for_long(monkeypatch)
    entrance = SignIn(pool, Sealer(master), Devices(b"k" * 32), None)
    ann = await person(pool, "ann@acme.example", company_id, "owner", PASSWORD)
    there, elsewhere = Origin(Browser("198.51.100.7", "x")), Origin(Browser("203.0.113.9", "x"))

    guesses = await asyncio.gather(
        *(refused(entrance.is_right("Ann@acme.example", f"guess {at}", there)) for at in range(AT_ONCE))
    )
    # All at once are counted one after another: five were looked at, and the rest has to pause.
    assert guesses.count(throttle.TooManyTries) == AT_ONCE - HERE.free
    assert await refused(entrance.is_right(ann.email, PASSWORD, there)) is throttle.TooManyTries
    assert await entrance.is_right(ann.email, PASSWORD, elsewhere)
    known = Origin(there.browser, entrance.devices.issue(ann.email))
    assert await entrance.is_right(ann.email, PASSWORD, known)
    made_up = Origin(there.browser, "0" * 32 + "." + "0" * 64)
    assert await refused(entrance.is_right(ann.email, PASSWORD, made_up)) is throttle.TooManyTries

    # A stranger's address pauses in the same way as one that is somebody's.
    tries = [
        await refused(entrance.is_right("who@acme.example", "x", elsewhere)) for _ in range(HERE.free + 1)
    ]
    assert tries == [None] * HERE.free + [throttle.TooManyTries]

    await pool.execute("UPDATE throttle SET until = now()")
    assert await entrance.is_right(ann.email, PASSWORD, there)
    assert not await entrance.is_right(ann.email, "wrong again", there)
    assert (
        await pool.fetchval(
            "SELECT failures FROM throttle WHERE key = $1",
            allowances.key_of(HERE, ann.email, "198.51.100.7"),
        )
        == 1
    )
    await pool.execute("UPDATE throttle SET last_at = now() - interval '2 days'")
    assert await throttle.sweep(pool) > 0
    assert await pool.fetchval("SELECT count(*) FROM throttle") == 0


async def test_passwords_are_checked_a_few_at_a_time_and_too_many_are_sent_away(company_id: int) -> None:
    """OP-92: hashing takes memory and time, so whoever would wait too long hears so at once."""
    more = 5
    most = users.CHECKS_AT_ONCE_MAX + users.CHECKS_WAITING_MAX
    turns = [asyncio.create_task(users.verified(None, "x")) for _ in range(most + more)]

    def sent_away() -> int:
        return sum(one.done() and isinstance(one.exception(), users.PasswordChecksBusy) for one in turns)

    # Those who are sent away don't wait for the others.
    await until_true(sent_away)
    assert sent_away() == more
    for one in turns:
        one.cancel()
    await asyncio.gather(*turns, return_exceptions=True)
    assert await users.verified(None, "x") is None


async def test_a_link_opens_once_and_ends(pool: Pool, company_id: int) -> None:
    """OP-92: of many who use a link at once one gets through; one that is used, old or another kind's opens nothing."""
    ann = await person(pool, "ann@acme.example", company_id, "owner")
    async with transaction(pool) as tx:
        first, second = [await mailed(tx, ann.id) for _ in range(2)]
        assert await links.make(tx, ann.id, LinkKind.RESET) is not None
        assert await links.make(tx, ann.id, LinkKind.RESET) is None
    assert first.encode() not in b"".join(
        [row["hash"] for row in await pool.fetch("SELECT hash FROM account_link")]
    )
    assert await links.look(pool, first, LinkKind.INVITATION) is None
    assert (await links.look(pool, first, LinkKind.RESET)) == links.Holder(ann.id, ann.email)

    async def use() -> bool:
        async with transaction(pool) as tx:
            return await links.use(tx, first, LinkKind.RESET) is not None

    assert sum(await asyncio.gather(*(use() for _ in range(AT_ONCE)))) == 1
    assert await links.look(pool, second, LinkKind.RESET) is None

    async with transaction(pool) as tx:
        late = await mailed(tx, ann.id)
    await pool.execute("UPDATE account_link SET ends_at = now()")
    assert await links.look(pool, late, LinkKind.RESET) is None
    assert await links.sweep(pool) == 1


async def test_one_owner_is_left_whoever_goes_first(pool: Pool, company_id: int) -> None:
    """OP-92: two owners who remove each other at once: one stays. So it is with the operator's admins."""
    for company, role in ((company_id, "owner"), (None, "admin")):
        for name in ("ann", "bob"):
            await person(pool, f"{name}@{role}.example", company, role)
        members = await people.members(pool, company)

        async def leave(member: people.Member) -> None:
            async with transaction(pool) as tx:
                await people.set_active(tx, member, active=False)

        ends = await asyncio.gather(*(refused(leave(member)) for member in members))
        assert sorted(str(end) for end in ends) == sorted(str(end) for end in (None, people.LastOwner))


async def test_money_that_two_people_agree_on_moves_once(pool: Pool, company_id: int) -> None:
    """OP-93: nobody agrees with himself; of several who agree at once one moves the money; what is decided stays."""
    began = datetime.now(UTC) - timedelta(seconds=1)
    proposer = await person(pool, "one@shop.example", None, "finance")
    deciders = [await person(pool, f"n{at}@shop.example", None, "finance") for at in range(4)]

    async def propose(kind: ApprovalKind, amount: str, reference: str) -> int:
        async with transaction(pool) as tx:
            return await approvals.propose(
                tx,
                kind,
                company_id=company_id,
                state=State.LIVE,
                money=Money.read(amount),
                reference=reference,
                requested_by=proposer.id,
            )

    async def agree(number: int, who: User) -> None:
        async with transaction(pool) as tx:
            await wallet_deeds.approve(tx, Actor(ActorKind.OPERATOR, who.email, who.id), number)

    number = await propose(ApprovalKind.TOP_UP, "100.00 EUR", "bank 1")
    assert await refused(propose(ApprovalKind.TOP_UP, "100.00 EUR", "bank 1")) is AlreadyProposed
    assert await refused(agree(number, proposer)) is SamePerson
    ends = await asyncio.gather(*(refused(agree(number, who)) for who in deciders))
    assert ends.count(None) == 1
    assert ends.count(ApprovalClosed) == 3
    (balance,) = await wallets.balances(pool, company_id)  # type: ignore[arg-type]
    assert balance.balance_minor == 10_000
    assert await refused(agree(await propose(ApprovalKind.TOP_UP, "100.00 EUR", "bank 1"), deciders[0])) is (
        wallet_deeds.NothingBooked
    )

    await agree(await propose(ApprovalKind.CORRECTION, "-40.00 EUR", "typo"), deciders[0])
    overdrawn = await propose(ApprovalKind.CORRECTION, "-60.01 EUR", "too much")
    assert await refused(agree(overdrawn, deciders[0])) is not None
    found = await approvals.find(pool, overdrawn, None)
    assert found.open
    async with transaction(pool) as tx:
        await approvals.reject(tx, overdrawn, None, deciders[1].id)
    assert await refused(agree(overdrawn, deciders[0])) is ApprovalClosed
    late = await propose(ApprovalKind.TOP_UP, "1.00 EUR", "late")
    await pool.execute("UPDATE approval SET ends_at = now() WHERE id = $1", late)
    assert await refused(agree(late, deciders[0])) is ApprovalClosed
    assert await lists.waiting(pool, None, State.LIVE, deciders[0].id) == 1
    (balance,) = await wallets.balances(pool, company_id)  # type: ignore[arg-type]
    assert balance.balance_minor == 6_000
    listed = await lists.of_operator(pool)
    assert {one.status for one in listed} == {
        ApprovalStatus.OPEN,
        ApprovalStatus.APPROVED,
        ApprovalStatus.REJECTED,
    }
    assert await refused(approvals.find(pool, number, company_id)) is ApprovalNotFound
    assert began <= listed[0].requested_at <= datetime.now(UTC)
