"""Traces: a call, its wait, its batch and its answer as spans, sent to a collector of the test's own."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.patience import until_true
from tests.shop import open_shop
from voucherd import traces
from voucherd.db import Pool
from voucherd.settings import Settings

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"

NOTHING_LOADED = """
import sys
import voucherd.app, voucherd.worker, voucherd.cli
from voucherd import traces
traces.start(None)
assert traces.active is None
assert not [name for name in sys.modules if name.startswith(("opentelemetry", "google.protobuf"))]
"""


@asynccontextmanager
async def collector() -> AsyncIterator[tuple[str, list[Any]]]:
    """An OTLP/HTTP receiver: its address, and the spans that came."""
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    spans: list[Any] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                assert head.startswith(b"POST /v1/traces "), head
                fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
                body = await reader.readexactly(int(fields[b"content-length"]))
                if fields.get(b"content-encoding") == b"gzip":
                    import gzip

                    body = gzip.decompress(body)
                sent = ExportTraceServiceRequest.FromString(body)
                spans.extend(
                    span for one in sent.resource_spans for scope in one.scope_spans for span in scope.spans
                )
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                await writer.drain()
        except asyncio.IncompleteReadError:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", spans
    finally:
        server.close()


async def test_a_sale_is_a_trace_below_the_clients_own(pool: Pool, database_url: str, tmp_path: Path) -> None:
    """OP-126: gate and render below the call; the batch with load, decide and save, linked to the calls in it."""
    async with collector() as (url, spans):
        async with open_shop(pool, database_url, tmp_path, with_worker=False, traces_url=url) as shop:
            company = await shop.company()
            await shop.product("gift-10", stock=5)
            orders = [await shop.create(company, ("gift-10", 1)) for _ in range(2)]
            headers = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
            await asyncio.gather(
                *(
                    shop.call("PATCH", f"/api/1.03/order/confirm/{one['trx']}", company, headers=headers)
                    for one in orders
                )
            )
            await shop.assert_books_balance()
        # The last spans leave when the shop stops.
        await until_true(lambda: any(span.name == "batch confirm" for span in spans))
    assert traces.active is None
    route = "PATCH /api/1.03/order/confirm/{trx}"
    calls = [span for span in spans if span.name == route]
    assert len(calls) == 2
    assert {span.trace_id.hex() for span in calls} == {TRACE}
    assert {span.parent_span_id.hex() for span in calls} == {PARENT}
    told = {one.key: one.value for one in calls[0].attributes}
    assert told["http.response.status_code"].int_value == 200
    assert told["voucherd.company"].int_value == company.id
    ids = {span.span_id for span in calls}
    below = sorted(span.name for span in spans if span.parent_span_id in ids)
    assert below == ["gate", "gate", "render", "render"]
    batches = [span for span in spans if span.name == "batch confirm"]
    assert {link.span_id for span in batches for link in span.links} == ids
    assert TRACE not in {span.trace_id.hex() for span in batches}
    steps = [span.name for span in spans if span.parent_span_id == batches[0].span_id]
    assert steps == ["load", "decide", "save"]
    # No path, no order and no key is in any of them.
    everything = b"".join(span.SerializeToString() for span in spans)
    for secret in (*(one["trx"] for one in orders), *company.keys.values()):
        assert secret.encode() not in everything


async def test_a_span_that_fails_tells_the_kind_of_error_and_no_word_of_it() -> None:
    """OP-126: the text of an error may hold a row of the database."""
    async with collector() as (url, spans):
        traces.start(url)
        try:
            with pytest.raises(ValueError, match="CANARY"), traces.step("save"):
                raise ValueError("Failing row contains (CANARY)")
        finally:
            await asyncio.to_thread(traces.stop)
        await until_true(lambda: spans)
    (span,) = spans
    assert (span.name, span.status.message) == ("save", "ValueError")
    assert b"CANARY" not in span.SerializeToString()


def test_without_an_address_nothing_of_it_is_loaded() -> None:
    """OP-126: a shop that wants no traces pays for none."""
    done = subprocess.run([sys.executable, "-c", NOTHING_LOADED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_library_that_is_missing_is_said_and_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """OP-126: one clear line with the way out."""
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with capture_logs() as lines:
        traces.start("http://127.0.0.1:4318")
    assert traces.active is None
    assert [(line["event"], "voucherd[traces]" in line["reason"]) for line in lines] == [
        ("traces_missing", True)
    ]


def test_the_standard_variable_is_read_and_ours_is_stronger() -> None:
    """OP-126: an operator sets one address for all programs of a machine."""
    standard = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318/"}
    assert Settings.load({}, standard).traces_url == "http://127.0.0.1:4318"
    ours = {**standard, "VOUCHERD_TRACES_URL": "http://127.0.0.1:9"}
    assert Settings.load({}, ours).traces_url == "http://127.0.0.1:9"
    assert Settings.load({}, {}).traces_url is None
