"""docs/runbooks: every block that is marked so is run as it is printed."""

from __future__ import annotations

import json
import os
import re
import socketserver
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import httpx
import pytest

from tests.anywhere.installed import clean_environment
from tests.anywhere.programs import OpenShop
from tests.cli.forge import forge
from tests.docs import pages
from tests.docs.pages import DOCS
from tests.patience import HANG_S
from tests.purchasing.conftest import Market, stopped_clock
from tests.purchasing.fake import unclear
from tests.shop import open_shop as opened_shop
from voucherd.db import Pool
from voucherd.embedded import binaries

RUNBOOKS: Final = DOCS / "runbooks"
RUN_HERE: Final = (
    "failover.md",
    "full-disk.md",
    "key-compromise.md",
    "lost-master-key.md",
    "stuck-purchase.md",
)
_MARKED: Final = re.compile(r"^<!-- runs -->\n```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def marked(page: str) -> list[str]:
    """The blocks of a runbook that are run here, in their order."""
    return _MARKED.findall(pages.text_of(RUNBOOKS / page))


PROGRAM: Final = """#!{python} -IS
import json, os, socket, sys
with socket.create_connection(("127.0.0.1", {port})) as line, line.makefile("rw") as told:
    told.write(json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]) + chr(10))
    told.flush()
    code, out, err = json.loads(told.readline())
sys.stdout.write(out)
sys.stderr.write(err)
sys.exit(code)
"""
"""`voucherd` in a shell: it asks the process for it that has everything loaded already."""


class _Asked(socketserver.StreamRequestHandler):
    """One command of a shell."""

    def handle(self) -> None:
        """Run it, and tell how it ended."""
        words, env, folder = json.loads(self.rfile.readline())
        code, out, err = forge().run(words, b"", env, wait_s_max=HANG_S, folder=folder)
        self.wfile.write(json.dumps([code, out.decode(), err.decode()]).encode() + b"\n")


class Shell:
    """A shell in a folder of its own, in which `voucherd` and `psql` are found."""

    def __init__(self, folder: Path, port: int, **env: str) -> None:
        folder.mkdir()
        program = folder / "voucherd"
        program.write_text(PROGRAM.format(python=sys.executable, port=port))
        program.chmod(0o755)
        self.folder = folder
        # The embedded server's psql speaks to any server that we support.
        path = f"{folder}:{os.defpath}:{binaries()}"
        self.env = clean_environment() | {"PATH": path, "PGCONNECT_TIMEOUT": "60"} | env

    def run(self, script: str) -> str:
        """What a block prints; it must succeed to its last line."""
        done = subprocess.run(
            ["/bin/bash", "-euo", "pipefail", "-c", script],
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
            env=self.env,
            cwd=self.folder,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Where shells ask for commands."""
    with socketserver.TCPServer(("127.0.0.1", 0), _Asked) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.05,))
        serving.start()
        try:
            yield int(server.server_address[1])
        finally:
            server.shutdown()
            serving.join()


@pytest.fixture
def shell(open_shop: OpenShop, port: int, tmp_path: Path) -> Shell:
    """A shell on the demo's shop."""
    company = open_shop.handout["live"]["company"]
    first = f"{datetime.now(UTC):%Y-%m-%d}"
    key_file = str(open_shop.data / "master.key")
    return Shell(
        tmp_path / "shell",
        port,
        **open_shop.env,
        **{"API": open_shop.url, "COMPANY": company, "FIRST": first, "SINCE": first},
        VOUCHERD_MASTER_KEY_FILE=key_file,
    )


def test_every_runbook_is_listed_and_has_blocks_that_are_run() -> None:
    """A new page needs a row, and at least one block that is known to work."""
    written = {page.name for page in RUNBOOKS.glob("*.md")} - {"README.md"}
    assert written == set(pages.links(RUNBOOKS / "README.md"))
    assert all(marked(page) for page in RUN_HERE)


@pytest.mark.parametrize("page", ["failover.md", "full-disk.md"])
def test_the_looks_of_a_failover_and_of_a_full_disk_work_as_printed(page: str, shell: Shell) -> None:
    """OP-128: what can be run without a cluster."""
    said = "".join(shell.run(block) for block in marked(page))
    assert "ready" in said


async def test_a_key_that_got_out_is_ended_as_printed(shell: Shell, open_shop: OpenShop) -> None:
    """OP-127: an API key, a person, the database's password, and the master key with everything that it seals."""
    async with httpx.AsyncClient(base_url=open_shop.url, timeout=HANG_S) as client:
        made = await client.post("/api/1.03/order", json=open_shop.cart(), headers=open_shop.bearer())
        await client.patch(f"/api/1.00/order/confirm/{made.json()['trx']}", headers=open_shop.bearer())
    shell.env["TRX"] = made.json()["trx"]
    shell.env["EMAIL"] = open_shop.handout["buyer"]["email"]
    added = shell.run('voucherd key add "$COMPANY" --state live --json')
    shell.env["KEY_ID"] = str(re.search(r'"id": ?(\d+)', added)[1])  # type: ignore[index]
    said = [shell.run(block) for block in marked("key-compromise.md")]
    assert "Key 2 seals everything" in said[-1]
    assert "The master key is number 2" in said[-1]


def test_a_master_key_that_was_lost_is_put_back_as_printed(shell: Shell, open_shop: OpenShop) -> None:
    """OP-127: a copy is recognised before it is used; without the key, what is not sealed can still be read."""
    key_file = open_shop.data / "master.key"
    copy = shell.folder / "copy.key"
    copy.write_bytes(key_file.read_bytes())
    copy.chmod(0o600)
    shell.env["COPY"] = str(copy)
    key_file.unlink()
    try_it, put_back, save = marked("lost-master-key.md")

    shell.run(save)

    assert (shell.folder / "lots.csv").stat().st_size > 0
    assert not key_file.exists()
    assert "seals" in shell.run(try_it)
    shell.run(put_back)
    assert key_file.read_bytes() == copy.read_bytes()


@pytest.fixture
async def market(
    pool: Pool, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Market]:
    """A shop without a worker in which Confirm does not wait."""
    stopped_clock(monkeypatch)
    async with opened_shop(pool, database_url, tmp_path, with_worker=False, confirm_wait_s=0) as shop:
        opened = Market(shop)
        yield opened
        await opened.dispatcher.stop()


async def test_a_stuck_purchase_is_settled_as_printed(
    market: Market, database_url: str, port: int, tmp_path: Path
) -> None:
    """OP-44: first as failed, and then with the codes that turned up after all; the books balance."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    company = await shop.company(balance="100.00 EUR")
    fake = await market.supplier("blind", "gift", price="8.00 EUR", looks_up=False)
    fake.deeds.append(unclear)
    order = await shop.create(company, ("gift", 1))
    await shop.confirm(company, order["trx"])
    await market.round()
    await shop.pool.execute("UPDATE attempt SET settles_at = now()")
    shell = Shell(
        tmp_path / "shell",
        port,
        VOUCHERD_DATABASE_URL=database_url,
        VOUCHERD_MASTER_KEY_FILE=str(shop.settings.master_key_file),
        PURCHASE=str(await shop.pool.fetchval("SELECT id FROM attempt WHERE status = 2")),
        YOU="Ada",
    )
    (shell.folder / "sold.csv").write_text("code,serial,expires\nRUNBOOK-1,S1,2099-12-31\n")

    said = "".join([shell.run(block) for block in marked("stuck-purchase.md")])

    assert "their list of 3 May" in said
    await shop.assert_books_balance()
