"""Exchange rates from an address: one bounded call, and when it is due.

It works on the transport of httpx and not on its client, so there are no redirects, proxies or decompression to
turn off.
"""

from __future__ import annotations

import asyncio
from datetime import date, datetime, timedelta
from typing import Final

import httpx
import structlog

from voucherd.actors import SYSTEM
from voucherd.catalogue import fx_store, rate_deeds
from voucherd.catalogue.fx import FILE_BYTES_MAX, BadRates, parse_ecb
from voucherd.catalogue.fx_store import FxFeed
from voucherd.db import Pool, transaction

FETCH_S_MAX: Final = 30.0
RETRY: Final = timedelta(hours=1)
"""Between two attempts, whatever came of the first."""
AGE_MAX: Final = timedelta(days=1)
PUBLISHED_AT: Final = timedelta(hours=15)
"""The bank publishes about 16:00 in Frankfurt: 15:00 UTC, or an hour before it in summer."""

logger = structlog.get_logger(__name__)


class FeedFailed(Exception):
    """The rates could not be had from the address."""


async def fetch(url: str) -> bytes:
    """What the address answers, in full and in time; an address is checked where it is read."""
    request = httpx.Request("GET", url, headers={"accept-encoding": "identity", "user-agent": "voucherd"})
    try:
        async with asyncio.timeout(FETCH_S_MAX), httpx.AsyncHTTPTransport(trust_env=False) as transport:
            response = await transport.handle_async_request(request)
            try:
                return await _body(response)
            finally:
                await response.aclose()
    except TimeoutError:
        raise FeedFailed(f"no whole answer within {FETCH_S_MAX:g} seconds") from None
    except (httpx.HTTPError, httpx.StreamError, OSError) as error:
        raise FeedFailed(f"no answer: {error or type(error).__name__}") from None


async def _body(response: httpx.Response) -> bytes:
    if response.is_redirect:
        raise FeedFailed(f"the answer is a redirect ({response.status_code}), which is not followed")
    if response.status_code != httpx.codes.OK:
        raise FeedFailed(f"the answer is {response.status_code}")
    if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise FeedFailed("the answer is compressed, which was not asked for")
    body = bytearray()
    async for part in response.aiter_raw():
        body += part
        if len(body) > FILE_BYTES_MAX:
            raise FeedFailed(f"the answer is longer than {FILE_BYTES_MAX} bytes")
    return bytes(body)


def host_of(url: str) -> str:
    """Who serves the rates: of the address only what can't hold a credential."""
    return httpx.URL(url).host


def published_by(now: datetime) -> date:
    """The last day whose rates should be out: a working day, from its afternoon on. Holidays are not known here."""
    day = (now - PUBLISHED_AT).date()
    return day - timedelta(days=max(day.weekday() - 4, 0))


def is_due(feed: FxFeed) -> bool:
    """Whether the rates should be asked for now."""
    if feed.attempted_at is None:
        return True
    since = feed.now - feed.attempted_at
    missing = feed.newest_day is None or feed.newest_day < published_by(feed.now)
    return since >= AGE_MAX or (since >= RETRY and missing)


async def refresh(pool: Pool, url: str) -> int:
    """Take the rates from the address if they are due and nobody else does; how many were taken."""
    async with pool.acquire() as conn:
        seen = await fx_store.feed(conn)
        if not is_due(seen) or not await fx_store.claim_feed(conn, seen):
            return 0
    try:
        days = parse_ecb(await fetch(url))
    except (FeedFailed, BadRates) as error:
        logger.warning("fx_refresh_failed", url=url, error=str(error))
        async with pool.acquire() as conn:
            await fx_store.note_feed(conn, str(error))
        return 0
    async with transaction(pool) as tx:
        count = await rate_deeds.import_rates(tx, SYSTEM, host_of(url), days, fetched=True)
    logger.info("fx_refreshed", url=url, rates=count, newest=max(day.day for day in days).isoformat())
    return count
