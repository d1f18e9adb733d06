"""The same answers over a real socket: the short way from the parser, and the long way through ASGI."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx
import pytest
import uvicorn
from uvicorn.server import ServerState

from tests.patience import HANG_S, until_true
from tests.shop import Company, Shop
from voucherd.server.protocol import ApiProtocol

TRX = "TRX" + "0" * 26


@dataclass
class Reply:
    """One HTTP/1.1 response, read off the wire."""

    status: int
    headers: dict[str, str]
    body: bytes


class Line:
    """A connection on which a test writes exactly the bytes it wants."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, heard: dict[int, int]
    ) -> None:
        self.reader = reader
        self.writer = writer
        self._heard = heard
        self._port = writer.get_extra_info("sockname")[1]
        self._sent = 0

    def send(self, text: str | bytes) -> None:
        """Write bytes."""
        sent = text if isinstance(text, bytes) else text.encode()
        self._sent += len(sent)
        self.writer.write(sent)

    async def arrived(self) -> None:
        """Returns once the server has got all that was sent."""
        await self.writer.drain()
        await until_true(lambda: self._heard.get(self._port, -1) >= self._sent)

    async def reply(self, *, with_body: bool = True) -> Reply:
        """Read one response."""
        head = (await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), HANG_S)).decode("latin-1")
        first, *rest = head.split("\r\n")[:-2]
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in rest)}
        status = int(first.split()[1])
        if not with_body or status in (100, 204):
            return Reply(status, headers, b"")
        if headers.get("transfer-encoding") == "chunked":
            parts = []
            while size := int(await self.reader.readline(), 16):
                parts.append(await self.reader.readexactly(size))
                await self.reader.readexactly(2)
            await self.reader.readline()
            return Reply(status, headers, b"".join(parts))
        return Reply(status, headers, await self.reader.readexactly(int(headers["content-length"])))

    async def is_closed(self) -> bool:
        """Whether the server hung up."""
        return await asyncio.wait_for(self.reader.read(1), HANG_S) == b""


class Street:
    """A shop that listens on a port."""

    def __init__(self, port: int, state: ServerState, heard: dict[int, int]) -> None:
        self.port = port
        self.state = state
        self._heard = heard

    @asynccontextmanager
    async def line(self) -> AsyncIterator[Line]:
        """A new connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=64 * 1024 * 1024)
        try:
            yield Line(reader, writer, self._heard)
        finally:
            writer.close()


class Counted(ApiProtocol):
    """The shop's own protocol, which counts what it gets, by the client's port."""

    heard: dict[int, int]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """As the protocol's."""
        self._peer = transport.get_extra_info("peername")[1]
        self.heard[self._peer] = 0
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """As the protocol's."""
        super().data_received(data)
        self.heard[self._peer] += len(data)


@asynccontextmanager
async def listening(shop: Shop) -> AsyncIterator[Street]:
    """The shop's own protocol on a free port."""
    config = uvicorn.Config(
        shop.app, http=ApiProtocol, loop="none", lifespan="off", log_config=None, access_log=False
    )
    config.load()
    state, heard = ServerState(), dict[int, int]()

    def opened() -> Counted:
        made = Counted(config=config, server_state=state, app_state={})
        made.heard = heard
        return made

    server = await asyncio.get_running_loop().create_server(opened, "127.0.0.1", 0)
    try:
        yield Street(server.sockets[0].getsockname()[1], state, heard)
    finally:
        server.close()
        # One that reads no more, because nobody took its answers, would not even hear that its client has left.
        for connection in list(state.connections):
            connection.transport.abort()
        await until_true(lambda: not state.connections)
        await server.wait_closed()


@pytest.fixture
async def street(shop: Shop) -> AsyncIterator[Street]:
    """The shop on a free port."""
    async with listening(shop) as opened:
        yield opened


def head(method: str, path: str, company: Company | None = None, *more: str, version: str = "1.1") -> str:
    """A request's head."""
    lines = [f"{method} {path} HTTP/{version}", "Host: shop"]
    if company is not None:
        lines.append(f"Authorization: {company.bearer()['authorization']}")
    return "\r\n".join([*lines, *more]) + "\r\n\r\n"


def posting(company: Company, body: bytes, *more: str) -> bytes:
    """A whole Create request."""
    length = f"Content-Length: {len(body)}"
    return (
        head("POST", "/api/1.03/order", company, length, "Content-Type: application/json", *more).encode()
        + body
    )


CART = b'{"items":[{"productSlug":"gift-10","amount":1}],"paymentCurrency":"EUR"}'


async def test_a_whole_life_on_one_connection(shop: Shop, street: Street) -> None:
    """Contract 4: create, confirm, find, cancel; kept alive, with the headers that every answer has."""
    company = await shop.company()
    await shop.product("gift-10", stock=5)
    async with street.line() as line:
        line.send(posting(company, CART))
        created = await line.reply()
        assert created.status == 201
        trx = json.loads(created.body)["trx"]
        assert created.headers["location"] == f"/api/1.03/order/{trx}"
        assert created.headers["content-type"] == "application/json"
        assert created.headers["cache-control"] == "no-store"
        assert re.fullmatch("req_[0-9a-f]+", created.headers["x-request-id"])
        assert "ratelimit" in created.headers
        line.send(head("PATCH", f"/api/1.00/order/confirm/{trx}", company))
        confirmed = await line.reply()
        assert json.loads(confirmed.body)["orderStatus"] == "finished"
        line.send(head("GET", f"/api/Next/order/{trx}?wait=0", company))
        assert (await line.reply()).body == confirmed.body
        line.send(head("PATCH", f"/api/1.03/order/cancel/{trx}", company))
        refused = await line.reply()
        assert (refused.status, refused.body) == (400, b"Invalid order status")
        line.send(posting(company, CART))
        other = json.loads((await line.reply()).body)["trx"]
        line.send(head("PATCH", f"/api/1.03/order/cancel/{other}", company))
        gone = await line.reply()
        assert (gone.status, "content-length" in gone.headers) == (204, False)
        line.send(head("GET", f"/api/1.03/order/{other}", company))
        assert (await line.reply()).status == 404
    await shop.assert_books_balance()


async def test_both_ways_give_the_same_answer(shop: Shop, street: Street) -> None:
    """OP-26: plain calls take the short way, encoded paths, HEAD and HTTP/1.0 the long one."""
    company = await shop.company()
    await shop.product("gift-10", stock=700)
    trx = (await shop.create(company, ("gift-10", 600)))["trx"]
    for path in (
        f"/api/1.03/order/{trx}",
        "/api/1.00/order",
        f"/api/1.03/order/{TRX}",
        "/api/1.03/order?limit=0",
        "/api/1.03/none",
        "/api/2.00/order",
        f"/api/1.03/order/cancel/{trx}",
    ):
        async with street.line() as line:
            line.send(head("GET", path, company))
            short = await line.reply()
            line.send(head("GET", path.replace("order", "%6Frder"), company))
            long = await line.reply()
            line.send(head("HEAD", path, company))
            bare = await line.reply(with_body=False)
        assert short.status == long.status == bare.status, path
        assert short.body == long.body, path
        changing = {"x-request-id", "ratelimit", "date", "transfer-encoding"}
        assert set(short.headers) - {"date"} == set(long.headers) - {"date"}, path
        for name in set(short.headers) - changing:
            assert short.headers[name] == long.headers[name], (path, name)
        over_asgi = await shop.call("GET", path, company)
        assert (over_asgi.status_code, over_asgi.content) == (short.status, short.body)


async def test_a_large_order_is_streamed_in_chunks(shop: Shop, street: Street) -> None:
    """OP-14: whole, parseable, and the connection goes on after it."""
    company = await shop.company(balance="100000.00 EUR")
    await shop.product("gift-10", stock=2_000)
    trx = (await shop.create(company, ("gift-10", 1_234)))["trx"]
    async with street.line() as line:
        line.send(head("PATCH", f"/api/1.03/order/confirm/{trx}", company))
        confirmed = await line.reply()
        assert confirmed.headers["transfer-encoding"] == "chunked"
        assert "content-length" not in confirmed.headers
        assert (
            len({one["voucherCode"] for one in json.loads(confirmed.body)["items"][0]["orderLines"]}) == 1_234
        )
        line.send(head("GET", "/healthz"))
        assert (await line.reply()).body == b"ok"
    await shop.assert_books_balance()


async def test_requests_that_come_without_waiting_are_answered_in_their_order(
    shop: Shop, street: Street
) -> None:
    """Contract 4: pipelined calls, with and without bodies, short and long way mixed."""
    company = await shop.company()
    await shop.product("gift-10", stock=9)
    trx = (await shop.create(company, ("gift-10", 1)))["trx"]
    async with street.line() as line:
        line.send(
            head("GET", f"/api/1.00/order/{trx}", company).encode()
            + posting(company, CART)
            + head("GET", f"/api/1.03/order/{TRX}", company).encode()
            + posting(company, b"{")
            + head("GET", "/healthz").encode()
            + head("PATCH", f"/api/1.03/order/confirm/{trx}", company).encode()
        )
        replies = [await line.reply() for _ in range(6)]
    assert [reply.status for reply in replies] == [200, 201, 404, 400, 200, 200]
    assert json.loads(replies[5].body)["orderStatus"] == "finished"
    await shop.assert_books_balance()


async def test_a_body_in_pieces_or_chunks_is_one_body(shop: Shop, street: Street) -> None:
    """OP-25: however the client cuts it; and Expect: 100-continue is answered."""
    company = await shop.company()
    await shop.product("gift-10", stock=9)
    kind = "Content-Type: application/json"
    async with street.line() as line:
        whole = posting(company, CART)
        for at in range(0, len(whole), 50):
            line.send(whole[at : at + 50])
            await line.arrived()
        assert (await line.reply()).status == 201
        line.send(head("POST", "/api/1.03/order", company, "Transfer-Encoding: chunked", kind))
        for part in (CART[:10], CART[10:40], CART[40:]):
            line.send(b"%x\r\n%b\r\n" % (len(part), part))
            await line.arrived()
        line.send("0\r\n\r\n")
        assert (await line.reply()).status == 201
        line.send(
            head(
                "POST",
                "/api/1.03/order",
                company,
                f"Content-Length: {len(CART)}",
                kind,
                "Expect: 100-continue",
            )
        )
        assert (await line.reply()).status == 100
        line.send(CART)
        assert (await line.reply()).status == 201


async def test_a_body_that_is_too_large_is_refused_on_both_ways(shop: Shop, street: Street) -> None:
    """OP-14: 413, said or counted, and the connection survives it."""
    company = await shop.company()
    for more in ((), ("Expect: 100-continue",)):
        async with street.line() as line:
            line.send(posting(company, b" " * 300_000, *more))
            reply = await line.reply()
            if reply.status == 100:
                reply = await line.reply()
            assert (reply.status, reply.body) == (413, b"the body must be at most 262144 bytes")
    async with street.line() as line:
        line.send(head("POST", "/api/1.03/order", company, "Transfer-Encoding: chunked"))
        for _ in range(30):
            line.send(b"%x\r\n%b\r\n" % (10_000, b" " * 10_000))
        line.send("0\r\n\r\n")
        assert (await line.reply()).status == 413
        line.send(head("GET", "/api/1.03/order", company))
        assert (await line.reply()).status == 200


async def test_a_client_that_wants_to_close_gets_its_answer_first(shop: Shop, street: Street) -> None:
    """Contract 4: Connection: close, and HTTP/1.0."""
    company = await shop.company()
    for request in (
        head("GET", "/api/1.03/order", company, "Connection: close"),
        head("GET", "/api/1.03/order?limit=0", company, "Connection: close"),
        head("GET", f"/api/1.03/order/{TRX}", company, version="1.0"),
    ):
        async with street.line() as line:
            line.send(request)
            assert (await line.reply()).status in (200, 400, 404)
            assert await line.is_closed()


async def test_a_client_that_leaves_while_its_order_waits_harms_nobody(shop: Shop, street: Street) -> None:
    """Contract 3: the order is paid and delivered all the same."""
    company = await shop.company()
    await shop.product("later", async_delivery=True)
    await shop.product("gift-10", stock=700)
    trx = (await shop.create(company, ("later", 1)))["trx"]
    large = (await shop.create(company, ("gift-10", 90)))["trx"]
    async with street.line() as line:
        line.send(head("PATCH", f"/api/1.03/order/confirm/{trx}", company))
        await shop.until_status(company, trx, "pending")
    async with street.line() as line:
        line.send(head("PATCH", f"/api/1.03/order/confirm/{large}", company))
        await line.arrived()
    await shop.stock("later", 1)

    assert (await shop.until_status(company, trx, "finished"))["paymentStatus"] == "paid"
    await shop.until_status(company, large, "finished")
    async with street.line() as line:
        line.send(head("GET", f"/api/1.00/order/{trx}", company))
        assert (await line.reply()).status == 200
    await shop.assert_books_balance()


async def test_what_is_not_http_is_refused_and_the_server_lives(shop: Shop, street: Street) -> None:
    """OP-25: a broken request ends its own connection only."""
    company = await shop.company()
    for nonsense in (
        b"\x16\x03\x01\x02\x00",
        b"GET\r\n\r\n",
        b"GET /api/1.03/order HTTP/9.9\r\n\r\n",
        b"\r\n" * 9 + b"\x00",
    ):
        async with street.line() as line:
            line.send(nonsense)
            line.writer.write_eof()
            assert (await line.reader.read()).startswith((b"HTTP/1.1 400", b""))
    async with street.line() as line:
        line.send(head("GET", "/api/1.03/order", company))
        assert (await line.reply()).status == 200


async def test_an_ordinary_client_is_served(shop: Shop, street: Street) -> None:
    """Contract 4: with a client library that everybody uses, many calls at once."""
    company = await shop.company()
    await shop.product("gift-10", stock=50)
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{street.port}", headers=company.bearer(), timeout=HANG_S
    ) as client:
        made = await asyncio.gather(
            *[
                client.post("/api/1.03/order", content=CART, headers={"content-type": "application/json"})
                for _ in range(30)
            ]
        )
        trxs = [one.json()["trx"] for one in made]
        done = await asyncio.gather(*[client.patch(f"/api/1.00/order/confirm/{trx}") for trx in trxs])
    assert {one.json()["orderStatus"] for one in done} == {"finished"}
    await shop.assert_books_balance()
