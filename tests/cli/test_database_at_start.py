"""What `serve` and `worker` do when the database is away, or not what they need."""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import asyncpg
import pytest

from tests.cli.terminal import Terminal, assert_refused
from tests.faults.links import Link, linked
from tests.faults.test_kill import shop_of
from tests.patience import HANG_S, until_true
from voucherd.bootstrap import TransactionPooling, refuse_transaction_pooling
from voucherd.connections import COMMAND, Limits, connect
from voucherd.db import LOOK_UPS, Pool, open_pool

NOBODY = "nobody"


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@asynccontextmanager
async def started(terminal: Terminal, *words: str) -> AsyncIterator[subprocess.Popen[bytes]]:
    """A command that goes on; it is told to stop in the end."""
    process = terminal.start(*words)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        # In a thread: the link to its database is here.
        await asyncio.to_thread(process.communicate, timeout=HANG_S)


async def line_of(stream: IO[bytes] | None) -> str:
    """The next line that a command says."""
    assert stream is not None
    return (await asyncio.wait_for(asyncio.to_thread(stream.readline), HANG_S)).decode()


SERVE = pytest.param(("serve", "--port", "0", "--json"), id="serve")
WORKER = pytest.param(("worker", "--json"), id="worker", marks=pytest.mark.soak)


@pytest.mark.parametrize("words", [SERVE, WORKER])
async def test_a_start_waits_for_a_database_that_is_away_and_says_so(
    terminal: Terminal, database_url: str, words: tuple[str, ...]
) -> None:
    """OP-107: a database that starts after us, or fails over just now, is waited for."""
    link, port = Link(database_url), free_port()
    link.port = port
    terminal.env["VOUCHERD_DATABASE_URL"] = link.url()
    terminal.env["VOUCHERD_DATABASE_WAIT_S"] = str(HANG_S)
    async with started(terminal, *words) as process:
        said = await line_of(process.stderr)
        assert said.startswith("voucherd: waiting for the database, 300 seconds more: "), said
        await link.open(port)
        assert json.loads(await line_of(process.stdout))
    await link.close()


def test_a_start_gives_up_with_one_clear_line_when_the_database_stays_away(terminal: Terminal) -> None:
    """OP-107: the wait has an end, after which whoever started it is told."""
    terminal.env["VOUCHERD_DATABASE_URL"] = f"postgresql://shop:hunter2@127.0.0.1:{free_port()}/shop"
    said = terminal.run("serve", "--port", "0", VOUCHERD_DATABASE_WAIT_S="0")
    assert_refused(said, "the database did not answer for 0 seconds", "Connect")
    assert "hunter2" not in said.err


def test_a_start_does_not_wait_for_an_address_that_is_wrong(terminal: Terminal) -> None:
    """OP-107: a wrong password is wrong in a minute, too."""
    right = terminal.env["VOUCHERD_DATABASE_URL"]
    terminal.env["VOUCHERD_DATABASE_URL"] = re.sub(r":[^:@/]+@", ":wrong@", right)
    assert_refused(terminal.run("worker"), "the database refused the sign-in")


# ── PgBouncer ─────────────────────────────────────────────────────────────────────────────────────────


def bouncer() -> str:
    """PgBouncer, where it is installed; `make packages` does so."""
    found = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        assert os.getuid() != 0, "pgbouncer is missing: `make packages` installs it"
        pytest.skip("pgbouncer is missing: `make packages` installs it")
    return found


@asynccontextmanager
async def bouncing(database_url: str, mode: str, **options: object) -> AsyncIterator[str]:
    """The database behind PgBouncer in this mode."""
    program, port = bouncer(), free_port()
    # It never runs as root, and the embedded server's socket is for its own account alone.
    async with (
        linked(database_url) as link,
        _connection(database_url) as connection,
        AsyncExitStack() as opened,
    ):
        # A pooler hands no search_path on, so it is the database's own here.
        schema, name = await connection.fetchrow("SELECT current_schema(), current_database()")  # type: ignore[misc]
        await connection.execute(f"ALTER DATABASE {name} SET search_path = {schema}")
        chosen = {"listen_port": port, "pool_mode": mode, **options}
        folder = opened.enter_context(tempfile.TemporaryDirectory(prefix="voucherd-bouncer-"))
        config = _configure(Path(folder), link, name, chosen)
        process = await asyncio.create_subprocess_exec(
            program, "-q", str(config), stderr=asyncio.subprocess.DEVNULL
        )
        try:
            await until_true(lambda: _listens(port) or process.returncode is not None)
            assert process.returncode is None, config.with_suffix(".log").read_text()
            yield f"postgresql://{urlsplit(database_url).username}@127.0.0.1:{port}/shop?sslmode=disable"
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


def _configure(folder: Path, link: Link, name: str, chosen: Mapping[str, object]) -> Path:
    login = urlsplit(link.url())
    lines = {"listen_addr": "127.0.0.1", "unix_socket_dir": "", "auth_type": "any", **chosen}
    lines["logfile"] = folder / "bouncer.log"
    config = folder / "bouncer.ini"
    if os.getuid() == 0:
        lines["user"] = NOBODY
    server = f"host=127.0.0.1 port={link.port} dbname={name} user={login.username} password={login.password}"
    text = "".join(f"{name} = {value}\n" for name, value in lines.items())
    config.write_text(f"[databases]\nshop = {server}\n[pgbouncer]\n{text}")
    (folder / "bouncer.log").touch()
    if os.getuid() == 0:
        folder.chmod(0o755)
        for path in (config, folder / "bouncer.log"):
            os.chown(path, pwd.getpwnam(NOBODY).pw_uid, -1)
    return config


def _listens(port: int) -> bool:
    with socket.socket() as trying:
        return trying.connect_ex(("127.0.0.1", port)) == 0


@asynccontextmanager
async def _connection(url: str) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    connection = await connect(url, COMMAND)
    try:
        yield connection
    finally:
        await connection.close()


@pytest.mark.parametrize("mode", ["transaction", "statement"])
@pytest.mark.parametrize("in_turns", [0, 1], ids=["the last first", "in turns"])
async def test_a_pooler_that_changes_sessions_is_noticed(database_url: str, mode: str, in_turns: int) -> None:
    """OP-108: whichever session it gives to whom, and with sessions at hand or without."""
    async with bouncing(database_url, mode, server_round_robin=in_turns) as url:
        for _ in range(2):
            with pytest.raises(TransactionPooling, match="pool_mode = session"):
                await refuse_transaction_pooling(url)
            if mode == "transaction":
                # From now on it has more than one session to hand out.
                clients = [await asyncpg.connect(url) for _ in range(3)]
                busy = [client.transaction() for client in clients]
                for one in busy:
                    await one.start()
                for one, client in zip(busy, clients, strict=True):
                    await one.rollback()
                    await client.close()


async def test_commands_refuse_transaction_pooling_with_one_clear_line(
    terminal: Terminal, database_url: str
) -> None:
    """OP-108: prepared statements and limits belong to a session, so it is refused before anything is done."""
    async with bouncing(database_url, "transaction") as url:
        terminal.env["VOUCHERD_DATABASE_URL"] = url
        for words in (("serve", "--port", "0"), ("worker",), ("migrate",)):
            said = await asyncio.to_thread(terminal.run, *words)
            assert_refused(said, "pool_mode = session", "PgBouncer")


async def test_session_pooling_works_and_a_session_keeps_its_limits(
    terminal: Terminal, pool: Pool, database_url: str
) -> None:
    """OP-108: behind PgBouncer in session mode everything works without any setting of its own."""
    async with bouncing(database_url, "session") as url:
        pooled = await open_pool(url, size_max=2, look_ups=True, limits=Limits.of_service(2.0))
        for name, value in {"lock_timeout": "2s", **LOOK_UPS}.items():
            assert await pooled.fetchval("SELECT current_setting($1)", name) == value
        await pooled.close()
        terminal.env["VOUCHERD_DATABASE_URL"] = url
        async with shop_of(pool, terminal.data) as shop:
            await shop.product("now", price="9.50 EUR", stock=1)
            company = await shop.company(balance="10.00 EUR")
            async with started(terminal, "serve", "--port", "0", "--json") as process:
                address = json.loads(await line_of(process.stdout))["baseUrl"]
                body = {"items": [{"productSlug": "now", "amount": 1}], "paymentCurrency": "EUR"}
                path, headers = f"{address}/api/1.03/order", company.bearer()
                created = await shop.client.post(path, json=body, headers=headers)
                trx = created.json()["trx"]
                confirmed = await shop.client.patch(f"{path}/confirm/{trx}", headers=headers)
                assert (confirmed.status_code, confirmed.json()["orderStatus"]) == (200, "finished")
            await shop.assert_books_balance()
