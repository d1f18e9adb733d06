"""Connections: which host is taken, what its session may do to others, and what comes of a database that refuses."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import asyncpg
import pytest

from tests.faults.links import Link, linked
from tests.faults.stumbling import Stumble, StumbleAtCommit, Way, open_stumbling_pool
from tests.patience import HANG_S, until, until_blocked, until_true
from tests.shop import open_shop
from voucherd import app, connections
from voucherd.connections import COMMAND, MIGRATION, Limits, ServiceConnection, addresses_of, connect
from voucherd.db import (
    UNAVAILABLE,
    OutcomeUnknown,
    Pool,
    TimeLimit,
    Undone,
    close,
    open_pool,
    take_long,
    transaction,
    within,
)
from voucherd.embedded import throwaway
from voucherd.heartbeat import Heartbeat
from voucherd.orders.answers import OrderReader

LIMITS = Limits(statement_s=HANG_S, lock_s=HANG_S, idle_s=HANG_S)


@pytest.fixture
async def link(database_url: str) -> AsyncIterator[Link]:
    """A way to the database."""
    async with linked(database_url) as opened:
        yield opened


# ── hosts ─────────────────────────────────────────────────────────────────────────────────────────────


def test_each_host_of_an_address_becomes_an_address() -> None:
    """OP-107: names, ports, IPv6, sockets and lists in the query, as libpq writes them."""
    assert addresses_of("postgresql://u:p%40w@a,b:6432,[::1]:1/db?x=1") == [
        "postgresql://u:p%40w@a/db?x=1",
        "postgresql://u:p%40w@b:6432/db?x=1",
        "postgresql://u:p%40w@[::1]:1/db?x=1",
    ]
    assert addresses_of("postgresql://u@/db?host=/run/pg,b&port=5432,6432&x=1") == [
        "postgresql://u@/db?x=1&host=%2Frun%2Fpg&port=5432",
        "postgresql://u@/db?x=1&host=b&port=6432",
    ]
    assert addresses_of("postgresql:///db?host=a,b&port=7") == [
        "postgresql:///db?host=a&port=7",
        "postgresql:///db?host=b&port=7",
    ]
    assert addresses_of("postgresql://u:p@one/db") == ["postgresql://u:p@one/db"]
    assert addresses_of("postgresql:///db") == ["postgresql:///db"]


async def test_types_of_postgresql_are_asked_about_once(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new connection knows from others what an array is made of: its first sale need not ask."""
    monkeypatch.setattr(connections, "_types", {})
    asked = []
    ask = asyncpg.Connection._introspect_types  # type: ignore[attr-defined]

    async def noted(self: Any, typeoids: Any, *limit: Any) -> Any:
        asked.append(set(typeoids))
        return await ask(self, typeoids, *limit)

    monkeypatch.setattr(asyncpg.Connection, "_introspect_types", noted)
    for _ in range(3):
        pool = await open_pool(database_url, size_max=1)
        try:
            async with transaction(pool) as tx:
                row = await tx.fetchrow("SELECT $1::bigint[] AS numbers, '{a,b}'::varchar[] AS words", [1, 2])
                assert row is not None
                assert tuple(row) == ([1, 2], ["a", "b"])
                await tx.execute("CREATE TYPE pair AS (a int, b int)")
                assert tuple(await tx.fetchval("SELECT (1, 2)::pair")) == (1, 2)
                await tx.execute("DROP TYPE pair")
        finally:
            await pool.close()
    builtin = [one for one in asked if max(one) < connections.OWN_TYPES_MAX]
    assert len(builtin) == 1
    assert len(asked) == 4


async def test_a_silent_host_is_passed_over_and_the_last_good_one_is_asked_first(
    link: Link, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-107: every host has a time of its own, and a new connection begins where the last one succeeded."""
    monkeypatch.setattr(connections, "HOST_S_MAX", HANG_S)
    async with linked(database_url) as silent:
        silent.fall_silent()
        pool = await open_pool(silent.url(link.host))
        try:
            assert await pool.fetchval("SELECT 1") == 1
            asked = silent.asked
            assert asked == 1
            # However long the good one takes on a slow machine: the silent one has no turn.
            monkeypatch.setattr(connections, "NEXT_HOST_S", HANG_S)
            await pool.expire_connections()
            assert await pool.fetchval("SELECT 2") == 2
            assert silent.asked == asked, "the host that answered is asked first"
        finally:
            pool.terminate()


async def test_a_host_that_may_not_be_written_to_is_passed_over_unless_the_address_wants_any(
    server_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-107: a standby answers, but no sale can be stored there."""
    # The first is slow to answer on a slow machine, and is meant all the same.
    monkeypatch.setattr(connections, "NEXT_HOST_S", HANG_S)
    monkeypatch.setattr(connections, "HOST_S_MAX", HANG_S)
    with throwaway(settings={"default_transaction_read_only": "on"}) as standby_url:
        async with linked(server_url) as leader, linked(standby_url) as standby:
            passwords = tmp_path / "pgpass"
            passwords.write_text(
                "".join(f"127.0.0.1:{one.port}:*:*:{one.password}\n" for one in (leader, standby))
            )
            passwords.chmod(0o600)
            url = f"postgresql://voucherd@{standby.host},{leader.host}/voucherd?passfile={quote(str(passwords))}"

            assert await _is_read_only(f"{url}&target_session_attrs=any")
            assert not await _is_read_only(url)
            assert not await _is_read_only(f"{url}&target_session_attrs=read-write")
            await leader.close()
            with pytest.raises(asyncpg.InternalClientError):
                await _is_read_only(url)


async def _is_read_only(url: str) -> bool:
    session = await connect(url, COMMAND)
    try:
        return bool(await session.fetchval("SELECT current_setting('transaction_read_only') = 'on'"))
    finally:
        await session.close()


async def test_of_many_failures_the_one_that_tells_most_is_told(link: Link, database_url: str) -> None:
    """OP-107: a wrong password is not hidden behind a host that is away."""
    async with linked(database_url) as away:
        await away.close()
    url = link.url(away.host).replace("://voucherd:", "://nobody:", 1)
    assert "nobody" in url
    with pytest.raises(asyncpg.InvalidPasswordError):
        await connect(url, COMMAND)


# ── limits of a session ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "limits", [Limits.of_service(2.0), COMMAND, MIGRATION], ids=["service", "command", "migration"]
)
async def test_every_session_has_its_limits_and_watches_its_link(link: Link, limits: Limits) -> None:
    """OP-106: statements, locks, pauses in a transaction, and a link that is dead are bounded at both ends."""
    session = await connect(link.url(), limits)
    for name, value in limits.settings.items():
        assert await session.fetchval("SELECT setting FROM pg_settings WHERE name = $1", name) == value
    line = session._transport.get_extra_info("socket")  # type: ignore[attr-defined]
    assert line.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    assert line.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == connections.LINK_IDLE_S
    assert line.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 1000 * connections.LINK_S_MAX
    await session.close()


async def test_long_work_is_given_longer_limits_for_its_own_transaction(database_url: str) -> None:
    """OP-106: an import may pause for its file, and its connection goes back with the limits that it had."""
    pool = await open_pool(database_url, size_max=1, limits=Limits.of_service(2.0))
    show = (
        "SELECT current_setting('idle_in_transaction_session_timeout'), current_setting('statement_timeout')"
    )
    async with transaction(pool) as tx:
        await take_long(tx)
        assert tuple(await tx.fetchrow(show)) == ("10min", "15min")  # type: ignore[arg-type]
    assert tuple(await pool.fetchrow(show)) == ("1s", "30s")  # type: ignore[arg-type]
    await pool.close()


# ── what a batch hears ────────────────────────────────────────────────────────────────────────────────


async def test_a_batch_that_waits_for_a_lock_for_too_long_is_undone(pool: Pool, database_url: str) -> None:
    """OP-106: nothing is stored, and its connection can be used again."""
    impatient = await open_pool(database_url, size_max=1, limits=LIMITS._replace(lock_s=0.05))
    async with transaction(pool) as tx:
        await tx.execute("LOCK TABLE brand")
        with pytest.raises(Undone) as caught:
            async with impatient.acquire() as connection, within(connection, of_a_batch=True) as batch:
                await batch.execute("SELECT FROM brand")
    assert isinstance(caught.value.__cause__, asyncpg.LockNotAvailableError)
    assert await impatient.fetchval("SELECT 1") == 1
    await impatient.close()


async def test_a_batch_that_takes_too_long_is_dropped_with_its_connection(
    pool: Pool, database_url: str
) -> None:
    """OP-106: the server is not asked to stop it and not waited for; the next one has another connection."""
    service = await open_pool(database_url, size_max=1, limits=LIMITS)
    async with transaction(pool) as tx:
        await tx.execute("LOCK TABLE brand")
        with pytest.raises(Undone) as caught:
            async with (
                service.acquire() as connection,
                within(connection, of_a_batch=True, s_max=0.05) as batch,
            ):
                await batch.execute("SELECT FROM brand")
        assert isinstance(caught.value.__cause__, UNAVAILABLE)
        assert await service.fetchval("SELECT 1") == 1
    await service.close()


async def test_the_server_ends_a_batch_that_waits_for_locks_though_nobody_can_tell_it_to(
    pool: Pool, database_url: str
) -> None:
    """OP-106: a process that is cut off waits for no lock any longer than its batch may take, however many it needs."""
    service = await open_pool(database_url, size_max=1, limits=LIMITS)
    async with service.acquire() as connection:
        number = connection.get_server_pid()
    async with transaction(pool) as tx:
        await tx.execute("LOCK TABLE brand")
        with pytest.raises(Undone):
            async with (
                service.acquire() as connection,
                within(connection, of_a_batch=True, s_max=0.05) as batch,
            ):
                await batch.execute("SELECT FROM brand")
        # The server does not notice that a connection is closed while its statement waits for a lock.
        look = "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock')"
        await until(lambda: pool.fetchval(look, number), "it still waits for its lock")
    await service.close()


async def test_a_batch_that_pauses_for_too_long_is_thrown_out_and_undone(
    pool: Pool, database_url: str
) -> None:
    """OP-106: the server ends the session of a process that does nothing in the middle of a transaction."""
    service = await open_pool(database_url, size_max=1, limits=LIMITS._replace(idle_s=0.05))

    async def pause() -> None:
        async with service.acquire() as connection, within(connection, of_a_batch=True) as batch:
            number = await batch.fetchval("SELECT pg_backend_pid()")
            look = "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)"
            await until(lambda: pool.fetchval(look, number))
            await batch.execute("SELECT 1")

    with pytest.raises(Undone):
        await pause()
    assert await service.fetchval("SELECT 1") == 1
    await service.close()


async def test_a_session_that_falls_silent_between_two_messages_of_a_statement_is_ended_by_a_heartbeat(
    pool: Pool, database_url: str
) -> None:
    """OP-106: PostgreSQL takes it for busy, whatever its limits are, and it may hold a wallet. A COPY may wait."""
    limits = LIMITS._replace(idle_s=0.05)
    other = await open_pool(database_url, size_max=1, limits=limits)
    silent, copying = await connect(database_url, limits), await connect(database_url, limits)
    more, ended = asyncio.Event(), asyncio.Event()

    async def rows() -> AsyncIterator[bytes]:
        yield b"1\n"
        await more.wait()

    await pool.execute("CREATE TABLE note (id int)")
    copied = asyncio.create_task(copying.copy_to_table("note", source=rows()))
    silent.add_termination_listener(lambda _: ended.set())
    await silent.execute("BEGIN; LOCK TABLE brand; SELECT pg_current_xact_id()")
    await silent.prepare("SELECT 1")
    heart = Heartbeat(other, works=False)

    async def beaten() -> bool:
        await heart.beat()
        return ended.is_set()

    await until(beaten, "its lock is never free")
    more.set()
    assert await copied == "COPY 1"
    await heart.leave()
    await copying.close()
    await other.close()


async def test_an_answer_to_commit_that_is_lost_is_not_called_undone(link: Link) -> None:
    """OP-106: once COMMIT is sent nobody here knows what became of it."""
    service = await open_pool(link.url(), size_max=1, limits=LIMITS)

    sent = asyncio.Event()

    async def lose_the_answer() -> None:
        async with service.acquire() as connection, within(connection, of_a_batch=True) as batch:
            await batch.execute("SELECT 1")
            link.fall_silent()
            sent.set()  # COMMIT is, before anybody hears of this.

    losing = asyncio.create_task(lose_the_answer())
    await sent.wait()
    losing.cancel()
    with pytest.raises(OutcomeUnknown):
        await losing
    service.terminate()


async def test_a_commit_that_nobody_waits_for_any_longer_is_not_asked_to_stop(
    pool: Pool, database_url: str
) -> None:
    """OP-106: asked to stop while it waits for a standby, the server would show a sale that a failover forgets."""
    await pool.execute(
        """
        CREATE TABLE note (id int);
        CREATE FUNCTION wait_for_the_test() RETURNS trigger LANGUAGE plpgsql
            AS 'BEGIN PERFORM pg_advisory_xact_lock_shared(17); RETURN NULL; END';
        CREATE CONSTRAINT TRIGGER note_waits AFTER INSERT ON note DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION wait_for_the_test();
        """
    )
    service = await open_pool(database_url, size_max=1, limits=LIMITS)

    async def note() -> None:
        async with service.acquire() as connection, within(connection, of_a_batch=True) as batch:
            await batch.execute("INSERT INTO note VALUES (1)")

    async with transaction(pool) as tx:
        await tx.execute("SELECT pg_advisory_xact_lock(17)")
        noting = asyncio.create_task(note())
        await until_blocked(pool)
        noting.cancel()
        with pytest.raises(OutcomeUnknown):
            await noting
        await until_true(lambda: not connections._cancels)
    await until(lambda: pool.fetchval("SELECT EXISTS (SELECT FROM note)"), "its COMMIT was stopped")
    await service.close()


async def test_a_statement_that_nobody_waits_for_gives_its_connection_back_though_the_link_is_silent(
    link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-106: a hung connection is dropped: the pool has its place again at once."""
    monkeypatch.setattr(connections, "CANCEL_S_MAX", 0.05)
    service = await open_pool(link.url(), size_max=1, limits=LIMITS)
    link.fall_silent()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await service.fetchval("SELECT 1")
    link.come_back()
    assert await service.fetchval("SELECT 2") == 2
    async with service.acquire() as connection:
        with pytest.raises(UNAVAILABLE), TimeLimit(connection, 0.05):
            await connection.execute("SELECT pg_sleep(600)")
    await service.close()


async def test_a_connection_that_is_dropped_between_two_messages_says_that_it_is_closed(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-106: a batch whose time is over in that very moment is a 503, too; the driver stumbled over itself."""
    service = await open_pool(database_url, size_max=1, limits=LIMITS)
    prepare: Any = ServiceConnection._get_statement  # type: ignore[attr-defined]

    async def dropped(self: ServiceConnection, *arguments: Any, **options: Any) -> Any:
        made = await prepare(self, *arguments, **options)
        self.terminate()
        return made

    monkeypatch.setattr(ServiceConnection, "_get_statement", dropped)
    with pytest.raises(UNAVAILABLE):
        await service.fetchval("SELECT 1")
    monkeypatch.undo()
    assert await service.fetchval("SELECT 1") == 1
    await service.close()


async def test_a_pool_is_closed_though_its_database_is_silent(
    link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-106: a server that is told to stop does not wait for a database that hangs."""
    monkeypatch.setattr("voucherd.db.CLOSE_S_MAX", 0.05)
    service = await open_pool(link.url(), size_max=2, limits=LIMITS)
    waiting = asyncio.create_task(service.execute("SELECT pg_sleep(600)"))
    await until_true(lambda: not service.get_idle_size())
    link.fall_silent()
    await close(service)
    with pytest.raises(asyncpg.PostgresConnectionError):
        await waiting


# ── what a client hears ───────────────────────────────────────────────────────────────────────────────

REFUSALS: list[Exception] = [
    asyncpg.LockNotAvailableError("canceling statement due to lock timeout"),
    asyncpg.QueryCanceledError("canceling statement due to statement timeout"),
    asyncpg.IdleInTransactionSessionTimeoutError("terminating connection"),
    asyncpg.ReadOnlySQLTransactionError("cannot execute INSERT in a read-only transaction"),
    asyncpg.DiskFullError("could not extend file"),
    asyncpg.PostgresIOError("could not write block"),
    asyncpg.InternalClientError("got result for unknown protocol state 3"),
]


async def test_a_database_that_can_not_store_is_a_503_that_may_be_tried_again(
    pool: Pool, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-106: before COMMIT nothing is stored, at COMMIT nobody knows; either way the client may ask again."""
    monkeypatch.setattr(app, "open_pool", open_stumbling_pool)
    async with open_shop(pool, database_url, tmp_path, with_worker=False, confirm_wait_s=0) as shop:
        company = await shop.company(balance="1000.00 EUR")
        await shop.product("now", stock=30)
        for error in REFUSALS:
            trx = (await shop.create(company, ("now", 1)))["trx"]
            before = await shop.balance(company)
            falls = [Stumble(at, Way.RAISED, pool, error) for at in (1, 2, 3)]
            for stumble in (*falls, StumbleAtCommit(way=Way.RAISED, killer=pool, error=error)):
                answer = await stumble.during(shop.finalise("confirm", company, trx))
                assert stumble.fell
                assert (answer.status_code, answer.headers.get("retry-after")) == (503, "1"), (
                    error,
                    answer.text,
                )
                assert await shop.balance(company) == before
            assert (await shop.confirm(company, trx))["orderStatus"] == "finished"
        await shop.assert_books_balance()


async def test_a_sale_that_is_stored_but_can_not_be_shown_is_not_said_to_be_retryable(
    pool: Pool, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-106: the driver's own errors after COMMIT change nothing: it is done, and Find has it."""
    monkeypatch.setattr(app, "open_pool", open_stumbling_pool)
    error = asyncpg.InternalClientError("got result for unknown protocol state 3")
    async with open_shop(pool, database_url, tmp_path, with_worker=False, confirm_wait_s=0) as shop:
        company = await shop.company(balance="1000.00 EUR")
        await shop.product("now", stock=30)
        trx = (await shop.create(company, ("now", 1)))["trx"]
        monkeypatch.setattr(OrderReader, "shown", _raising(error))
        answer = await shop.finalise("confirm", company, trx)
        assert (answer.status_code, answer.text) == (503, "done, but it can not be shown now: find the order")
        monkeypatch.undo()
        found = await shop.call("GET", f"/api/1.03/order/{trx}", company)
        assert found.json()["orderStatus"] == "finished"
        await shop.assert_books_balance()


def _raising(error: Exception) -> Callable[..., Awaitable[None]]:
    async def shown(*_arguments: object) -> None:
        raise error

    return shown


async def test_a_database_that_takes_nothing_is_a_503(pool: Pool, database_url: str, tmp_path: Path) -> None:
    """OP-106: a real one that is told to be read-only; when it takes orders again, they are taken."""
    async with open_shop(pool, database_url, tmp_path, with_worker=False, confirm_wait_s=0) as shop:
        company = await shop.company(balance="100.00 EUR")
        await shop.product("now", stock=10)
        trx = (await shop.create(company, ("now", 1)))["trx"]
        await _be_read_only(pool, "on")
        await shop.program.services.pool.expire_connections()
        body = {"items": [{"productSlug": "now", "amount": 1}], "paymentCurrency": "EUR"}
        refused = [
            await shop.finalise("confirm", company, trx),
            await shop.finalise("resolve", company, trx),
            await shop.finalise("cancel", company, trx),
            await shop.call("POST", "/api/1.03/order", company, json=body),
        ]
        assert [(one.status_code, one.headers.get("retry-after")) for one in refused] == [(503, "1")] * 4
        await _be_read_only(pool, "off")

        async def confirmed() -> bool:
            # Each session that can't write is dropped, and the next one can.
            return (await shop.finalise("confirm", company, trx)).is_success

        await until(confirmed)
        await shop.assert_books_balance()


async def _be_read_only(pool: Pool, wanted: str) -> None:
    async with pool.acquire() as connection:
        await connection.execute("SET default_transaction_read_only = off")
        name: Any = await connection.fetchval("SELECT quote_ident(current_database())")
        await connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = {wanted}")
