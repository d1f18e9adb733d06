"""Ctrl-C, SIGTERM and SIGHUP: they end a command at its next pause, once, and in order.

A signal that raises wherever the program happens to be can hit the middle of anything. Cancelling the command lets
every transaction be undone and every server be stopped by the blocks that opened them.
"""

from __future__ import annotations

import asyncio
import io
import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LOOK_EVERY_S: Final = 0.2


class Signals:
    """Whether the command was told to stop, and how it stops."""

    def __init__(self) -> None:
        self.number: int | None = None
        self._task: asyncio.Task[Any] | None = None
        self._served = False

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Take the signals, except those that are ignored: that is how nohup keeps a program running."""
        before = {number: signal.getsignal(number) for number in SIGNALS}
        taken = [number for number in SIGNALS if before[number] is not signal.SIG_IGN]
        for number in taken:
            signal.signal(number, self._on_signal)
        try:
            yield
        finally:
            for number in taken:
                signal.signal(number, before[number] or signal.SIG_DFL)

    def begin(self) -> None:
        """The command's task has begun: from now on it can be cancelled."""
        self._task = asyncio.current_task()
        if self.number is not None:
            raise asyncio.CancelledError

    def leave_to_server(self) -> None:
        """The HTTP server takes SIGINT and SIGTERM from now on; what still comes here comes while it stops."""
        self._served = True

    @property
    def asked(self) -> bool:
        """Whether the command was told to stop."""
        return self.number is not None

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self._served:
            if number == signal.SIGHUP:
                signal.raise_signal(signal.SIGTERM)
        elif self.number is None:
            self.number = number
            if self._task is not None:
                self._task.get_loop().call_soon_threadsafe(self._task.cancel)


class InterruptibleStream(io.RawIOBase):
    """A file, pipe or terminal whose reader gives up when the command is told to stop."""

    def __init__(self, descriptor: int, ending: Signals) -> None:
        self._descriptor = descriptor
        self._ending = ending

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Read what is there, waiting for it in short steps."""
        while not select.select([self._descriptor], [], [], LOOK_EVERY_S)[0]:
            if self._ending.asked:
                # Not the end of the file: half a file must never be taken for a whole one.
                raise OSError("the command was told to stop")
        view = memoryview(buffer).cast("B")
        piece = os.read(self._descriptor, len(view))
        view[: len(piece)] = piece
        return len(piece)
