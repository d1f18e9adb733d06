"""Whatever is sent to it, a server answers in HTTP, never with its own failure, and goes on selling."""

from __future__ import annotations

import asyncio
import re
import socket
from collections import Counter
from pathlib import Path

import httpx
import pytest

from tests.faults.malformed import Forge, Nonsense
from tests.faults.processes import REAL_SERVER, Server, environment, running
from tests.faults.test_kill import shop_of
from tests.patience import HANG_S
from tests.shop import Company, Shop
from voucherd.db import Pool
from voucherd.ids import State

SEED = 20_260
CLIENTS = 48
ANSWER_S_MAX = 0.3
"""Much of what is sent is no whole request, and nobody answers it until its sender stops."""

CLOSED_S_MAX = HANG_S
GROWTH_KIB_MAX = 60_000
MILLION_S_MAX = 21_600
"""Many senders wait for an answer that does not come; this only ends a run that hangs."""

_HEADS = re.compile(rb"HTTP/1\.1 (\d{3}) [^\r\n]*\r\n((?:[^\r\n]+\r\n)*)\r\n")


class Storm:
    """Many clients who send nonsense, and what they heard."""

    def __init__(self, port: int, forge: Forge, count: int) -> None:
        self._port = port
        self._forge = forge
        self._left = count
        self.statuses: Counter[int | str] = Counter()
        self.failures: list[tuple[Nonsense, bytes]] = []

    async def rage(self) -> None:
        """Send all of it."""
        await asyncio.gather(*[self._client(f"127.0.0.{2 + at}") for at in range(CLIENTS)])

    async def _client(self, address: str) -> None:
        while self._left > 0:
            self._left -= 1
            nonsense = self._forge.next()
            try:
                heard = await self._say(nonsense, address)
            except (OSError, TimeoutError):
                self.statuses["cut off"] += 1
                continue
            self._note(nonsense, heard)

    async def _say(self, nonsense: Nonsense, address: str) -> bytes:
        """What comes back, until the server closes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, local_addr=(address, 0))
        # The port can be used again at once.
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        heard = b""
        try:
            for piece in nonsense.pieces:
                writer.write(piece)
                await asyncio.sleep(0)
            if nonsense.hangs_up:
                return b""
            try:
                async with asyncio.timeout(ANSWER_S_MAX):
                    heard = await reader.read(65_536)
            except TimeoutError:
                pass
            writer.write_eof()
            async with asyncio.timeout(CLOSED_S_MAX):
                return heard + await reader.read()
        except OSError:
            # It was refused while it still sent.
            return heard
        finally:
            writer.close()

    def _note(self, nonsense: Nonsense, heard: bytes) -> None:
        found = _HEADS.findall(heard)
        if not found:
            self.statuses["nothing"] += 1
        for status, fields in found:
            self.statuses[int(status)] += 1
            if int(status) >= 500 or (status != b"100" and b"x-request-id: " not in fields):
                self.failures.append((nonsense, heard[:500]))


def memory_kib(server: Server) -> int:
    """What the process has in memory."""
    assert server._process is not None
    text = Path(f"/proc/{server._process.pid}/status").read_text(encoding="ascii")
    return int(re.findall(r"VmRSS:\s+(\d+) kB", text)[0])


async def sells(shop: Shop, server: Server, company: Company) -> None:
    """Somebody who behaves is served."""
    async with httpx.AsyncClient(base_url=server.url, headers=company.bearer(), timeout=HANG_S) as client:
        body = {"items": [{"productSlug": "now", "amount": 1}], "paymentCurrency": "EUR"}
        created = await client.post("/api/1.03/order", json=body)
        assert created.status_code == 201, created.text
        confirmed = await client.patch(f"/api/1.03/order/confirm/{created.json()['trx']}")
        assert confirmed.json()["orderStatus"] == "finished"
    await shop.assert_books_balance()


async def rage_at(pool: Pool, database_url: str, folder: Path, count: int) -> None:
    """So much nonsense against a server of its own."""
    settings = {"strangers_per_minute_max": 1_000_000_000, "confirm_wait_s": 0.5}
    server = Server(REAL_SERVER, environment(database_url, folder, **settings), folder / "server.log")
    async with shop_of(pool, folder) as shop, running(server):
        company = await shop.company(balance="100000.00 EUR")
        await shop.product("now", stock=2_000)
        await sells(shop, server, company)
        trx = await _order(server, company)
        port = int(server.url.rpartition(":")[2])
        warm = Storm(port, Forge(SEED - 1, company.keys[State.LIVE], trx), min(count // 10, 2_000))
        await warm.rage()
        before_kib = memory_kib(server)
        storm = Storm(port, Forge(SEED, company.keys[State.LIVE], trx), count)
        await storm.rage()
        after_kib = memory_kib(server)
        print(f"{count}: {before_kib} to {after_kib} KiB; {dict(storm.statuses)}")  # noqa: T201
        assert not storm.failures, storm.failures[:3]
        assert sum(storm.statuses.values()) >= count * 0.9
        assert storm.statuses[400] > count * 0.2
        assert after_kib - before_kib < GROWTH_KIB_MAX
        log = (folder / "server.log").read_text(encoding="utf-8")
        _, traceback, said = log.partition("Traceback")
        assert not traceback, said[:3_000]
        await sells(shop, server, company)


async def _order(server: Server, company: Company) -> str:
    async with httpx.AsyncClient(base_url=server.url, headers=company.bearer(), timeout=HANG_S) as client:
        body = {"items": [{"productSlug": "now", "amount": 1}], "paymentCurrency": "EUR"}
        return str((await client.post("/api/1.03/order", json=body)).json()["trx"])


def test_the_same_seed_makes_the_same_nonsense() -> None:
    """OP-25: what was found once can be sent again."""
    first, second = (Forge(1, "vk_live_x", "TRX0") for _ in range(2))
    assert [first.next() for _ in range(500)] == [second.next() for _ in range(500)]


async def test_two_thousand_malformed_requests_break_nothing(
    pool: Pool, database_url: str, tmp_path: Path
) -> None:
    """OP-25, OP-26: no 5xx, an id on every answer, no growth, and the server still sells."""
    await rage_at(pool, database_url, tmp_path, 2_000)


@pytest.mark.soak
@pytest.mark.timeout(MILLION_S_MAX)
async def test_a_million_malformed_requests_break_nothing(
    pool: Pool, database_url: str, tmp_path: Path
) -> None:
    """OP-25, OP-26: the same for longer."""
    await rage_at(pool, database_url, tmp_path, 1_000_000)
