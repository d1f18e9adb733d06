"""The server on a real socket: what HTTP allows a client to do, and what it must not be able to break."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.patience import HANG_S
from tests.shop import Company, Shop, open_shop
from voucherd import app
from voucherd.api.outcomes import SECONDS_MAX
from voucherd.db import Pool
from voucherd.ids import State
from voucherd.server import bounds
from voucherd.settings import Settings


class Counter:
    """A shop whose service also listens on a socket."""

    def __init__(self, shop: Shop, port: int) -> None:
        self.shop = shop
        self.port = port

    async def say(self, *pieces: bytes, until_closed: bool = False) -> bytes:
        """Send pieces one after another on a new connection; what came back."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            async with asyncio.timeout(HANG_S):
                return await reader.read() if until_closed else await _answer(reader, pieces[0])
        finally:
            writer.close()


async def _answer(reader: asyncio.StreamReader, request: bytes) -> bytes:
    """One whole answer, however many pieces it comes in."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"\r\ncontent-length: (\d+)", head)
    if length is None or request.startswith(b"HEAD "):
        return head
    return head + await reader.readexactly(int(length[1]))


@pytest.fixture
async def counter(
    pool: Pool, database_url: str, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Counter]:
    """A listening service, whose Confirm waits for a second or as long as the test says."""
    wait_s = getattr(request, "param", 1)
    async with open_shop(pool, database_url, tmp_path) as shop:
        ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        settings = Settings.load(
            {"data": tmp_path, "port": 0, "body_bytes_max": 2048, "confirm_wait_s": wait_s}, {}
        )
        serving = asyncio.create_task(
            app.serve(settings, database_url, with_worker=False, on_ready=ready.set_result)
        )
        address = await asyncio.wait_for(ready, HANG_S)
        yield Counter(shop, int(address.rpartition(":")[2]))
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


def _request(company: Company, method: str, path: str, body: bytes = b"", *more: bytes) -> bytes:
    lines = [
        f"{method} {path} HTTP/1.1".encode(),
        b"host: shop",
        b"authorization: " + company.bearer()["authorization"].encode(),
        *more,
    ]
    if body and not any(line.startswith(b"transfer-encoding") for line in more):
        lines += [b"content-type: application/json", b"content-length: %d" % len(body)]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


ORDER = json.dumps({"items": [{"productSlug": "gift-10", "amount": 1}], "paymentCurrency": "EUR"}).encode()


async def _company(counter: Counter) -> Company:
    await counter.shop.product("gift-10", stock=5)
    return await counter.shop.company()


async def test_a_call_that_arrives_byte_by_byte_is_answered_like_any_other(counter: Counter) -> None:
    """Contract 4: Create, over a connection that is cut into the smallest pieces."""
    company = await _company(counter)
    raw = _request(company, "POST", "/api/1.03/order", ORDER)

    answer = await counter.say(*[raw[at : at + 40] for at in range(0, len(raw), 40)])

    assert answer.startswith(b"HTTP/1.1 201 Created\r\n")
    assert b"\r\nx-request-id: req_" in answer
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["orderStatus"] == "created"
    await counter.shop.assert_books_balance()


async def test_a_chunked_body_is_read_to_its_end(counter: Counter) -> None:
    """Contract 4: a body without a length is a body all the same."""
    company = await _company(counter)
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (ORDER[:10], ORDER[10:])) + b"0\r\n\r\n"
    raw = _request(company, "POST", "/api/1.03/order", b"", b"transfer-encoding: chunked")

    answer = await counter.say(raw + chunks)

    assert answer.startswith(b"HTTP/1.1 201 Created\r\n")
    await counter.shop.assert_books_balance()


async def test_pipelined_calls_are_answered_in_their_order(counter: Counter) -> None:
    """HTTP/1.1: calls sent without waiting for the answers get them one after another."""
    company = await _company(counter)
    order = await counter.shop.create(company, ("gift-10", 1))
    find = _request(company, "GET", f"/api/1.03/order/{order['trx']}")
    unknown = _request(company, "GET", "/api/1.03/order/TRXNONE", b"", b"connection: close")

    answer = await counter.say(find + find + unknown, until_closed=True)

    statuses = [line for line in answer.split(b"\r\n") if b"HTTP/1.1 " in line]
    assert [status.rpartition(b"HTTP/1.1 ")[2] for status in statuses] == [
        b"200 OK",
        b"200 OK",
        b"404 Not Found",
    ]
    await counter.shop.assert_books_balance()


async def test_a_connection_is_kept_or_closed_as_the_client_asks(counter: Counter) -> None:
    """HTTP/1.1: kept by default, closed with `connection: close`, closed after HTTP/1.0."""
    company = await _company(counter)
    path = "/api/1.03/order/TRXNONE"

    closed = await counter.say(_request(company, "GET", path, b"", b"connection: close"), until_closed=True)
    old = await counter.say(
        _request(company, "GET", path).replace(b"HTTP/1.1", b"HTTP/1.0"), until_closed=True
    )

    assert closed.startswith(b"HTTP/1.1 404 ")
    assert b"connection: close" in closed
    assert old.startswith(b"HTTP/1.1 404 ")


@pytest.mark.parametrize("known_length", [True, False])
async def test_a_body_that_is_too_large_is_refused_and_changes_nothing(
    counter: Counter, *, known_length: bool
) -> None:
    """OP-14, OP-25: over the limit it is 413, whether the length was said beforehand or not."""
    company = await _company(counter)
    before = await _quiet(counter.shop)
    large = b'{"items":[],"paymentCurrency":"EUR","reference":"' + b"x" * 4096 + b'"}'
    raw = _request(company, "POST", "/api/1.03/order", large)
    if not known_length:
        chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (len(large), large)
        raw = _request(company, "POST", "/api/1.03/order", b"", b"transfer-encoding: chunked") + chunks

    answer = await counter.say(raw)

    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"the body must be at most 2048 bytes" in answer
    assert await _quiet(counter.shop) == before


async def _quiet(shop: Shop) -> dict[str, list[tuple[Any, ...]]]:
    """All rows but those of the worker, who announces the new stock when he gets to it."""
    rows = await shop.snapshot()
    return rows | {"event": [event for event in rows["event"] if "product.updated" not in event]}


@pytest.mark.parametrize(
    "raw",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
        b"GET /api/1.03/order HTTP/1.1\r\nhost shop\r\n\r\n",
        b"POST /api/1.03/order HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        b"POST /api/1.03/order HTTP/1.1\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /api/1.03/order HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"BREW /api/1.03/order HTTP/1.1\r\n\r\n",
    ],
)
async def test_what_is_not_http_gets_a_400_and_a_closed_connection(counter: Counter, raw: bytes) -> None:
    """OP-25: never a 5xx for anything a client can send."""
    answer = await counter.say(raw, until_closed=True)

    assert answer.startswith(b"HTTP/1.1 400 ")


async def test_the_server_looks_at_connections_that_keep_it_waiting(
    counter: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-25: many slow heads at once are told so in time, and a call beside them is served meanwhile."""
    monkeypatch.setattr(bounds, "HEAD_S_MAX", HANG_S)
    company = await _company(counter)
    slow = [await asyncio.open_connection("127.0.0.1", counter.port) for _ in range(100)]
    for _, writer in slow:
        writer.write(b"GET /api/1.03/order HTTP/1.1\r\nhost: sh")
        await writer.drain()

    served = await counter.say(_request(company, "GET", "/api/1.03/order"))
    monkeypatch.setattr(bounds, "HEAD_S_MAX", 0.5)

    assert served.startswith(b"HTTP/1.1 200 ")
    assert {(await reader.read()).partition(b" Request")[0] for reader, _ in slow} == {b"HTTP/1.1 408"}
    for _, writer in slow:
        writer.close()


async def test_odd_paths_and_methods_are_refused_plainly(counter: Counter) -> None:
    """OP-04, OP-25: an escaped path is the same path; unknown ones are 404, wrong methods 405."""
    company = await _company(counter)
    order = await counter.shop.create(company, ("gift-10", 1))

    escaped = await counter.say(_request(company, "GET", f"/api/1.03/%6frder/{order['trx']}"))
    broken = await counter.say(_request(company, "GET", "/api/1.03/order/%ff%00"))
    deep = await counter.say(_request(company, "GET", "/api/1.03/order" + "/x" * 50))
    put = await counter.say(_request(company, "PUT", "/api/1.03/order", b"{}"))

    assert escaped.startswith(b"HTTP/1.1 200 ")
    assert broken.startswith(b"HTTP/1.1 404 ")
    assert deep.startswith(b"HTTP/1.1 404 ")
    assert put.startswith(b"HTTP/1.1 405 ")
    assert b"\r\nallow: GET, POST\r\n" in put


async def test_head_and_expect_work_as_http_says(counter: Counter) -> None:
    """HTTP/1.1: HEAD has no body; `Expect: 100-continue` is told to go on."""
    company = await _company(counter)
    raw = _request(company, "POST", "/api/1.03/order", ORDER, b"expect: 100-continue")
    head, _, body = raw.partition(b"\r\n\r\n")

    continued = await counter.say(head + b"\r\n\r\n")
    both = await counter.say(head + b"\r\n\r\n", body, b"")
    bare = await counter.say(_request(company, "HEAD", "/api/1.03/order/TRXNONE"))

    assert continued.startswith(b"HTTP/1.1 100 Continue\r\n")
    assert both.startswith(b"HTTP/1.1 100 Continue\r\n")
    assert bare.startswith(b"HTTP/1.1 404 ")
    assert bare.endswith(b"\r\n\r\n")


async def test_a_client_that_leaves_while_its_order_is_slow_breaks_nothing(counter: Counter) -> None:
    """Contract 3: delivery goes on in the background, whoever waits for it or does not."""
    shop = counter.shop
    company = await _company(counter)
    order = await shop.create(company, ("gift-10", 1), state=State.SANDBOX)
    reader, writer = await asyncio.open_connection("127.0.0.1", counter.port)
    raw = _request(
        company, "PATCH", f"/api/1.03/order/confirm/{order['trx']}", b"", b"x-sandbox-outcome: slow:2"
    )
    writer.write(raw.replace(company.keys[State.LIVE].encode(), company.keys[State.SANDBOX].encode()))
    await writer.drain()
    await shop.until_status(company, order["trx"], "pending", state=State.SANDBOX)
    writer.close()
    await writer.wait_closed()
    del reader

    await shop.until_status(company, order["trx"], "finished", state=State.SANDBOX)
    await shop.assert_books_balance()


@pytest.mark.parametrize(
    ("counter", "seconds", "status"),
    [(HANG_S, 0, "finished"), (1, SECONDS_MAX, "pending")],
    indirect=["counter"],
)
async def test_a_slow_order_is_waited_for_on_the_socket_too(
    counter: Counter, seconds: int, status: str
) -> None:
    """Contract 3, 8: Confirm waits for a slow order, and answers `pending` when its time is up."""
    shop = counter.shop
    company = await _company(counter)
    order = await shop.create(company, ("gift-10", 1), state=State.SANDBOX)
    outcome = b"x-sandbox-outcome: slow:%d" % seconds
    raw = _request(company, "PATCH", f"/api/1.03/order/confirm/{order['trx']}", b"", outcome)

    answer = await counter.say(
        raw.replace(company.keys[State.LIVE].encode(), company.keys[State.SANDBOX].encode())
    )

    assert answer.startswith(b"HTTP/1.1 200 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["orderStatus"] == status
    await shop.assert_books_balance()


async def test_a_large_order_is_streamed_in_chunks(counter: Counter) -> None:
    """Contract 4: an order of many lines arrives whole."""
    shop = counter.shop
    company = await shop.company(balance="100000.00 EUR")
    await shop.product("gift-10", stock=1200)
    order = await shop.create(company, ("gift-10", 1200))

    answer = await counter.say(
        _request(company, "PATCH", f"/api/1.03/order/confirm/{order['trx']}", b"", b"connection: close"),
        until_closed=True,
    )

    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"transfer-encoding: chunked" in head
    lines = json.loads(_unchunked(body))["items"][0]["orderLines"]
    assert len({line["voucherCode"] for line in lines}) == 1200
    await shop.assert_books_balance()


def _unchunked(body: bytes) -> bytes:
    whole = b""
    while body:
        size, _, rest = body.partition(b"\r\n")
        whole += rest[: int(size, 16)]
        body = rest[int(size, 16) + 2 :]
    return whole
