"""kill -9 of senders and receivers: every event is delivered at least once, and none is made up."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.faults.processes import Process
from tests.patience import until
from tests.shop import Shop
from tests.webhooks.postman import Postman
from voucherd.webhooks import signing

ENDPOINTS = 4
ORDERS_A_ROUND = 10
EVENTS_AN_ORDER = 5


@asynccontextmanager
async def process(log: Path, *command: str) -> AsyncIterator[Process]:
    """A running process that the test may kill; gone afterwards."""
    running = Process(("-m", *command), dict(os.environ), log)
    await running.start()
    try:
        yield running
    finally:
        await running.kill()


async def _happen(shop: Shop, company_id: int, first_order: int) -> None:
    """Orders whose events come in one after another."""
    for seq in range(1, EVENTS_AN_ORDER + 1):
        await shop.pool.execute(
            """
            INSERT INTO event (at, company_id, state, type, order_id, seq)
            SELECT now(), $1, 0, 'order.finished', 2 * ($2::int + at), $3 FROM generate_series(0, $4::int - 1) at
            """,
            company_id,
            first_order,
            seq,
            ORDERS_A_ROUND,
        )


async def _hurry(shop: Shop) -> None:
    """Let time pass for what waits for its next attempt, without touching what somebody holds."""
    # Rows that a sender is writing are left out: waiting for them might be waiting in a circle. Tries are taken back,
    # because ten of them, which last three days otherwise, are soon over where time flies and receivers are down.
    await shop.pool.execute(
        """
        UPDATE webhook_delivery d SET next_at = now(), tries = 0
        FROM (SELECT webhook_id, event_id FROM webhook_delivery WHERE status = 0 FOR UPDATE SKIP LOCKED) w
        WHERE d.webhook_id = w.webhook_id AND d.event_id = w.event_id
        """
    )
    await shop.pool.execute(
        """
        UPDATE webhook_queue SET next_at = now() WHERE webhook_id IN (
            SELECT webhook_id FROM webhook_queue q WHERE NOT leased AND EXISTS (
                SELECT FROM webhook_delivery d WHERE d.webhook_id = q.webhook_id AND d.status = 0)
            FOR UPDATE SKIP LOCKED)
        """
    )


@pytest.mark.parametrize("kills", [5, pytest.param(500, marks=pytest.mark.soak)])
async def test_no_kill_loses_an_event(
    shop: Shop, postman: Postman, database_url: str, tmp_path: Path, kills: int
) -> None:
    """OP-54: senders and receivers die at any moment; what was told is genuine, whole, and can be put in order."""
    company = await shop.company()
    chance = random.Random(kills)
    inbox, log = tmp_path / "inbox", tmp_path / "log"
    key_file = str(shop.settings.master_key_file)
    orders = 0
    async with (
        process(log, "tests.webhooks.mailbox", "0", str(inbox)) as mailbox,
        process(log, "tests.webhooks.courier", database_url, key_file) as one,
        process(log, "tests.webhooks.courier", database_url, key_file) as other,
    ):
        port = int(mailbox.line)
        ends = [await postman.endpoint(company, f"http://127.0.0.1:{port}/{at}") for at in range(ENDPOINTS)]
        mailbox._command = ("-m", "tests.webhooks.mailbox", str(port), str(inbox))
        killed = 0
        while killed < kills:
            await _happen(shop, company.id, orders)
            orders += ORDERS_A_ROUND
            await asyncio.sleep(chance.uniform(0.0, 0.3))
            victims = chance.sample((mailbox, one, other), chance.randint(1, 3))
            await asyncio.gather(*(victim.kill() for victim in victims))
            await asyncio.gather(*(victim.start() for victim in victims))
            killed += len(victims)
            await _hurry(shop)
        expected = orders * EVENTS_AN_ORDER * ENDPOINTS

        async def all_arrived() -> bool:
            await _hurry(shop)
            told = await shop.pool.fetchval("SELECT count(*) FROM webhook_delivery WHERE status = 1")
            return int(told) >= expected

        try:
            await until(all_arrived, "not everything arrives")
        except AssertionError:
            left = await shop.pool.fetch(
                "SELECT status, attempts, count(*) FROM webhook_delivery GROUP BY status, attempts ORDER BY 1, 2"
            )
            queues = await shop.pool.fetch("SELECT *, now() FROM webhook_queue")
            raise AssertionError(f"{expected} expected; {left}; {queues}") from None

    seen: dict[str, dict[str, set[int]]] = {}
    for line in inbox.read_bytes().splitlines():
        path, message_id, timestamp, signature, body = line.split(b"\t", 4)
        secret = postman.secrets[ends[int(path[1:])].id]
        signing.verify(
            secret, message_id.decode(), timestamp.decode(), signature.decode(), body, now_s=int(timestamp)
        )
        message = json.loads(body)
        assert message["id"] == message_id.decode()
        data = message["data"]
        seen.setdefault(path.decode(), {}).setdefault(data["trx"], set()).add(data["seq"])
    assert len(seen) == ENDPOINTS
    for by_order in seen.values():
        assert len(by_order) == orders
        assert all(told == set(range(1, EVENTS_AN_ORDER + 1)) for told in by_order.values())
    assert await shop.pool.fetchval("SELECT count(*) FROM webhook_delivery") == expected
