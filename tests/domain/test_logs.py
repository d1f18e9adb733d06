"""Logs: canaries that were planted never come out."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from contextvars import Context
from dataclasses import dataclass

import pytest
import structlog

from tests.plain_logs import use_plain_logs
from voucherd import logs
from voucherd.http import Request
from voucherd.ids import State
from voucherd.keys.key_text import new_key

KEY = new_key(State.LIVE).text
TEST_KEY = new_key(State.SANDBOX).text
CODE = "CANARY-7F3K-99QX"
PASSWORD = "canary-hunter2"
TOKEN = "CANARY0TQ5V8M3N1R7K2W9XYZA"
CANARIES = [KEY[8:], TEST_KEY[8:], CODE, PASSWORD, TOKEN]


@dataclass
class Voucher:
    """Something whose text holds a code."""

    code: str


@pytest.fixture
def out() -> Iterator[io.StringIO]:
    """Where the logs go; what was there before is put back."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield io.StringIO()
    root.handlers = handlers
    root.setLevel(level)
    use_plain_logs()
    logs._REQUEST.set(None)


def request(request_id: str, **headers: bytes) -> Request:
    """A request of this id."""
    return Request(
        "GET", "/", b"", {name.encode(): value for name, value in headers.items()}, b"", "", request_id
    )


def plant() -> None:
    """Log every secret there is, in every way that someone might."""
    log = structlog.get_logger("test")
    log.info("one", authorization=f"Bearer {KEY}", code=CODE, serial=CODE, token=TOKEN, password=PASSWORD)
    log.info(f"two {KEY} and {TEST_KEY}", headers={"Authorization": f"Bearer {KEY}", "cookie": TOKEN})
    log.info(
        "three", url=f"postgresql://shop:{PASSWORD}@db/shop", dsn=f"host=db password={PASSWORD} user=shop"
    )
    log.info(
        "four", lines=[{"voucherCode": CODE, "voucher_code": CODE, "pin": CODE}, ("x", {"codes": [CODE]})]
    )
    log.info("five", raw=f"Bearer {KEY}".encode(), voucher=Voucher(CODE), body=json.dumps({"code": CODE}))
    mailed = [f"/reset/{TOKEN}-_{TOKEN}", f"https://a.example/invitation/{TOKEN}?x=1"]
    log.info(
        "six", path=f"/r/{TOKEN}", mailed=mailed, deep={"a": {"b": {"c": {"d": {"e": {"f": {"g": CODE}}}}}}}
    )
    try:
        raise ValueError(
            f"password={PASSWORD} for postgresql://shop:{PASSWORD}@db/shop, key {KEY}, code='{CODE}'"
        )
    except ValueError:
        log.exception("seven")
    logging.getLogger("uvicorn.access").info(
        '%s - "%s %s HTTP/1.1" %d', "192.0.2.1", "GET", f"/r/{TOKEN}", 200
    )
    logging.getLogger("uvicorn.error").warning("refused %s", KEY, extra={"authorization": f"Bearer {KEY}"})
    try:
        raise OSError(f"Bearer {TEST_KEY}")
    except OSError:
        logging.getLogger("asyncio").exception("lost postgresql://shop:%s@db/shop", PASSWORD)


@pytest.mark.parametrize("form", ["json", "plain"])
def test_no_canary_comes_out(out: io.StringIO, form: str) -> None:
    """Keys, codes, tokens and passwords never appear in logs."""
    logs.configure("debug", form, out)

    plant()

    text = out.getvalue()
    assert [canary for canary in CANARIES if canary in text] == []
    for word in ("one", "two", "three", "four", "five", "six", "seven", "refused", "lost", "GET"):
        assert word in text


def test_every_line_is_json_and_says_who_when_and_which_request(out: io.StringIO) -> None:
    """OP-26: every response carries X-Request-Id, and the logs find it."""
    logs.configure("info", "auto", out)
    logs.bind_request(request("req-1"))

    plant()

    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert len(lines) == 10
    assert {line["request_id"] for line in lines} == {"req-1"}
    assert all(line["at"].endswith("Z") and line["level"] and line["event"] for line in lines)


async def test_each_task_has_its_own_request_and_background_work_has_none(out: io.StringIO) -> None:
    """OP-26: whatever logs while a request is served names it, and nothing else does."""
    logs.configure("info", "json", out)

    async def serve(request_id: str) -> None:
        logs.bind_request(request(request_id))
        await asyncio.sleep(0)
        structlog.get_logger().info("served", told=request_id)
        await asyncio.create_task(background(), context=Context())

    async def background() -> None:
        structlog.get_logger().info("behind")

    await asyncio.gather(serve("req-1"), serve("req-2"))

    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert sorted((line["event"], line.get("request_id"), line.get("told")) for line in lines[:2]) == [
        ("served", "req-1", "req-1"),
        ("served", "req-2", "req-2"),
    ]
    assert ["request_id" in line for line in lines[2:]] == [False, False]


def test_a_line_names_the_trace_that_its_request_is_part_of(out: io.StringIO) -> None:
    """OP-123: `trace_id` leads from the log to the client's own spans; nonsense is left out."""
    logs.configure("info", "json", out)
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    for given in (
        f"00-{trace}-00f067aa0ba902b7-01",
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
        f"00-{trace}",
        "ü",
    ):
        logs.bind_request(request("req-1", traceparent=given.encode("latin-1")))
        structlog.get_logger().info("served")
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [line.get("trace_id") for line in lines] == [trace, None, None, None]


def test_no_line_of_json_holds_colours(out: io.StringIO) -> None:
    """OP-124: uvicorn says everything twice, once with colours; whatever else brings some loses them."""
    logs.configure("info", "json", out)
    logging.getLogger("uvicorn.error").info(
        "Started server process [%d]",
        7,
        extra={"color_message": "Started server process [\x1b[36m%d\x1b[0m]"},
    )
    structlog.get_logger().info("\x1b[1;31mred\x1b[0m", detail=["\x1b[2mdim\x1b[0m"])
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert "\\u001b" not in out.getvalue()
    assert "\x1b" not in out.getvalue()
    assert "color_message" not in lines[0]
    assert (lines[1]["event"], lines[1]["detail"]) == ("red", ["dim"])


def test_what_is_harmless_stays_readable(out: io.StringIO) -> None:
    """A log that hides everything helps nobody."""
    logs.configure("info", "json", out)

    structlog.get_logger().info(
        "order confirmed",
        trx="TRX0",
        status_code=200,
        lines=3,
        path="/api/1.03/order",
        encode="utf-8",
        ok=True,
    )

    line = json.loads(out.getvalue())
    del line["at"]
    assert line == {
        "event": "order confirmed",
        "level": "info",
        "trx": "TRX0",
        "status_code": 200,
        "lines": 3,
        "path": "/api/1.03/order",
        "encode": "utf-8",
        "ok": True,
    }


def test_what_is_below_the_level_is_not_even_rendered(out: io.StringIO) -> None:
    """Cheap when off: a debug line costs a call."""

    class Untouchable:
        def __str__(self) -> str:
            raise AssertionError("rendered")

    logs.configure("warning", "json", out)
    structlog.get_logger().debug("nothing", value=Untouchable())
    logging.getLogger("uvicorn.error").info("nothing")

    assert out.getvalue() == ""
