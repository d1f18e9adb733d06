"""Streams: clients that listen are sent events as they happen, as server-sent events.

One poll of the feed serves all listeners of a process, and only while there are any; none of them holds a connection of
the database. A listener is told its place in the feed with every event, so a client that is cut off goes on from there.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable
from contextvars import Context
from typing import Final

import structlog

from voucherd.db import Pool, tenant
from voucherd.events import feed, kinds, wire
from voucherd.events.feed import Cursor, Event, EventFilters, FeedPage
from voucherd.events.listeners import Pass, Reader, StreamListener, StreamSigning
from voucherd.ids import Identifiers, State

POLL_S: Final = 0.1
FAILED_POLL_S: Final = 1.0
POLL_EVENTS_MAX: Final = 500
CHECK_S: Final = 2.0
"""How often it is asked whether those who listen still may."""

CATCH_UP_EVENTS_MAX: Final = 200
CATCH_UPS_MAX: Final = 2
"""Reads of the past at once: when everybody comes back after a restart, sales need connections too."""

RETRY_MS: Final = 2_000
SECRET: Final = "secret"  # noqa: S105 - The name of it, not one.
"""The first message of a signed stream, which is no event: the secret that it is signed with."""
STREAMS_MAX: Final = 20_000
STREAMS_OF_KEY_MAX: Final = 100
TURN_EVENTS_MAX: Final = 20
TURN_LISTENERS_MAX: Final = 1_000
"""So much is told before others get their turn: calls, and those who send what was told."""

logger = structlog.get_logger(__name__)


class TooManyStreams(Exception):
    """The key has as many streams open as it may."""


class StreamsFull(Exception):
    """The process has as many streams open as it can serve."""


class Streams:
    """Everybody who listens to this process."""

    def __init__(
        self, pool: Pool, ids: Identifiers, admit: Callable[[bytes, str], Awaitable[Reader | None]]
    ) -> None:
        self._pool = pool
        self._ids = ids
        self._admit = admit
        self._listeners: dict[tuple[int, State], set[StreamListener]] = {}
        self._of_key: Counter[int] = Counter()
        self._cursor = feed.START
        self._poller: asyncio.Task[None] | None = None
        self._checker: asyncio.Task[None] | None = None
        self._catch_ups = asyncio.Semaphore(CATCH_UPS_MAX)
        self._closing = False

    @property
    def open(self) -> int:
        """How many listen."""
        return self._of_key.total()

    async def page(
        self, caller: Reader, cursor: Cursor | None, *, limit: int, filters: EventFilters = feed.EVERYTHING
    ) -> FeedPage:
        """A page of what the caller may see."""
        async with self._pool.acquire() as conn:
            return await feed.after(
                conn, cursor, limit=limit, company_id=caller.company_id, state=caller.state, filters=filters
            )

    async def find(self, caller: Reader, number: int) -> Event | None:
        """One event that the caller may see."""
        async with tenant(self._pool, caller.company_id, caller.state) as conn:
            return await feed.find(conn, number, caller.company_id, caller.state)

    async def listen(
        self,
        caller: Reader,
        pass_: Pass,
        *,
        cursor: Cursor | None,
        types: Collection[str] | None,
        from_now: bool = False,
        signing: StreamSigning | None = None,
    ) -> AsyncGenerator[bytes, None]:
        """What happens after the cursor (None: what is kept), or from now on; refused where that can't be had."""
        if self._of_key[caller.key_id] >= STREAMS_OF_KEY_MAX:
            raise TooManyStreams
        if self.open >= STREAMS_MAX:
            raise StreamsFull
        listener = StreamListener(caller, pass_, types, signing)
        if from_now:
            return self._told(listener, FeedPage([], await self._now(), more=False))
        return self._told(listener, await self._past(listener, cursor))

    def let_go(self) -> None:
        """End all streams: the process is about to stop."""
        self._closing = True
        for listener in self._everybody():
            listener.end()

    async def stop(self) -> None:
        """End the poll."""
        self.let_go()
        tasks = [task for task in (self._poller, self._checker) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _told(self, listener: StreamListener, page: FeedPage) -> AsyncGenerator[bytes, None]:
        """What the first page holds and all that follows it, until somebody ends it."""
        # A place at the very beginning: a client that is cut off before the first event goes on from there, too.
        yield b"retry: %d\n" % RETRY_MS + (b"\n" if page.events else self._place(page.cursor))
        if listener.signing is not None:
            yield b"event: %b\ndata: %b\n\n" % (SECRET.encode(), listener.signing.secret.encode())
        try:
            while page.more or not self._join(listener, page.cursor):
                yield self._messages(page.events, listener.signing)
                page = await self._past(listener, page.cursor)
            yield self._messages(page.events, listener.signing)
            while (part := await listener.next()) is not None:
                yield part or b": still here\n" + self._place(max(listener.place, self._cursor))
        finally:
            self._leave(listener)

    async def _now(self) -> Cursor:
        """The place of the common reading, or the end of the feed where nobody reads yet."""
        if self._poller is not None and not self._poller.done():
            return self._cursor
        async with self._catch_ups, self._pool.acquire() as conn:
            return await feed.head(conn)

    async def _past(self, listener: StreamListener, cursor: Cursor | None) -> FeedPage:
        async with self._catch_ups:
            filters = EventFilters(types=listener.types)
            return await self.page(listener.caller, cursor, limit=CATCH_UP_EVENTS_MAX, filters=filters)

    def _join(self, listener: StreamListener, cursor: Cursor) -> bool:
        """Tell the listener what follows its place from now on; False if some of that was told already."""
        if self._poller is None or self._poller.done():
            self._cursor = cursor
            self._poller = asyncio.create_task(self._poll(), context=Context())
        elif cursor < self._cursor:
            return False
        if self._checker is None or self._checker.done():
            self._checker = asyncio.create_task(self._check(), context=Context())
        listener.place = cursor
        self._listeners.setdefault(listener.audience, set()).add(listener)
        self._of_key[listener.caller.key_id] += 1
        if self._closing:
            listener.end()
        return True

    def _leave(self, listener: StreamListener) -> None:
        together = self._listeners.get(listener.audience, set())
        if listener not in together:
            return
        together.remove(listener)
        if not together:
            del self._listeners[listener.audience]
        key_id = listener.caller.key_id
        self._of_key[key_id] -= 1
        if not self._of_key[key_id]:
            del self._of_key[key_id]

    async def _poll(self) -> None:
        """Read on and tell everybody, as long as there is anybody."""
        while self._listeners:
            try:
                async with self._pool.acquire() as conn:
                    page = await feed.after(conn, self._cursor, limit=POLL_EVENTS_MAX)
            except Exception as error:  # noqa: BLE001 - A database that is away must not end the streams.
                logger.warning("stream_poll_failed", error=repr(error))
                await asyncio.sleep(FAILED_POLL_S)
                continue
            told = 0
            for number, event in enumerate(page.events, 1):
                told += self._tell(event)
                self._cursor = event.cursor
                if told >= TURN_LISTENERS_MAX or number % TURN_EVENTS_MAX == 0:
                    told = 0
                    await asyncio.sleep(0)
            self._cursor = page.cursor
            if not page.more:
                await asyncio.sleep(POLL_S)

    def _tell(self, event: Event) -> int:
        """Give an event to all whom it concerns; how many there were to look at."""
        if event.company_id is not None and event.state is not None:
            audience: Collection[StreamListener] = self._listeners.get((event.company_id, event.state), ())
        else:
            audience = self._everybody() if event.type in kinds.FOR_ALL else ()
        message = b""
        for listener in audience:
            if listener.wants(event):
                if listener.signing is not None:
                    listener.put(self._message(event, listener.signing), event.cursor)
                    continue
                message = message or self._message(event)
                listener.put(message, event.cursor)
        return len(audience)

    def _everybody(self) -> list[StreamListener]:
        return [listener for together in self._listeners.values() for listener in together]

    def _messages(self, events: Iterable[Event], signing: StreamSigning | None) -> bytes:
        return b"".join([self._message(event, signing) for event in events])

    def _message(self, event: Event, signing: StreamSigning | None = None) -> bytes:
        name, data = self._ids.event(event.id), wire.written(event, self._ids)
        message = b"id: %b\nevent: %b\ndata: %b\n\n" % (name.encode(), event.type.encode(), data)
        return message if signing is None else signing.head(name, data) + message

    def _place(self, cursor: Cursor) -> bytes:
        """Where to go on from, without an event."""
        return b"id: %b\n\n" % self._ids.event(cursor.place).encode()

    async def _check(self) -> None:
        """End the streams of those who may no longer listen."""
        while self._listeners:
            await asyncio.sleep(CHECK_S)
            for pass_, together in self._by_pass().items():
                caller = await self._admitted(pass_)
                for listener in together:
                    if caller is None or caller.key_id != listener.caller.key_id:
                        listener.end()

    def _by_pass(self) -> dict[Pass, list[StreamListener]]:
        found: dict[Pass, list[StreamListener]] = {}
        for listener in self._everybody():
            found.setdefault(listener.pass_, []).append(listener)
        return found

    async def _admitted(self, pass_: Pass) -> Reader | None:
        """Who listens by this right; None if nobody may any more."""
        while True:
            try:
                return await self._admit(pass_.authorization, pass_.client_ip)
            except Exception as error:  # noqa: BLE001 - Without the database nobody knows, and nothing is told either.
                logger.warning("stream_check_failed", error=repr(error))
                await asyncio.sleep(CHECK_S)
