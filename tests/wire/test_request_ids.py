"""The ids of requests and of traces that clients bring along: kept where they can be, and handed on."""

from __future__ import annotations

import asyncio

import pytest

from tests.shop import Shop
from voucherd import logs
from voucherd.http import Request
from voucherd.keys.key_text import Scope
from voucherd.suppliers.exchange import Reply, SupplierExchange

TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.mark.parametrize("given", ["a", "order-4711/try:2", "x" * 128, "7f3e\"{}<>'\\"])
async def test_an_id_that_the_client_gives_is_the_id_of_its_request(quiet_shop: Shop, given: str) -> None:
    """OP-123: in the answer, and in the body of a refusal."""
    company = await quiet_shop.company()
    headers = {"x-request-id": given}
    found = await quiet_shop.call("GET", "/api/1.03/account", company, headers=headers)
    assert (found.status_code, found.headers["x-request-id"]) == (200, given)
    refused = await quiet_shop.call("GET", "/api/1.03/key/1", company, headers=headers)
    assert refused.status_code >= 400
    assert refused.headers["x-request-id"] == given
    problem = await quiet_shop.call(
        "GET", "/api/1.03/key/1", company, headers={**headers, "accept": "application/problem+json"}
    )
    assert problem.json()["requestId"] == given


@pytest.mark.parametrize("given", [b"", b"x" * 129, b"two words", b"\x7f", b"\xc3\xbc", b"tab\there"])
async def test_any_other_id_is_replaced_by_a_new_one(quiet_shop: Shop, given: bytes) -> None:
    """OP-123: what could break a line of a log, or is too long for one, is nobody's id."""
    answer = await quiet_shop.client.get("/healthz", headers={b"x-request-id": given})
    assert answer.headers["x-request-id"].startswith("req_")


async def test_the_trail_names_a_deed_by_the_clients_id(quiet_shop: Shop) -> None:
    """OP-123: from a client's question to who did what."""
    company = await quiet_shop.company()
    made = await quiet_shop.keys(company, frozenset([Scope.KEYS_WRITE, Scope.WALLET_READ]))
    answer = await quiet_shop.client.post(
        "/api/1.03/key",
        json={"scopes": ["wallet:read"]},
        headers={"authorization": f"Bearer {next(iter(made.values()))}", "x-request-id": "deed-1"},
    )
    assert answer.status_code == 201, answer.text
    rows = await quiet_shop.pool.fetch("SELECT action FROM trail WHERE request_id = 'deed-1'")
    assert len(rows) == 1


async def test_a_call_to_a_supplier_tells_whose_trace_it_is_part_of() -> None:
    """OP-123: where it is made on behalf of a client who named one; else it says nothing."""
    heads: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
        await writer.drain()
        writer.close()

    supplier = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{supplier.sockets[0].getsockname()[1]}/"
    exchange = SupplierExchange(60.0)

    async def on_behalf_of(request: Request | None) -> None:
        logs.bind_request(request)
        assert isinstance(await exchange.call(exchange.deadline(), "GET", url, {}), Reply)

    headers = {b"traceparent": TRACEPARENT.encode()}
    named = Request("GET", "/", b"", headers, b"", "", "req_1")
    for request in (named, Request("GET", "/", b"", {}, b"", "", "req_2"), None):
        await asyncio.create_task(on_behalf_of(request))
    await exchange.close()
    supplier.close()

    assert [f"traceparent: {TRACEPARENT}".encode() in head.lower() for head in heads] == [True, False, False]
    assert [b"traceparent" in head for head in heads] == [True, False, False]
