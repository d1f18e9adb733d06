"""Access against a real database: what the gatekeeper lets in, and how soon it hears of a change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from tests.patience import HANG_S
from voucherd.actors import SYSTEM
from voucherd.companies import store as company_store
from voucherd.companies.model import Company, CompanyDraft
from voucherd.db import Pool, transaction
from voucherd.ids import State
from voucherd.keys import authenticator as batcher
from voucherd.keys import deeds as key_deeds
from voucherd.keys import store as key_store
from voucherd.keys.authenticator import Authenticator
from voucherd.keys.callers import Forbidden, Unauthorized
from voucherd.keys.key_text import SCOPES_DEFAULT, KeyDraft, KeyWish, new_key, read_networks
from voucherd.keys.store import IssuedKey

HERE = "192.0.2.1"


class Clock:
    """The clock of all authenticators of a test: it stands still until time is let pass."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s

    def pass_a_second(self) -> None:
        """OP-29: a change is seen everywhere within this time."""
        self.now_s += batcher.TRUST_S


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """However slow the machine is, no second passes unless a test says so."""
    stands = Clock()
    monkeypatch.setattr(batcher, "monotonic", stands)
    return stands


@pytest.fixture
async def company(pool: Pool) -> Company:
    """A company that buys."""
    async with transaction(pool) as tx:
        return await company_store.add_company(tx, CompanyDraft("Acme", "NL", verified=True))


@pytest.fixture
async def keeper(pool: Pool) -> AsyncIterator[Authenticator]:
    """A gatekeeper at work."""
    started = Authenticator(pool)
    await started.start()
    yield started
    await started.stop()


@pytest.fixture
async def other_keeper(pool: Pool) -> AsyncIterator[Authenticator]:
    """Another process's gatekeeper."""
    started = Authenticator(pool)
    await started.start()
    yield started
    await started.stop()


async def issue(pool: Pool, company: Company, draft: KeyDraft | None = None) -> IssuedKey:
    """A key of this company."""
    async with transaction(pool) as tx:
        return await key_store.add_key(tx, company.id, State.LIVE, draft or KeyDraft())


def header(key: IssuedKey) -> bytes:
    """What a client sends."""
    return b"Bearer " + key.text.encode()


async def refused(keeper: Authenticator, authorization: bytes) -> bool:
    """Whether this header gets nobody in, by either way."""
    if keeper.known(authorization) is not None:
        return False
    try:
        await keeper.admit(authorization, HERE)
    except Unauthorized:
        return True
    return False


async def test_a_key_is_looked_up_once_and_then_known(
    pool: Pool, company: Company, keeper: Authenticator
) -> None:
    """The hot path does not touch the database."""
    key = await issue(pool, company)

    assert keeper.known(header(key)) is None
    caller = await keeper.admit(header(key), HERE)

    assert keeper.known(header(key)) is caller
    assert (caller.key_id, caller.company, caller.state) == (key.id, company, State.LIVE)
    assert caller.scopes == SCOPES_DEFAULT
    assert caller.rate_limit == 600
    assert caller.company.expose_costs


async def test_no_token_and_a_wrong_token_are_told_apart(keeper: Authenticator) -> None:
    """OP-24: `error="invalid_token"` only where a token was sent."""
    with pytest.raises(Unauthorized) as none:
        await keeper.admit(None, HERE)
    assert not none.value.token_sent
    for wrong in (b"", b"Bearer x", b"Basic eDp5", b"Bearer " + new_key(State.LIVE).text.encode()):
        with pytest.raises(Unauthorized) as bad:
            await keeper.admit(wrong, HERE)
        assert bad.value.token_sent


async def test_a_made_up_key_does_not_reach_the_database(
    pool: Pool, keeper: Authenticator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-29: the checksum refuses it."""

    async def unreachable(_pool: Pool, _hash: bytes) -> None:
        raise AssertionError("looked up")

    monkeypatch.setattr(key_store, "find_key", unreachable)
    assert await refused(keeper, b"Bearer vk_live_" + b"a" * 38)


async def test_a_revoked_key_is_refused_everywhere_within_a_second(
    pool: Pool, company: Company, keeper: Authenticator, other_keeper: Authenticator, clock: Clock
) -> None:
    """OP-29: revoked means revoked, in every process."""
    key = await issue(pool, company)
    for each in (keeper, other_keeper):
        await each.admit(header(key), HERE)

    async with transaction(pool) as tx:
        await key_store.revoke_key(tx, key.id)

    async def gone() -> bool:
        return await refused(keeper, header(key)) and await refused(other_keeper, header(key))

    clock.pass_a_second()
    assert await gone()


async def test_a_new_address_list_counts_everywhere_within_a_second(
    pool: Pool, company: Company, keeper: Authenticator, other_keeper: Authenticator, clock: Clock
) -> None:
    """OP-24: an address that is not on the key's list: 403."""
    key = await issue(pool, company)
    for each in (keeper, other_keeper):
        await each.admit(header(key), HERE)

    async with transaction(pool) as tx:
        networks = read_networks(["198.51.100.0/24", "2001:db8::/32"])
        await key_deeds.change(tx, SYSTEM, key.id, KeyWish(allow_ips=networks))

    async def forbidden() -> bool:
        for each in (keeper, other_keeper):
            if each.known(header(key)) is not None:
                return False
            try:
                await each.admit(header(key), HERE)
            except Forbidden:
                continue
            return False
        return True

    clock.pass_a_second()
    assert await forbidden()
    for address in ("198.51.100.7", "::ffff:198.51.100.7", "2001:db8::7"):
        assert (await keeper.admit(header(key), address)).key_id == key.id
    assert keeper.known(header(key)) is None, "an address list is checked on every request"


async def test_a_company_that_is_switched_off_still_signs_in_and_is_seen_to_be_off_within_a_second(
    pool: Pool, company: Company, keeper: Authenticator, other_keeper: Authenticator, clock: Clock
) -> None:
    """OP-21: `company not active` is a refusal of the order, so the key must still authenticate."""
    key = await issue(pool, company)
    for each in (keeper, other_keeper):
        assert (await each.admit(header(key), HERE)).company.active

    async with transaction(pool) as tx:
        await company_store.set_company(tx, "Acme", active=False)

    async def seen() -> bool:
        callers = [await each.admit(header(key), HERE) for each in (keeper, other_keeper)]
        return not any(caller.company.active for caller in callers)

    clock.pass_a_second()
    assert await seen()


async def test_a_key_expires_by_the_clock_and_not_by_the_cache(
    pool: Pool, company: Company, keeper: Authenticator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-29: an optional expiry, checked on every request."""
    expires_at = datetime.now(UTC) + timedelta(hours=1)
    key = await issue(pool, company, KeyDraft(expires_at=expires_at))

    await keeper.admit(header(key), HERE)
    assert keeper.known(header(key)) is not None
    monkeypatch.setattr(batcher, "time", lambda: expires_at.timestamp() - 0.001)
    assert keeper.known(header(key)) is not None
    monkeypatch.setattr(batcher, "time", expires_at.timestamp)

    assert keeper.known(header(key)) is None
    assert await refused(keeper, header(key))


async def test_without_the_database_nothing_is_trusted_after_a_second(
    pool: Pool, company: Company, keeper: Authenticator, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that can't hear of changes asks about every request again."""
    key = await issue(pool, company)
    await keeper.admit(header(key), HERE)

    async def lost(_pool: Pool) -> int:
        raise ConnectionResetError("the database is gone")

    monkeypatch.setattr(key_store, "read_epoch", lost)

    async def untrusted() -> bool:
        return keeper.known(header(key)) is None

    clock.pass_a_second()
    assert await untrusted()
    # A look-up that succeeds says as much as a poll, and for as long.
    await keeper.admit(header(key), HERE)
    assert keeper.known(header(key)) is not None
    clock.pass_a_second()
    assert keeper.known(header(key)) is None


async def test_an_answer_that_is_older_than_what_is_known_is_not_kept(
    pool: Pool, company: Company, keeper: Authenticator, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look-up that was slow must not bring a revoked key back into the cache."""
    key = await issue(pool, company)
    read, go_on = asyncio.Event(), asyncio.Event()
    find_key = key_store.find_key

    async def slow(connection: Pool, key_hash: bytes) -> key_store.FoundKey | None:
        found = await find_key(connection, key_hash)
        read.set()
        await go_on.wait()
        return found

    monkeypatch.setattr(key_store, "find_key", slow)
    waiting = asyncio.create_task(keeper.admit(header(key), HERE))
    await read.wait()
    async with transaction(pool) as tx:
        await key_store.revoke_key(tx, key.id)
    clock.pass_a_second()
    await keeper._poll(HANG_S)
    go_on.set()
    await waiting

    assert keeper.known(header(key)) is None
    monkeypatch.undo()
    assert await refused(keeper, header(key))


async def test_many_requests_with_one_new_key_ask_once(
    pool: Pool, company: Company, keeper: Authenticator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy key that has to be looked up again must not storm the database; one that gives up hurts nobody."""
    key = await issue(pool, company)
    find_key = key_store.find_key
    asked = 0

    async def counted(connection: Pool, key_hash: bytes) -> key_store.FoundKey | None:
        nonlocal asked
        asked += 1
        return await find_key(connection, key_hash)

    monkeypatch.setattr(key_store, "find_key", counted)
    requests = [asyncio.create_task(keeper.admit(header(key), HERE)) for _ in range(50)]
    await asyncio.sleep(0)
    requests[0].cancel()
    callers = await asyncio.gather(*requests[1:])

    assert asked == 1
    assert len({caller.key_id for caller in callers}) == 1


async def test_the_cache_is_bounded(
    pool: Pool, company: Company, keeper: Authenticator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bounds on everything: the key that was kept first makes room."""
    monkeypatch.setattr(batcher, "CACHED_MAX", 2)
    keys = [await issue(pool, company) for _ in range(3)]
    for key in keys:
        await keeper.admit(header(key), HERE)

    assert [keeper.known(header(key)) is not None for key in keys] == [False, True, True]


async def test_last_use_is_written_down_without_waking_anyone(
    pool: Pool, company: Company, keeper: Authenticator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-29: last use. It decides nothing, so it must not make every process look its keys up again."""
    key = await issue(pool, company)
    before = await key_store.read_epoch(pool)
    began = datetime.now(UTC)
    await keeper.admit(header(key), HERE)

    await keeper.stop()

    async with pool.acquire() as connection:
        [listed] = await key_store.list_keys(connection, company.id)
    assert listed.last_used_at is not None
    assert began - timedelta(milliseconds=1) <= listed.last_used_at <= datetime.now(UTC)
    assert await key_store.read_epoch(pool) == before


async def test_a_gatekeeper_does_not_start_without_a_database(pool: Pool) -> None:
    """A server that can't check keys is not ready."""
    await pool.execute("DROP TABLE access_epoch")

    with pytest.raises(asyncpg.UndefinedTableError):
        await Authenticator(pool).start()
