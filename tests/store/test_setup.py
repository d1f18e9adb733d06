"""The set-up link, settings that change while the shop runs, and the operator's only person: on the real database."""

from __future__ import annotations

import asyncio

import pytest

from tests.patience import a_day_later
from voucherd.actors import Actor, ActorKind
from voucherd.audit.money import CHECKS
from voucherd.companies import store as company_store
from voucherd.companies.model import Company, CompanyDraft
from voucherd.db import Pool, transaction
from voucherd.ids import State
from voucherd.money import Money
from voucherd.people import sessions, user_store
from voucherd.people.approvers import NoSecondPerson
from voucherd.people.sessions import Browser
from voucherd.people.sign_in import Origin, SignedIn
from voucherd.people.users import UserDraft
from voucherd.settings import Settings
from voucherd.setup import deeds, links, store
from voucherd.setup.deeds import BadSetting, Beginning, LinkOver, SetUpAlready
from voucherd.setup.running import RunningSettings
from voucherd.wallet import deeds as wallet_deeds

AT_ONCE = 8
TERMINAL = Actor(ActorKind.COMMAND, "root@host", 0)
ORIGIN = Origin(Browser("127.0.0.1", "tests"))
FIFTY = Money(5_000, "EUR")


async def opened(pool: Pool, root: bytes, *, renew: bool = False) -> str:
    """The token of the link, as a start of the program or the command prints it."""
    async with transaction(pool) as tx:
        return await deeds.open_link(tx, TERMINAL, root, renew=renew)


async def began(pool: Pool, root: bytes, token: str, email: str = "ann@shop.example") -> SignedIn:
    """The first person, by the link."""
    async with transaction(pool) as tx:
        return await deeds.begin(tx, root, token, Beginning("Corner Shop", "DE", email, "a hash"), ORIGIN)


async def test_a_link_lets_one_person_in_and_is_over_then(pool: Pool, master: bytes) -> None:
    """OP-150: the link is used once; its person is an admin, is signed in, and counts as a second person at once."""
    token = await opened(pool, master)
    signed_in = await began(pool, master, token)

    session = await sessions.find(pool, signed_in.token)
    assert session is not None
    assert session.person.role == "admin"
    assert session.strong_at is None
    assert not await links.is_good(pool, master, token)
    assert await pool.fetchval("SELECT rests_until <= now() FROM app_user")
    assert await store.stored(pool) == {"operator_name": "Corner Shop", "operator_country": "DE"}
    with pytest.raises(SetUpAlready):
        await began(pool, master, token, "eve@shop.example")
    with pytest.raises(SetUpAlready):
        await opened(pool, master)
    actions = [row[0] for row in await pool.fetch("SELECT action FROM trail ORDER BY id")]
    assert actions == ["setup.link", "setup.begin"]


async def test_of_those_who_use_the_link_at_once_one_comes_in(pool: Pool, master: bytes) -> None:
    """OP-150: the link is used once, however many press the button at the same time."""
    token = await opened(pool, master)
    tried = await asyncio.gather(
        *(began(pool, master, token, f"p{n}@shop.example") for n in range(AT_ONCE)), return_exceptions=True
    )
    assert [type(one) for one in tried if not isinstance(one, SignedIn)] == [SetUpAlready] * (AT_ONCE - 1)
    assert await pool.fetchval("SELECT count(*) FROM app_user") == 1


async def test_hosts_that_start_at_once_print_the_same_link(pool: Pool, master: bytes) -> None:
    """OP-150: no host prints a link that another start has made void; the database alone does not tell it."""
    printed = set(await asyncio.gather(*(opened(pool, master) for _ in range(AT_ONCE))))
    assert len(printed) == 1
    assert await links.is_good(pool, master, printed.pop())
    assert not await links.is_good(pool, bytes(32), await opened(pool, master))
    assert await pool.fetchval("SELECT count(*) FROM trail WHERE action = 'setup.link'") == 1


async def test_another_link_makes_the_one_before_void(pool: Pool, master: bytes) -> None:
    """OP-150: one link is good at a time: a lost one costs nothing."""
    lost = await opened(pool, master)
    found = await opened(pool, master, renew=True)
    assert lost != found
    assert [await links.is_good(pool, master, one) for one in (lost, found, "x", "\ud800")] == [
        False,
        True,
        False,
        False,
    ]
    with pytest.raises(LinkOver):
        await began(pool, master, lost)
    assert await links.is_empty(pool)


async def test_a_link_is_over_after_a_day_and_the_next_start_prints_another(
    pool: Pool, master: bytes
) -> None:
    """OP-150: a link is good for 24 hours from the last time it was printed."""
    old = await opened(pool, master)
    await pool.execute("UPDATE setup_link SET ends_at = now()")
    assert not await links.is_good(pool, master, old)
    with pytest.raises(LinkOver):
        await began(pool, master, old)
    new = await opened(pool, master)
    assert new != old
    assert await links.is_good(pool, master, new)


async def test_a_link_that_asks_for_something_impossible_stays_good(pool: Pool, master: bytes) -> None:
    """OP-150: what is refused changes nothing."""
    token = await opened(pool, master)
    with pytest.raises(BadSetting):
        async with transaction(pool) as tx:
            await deeds.begin(tx, master, token, Beginning("\n", "DE", "a@b.example", "x"), ORIGIN)
    assert await links.is_good(pool, master, token)
    assert await links.is_empty(pool)


async def test_a_setting_that_is_chosen_holds_in_every_process_and_goes_back_again(pool: Pool) -> None:
    """OP-152: what is chosen in the console is stronger than what the program was started with."""
    first, second = (RunningSettings(pool, Settings(margin_min_bp=n)) for n in (1, 2))
    heard: list[Settings] = []
    second.tell(heard.append)
    async with transaction(pool) as tx:
        await deeds.choose(
            tx, TERMINAL, {"margin_min_bp": "250", "fx_url": "", "operator_second_factor": "no"}
        )
    for one in (first, second):
        await one.refresh()
        assert (one.now.margin_min_bp, one.now.fx_url, one.now.operator_second_factor) == (250, None, False)
    async with transaction(pool) as tx:
        await deeds.choose(tx, TERMINAL, {"margin_min_bp": None})
        await deeds.choose(tx, TERMINAL, {"margin_min_bp": None})
    for one in (first, second):
        await one.refresh()
        await one.refresh()
    assert [first.now.margin_min_bp, second.now.margin_min_bp] == [1, 2]
    assert [one.margin_min_bp for one in heard] == [250, 2]
    rows = await pool.fetch(
        "SELECT detail ->> 'margin_min_bp' FROM trail WHERE action = 'setting.set' ORDER BY id"
    )
    assert [row[0] for row in rows] == ["250", "as started"]


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("operator_country", "Germany", "must be a country of two letters"),
        ("margin_min_bp", "many", "must be a whole number between -10000 and 10000"),
        ("delivery_window_s", "0", "must be a number of seconds between 0.001 and"),
        ("operator_name", "a\nb", "must be a name of 1 to 60 characters on one line"),
        ("fx_url", "http://127.0.0.1:9/x", "must be an address that starts with https://"),
        ("mail_from", "nobody", "must be a sender such as"),
        ("pool_size", "5", "can't change while the program runs"),
        ("master_key", "x", "can't change while the program runs"),
    ],
)
async def test_a_setting_that_the_start_would_refuse_is_refused(
    pool: Pool, name: str, value: str, rule: str
) -> None:
    """OP-152: the rules are those of the environment, and what is read at the start alone can't be chosen."""
    with pytest.raises(BadSetting, match=rule) as refused:
        async with transaction(pool) as tx:
            await deeds.choose(tx, TERMINAL, {"archive_months": "24", name: value})
    assert refused.value.name == name
    assert await store.stored(pool) == {}
    assert await pool.fetchval("SELECT count(*) FROM trail") == 0


async def test_a_setting_of_another_version_is_ignored(pool: Pool) -> None:
    """OP-152: a process that can't read what a newer one stored goes on with what it was started with."""
    await pool.execute(
        "INSERT INTO setting (name, value) VALUES ('margin_min_bp', 'plenty'), ('new_one', 'x'), ('pool_size', '2'),"
        " ('operator_name', 'Corner Shop')"
    )
    running = RunningSettings(pool, Settings(margin_min_bp=7))
    await running.refresh()
    assert (running.now.margin_min_bp, running.now.pool_size) == (7, 10)
    assert running.now.sender == "Corner Shop <no-reply@localhost>"


async def someone(pool: Pool, email: str, *, joined: bool = True) -> Actor:
    """Somebody of the operator."""
    async with transaction(pool) as tx:
        user = await user_store.add_user(tx, UserDraft(email, None, "admin"), "x" if joined else None)
        await a_day_later(tx)
    return Actor(ActorKind.OPERATOR, email, user.id)


async def customer(pool: Pool) -> Company:
    """A company."""
    async with transaction(pool) as tx:
        return await company_store.add_company(tx, CompanyDraft("Acme", "NL"))


@pytest.mark.parametrize("colleague", ["joined", "only invited", "left"])
async def test_the_only_person_tops_up_alone_until_a_second_one_is_invited(
    pool: Pool, colleague: str
) -> None:
    """OP-151: with nobody to agree with, one person is enough; afterwards never again. The audit tells them apart."""
    company, alone = await customer(pool), await someone(pool, "one@shop.example")
    async with transaction(pool) as tx:
        balance = await wallet_deeds.top_up_alone(tx, alone, company, State.LIVE, FIFTY, "first")
    assert balance.balance_minor == 5_000
    with pytest.raises(wallet_deeds.NothingBooked):
        async with transaction(pool) as tx:
            await wallet_deeds.top_up_alone(tx, alone, company, State.LIVE, FIFTY, "first")

    second = await someone(pool, "two@shop.example", joined=colleague != "only invited")
    if colleague == "left":
        await pool.execute("UPDATE app_user SET active = false WHERE id = $1", second.id)
    with pytest.raises(NoSecondPerson):
        async with transaction(pool) as tx:
            await wallet_deeds.top_up_alone(tx, alone, company, State.LIVE, FIFTY, "second")
    assert await _untold(pool) == 0
    await pool.execute("UPDATE app_user SET created_at = '2020-01-01' WHERE id = $1", second.id)
    assert await _untold(pool) == 1


async def _untold(pool: Pool) -> int:
    """How many payments the audit misses an approval of."""
    (check,) = [one for one in CHECKS if one.name == "payments-are-told"]
    return len(await pool.fetch(check.sql))


@pytest.mark.parametrize("who", ["with a colleague", "of a company", "nobody"])
async def test_the_database_refuses_a_top_up_by_one_of_several(pool: Pool, who: str) -> None:
    """OP-105, OP-151: whatever the program does, who is not alone needs an approval."""
    company, person = await customer(pool), await someone(pool, "one@shop.example")
    actor = person
    if who == "with a colleague":
        await someone(pool, "two@shop.example")
    else:
        actor = Actor(ActorKind.OPERATOR, "other", 4_711)
        if who == "of a company":
            async with transaction(pool) as tx:
                user = await user_store.add_user(tx, UserDraft("buyer@a.example", company.id, "owner"), "x")
            actor = Actor(ActorKind.OPERATOR, "other", user.id)
    with pytest.raises(Exception, match="this payment needs an approval"):
        async with transaction(pool) as tx:
            await wallet_deeds.top_up(tx, actor, company, State.LIVE, FIFTY, "first")
    assert await pool.fetchval("SELECT count(*) FROM entry") == 0
