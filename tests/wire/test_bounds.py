"""What a client may send, hold open or leave unread: everything has a bound, and going over it harms nobody else."""

from __future__ import annotations

import json
import re
import resource
from ipaddress import ip_network

import pytest

from tests.patience import until_true
from tests.shop import Shop
from tests.wire.test_sockets import CART, TRX, Line, Reply, Street, head, posting, street
from voucherd.server import bounds, connections
from voucherd.server.connections import ConnectionCount
from voucherd.server.guarded import GuardedProtocol

__all__ = ["street"]


@pytest.fixture
async def shop(quiet_shop: Shop) -> Shop:
    """A shop in which nothing happens by itself."""
    return quiet_shop


def connection(street: Street) -> GuardedProtocol:
    """The server's side of the only connection."""
    (found,) = street.state.connections
    assert isinstance(found, GuardedProtocol)
    return found


async def refused(line: Line, status: int, text: str) -> Reply:
    """The server says so, with an id, and closes."""
    reply = await line.reply()
    assert (reply.status, reply.body.decode()) == (status, text)
    assert re.fullmatch("req_[0-9a-f]+", reply.headers["x-request-id"])
    assert reply.headers["connection"] == "close"
    assert reply.headers["cache-control"] == "no-store"
    assert await line.is_closed()
    return reply


@pytest.mark.parametrize("path", ["/api/1.03/order", "/docs"])
@pytest.mark.parametrize("at_once", [True, False])
async def test_a_head_that_is_too_large_is_refused(
    shop: Shop, street: Street, path: str, *, at_once: bool
) -> None:
    """OP-25, OP-26: 431 for headers and 414 for addresses, in one piece or in many, on both ways."""
    company = await shop.company()
    many = [f"X-{number}: 1" for number in range(101)]
    cases = (
        (head("GET", path, company, "X-Large: " + "x" * 17_000), 431, bounds.LARGE_HEAD.text),
        (head("GET", path, company, *many), 431, bounds.LARGE_HEAD.text),
        (head("GET", path + "?" + "x" * 9_000, company), 414, bounds.LONG_URL.text),
    )
    for text, status, words in cases:
        async with street.line() as line:
            for start in range(0, len(text), len(text) if at_once else 3_000):
                line.send(text[start : start + (len(text) if at_once else 3_000)])
                await line.arrived()
            await refused(line, status, words)
    async with street.line() as line:
        line.send(head("GET", path, company, "X-Fits: " + "x" * 15_000))
        assert (await line.reply()).status == 200


async def test_what_never_becomes_a_request_is_not_kept(shop: Shop, street: Street) -> None:
    """OP-25: an endless line, endless empty lines, fields after a body without end."""
    company = await shop.company()
    chunked = head("POST", "/api/1.03/order", company, "Transfer-Encoding: chunked")
    for first, piece in (
        (b"", b"GET /" + b"x" * 4_000),
        (b"GET /api/1.03/order HTTP/1.1\r\nx: ", b"x" * 4_000),
        (b"", b"\r\n" * 2_000),
        (chunked.encode() + b"0\r\n", b"x: " + b"x" * 4_000),
        (chunked.encode(), b"1;" + b"x" * 4_000),
    ):
        async with street.line() as line:
            line.send(first)
            await line.arrived()
            for _ in range(8):
                line.send(piece)
                await line.arrived()
            assert (await line.reply()).status in (400, 414, 431)
            assert await line.is_closed()


async def test_a_header_that_may_be_there_once_is_not_there_twice(shop: Shop, street: Street) -> None:
    """OP-25: two readers of an ambiguous request would take it for two different ones."""
    company, other = await shop.company(), await shop.company()
    second = f"Authorization: {other.bearer()['authorization']}"
    for path in ("/api/1.03/order", "/docs"):
        async with street.line() as line:
            line.send(head("GET", path, company, second))
            await refused(line, 400, bounds.AMBIGUOUS.text)
    async with street.line() as line:
        line.send(head("GET", "/api/1.03/order", company, "Accept: text/html", "Accept: */*"))
        assert (await line.reply()).status == 200


async def test_a_client_that_takes_too_long_is_told_so_and_let_go(shop: Shop, street: Street) -> None:
    """OP-25: a head has ten seconds, a body some more; between calls there is a longer rest."""
    company = await shop.company()
    body_s = bounds.BODY_S_MAX + 16
    for sent, patience_s in ((b"GET /api/1.0", bounds.HEAD_S_MAX), (posting(company, CART)[:-5], body_s)):
        async with street.line() as line:
            line.send(sent)
            await line.arrived()
            server = connection(street)
            server.look(100.0)
            line.send(sent[-1:] if sent.startswith(b"POST") else b"3")
            await line.arrived()
            server.look(100.0 + patience_s - 0.1)
            assert not server._deaf
            server.look(100.0 + patience_s)
            await refused(line, 408, bounds.SLOW.text)
            server.look(200.0)
            server.look(200.0 + bounds.LINGER_S)
            assert server.transport.is_closing()
        await until_true(lambda: not street.state.connections)
    async with street.line() as line:
        await line.arrived()
        server = connection(street)
        server.look(100.0)
        line.send(head("GET", "/api/1.03/order", company))
        assert (await line.reply()).status == 200
        server.look(105.0)
        server.look(105.0 + server.timeout_keep_alive - 0.1)
        assert not server.transport.is_closing()
        server.look(105.0 + server.timeout_keep_alive)
        assert await line.is_closed()
    async with street.line() as line:
        await line.arrived()
        connection(street).look(100.0)
        connection(street).look(100.0 + bounds.HEAD_S_MAX)
        assert await line.is_closed()


async def test_a_call_is_answered_whatever_is_sent_after_it(shop: Shop, street: Street) -> None:
    """OP-25: nonsense after a Confirm must not look like the answer to it."""
    company = await shop.company()
    await shop.product("gift-10", stock=9)
    broken = head("POST", "/api/1.03/order", company, "Transfer-Encoding: chunked").encode() + b"zz\r\n"
    for nonsense in (b"\x00\x01\r\n\r\n", broken, b"GET /x HTTP/1.1\r\nx: " + b"x" * 20_000 + b"\r\n\r\n"):
        trx = (await shop.create(company, ("gift-10", 1)))["trx"]
        async with street.line() as line:
            confirm = head("PATCH", f"/api/1.03/order/confirm/{trx}", company).encode()
            line.send(confirm + head("GET", "/healthz").encode() + nonsense)
            confirmed = await line.reply()
            assert json.loads(confirmed.body)["orderStatus"] == "finished"
            assert (await line.reply()).body == b"ok"
            assert await line.is_closed()
    await shop.assert_books_balance()


async def test_calls_that_are_sent_without_waiting_are_bounded(shop: Shop, street: Street) -> None:
    """OP-25: so many are answered in their order; then the connection is closed, and the rest can be sent again."""
    company = await shop.company()
    async with street.line() as line:
        line.send(head("GET", f"/api/1.03/order/{TRX}", company) * 300)
        replies = [await line.reply() for _ in range(1 + bounds.PIPELINED_MAX)]
        assert {reply.status for reply in replies} == {404}
        assert await line.is_closed()


async def test_a_client_that_does_not_read_is_not_written_for(shop: Shop, street: Street) -> None:
    """OP-25: its next calls wait, memory does not grow, and after a while it is cut off."""
    company = await shop.company()
    async with street.line() as line:
        line.writer.transport.pause_reading()  # type: ignore[attr-defined]
        server_side = None
        await line.arrived()
        server_side = connection(street)

        def full() -> bool:
            # What it sends while the server does not read stays on its own side.
            if not server_side.flow.read_paused:
                line.send(head("GET", "/openapi.json", company) * 20)
            return server_side.flow.write_paused

        await until_true(full)
        assert server_side.flow.read_paused
        assert server_side.transport.get_write_buffer_size() < 4_000_000
        server_side.look(100.0)
        server_side.look(129.0)
        assert not server_side.transport.is_closing()
        server_side.look(130.0)
        await until_true(lambda: not street.state.connections)


async def test_a_request_to_speak_another_protocol_is_answered_in_this_one(
    shop: Shop, street: Street
) -> None:
    """HTTP/1.1: a server may ignore `Upgrade`; the connection ends after the answer."""
    company = await shop.company()
    async with street.line() as line:
        more = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__")
        line.send(head("GET", "/api/1.03/order", company, *more))
        assert (await line.reply()).status == 200
        assert await line.is_closed()


async def test_one_address_can_not_take_all_connections(shop: Shop, street: Street) -> None:
    """OP-25: so many of one address, and so many of all; the next gets a 503 and is closed."""
    shop.app.service.connections = ConnectionCount(10, 2)
    async with street.line() as one, street.line() as other:
        for line in (one, other):
            line.send(head("GET", "/healthz"))
            assert (await line.reply()).status == 200
        async with street.line() as third:
            reply = await refused(third, 503, "too many connections")
            assert reply.headers["retry-after"] == "1"
    await until_true(lambda: shop.app.service.connections.open == 0)
    async with street.line() as line:
        line.send(head("GET", "/healthz"))
        assert (await line.reply()).status == 200


def test_connections_are_counted_by_network_and_proxies_let_through() -> None:
    """OP-25: a /56 is one network; behind a trusted proxy everybody has the proxy's address."""
    counted = ConnectionCount(5, 2, (ip_network("10.0.0.0/8"),))
    assert [counted.enter(address) for address in ("2001:db8::1", "2001:db8:0:1::2", "2001:db8:0:ff::3")] == [
        True,
        True,
        False,
    ]
    assert [counted.enter("10.0.0.1") for _ in range(4)] == [True, True, True, False]
    counted.leave("2001:db8::9")
    assert counted.enter("192.0.2.1")
    assert not counted.enter("192.0.2.2")
    assert counted.open == 5


def test_as_many_connections_as_the_system_has_files_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """OP-25: the limit of open files is raised as far as it goes, and connections stay below it."""
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1_024, 4_096))
    monkeypatch.setattr(resource, "setrlimit", lambda _, both: told.append(both))
    assert connections.room_for(500) == 500
    assert told == []
    assert connections.room_for(2_000) == 2_000
    assert connections.room_for(20_000) == 4_096 - connections.FILES_KEPT
    assert told == [(2_256, 4_096), (4_096, 4_096)]


@pytest.mark.parametrize("path", ["/api/1.03/order", "/sign-in"])
async def test_a_body_is_chunked_or_has_a_length_and_nothing_else(
    shop: Shop, street: Street, path: str
) -> None:
    """OP-25: another reader in the way might find another end of the body; on both ways."""
    company = await shop.company()
    for coding in (
        "gzip, chunked",
        "chunked, gzip",
        "gzip",
        "identity",
        "x",
        "chunked, chunked",
        "chunked;q=1",
        "",
    ):
        async with street.line() as line:
            line.send(head("POST", path, company, f"Transfer-Encoding: {coding}") + "0\r\n\r\n")
            reply = await line.reply()
            assert reply.status == 400, coding
            assert await line.is_closed()
    async with street.line() as line:
        twice = ("Transfer-Encoding: chunked", "Transfer-Encoding: chunked")
        line.send(head("POST", path, company, *twice) + "0\r\n\r\n")
        await refused(line, 400, bounds.UNREADABLE.text)
    async with street.line() as line:
        line.send(head("POST", path, company, "Transfer-Encoding: chunked", version="1.0") + "0\r\n\r\n")
        assert (await line.reply()).status == 400
    async with street.line() as line:
        line.send(head("POST", path, company, "Transfer-Encoding: Chunked") + "0\r\n\r\n")
        assert (await line.reply()).status in (400, 403)
        line.send(head("GET", path, company))
        assert (await line.reply()).status == 200


@pytest.mark.parametrize("path", ["/api/1.03/order", "/sign-in"])
async def test_a_request_names_its_host_once(shop: Shop, street: Street, path: str) -> None:
    """OP-25: HTTP/1.1 without a Host is refused, and one with two; HTTP/1.0 may be without."""
    company = await shop.company()
    whole = head("GET", path, company)
    async with street.line() as line:
        line.send(whole.replace("Host: shop\r\n", ""))
        await refused(line, 400, bounds.NO_HOST.text)
    for second in ("shop", "other"):
        async with street.line() as line:
            line.send(head("GET", path, company, f"Host: {second}"))
            await refused(line, 400, bounds.AMBIGUOUS.text)
    async with street.line() as line:
        line.send(head("GET", path, company, version="1.0").replace("Host: shop\r\n", ""))
        assert (await line.reply()).status == 200
