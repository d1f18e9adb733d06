"""Bodies of strangers are not read, bodies of others are read without copying, and all of them together are bounded."""

from __future__ import annotations

import asyncio
import json
import re
import tracemalloc

import pytest

from tests.pages.people import someone
from tests.patience import HANG_S, until_true
from tests.shop import Shop
from tests.wire.test_sockets import CART, Line, Street, head, street
from voucherd.api.routes import ROUTES
from voucherd.pages.page import BODY_BYTES_MAX, Audience
from voucherd.pages.routes import PAGES
from voucherd.server import bounds
from voucherd.server.bodies import BodyBytes
from voucherd.server.protocol import ApiProtocol

__all__ = ["street"]

CHUNKED = "Transfer-Encoding: chunked"
JSON = "Content-Type: application/json"
FORM = "Content-Type: application/x-www-form-urlencoded"
LARGE = "Content-Length: 33554432"
PROBLEM = "Accept: application/problem+json"
OPEN = (Audience.PUBLIC, Audience.LINK)


@pytest.fixture
async def shop(quiet_shop: Shop) -> Shop:
    """A shop in which nothing happens by itself."""
    return quiet_shop


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all parts of bodies that the server takes off the wire."""
    sizes: list[int] = []
    on_body = ApiProtocol.on_body

    def counted(self: ApiProtocol, body: bytes) -> None:
        sizes.append(len(body))
        on_body(self, body)

    monkeypatch.setattr(ApiProtocol, "on_body", counted)
    return sizes


def paths() -> list[tuple[str, str]]:
    """Method and path of every operation, and of every page that is not for everybody; and some that are not there."""
    fill = {"currency": "EUR", "version": "1.03"}
    calls = [(route.method, f"/api/{version}/{route.path}") for route in ROUTES for version in route.versions]
    pages = [
        (page.method, page.path) for page in PAGES if page.audience not in OPEN and page.method == "POST"
    ]
    assert len(calls) > 40
    assert len(pages) > 60
    filled = [
        (method, re.sub(r"\{(\w+)\}", lambda name: fill.get(name[1], "1"), path))
        for method, path in calls + pages
    ]
    nowhere = [("POST", "/api/1.03/nothing"), ("POST", "/nothing"), ("PUT", "/api/1.03/order")]
    return [*filled, *nowhere, ("POST", "/healthz"), ("POST", "/openapi.json")]


async def told_early(line: Line, request: str) -> int:
    """The status that a head alone is answered with."""
    line.send(request)
    return (await line.reply()).status


@pytest.mark.parametrize("how", ["Content-Length: 60000", LARGE, CHUNKED])
async def test_a_stranger_is_refused_before_a_byte_of_his_body_is_read(
    shop: Shop, street: Street, parts: list[int], how: str
) -> None:
    """OP-97: every operation and every page that is not for everybody, from the tables."""
    shop.program.authenticator._strangers._a_minute = 10_000
    for method, path in paths():
        async with street.line() as line:
            kind = JSON if path.startswith("/api/") else FORM
            status = await told_early(line, head(method, path, None, how, kind))
            assert status in (401, 403, 404, 405), (method, path, status)
    assert parts == []
    assert shop.app.service.bodies.held == 0


async def test_pages_that_are_for_everybody_take_small_forms_only() -> None:
    """OP-97: nobody is known there, so nobody may send much."""
    assert {page.body_bytes_max for page in PAGES if page.audience in OPEN} == {BODY_BYTES_MAX}


async def test_strangers_do_not_fill_the_memory(shop: Shop, street: Street) -> None:
    """OP-97: a dozen connections that send the largest of all bodies cost next to nothing."""
    body = memoryview(b"x" * 8 * 1024 * 1024)
    request = head(
        "POST", "/console/stock/import", None, LARGE, "Content-Type: multipart/form-data; boundary=b"
    )

    async def send() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", street.port)
        writer.write(request.encode())
        try:
            for at in range(0, len(body), 65_536):
                writer.write(body[at : at + 65_536])
                await writer.drain()
            assert b" 403 " in await reader.readline()
        except ConnectionError:
            pass  # The server had said all that it had to say.
        finally:
            writer.close()

    await send()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        async with asyncio.timeout(HANG_S):
            await asyncio.gather(*[send() for _ in range(12)])
        grown = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    # Each client's own buffers are in this process, too.
    assert grown < 12 * 512 * 1024, grown


@pytest.mark.parametrize("path", ["/api/1.03/order", "/api/1.03/%6frder"])
async def test_a_body_in_too_many_chunks_is_refused(
    shop: Shop, street: Street, parts: list[int], path: str
) -> None:
    """OP-97: on both ways; a stranger's is not looked at and a client's is cut off before it costs anything."""
    flood = b"1\r\nx\r\n" * 100_000
    async with street.line() as line:
        line.send(head("POST", path, None, CHUNKED, JSON).encode() + flood)
        reply = await line.reply()
        assert (reply.status, reply.headers["connection"]) == (400, "close")
        assert len(parts) <= bounds.CHUNKS_MIN + 2
    async with street.line() as line:
        line.send(head("POST", path, await shop.company(), CHUNKED, JSON))
        await line.arrived()
        line.send(flood)
        reply = await line.reply()
        assert (reply.status, reply.body.decode()) == (400, bounds.MANY_CHUNKS.text)
        assert await line.is_closed()
    assert len(parts) <= 2 * bounds.CHUNKS_MIN + 4


async def test_chunks_of_a_usual_size_are_welcome_in_any_number(shop: Shop, street: Street) -> None:
    """OP-97: a client that writes its body a few hundred bytes at a time is served."""
    company = await shop.company()
    await shop.product("gift-10", stock=9)
    body = CART[:-1] + b" " * 200_000 + b"}"
    async with street.line() as line:
        line.send(head("POST", "/api/1.03/order", company, CHUNKED, JSON))
        for at in range(0, len(body), 300):
            piece = body[at : at + 300]
            line.send(b"%x\r\n%b\r\n" % (len(piece), piece))
        line.send("0\r\n\r\n")
        assert (await line.reply()).status == 201
    assert shop.app.service.bodies.held == 0


async def test_a_refused_call_keeps_its_connection_if_little_is_left_of_its_body(
    shop: Shop, street: Street
) -> None:
    """OP-97: clients that send head and body apart are told at once, and may call again; the rest is read over."""
    company = await shop.company()
    text = "Content-Type: text/plain"
    async with street.line() as line:
        assert await told_early(line, head("POST", "/api/1.03/order", None, "Content-Length: 9", JSON)) == 401
        line.send(b"x" * 9)
        assert (
            await told_early(line, head("POST", "/api/1.03/order", company, "Content-Length: 9", text)) == 415
        )
        line.send(b"x" * 9)
        assert await told_early(line, head("GET", "/api/1.03/order", company)) == 200


async def test_a_call_in_pieces_counts_once_against_its_limit(shop: Shop, street: Street) -> None:
    """OP-27: judged before its body, counted then and not again."""
    shop.stop_the_minute()
    company = await shop.company(rate_limit=5)
    await shop.product("gift-10", stock=9)
    left, length = [], f"Content-Length: {len(CART)}"
    async with street.line() as line:
        for _ in range(5):
            line.send(head("POST", "/api/1.03/order", company, length, JSON))
            await line.arrived()
            line.send(CART)
            reply = await line.reply()
            assert reply.status == 201
            left.append(reply.headers["ratelimit"].split(";")[1])
        assert await told_early(line, head("POST", "/api/1.03/order", company, length, JSON)) == 429
    assert left == ["r=4", "r=3", "r=2", "r=1", "r=0"]


async def test_a_key_that_ends_while_its_body_arrives_does_nothing(shop: Shop, street: Street) -> None:
    """OP-97: whoever holds the rest of a body back gains no time."""
    company = await shop.company()
    await shop.product("gift-10", stock=9)
    async with street.line() as line:
        line.send(head("POST", "/api/1.03/order", company, f"Content-Length: {len(CART)}", JSON))
        line.send(CART[:5])
        await line.arrived()
        await shop.pool.execute("UPDATE api_key SET revoked_at = now() WHERE company_id = $1", company.id)
        await asyncio.sleep(1.1)
        line.send(CART[5:])
        assert (await line.reply()).status == 401
    assert await shop.pool.fetchval("SELECT count(*) FROM orders WHERE company_id = $1", company.id) == 0


async def test_a_large_form_without_its_secret_is_read_no_further(
    shop: Shop, street: Street, parts: list[int]
) -> None:
    """OP-97: of a person with every right, whose browser was made to send it; both kinds of forms."""
    operator = await someone(shop, "admin")
    more = [f"Cookie: voucherd={operator.token}", "Content-Length: 200000"]
    part = b'--b\r\nContent-Disposition: form-data; name="%b"%b\r\n\r\n%b\r\n'
    wrong, none = part % (b"csrf", b"", b"0" * 64), part % (b"f", b'; filename="f"', b"x" * 60_000)
    multipart = "Content-Type: multipart/form-data; boundary=b"
    for path, kind, sent in (
        ("/console/stock/import", multipart, wrong + none[:200]),
        ("/console/stock/import", multipart, none),
        ("/console/products/-/new", FORM, b"csrf=" + b"0" * 64 + b"&name=" + b"x" * 20_000),
        ("/console/products/-/new", FORM, b"name=" + b"x" * 20_000),
    ):
        async with street.line() as line:
            line.send(head("POST", path, None, *more, kind))
            await line.arrived()
            line.send(sent)
            reply = await line.reply()
            assert (reply.status, reply.body[:21]) == (403, b"This form is too old."), path
    await until_true(lambda: shop.app.service.bodies.held == 0)


@pytest.mark.parametrize("path", ["/api/1.03/order", "/api/1.03/%6frder"])
@pytest.mark.parametrize(
    ("limits", "status", "code"),
    [((150_000, 10**9), 503, "busy"), ((10**9, 150_000), 429, "too_much_at_once")],
)
async def test_bodies_together_have_a_bound_and_those_of_an_address_a_smaller_one(
    shop: Shop,
    street: Street,
    monkeypatch: pytest.MonkeyPatch,
    limits: tuple[int, int],
    status: int,
    code: str,
    path: str,
) -> None:
    """OP-97: 503 for all, 429 for one address; what was held is given back, also when the client leaves."""
    company = await shop.company()
    await shop.product("gift-10", stock=9)
    body = CART[:-1] + b" " * 100_000 + b"}"
    bodies = BodyBytes(*limits)
    monkeypatch.setattr(shop.app.service, "bodies", bodies)
    request = head("POST", path, company, f"Content-Length: {len(body)}", JSON, PROBLEM)

    async def begin(line: Line) -> None:
        line.send(request)
        await line.arrived()
        for at in range(0, 80_000, 8_000):
            line.send(body[at : at + 8_000])
            await line.arrived()
        await until_true(lambda: bodies.held >= 70_000)

    async with street.line() as first, street.line() as second:
        await begin(first)
        second.send(request)
        await second.arrived()
        for at in range(0, len(body), 8_000):
            second.send(body[at : at + 8_000])
            await second.arrived()
        refused = await second.reply()
        assert (refused.status, json.loads(refused.body)["code"]) == (status, code)
        assert refused.headers["retry-after"] == "5"
        first.send(body[80_000:])
        assert (await first.reply()).status == 201
        await until_true(lambda: bodies.held == 0)
    async with street.line() as leaving:
        await begin(leaving)
    await until_true(lambda: bodies.held == 0)
