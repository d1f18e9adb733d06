"""The authenticator: from an Authorization header to a caller, without the database on the hot path.

Recognised keys are kept in memory and trusted only while the access epoch is known not to have moved. It is
asked four times a second, and every look-up brings it along. A kept key counts for one second after the
*question* that confirmed it, so a change is seen everywhere within that second, even by a process
that lost the database: that one asks about every request again.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from hmac import compare_digest
from math import inf
from time import monotonic, time
from typing import Final

import structlog

from voucherd.connections import CONNECT_S_MAX
from voucherd.db import Pool
from voucherd.keys import store as key_store
from voucherd.keys.callers import Caller, Forbidden, Unauthorized
from voucherd.keys.key_text import Scope, bearer_key, key_hash, tidied
from voucherd.limits.rate_limits import RateLimiter
from voucherd.limits.rate_store import Lender
from voucherd.limits.spending import limits_of
from voucherd.limits.strangers import STRANGERS_A_MINUTE, Strangers, TooManyStrangers

POLL_S: Final = 0.25
ANSWER_S_MAX: Final = 0.5
"""How long a poll may take; past it the next one is tried."""

LOOK_UP_S_MAX: Final = 4.0
"""How long a key is looked up: all calls with it wait for the one look-up."""

TRUST_S: Final = 1.0
CACHED_MAX: Final = 10_000
FAMILIAR_MAX: Final = 10_000
LAST_USE_S: Final = 5.0

_log = structlog.get_logger(__name__)


class Authenticator:
    """Lets requests in by their key. Start it before use and stop it after."""

    def __init__(self, pool: Pool, *, strangers_a_minute: int = STRANGERS_A_MINUTE) -> None:
        self.limiter: Final = RateLimiter(Lender(pool).lend)
        self._strangers = Strangers(strangers_a_minute)
        self._familiar: dict[bytes, None] = {}
        self._pool = pool
        self._callers: dict[bytes, Caller] = {}
        self._looking_up: dict[bytes, asyncio.Task[Caller | None]] = {}
        self._used_at_s: dict[int, float] = {}
        self._epoch = 0
        self._epoch_seen_at = -inf
        self._fresh_until = -inf
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin to watch the epoch; fails if the database can't be asked even once."""
        await self._poll(CONNECT_S_MAX)
        self._tasks = [asyncio.create_task(self._watch()), asyncio.create_task(self._note_last_use())]

    async def stop(self) -> None:
        """End the background work and write down what was not yet written."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, *self._looking_up.values(), return_exceptions=True)
        await self.limiter.stop()
        self._fresh_until = -inf
        await self._write_last_use()

    def known(self, authorization: bytes) -> Caller | None:
        """The caller behind this very header, if nothing needs to be asked; else `admit` it."""
        if self._fresh_until <= monotonic():
            return None
        caller = self._callers.get(authorization)
        if caller is None or not caller.terms.anywhere:
            return None
        now_s = time()
        if caller.expires_at_s <= now_s:
            return None
        self._used_at_s[caller.key_id] = now_s
        return caller

    async def admit(self, authorization: bytes | None, client_ip: str) -> Caller:
        """The caller behind this header; refuses a key that is not valid now, or not from this address."""
        caller = None
        if authorization is not None:
            # One form for each key, so that nobody fills the memory with spaces.
            authorization = tidied(authorization)
            caller = self._callers.get(authorization) if self._fresh_until > monotonic() else None
        now_s = time()
        if caller is None:
            # A key that was good lately is looked up whatever others at its address do.
            if authorization not in self._familiar:
                self._strangers.check(client_ip)
            if authorization is not None:
                caller = await self._look_up(authorization)
        if caller is None or caller.expires_at_s <= now_s:
            self._strangers.count(client_ip)
            raise Unauthorized(token_sent=authorization is not None)
        if not caller.terms.permits(client_ip):
            raise Forbidden("address")
        self._used_at_s[caller.key_id] = now_s
        return caller

    async def reader(self, authorization: bytes, client_ip: str) -> Caller | None:
        """The caller behind this header, if it may still read events from this address."""
        try:
            caller = await self.admit(authorization, client_ip)
            caller.require(Scope.EVENTS_READ)
        except (Unauthorized, Forbidden, TooManyStrangers):
            return None
        return caller

    async def _look_up(self, authorization: bytes) -> Caller | None:
        """Ask the database, once for all requests that wait for the same key."""
        text = bearer_key(authorization)
        if text is None:
            return None
        task = self._looking_up.get(authorization)
        if task is None:
            task = asyncio.create_task(self._load(authorization, key_hash(text)))
            self._looking_up[authorization] = task
            task.add_done_callback(lambda done: self._looked_up(authorization, done))
        # One request that gives up must not take the answer from the others.
        return await asyncio.shield(task)

    def _looked_up(self, authorization: bytes, task: asyncio.Task[Caller | None]) -> None:
        del self._looking_up[authorization]
        # Callers that wait get the failure; with nobody left to wait it is no news.
        if not task.cancelled():
            task.exception()

    async def _load(self, authorization: bytes, wanted: bytes) -> Caller | None:
        asked_at = monotonic()
        async with asyncio.timeout(LOOK_UP_S_MAX):
            found = await key_store.find_key(self._pool, wanted)
        if found is None or not compare_digest(found.hash, wanted):
            self._familiar.pop(authorization, None)
            return None
        if authorization not in self._familiar and len(self._familiar) >= FAMILIAR_MAX:
            del self._familiar[next(iter(self._familiar))]
        self._familiar[authorization] = None
        key = found.key
        caller = Caller(
            key_id=key.id,
            company_id=key.company_id,
            state=key.state,
            scopes=key.scopes,
            company=found.company,
            rate_limit=key.rate_limit,
            window=self.limiter.window(key.id),
            terms=key,
            limits=limits_of(
                (0, found.company.spend_order_eur_minor, found.company.spend_day_eur_minor),
                (key.counter_id, key.spend_order_eur_minor, key.spend_day_eur_minor),
                *found.limits_above,
            ),
            counter_id=key.counter_id,
            expires_at_s=inf if key.expires_at is None else key.expires_at.timestamp(),
        )
        if self._confirm(found.epoch, asked_at):
            if len(self._callers) >= CACHED_MAX:
                del self._callers[next(iter(self._callers))]
            self._callers[authorization] = caller
        return caller

    def _confirm(self, epoch: int, asked_at: float) -> bool:
        """Take note of the epoch; False if the answer may be older than the epoch known already."""
        if epoch != self._epoch:
            if asked_at < self._epoch_seen_at:
                return False
            self._callers.clear()
            self._epoch = epoch
        self._epoch_seen_at = monotonic()
        self._fresh_until = max(self._fresh_until, asked_at + TRUST_S)
        return True

    async def _poll(self, answer_s_max: float) -> None:
        asked_at = monotonic()
        async with asyncio.timeout(answer_s_max):
            self._confirm(await key_store.read_epoch(self._pool), asked_at)

    async def _watch(self) -> None:
        failing = False
        while True:
            await asyncio.sleep(POLL_S)
            try:
                await self._poll(ANSWER_S_MAX)
                failing = False
            except Exception as error:  # noqa: BLE001 - The watch must outlive whatever befalls the database.
                if not failing:
                    _log.warning(
                        "access epoch can't be read; keys are looked up each time", error=repr(error)
                    )
                failing = True

    async def _note_last_use(self) -> None:
        while True:
            await asyncio.sleep(LAST_USE_S)
            await self._write_last_use()

    async def _write_last_use(self) -> None:
        used, self._used_at_s = self._used_at_s, {}
        if not used:
            return
        # A time of last use that is lost with the database is lost; nothing depends on it.
        with suppress(Exception):
            async with asyncio.timeout(LAST_USE_S):
                moments = {key_id: datetime.fromtimestamp(at_s, UTC) for key_id, at_s in used.items()}
                await key_store.record_last_use(self._pool, moments)
