"""Connections that fall on purpose: before or after a chosen statement of the operation under test."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Coroutine
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

import asyncpg

from voucherd.connections import LONG, Limits
from voucherd.db import LOOK_UPS, Pool

T = TypeVar("T")
KILL_MS_MAX = 300_000
NAME = f"stumbling in {os.getpid()}"
"""How the database lists these connections: this process's own, since another one may be at its tests there."""


class Way(Enum):
    """How an operation falls at a statement."""

    KILLED = "its backend is terminated before the statement"
    LOST = "the statement is done, but the connection is lost before its answer"
    RAISED = "the statement raises an error"
    CANCELLED = "the task is cancelled in the statement, which the server may finish all the same"


class ProcessFailed(Exception):
    """A bug, or memory that ran out: something that nobody foresaw."""


@dataclass
class Stumble:
    """The plan for one operation: at which of its statements it falls, and how."""

    at: int
    way: Way
    killer: Pool
    error: Exception = field(default_factory=lambda: ProcessFailed("for no reason"))
    statements: list[str] = field(default_factory=list)
    commits: int = 0
    """How many of the operation's transactions the server has committed."""

    @property
    def fell(self) -> bool:
        """Whether the operation had that many statements."""
        return len(self.statements) >= self.at

    async def during(self, operation: Awaitable[T]) -> T:
        """What the operation answers, falling on its way."""
        token = _PLAN.set(self)
        try:
            return await operation
        finally:
            _PLAN.reset(token)


@dataclass
class StumbleAtCommit(Stumble):
    """The same for an operation's first commit, or for the statement after it, however many come before it."""

    at: int = field(default=0, init=False)
    after: bool = False

    @property
    def fell(self) -> bool:
        """Whether the operation came so far."""
        return "COMMIT;" in (self.statements[:-1] if self.after else self.statements)


# The plan follows the operation into the tasks that it starts, and reaches nothing else that uses the pool.
_PLAN: ContextVar[Stumble | None] = ContextVar("stumble", default=None)


class StumblingConnection(asyncpg.Connection):
    """A connection that asks the plan before every statement, BEGIN and COMMIT included."""

    async def execute(self, query: str, *args: Any, **options: Any) -> str:
        """As the driver's."""
        return await self._walk(query, super().execute(query, *args, **options))

    async def executemany(self, command: str, args: Any, **options: Any) -> None:
        """As the driver's."""
        return await self._walk(command, super().executemany(command, args, **options))

    async def fetch(self, query: str, *args: Any, **options: Any) -> Any:
        """As the driver's."""
        return await self._walk(query, super().fetch(query, *args, **options))

    async def fetchrow(self, query: str, *args: Any, **options: Any) -> Any:
        """As the driver's."""
        return await self._walk(query, super().fetchrow(query, *args, **options))

    async def fetchval(self, query: str, *args: Any, **options: Any) -> Any:
        """As the driver's."""
        return await self._walk(query, super().fetchval(query, *args, **options))

    async def _walk(self, query: str, statement: Coroutine[Any, Any, T]) -> T:
        plan = _PLAN.get()
        if plan is None or plan.fell:
            return await statement
        plan.statements.append(" ".join(query.split()))
        falls = plan.fell
        if falls and plan.way is Way.RAISED:
            statement.close()
            raise plan.error
        if falls and plan.way is Way.KILLED:
            await self._kill(plan)
        if falls and plan.way is Way.CANCELLED:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
        answer = await statement
        plan.commits += query.startswith("COMMIT")
        if falls:
            await self._kill(plan)
            raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")
        return answer

    async def _kill(self, plan: Stumble) -> None:
        pid = self.get_server_pid()
        assert await plan.killer.fetchval("SELECT pg_terminate_backend($1, $2)", pid, KILL_MS_MAX)


async def open_stumbling_pool(
    url: str, *, size_max: int = 10, size_min: int = 1, look_ups: bool = False, limits: Limits = LONG
) -> Pool:
    """The service's pool, of such connections."""
    return await asyncpg.create_pool(
        url,
        min_size=size_min,
        max_size=size_max,
        connection_class=StumblingConnection,
        reset=_keep,
        server_settings={"application_name": NAME} | limits.settings | (LOOK_UPS if look_ups else {}),
    )


async def _keep(_connection: Any) -> None:
    """As the service's own pool: nothing to reset."""
