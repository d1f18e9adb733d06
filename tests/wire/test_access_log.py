"""The access log: what it says of a call, what it never says, and that no call waits for it."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.patience import HANG_S, wait_until
from tests.shop import open_shop
from voucherd.db import Pool
from voucherd.http import Request, Response
from voucherd.server.access_log import ONE_IN, WAITING_MAX, AccessLog

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


class Known:
    """A key that is known."""

    key_id = 7
    company_id = 3


def call(**more: Any) -> Request:
    """A call as the log sees it."""
    return Request("GET", "/api/1.03/order/secret", b"secret=1", {}, b"secret", "", "req_1", **more)


def written(log: AccessLog, lines: list[bytes]) -> list[dict[str, Any]]:
    """All lines, once the log was told to end."""
    log.start()
    log.stop()
    return [json.loads(line) for line in b"".join(lines).splitlines()]


async def test_a_full_log_has_a_line_for_every_call_and_no_secret(
    pool: Pool, database_url: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """OP-124: the route and not the path, the number of the key and not the key, and the calls of the batch."""
    async with open_shop(pool, database_url, tmp_path, with_worker=False, access_log="full") as shop:
        company = await shop.company()
        await shop.product("gift-10", stock=2)
        capfd.readouterr()
        order = await shop.create(company, ("gift-10", 1))
        trace = {"x-request-id": "mine-1", "traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
        path = f"/api/1.03/order/confirm/{order['trx']}"
        confirmed = await shop.call("PATCH", path, company, headers=trace)
        await shop.call("GET", "/api/1.02/order?reference=CANARY", company)
        await shop.client.get("/api/1.03/nowhere/CANARY", headers={"authorization": "Bearer CANARY"})
        await shop.client.request("CANARY", "/healthz")
        await shop.assert_books_balance()
    text = capfd.readouterr().err
    lines = [json.loads(line) for line in text.splitlines() if '"event":"request"' in line]

    create, confirm, found, nowhere, odd = lines
    assert (found["route"], found["status"]) == ("/api/1.02/order", 200)
    assert (create["method"], create["route"], create["status"]) == ("POST", "/api/1.03/order", 201)
    assert create["request_id"].startswith("req_")
    key_id = await pool.fetchval("SELECT min(id) FROM api_key WHERE company_id = $1", company.id)
    assert confirm["at"].endswith("Z")
    assert confirm.pop("ms") > 0
    del confirm["at"]
    assert confirm == {
        "event": "request",
        "level": "info",
        "request_id": "mine-1",
        "trace_id": TRACE,
        "method": "PATCH",
        "route": "/api/1.03/order/confirm/{trx}",
        "status": 200,
        "key_id": key_id,
        "company_id": company.id,
        "bytes": len(confirmed.content),
        "batch": 1,
    }
    assert (nowhere["status"], "route" in nowhere, "key_id" in nowhere) == (404, False, False)
    assert (odd["method"], odd["route"]) == ("other", "/healthz")
    (code,) = [line["voucherCode"] for item in confirmed.json()["items"] for line in item["orderLines"]]
    for secret in ("CANARY", order["trx"], code, *company.keys.values()):
        assert secret not in text


def test_a_sample_has_what_somebody_will_ask_about() -> None:
    """OP-124: failures, refusals of known keys, slow calls, and one of a hundred others; not strangers' refusals."""
    lines: list[bytes] = []
    log = AccessLog(full=False, write=lines.append)
    known = call(caller=Known())
    log.note(call(), Response(503), 0.001)
    log.note(known, Response(402), 0.001)
    log.note(known, Response(200), 5.0)
    for _ in range(2 * ONE_IN):
        log.note(call(), Response(404), 0.001)
    assert [line["status"] for line in written(log, lines)] == [503, 402, 200, 404, 404]


def test_a_reader_that_hangs_stops_no_call_and_what_is_lost_is_counted() -> None:
    """OP-124: the queue is bounded; a call only ever appends to it."""
    hangs, free = threading.Event(), threading.Event()

    def write(_chunk: bytes) -> None:
        hangs.set()
        free.wait(HANG_S)

    log = AccessLog(full=True, write=write)
    log.note(call(), Response(200), 0.001)
    log.start()
    assert hangs.wait(HANG_S)
    for _ in range(WAITING_MAX + 5):
        log.note(call(), Response(200), 0.001)
    assert log.dropped == 5
    free.set()
    log.stop()
    wait_until(lambda: not log._waiting)


def test_a_log_that_can_not_be_written_is_counted_and_goes_on() -> None:
    """OP-124: a full disk, or a pipe that nobody reads any more."""
    lines: list[bytes] = []

    def write(chunk: bytes) -> None:
        if not lines:
            lines.append(b"")
            raise BrokenPipeError
        lines.append(chunk)

    log = AccessLog(full=True, write=write)
    for _ in range(100):
        log.note(call(), Response(200), 0.001)
    found = written(log, lines)
    assert log.dropped > 0
    assert len(found) + log.dropped == 100
    assert all(len(chunk) <= 4096 for chunk in lines)


def test_an_id_that_looks_like_a_secret_is_hidden() -> None:
    """OP-124: a client that sends its key as the id of its request finds it in no log."""
    lines: list[bytes] = []
    log = AccessLog(full=True, write=lines.append)
    request = Request("GET", "/", b"", {}, b"", "", "vk_live_CANARYCANARY")
    log.note(request, Response(200), 0.001)
    (line,) = written(log, lines)
    assert "CANARY" not in line["request_id"]
