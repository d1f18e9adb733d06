"""Exchange rates from an address: a real server on this machine, well or badly behaved, and one refresh at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.patience import until
from tests.shop import open_shop
from voucherd.catalogue import fx_feed, fx_store, store
from voucherd.catalogue.fx_feed import FeedFailed, fetch, is_due, published_by, refresh
from voucherd.catalogue.fx_store import FxFeed
from voucherd.db import Pool
from voucherd.settings import Settings, SettingsError

CSV = b"Date, USD, JPY, \n13 November 2026, 1.0832, 163.45, \n"
Answer = Callable[[], bytes]


def answer(body: bytes, head: str = "200 OK", *headers: str) -> bytes:
    """A whole HTTP answer."""
    lines = [f"HTTP/1.1 {head}", f"content-length: {len(body)}", "connection: close", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


@asynccontextmanager
async def bank(said: bytes, *, calls: list[bytes] | None = None, pause_s: float = 0) -> AsyncIterator[str]:
    """The address of a server that says this to everyone."""
    lines: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines.append(writer)
        # Someone who has heard enough, or has waited enough, hangs up.
        with closing(writer), suppress(ConnectionError, asyncio.IncompleteReadError):
            asked = await reader.readuntil(b"\r\n\r\n")
            if calls is not None:
                calls.append(asked)
            await asyncio.sleep(pause_s)
            writer.write(said)
            await writer.drain()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/eurofxref.csv?x=1"
        # A client that has left may have been let in just now: its line is to be closed, too.
        for _ in range(20):
            await asyncio.sleep(0)
    for line in lines:
        line.close()


async def test_the_bank_is_asked_once_and_its_rates_are_taken(pool: Pool) -> None:
    """OP-71: one worker at a time; the rest find it done."""
    calls: list[bytes] = []
    async with bank(answer(CSV), calls=calls, pause_s=0.05) as url:
        taken = await asyncio.gather(*(refresh(pool, url) for _ in range(4)))

    assert sorted(taken) == [0, 0, 0, 2]
    assert len(calls) == 1
    assert calls[0].startswith(b"GET /eurofxref.csv?x=1 HTTP/1.1\r\n")
    async with pool.acquire() as conn:
        rates = await store.list_rates(conn)
        standing = await fx_store.feed(conn)
    assert [
        (rate.currency, rate.eur_e8, rate.source) for rate in rates if rate.day <= date(2026, 11, 13)
    ] == [
        ("JPY", 611808, "ecb"),
        ("USD", 92319055, "ecb"),
    ]
    assert (standing.newest_day, standing.problem) == (date(2026, 11, 13), None)
    assert standing.taken_at is not None


async def test_the_worker_takes_the_rates_when_it_starts(
    pool: Pool, database_url: str, tmp_path: Path
) -> None:
    """OP-71: where an address is set, and only there."""
    async with bank(answer(CSV)) as url, open_shop(pool, database_url, tmp_path, fx_url=url) as shop:
        await until(lambda: pool.fetchval("SELECT taken_at IS NOT NULL FROM fx_feed"))
        assert await pool.fetchval("SELECT count(*) FROM fx_rate") == 2
        # It was just done, so it is not due again.
        assert await shop.worker.run_once("refresh_rates") == 0
    async with open_shop(pool, database_url, tmp_path, with_worker=False) as shop:
        assert await shop.worker.run_once("refresh_rates") == 0


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (
            answer(b"", "302 Found", "location: http://127.0.0.1:1/"),
            "a redirect (302), which is not followed",
        ),
        (answer(b"gone", "404 Not Found"), "the answer is 404"),
        (answer(b"x", "200 OK", "content-encoding: gzip"), "compressed"),
        (answer(b"hello"), "not a file of the ECB"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nDate", "no answer"),
        (b"nonsense\r\n\r\n", "no answer"),
        (answer(b" " * 2_000), "longer than 1000 bytes"),
    ],
)
async def test_a_bank_that_misbehaves_changes_no_rate_and_is_written_down(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, said: bytes, problem: str
) -> None:
    """OP-71: no redirect is followed, nothing is read without a bound, and the operator can see what went wrong."""
    monkeypatch.setattr(fx_feed, "FILE_BYTES_MAX", 1_000)
    async with bank(said) as url:
        assert await refresh(pool, url) == 0
        assert await refresh(pool, url) == 0

    async with pool.acquire() as conn:
        standing = await fx_store.feed(conn)
        assert await store.list_rates(conn) == []
    assert standing.problem is not None
    assert problem in standing.problem
    assert standing.taken_at is None


async def test_a_bank_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """OP-71: everything that waits has a bound."""
    with pytest.raises(FeedFailed, match="no answer"):
        await fetch("http://127.0.0.1:1/")
    monkeypatch.setattr(fx_feed, "FETCH_S_MAX", 0.05)
    async with bank(b"", pause_s=1) as url:
        with pytest.raises(FeedFailed, match=r"no whole answer within 0\.05 seconds"):
            await fetch(url)


def test_the_bank_publishes_on_working_days_in_the_afternoon() -> None:
    """OP-71: from 15:00 UTC on, which is 16:00 in Frankfurt, or later in summer."""
    friday = date(2026, 11, 13)
    assert published_by(datetime(2026, 11, 13, 14, 59, tzinfo=UTC)) == date(2026, 11, 12)
    for moment in ((13, 15), (14, 12), (14, 20), (15, 20), (16, 14)):
        assert published_by(datetime(2026, 11, *moment, tzinfo=UTC)) == friday
    assert published_by(datetime(2026, 11, 16, 15, tzinfo=UTC)) == date(2026, 11, 16)


def test_rates_are_due_when_a_day_is_missing_or_nobody_asked_for_a_day() -> None:
    """OP-71: once a day after 16:00, again after an hour where that brought nothing, and at the first start."""
    now = datetime(2026, 11, 13, 15, 30, tzinfo=UTC)

    def due(newest: date | None, ago: timedelta | None) -> bool:
        return is_due(FxFeed(now, newest, None if ago is None else now - ago, None, None))

    minute, today, yesterday = timedelta(minutes=1), date(2026, 11, 13), date(2026, 11, 12)
    assert due(today, None)
    assert due(None, 61 * minute)
    assert not due(None, 59 * minute)
    assert due(yesterday, 61 * minute)
    assert not due(yesterday, 59 * minute)
    assert not due(today, 61 * minute)
    assert not due(today, timedelta(hours=23))
    assert due(today, timedelta(hours=24))


@pytest.mark.parametrize(
    "url",
    [
        "ftp://b.example/",
        "http://b.example/",
        "https://u:p@b.example/",
        "https://",
        "https://b/#x",
        "rates.xml",
    ],
)
def test_an_address_is_over_tls_or_on_this_machine(url: str) -> None:
    """OP-71: rates decide about money, so nobody on the way may change them."""
    with pytest.raises(SettingsError, match="VOUCHERD_FX_URL: must be an address"):
        Settings.load(env={"VOUCHERD_FX_URL": url})
    for good in (
        "https://b.example/rates.xml?a=1",
        "http://127.0.0.1:8/r",
        "http://[::1]/",
        "http://localhost/",
    ):
        loaded: Any = Settings.load(env={"VOUCHERD_FX_URL": good})
        assert loaded.fx_url == good
