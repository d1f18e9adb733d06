"""The database of a release as one SQL file: `python -m tests.release.dump` makes it, tests load it."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import asyncpg

from tests.release.fill import Filled, filled
from voucherd.db import open_pool
from voucherd.embedded import binaries, throwaway
from voucherd.migrate import migrate
from voucherd.vault.master_key import write_master

FOLDER: Final = Path(__file__).parent
MASTER: Final = bytes(range(32))
"""The master key of every dump; it opens nothing else."""
SCHEMA: Final = "voucherd_release"
"""A name that occurs nowhere in the data, so that a load can put another one in its place."""
DUMP_S_MAX: Final = 60.0
# The headings of pg_dump, and settings and commands of psql that an older server or another client does not know.
_NOISE: Final = re.compile(
    r"^(?:--\n(?:-- .*\n)+--\n\n|SET transaction_timeout .*\n|\\.*\n|-- Dumped .*\n|CREATE SCHEMA .*\n)",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Release:
    """A dump, and what its makers were told: the keys of its company, its orders and their codes."""

    version: str
    sql: str
    company_id: int
    company: str
    keys: dict[str, str]
    """State (live, sandbox) to the text of the key."""
    orders: dict[str, str]
    codes: dict[str, list[str]]

    @property
    def last_migration(self) -> int:
        """The number of the last migration that ran in it."""
        rows = self.sql.partition(f"INSERT INTO {SCHEMA}.schema_migration VALUES\n")[2].partition(";\n")[0]
        return max(int(number) for number in re.findall(r"^\t\((\d+), '", rows, re.MULTILINE))


def releases() -> list[Release]:
    """Every release of which a dump is kept, the oldest first."""
    return [read(file) for file in sorted(FOLDER.glob("v*.sql"))]


def read(file: Path) -> Release:
    """The dump in this file."""
    text = file.read_text(encoding="utf-8")
    facts: dict[str, Any] = json.loads(text.partition("\n")[0].removeprefix("-- "))
    return Release(sql=text, **facts)


async def load(url: str, release: Release, schema: str) -> None:
    """Put the dump into this schema, which has nothing in it."""
    connection = await asyncpg.connect(url, server_settings={"client_min_messages": "warning"})
    try:
        if await connection.fetchval("SELECT to_regrole('voucherd_tenant') IS NULL"):
            await connection.execute("CREATE ROLE voucherd_tenant NOLOGIN")
        await connection.execute(release.sql.replace(SCHEMA, schema))
    finally:
        await connection.close()


def dump(url: str, done: Filled) -> str:
    """The whole schema with its rows, and the facts in a first line."""
    command = [
        str(binaries() / "pg_dump"),
        "--no-owner",
        "--no-privileges",
        "--inserts",
        "--rows-per-insert=100",
    ]
    # Numbers of requests that were lent are of no use to anybody later.
    command += [
        f"--schema={SCHEMA}",
        f"--exclude-table-data={SCHEMA}.rate_window",
        url.partition("&search_path")[0],
    ]
    told = subprocess.run(command, check=True, capture_output=True, text=True, timeout=DUMP_S_MAX)
    facts = {
        "version": version("voucherd"),
        "company_id": done.company.id,
        "company": done.company.name,
        "keys": {state.name.lower(): text for state, text in done.company.keys.items()},
        "orders": done.orders,
        "codes": done.codes,
    }
    # Workers are named for the machine on which the dump happens to be made.
    body = _NOISE.sub("", told.stdout).replace(f"'{socket.gethostname()}/", "'worker/")
    return f"-- {json.dumps(facts)}\n{body}"


async def kinds(url: str) -> dict[str, int]:
    """How many orders, purchases, approvals and deliveries there are of every status."""
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch(
            "SELECT concat_ws(' ', 'order', CASE id & 1 WHEN 0 THEN 'live' ELSE 'sandbox' END, 'status', status,"
            " 'payment', payment_status) FROM orders"
            " UNION ALL SELECT concat_ws(' ', 'attempt', status) FROM attempt"
            " UNION ALL SELECT concat_ws(' ', 'approval', kind, status) FROM approval"
            " UNION ALL SELECT concat_ws(' ', 'delivery', status) FROM webhook_delivery"
            " UNION ALL SELECT concat_ws(' ', 'entry', kind) FROM entry"
            " UNION ALL SELECT concat_ws(' ', 'block of', book) FROM trail_seal"
        )
    finally:
        await connection.close()
    return dict(sorted(Counter(row[0] for row in rows).items()))


async def make() -> None:
    """Write the dump of this version."""
    with throwaway() as server, tempfile.TemporaryDirectory() as folder:
        connection = await asyncpg.connect(server)
        await connection.execute(f"CREATE SCHEMA {SCHEMA}")
        await connection.close()
        url = f"{server}&search_path={SCHEMA}"
        await migrate(url)
        write_master(Path(folder) / "master.key", MASTER)
        pool = await open_pool(url)
        async with filled(pool, url, Path(folder)) as done:
            await done.shop.assert_books_balance()
            text = await asyncio.to_thread(dump, url, done)
            (FOLDER / f"v{version('voucherd')}.sql").write_text(text, encoding="utf-8")
        await pool.close()


if __name__ == "__main__":
    asyncio.run(make())
