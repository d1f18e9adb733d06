"""A connection to the database that is dropped, not awaited, when nobody waits for its statement any more."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final

import asyncpg
from asyncpg import connect_utils

if TYPE_CHECKING:

    class _Connection(asyncpg.Connection[asyncpg.Record]):
        """The driver's connection, with what it tells nobody."""

        _loop: asyncio.AbstractEventLoop
        _addr: Any
        _params: Any
        _protocol: Any

        def _on_release(self, stacklevel: int = 1) -> None: ...

else:
    _Connection = asyncpg.Connection

CANCEL_S_MAX: Final = 1.0
"""How long the server is asked to stop a statement whose connection is gone."""

_cancels: set[asyncio.Task[None]] = set()


class ServiceConnection(_Connection):
    """Ends together with a statement that is abandoned, so that its pool opens another one at once.

    The driver would ask the server to stop the statement, over a second connection, and keep the first one until the
    server has done so. A server that hangs does not even take the second one. Here it is asked, too, so that a server
    that lives does no work for nobody; but nobody waits for its answer.
    """

    __slots__ = ("_abandoned", "_given_back")

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._abandoned = self._given_back = False

    def execute(self, query: str, *arguments: Any, timeout: float | None = None) -> Coroutine[Any, Any, str]:
        """Run a statement; the transaction of an abandoned one is over by itself.

        A ROLLBACK that fails would hide from the task that it was cancelled, and it would go on.
        """
        if self._abandoned and query.startswith("ROLLBACK"):
            return _nothing()
        return super().execute(query, *arguments, timeout=timeout)

    def _on_release(self, stacklevel: int = 1) -> None:
        """It is given back to its pool, which looks at it in the next turn of the loop."""
        self._given_back = True
        super()._on_release(stacklevel + 1)

    def _drop(self) -> None:
        # A pool that has not looked yet would find somebody else's connection, or none.
        if self._given_back:
            self._given_back = False
            self._loop.call_soon(self._drop)
        else:
            self.terminate()

    def _cancel_current_command(self, *_waiters: Any) -> None:
        """The statement under way was cancelled, or took too long."""
        self._abandoned = True
        # The protocol is not done with its own work when it says so.
        self._loop.call_soon(self._drop)
        task = self._loop.create_task(
            _ask_to_stop(self._addr, self._params, self._protocol.backend_pid, self._protocol.backend_secret)
        )
        _cancels.add(task)
        task.add_done_callback(_cancels.discard)


async def _nothing() -> str:
    return ""


async def _ask_to_stop(addr: Any, params: Any, pid: int, secret: int) -> None:
    try:
        async with asyncio.timeout(CANCEL_S_MAX):
            await connect_utils._cancel(  # type: ignore[attr-defined]
                loop=asyncio.get_running_loop(),
                addr=addr,
                params=params,
                backend_pid=pid,
                backend_secret=secret,
            )
    except OSError:
        # TimeoutError is one, too: the server is away, and so is the statement.
        return
