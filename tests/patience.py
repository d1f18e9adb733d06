"""Waiting for what must come, however slow the machine is: a test waits for a fact, never for a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from types import ModuleType
from typing import Any, Final, TypeVar

import pytest

from voucherd import connections, migrate
from voucherd.db import Pool, Tx
from voucherd.keys import authenticator
from voucherd.limits import allowances

HANG_S: Final = 300.0
"""Ends a test that would wait for ever; no machine that works needs so long for one step."""
LOOK_EVERY_S: Final = 0.01
STANDS_S: Final = 0.25
"""A process that could not look at the clock for longer stood still meanwhile."""
PATIENT: Final = {
    "resolve_limit_s": 2 * HANG_S,
    "answer_limit_s": 2 * HANG_S,
    "batch_limit_s": 2 * HANG_S,
    "transaction_s_max": HANG_S,
}
"""Settings: a slow machine must not end a call, nor a sale's transaction; a test that wants such a limit says so."""

T = TypeVar("T")

_CONSTANTS: Final[tuple[tuple[ModuleType, str, Any], ...]] = (
    (connections, "CONNECT_S_MAX", HANG_S),
    (authenticator, "CONNECT_S_MAX", HANG_S),
    (authenticator, "LOOK_UP_S_MAX", HANG_S),
    (migrate, "MIGRATION", connections.MIGRATION._replace(idle_s=HANG_S)),
)
"""Limits of the service that are no settings, and that a machine which stands still for seconds would reach."""
_USUAL: Final = tuple((module, name, getattr(module, name)) for module, name, _ in _CONSTANTS)


def be_patient() -> None:
    """Let this process wait for a database that is only slow."""
    for module, name, value in _CONSTANTS:
        setattr(module, name, value)


@contextmanager
def usual_limits() -> Iterator[None]:
    """The service's own limits again, for tests of a database that hangs."""
    for module, name, value in _USUAL:
        setattr(module, name, value)
    try:
        yield
    finally:
        be_patient()


def in_environment(settings: Mapping[str, object]) -> dict[str, str]:
    """Settings as a program reads them from its environment."""
    return {f"VOUCHERD_{name.upper()}": str(value) for name, value in settings.items()}


class OwnTime:
    """A clock that stands still while this process does, so that no limit is missed because a machine is slow."""

    def __init__(self) -> None:
        self.stood_s = 0.0
        """How long it has stood still so far."""
        self._passed_s = 0.0
        self._looked_at = time.monotonic()

    def __call__(self) -> float:
        """The time that has passed."""
        return self._passed_s + min(time.monotonic() - self._looked_at, STANDS_S)

    async def go_on(self) -> None:
        """Look at the real clock, again and again."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            now = time.monotonic()
            since_s = now - self._looked_at
            self._passed_s += min(since_s, STANDS_S)
            self.stood_s += max(since_s - STANDS_S, 0.0)
            self._looked_at = now


@asynccontextmanager
async def own_time() -> AsyncIterator[OwnTime]:
    """Such a clock, as long as the block runs."""
    clock = OwnTime()
    going = asyncio.create_task(clock.go_on())
    try:
        yield clock
    finally:
        going.cancel()


async def until(look: Callable[[], Awaitable[T]], failure: str = "it never came") -> T:
    """The first answer that is true, of as many looks as it takes."""
    ends_at = time.monotonic() + HANG_S
    while True:
        if seen := await look():
            return seen
        assert time.monotonic() < ends_at, failure
        await asyncio.sleep(LOOK_EVERY_S)


async def until_true(look: Callable[[], object], failure: str = "it never came") -> None:
    """Returns once the look is true; for facts of this process."""

    async def looked() -> bool:
        return bool(look())

    await until(looked, failure)


async def until_blocked(pool: Pool, count: int = 1) -> None:
    """Returns once so many statements of this database wait for a lock."""

    async def blocked() -> bool:
        waiting = await pool.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return int(waiting) >= count

    await until(blocked, "nobody waits for a lock")


def pause_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the pauses after tries in vain so long that none ends before a slow machine has tried again."""
    pause_s = allowances.pause_s
    monkeypatch.setattr(
        allowances, "pause_s", lambda allowance, failures: 1_800 * pause_s(allowance, failures)
    )


def wait_until(look: Callable[[], T], failure: str = "it never came") -> T:
    """The first answer that is true, for tests without a loop."""
    ends_at = time.monotonic() + HANG_S
    while True:
        if seen := look():
            return seen
        assert time.monotonic() < ends_at, failure
        time.sleep(LOOK_EVERY_S)


async def suppliers_are_well(pool: Pool) -> None:
    """Nobody need wait any more for what suppliers did before. Rows that a worker has are left: it is at them."""
    await pool.execute(
        "UPDATE supplier_health SET failures = 0, open_until = NULL"
        " WHERE supplier_id IN (SELECT supplier_id FROM supplier_health FOR UPDATE SKIP LOCKED)"
    )
    await pool.execute(
        "UPDATE waiting SET ask_at = now()"
        " WHERE ctid = ANY(ARRAY(SELECT ctid FROM waiting WHERE ask_at > now() FOR UPDATE SKIP LOCKED))"
    )


async def a_day_later(pool: Pool | Tx) -> None:
    """Let a day pass for people who are new and for rules that wait."""
    await pool.execute(
        "UPDATE app_user SET rests_until = rests_until - interval '1 day' WHERE rests_until > now()"
    )
    await pool.execute(
        "UPDATE rule_change SET asked_at = asked_at - interval '1 day', holds_from = holds_from - interval '1 day'"
    )
