"""Streams of events over real sockets, by both ways into the service."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.patience import HANG_S, until_true
from tests.shop import Company, Shop
from tests.wire.test_sockets import Line, Street, head, street
from voucherd.db import transaction
from voucherd.events import kinds, listeners, streams
from voucherd.events.feed import Cursor
from voucherd.events.listeners import BUFFER_BYTES_MAX, StreamListener
from voucherd.ids import State
from voucherd.keys import store as key_store
from voucherd.keys.key_text import Scope
from voucherd.server import asgi, protocol

__all__ = ["street"]

SHORT, LONG = "/api/1.03/event/stream", "/api/1.03/event/stre%61m"
"""The second is the same path; a parser that has to decode it takes the way through ASGI."""
WAYS = pytest.mark.parametrize("path", [SHORT, LONG], ids=["short", "asgi"])
WAIT_S_MAX = HANG_S


class Ear:
    """The client's end of a stream."""

    def __init__(self, line: Line, status: int, headers: dict[str, str]) -> None:
        self.line = line
        self.status = status
        self.headers = headers
        self._text = ""

    async def block(self) -> dict[str, str] | None:
        """The next block of the stream by the names of its fields; None at its end."""
        while "\n\n" not in self._text:
            size = int(await asyncio.wait_for(self.line.reader.readline(), WAIT_S_MAX), 16)
            part = await self.line.reader.readexactly(size)
            await self.line.reader.readexactly(2)
            if not size:
                return None
            self._text += part.decode()
        block, _, self._text = self._text.partition("\n\n")
        return {name: value for name, _, value in (line.partition(": ") for line in block.split("\n"))}

    async def event(self) -> dict[str, Any]:
        """The next event."""
        while True:
            block = await self.block()
            assert block is not None, "the stream has ended"
            if "data" in block:
                event: dict[str, Any] = json.loads(block["data"])
                assert (block["id"], block["event"]) == (event["id"], event["type"])
                return event


@asynccontextmanager
async def listening(
    street: Street, company: Company, path: str, *more: str, state: State = State.LIVE
) -> AsyncIterator[Ear]:
    """An open stream."""
    async with street.line() as line:
        line.send(head("GET", path, None, f"Authorization: {company.bearer(state)['authorization']}", *more))
        text = (await asyncio.wait_for(line.reader.readuntil(b"\r\n\r\n"), WAIT_S_MAX)).decode()
        first, *rest = text.split("\r\n")[:-2]
        headers = {name.lower(): value for name, _, value in (one.partition(": ") for one in rest)}
        yield Ear(line, int(first.split()[1]), headers)


def open_streams(shop: Shop) -> int:
    """How many streams the service serves."""
    return shop.program.services.streams.open


@pytest.fixture
async def shop(quiet_shop: Shop) -> Shop:
    """A shop without a worker, which would add events of its own."""
    await quiet_shop.product("gift", stock=1_000)
    return quiet_shop


@WAYS
async def test_a_listener_hears_of_its_own_events_and_goes_on_where_it_was_cut_off(
    shop: Shop, street: Street, path: str
) -> None:
    """OP-80: from now on, or after an event; never another company's or the other state's."""
    company, other = await shop.company(), await shop.company()
    before = await shop.create(company, ("gift", 1))
    async with (
        listening(street, company, path) as ear,
        listening(street, company, f"{path}?type=order.finished") as picky,
        listening(street, company, path, state=State.SANDBOX) as player,
    ):
        assert (ear.status, ear.headers["content-type"]) == (200, "text/event-stream")
        assert (ear.headers["cache-control"], ear.headers["x-accel-buffering"]) == ("no-store", "no")
        first = await ear.block()
        assert first is not None
        assert first.keys() == {"retry", "id"}, "a place to go on from, before anything has happened"

        await shop.create(other, ("gift", 1))
        trx = (await shop.create(company, ("gift", 1)))["trx"]
        played = (await shop.create(company, ("gift", 1), state=State.SANDBOX))["trx"]
        await shop.confirm(company, trx)
        created, finished = await ear.event(), await ear.event()
        assert [created["type"], finished["type"]] == [kinds.ORDER_CREATED, kinds.ORDER_FINISHED]
        assert created["data"]["trx"] == finished["data"]["trx"] == trx
        assert await picky.event() == finished
        assert (await player.event())["data"]["trx"] == played

    late = await shop.create(company, ("gift", 1))
    for place, more in (
        ("", [f"Last-Event-ID: {created['id']}"]),
        (f"?cursor={first['id']}", [f"Last-Event-ID: {created['id']}"]),
        (f"?cursor={created['id']}", []),
    ):
        async with listening(street, company, path + place, *more) as ear:
            assert await ear.event() == finished
            assert (await ear.event())["data"]["trx"] == late["trx"]
    async with listening(street, company, f"{path}?cursor=") as ear:
        assert (await ear.event())["data"]["trx"] == before["trx"], "an empty cursor: all that is kept"
    await until_true(lambda: open_streams(shop) == 0)
    await shop.assert_books_balance()


async def test_a_client_that_is_cut_off_again_and_again_hears_everything_once(
    shop: Shop, street: Street
) -> None:
    """OP-80: resumable without loss, while sales go on and another listener keeps the poll running."""
    company = await shop.company()
    count = 40
    async with listening(street, company, SHORT) as steady:
        first = await steady.block()
        assert first is not None
        last = first["id"]

        async def sell() -> None:
            for _ in range(count):
                trx = (await shop.create(company, ("gift", 1)))["trx"]
                await shop.confirm(company, trx)

        selling = asyncio.create_task(sell())
        heard: list[dict[str, Any]] = []
        while len(heard) < 2 * count:
            way = SHORT if len(heard) % 2 else LONG
            async with listening(street, company, way, f"Last-Event-ID: {last}") as ear:
                heard += [await ear.event() for _ in range(min(3, 2 * count - len(heard)))]
            last = heard[-1]["id"]
        await selling
        assert [await steady.event() for _ in range(2 * count)] == heard
    assert len({event["id"] for event in heard}) == 2 * count
    await shop.assert_books_balance()


@WAYS
async def test_a_stream_ends_with_its_key_and_with_the_server(
    shop: Shop, street: Street, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-24: a revoked key hears nothing more within seconds; a server that stops lets its listeners go."""
    monkeypatch.setattr(streams, "CHECK_S", 0.1)
    monkeypatch.setattr(listeners, "HEARTBEAT_S", 0.1)
    company, other = await shop.company(), await shop.company()
    async with listening(street, company, path) as ear, listening(street, other, path) as another:
        first, alive = await ear.block(), await ear.block()
        assert first is not None
        assert alive is not None
        assert alive == {"": "still here", "id": first["id"]}, "a comment, and the place"
        await another.block()
        async with transaction(shop.pool) as tx:
            key_id = await tx.fetchval(
                "SELECT id FROM api_key WHERE company_id = $1 AND state = 0", company.id
            )
            await key_store.revoke_key(tx, key_id)
        async with asyncio.timeout(WAIT_S_MAX):
            while await ear.block() is not None:
                pass
        assert await another.block() is not None
        assert open_streams(shop) == 1

        shop.app.service.release_waiting_calls()
        async with asyncio.timeout(WAIT_S_MAX):
            while await another.block() is not None:
                pass
    await until_true(lambda: open_streams(shop) == 0)


@WAYS
async def test_a_client_that_does_not_read_is_cut_off(
    shop: Shop, street: Street, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-80: what waits for a slow client is bounded, and it does not hold up the others."""
    for module in (asgi, protocol):
        monkeypatch.setattr(module, "STALL_S_MAX", 0.5)
    company = await shop.company()
    picky = f"{path}?type={kinds.ORDER_CREATED}"
    async with listening(street, company, path) as deaf, listening(street, company, picky) as ear:
        await until_true(lambda: open_streams(shop) == 2)
        deaf.line.writer.transport.pause_reading()  # type: ignore[attr-defined]
        told = 0
        # The buffers of the system on both sides fill up first: some megabytes.
        while open_streams(shop) == 2 and told < 10_000:
            await shop.pool.execute(
                "INSERT INTO event (at, company_id, state, type, data)"
                " SELECT now(), $1, 0, 'key.rotated', jsonb_build_object('id', repeat('x', 2000))"
                " FROM generate_series(1, 500)",
                company.id,
            )
            told += 500
            await shop.create(company, ("gift", 1))
            assert (await ear.event())["type"] == kinds.ORDER_CREATED
        await until_true(lambda: open_streams(shop) == 1)
        deaf.line.writer.close()
        await shop.create(company, ("gift", 1))
        assert (await ear.event())["type"] == kinds.ORDER_CREATED


@WAYS
async def test_streams_are_refused_like_any_other_call_and_counted_once(
    shop: Shop, street: Street, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-24, OP-25, OP-27: no key, no scope, bad parameters, too many; HEAD opens nothing."""
    monkeypatch.setattr(streams, "STREAMS_OF_KEY_MAX", 1)
    shop.stop_the_minute()
    company = await shop.company(rate_limit=100)
    blind = await shop.company(scopes=frozenset({Scope.ORDERS_READ}))
    async with listening(street, company, path) as ear:
        await ear.block()
        assert "r=99" in ear.headers["ratelimit"]
        for who, query, more, status, text in (
            (company, "", (), 429, "too many streams of this key are open"),
            (company, "?cursor=1", (), 400, "cursor: is not one of ours"),
            (company, "?type=x", (), 400, "type: must be one of"),
            (company, "", ("Last-Event-ID: 7",), 400, "Last-Event-ID: is not one of ours"),
            (blind, "", (), 403, "forbidden"),
            (None, "", (), 401, "unauthorized"),
        ):
            async with street.line() as line:
                line.send(head("GET", path + query, who, *more))
                reply = await line.reply()
                assert (reply.status, reply.body.decode()[: len(text)]) == (status, text)
    await until_true(lambda: open_streams(shop) == 0)
    async with street.line() as line:
        line.send(head("HEAD", path, company))
        assert (await line.reply(with_body=False)).status == 200
        line.send(head("GET", "/api/1.03/event", company))
        assert (await line.reply()).status == 200
    assert open_streams(shop) == 0


async def test_a_listener_that_is_too_far_behind_is_ended_and_keeps_nothing() -> None:
    """OP-80: a bounded buffer for each stream."""
    listener = StreamListener(None, None, None)  # type: ignore[arg-type]
    listener.put(b"x" * BUFFER_BYTES_MAX, Cursor(1))
    assert await listener.next() == b"x" * BUFFER_BYTES_MAX
    listener.put(b"x" * BUFFER_BYTES_MAX, Cursor(2))
    listener.put(b"y", Cursor(3))
    assert listener.ended
    assert await listener.next() is None
