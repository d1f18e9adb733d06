"""The processes of one `serve`: each shows its figures to the others, so that a scrape of any is one of all.

A process answers on a socket of its own in a folder that only they can open. Nothing is left in a shared memory: a
process that died takes its figures along, and one that hangs is shown as down instead of being waited for.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import structlog

from voucherd.metrics.families import Rows, unpacked

ANSWER_S_MAX: Final = 1.0
"""How long a scrape waits for the figures of another process."""
ANSWER_BYTES_MAX: Final = 16 * 1024 * 1024
_END: Final = ".socket"

logger = structlog.get_logger(__name__)


class Siblings:
    """The other processes, by name."""

    def __init__(self, folder: Path | None = None, name: str = "0") -> None:
        self._folder = folder
        self.name = name

    @asynccontextmanager
    async def shown(self, figures: Callable[[], bytes]) -> AsyncIterator[None]:
        """Show the figures of this process meanwhile. Where that can't be, it is said, and the process serves on."""
        if self._folder is None:
            yield
            return
        path = self._folder / f"{self.name}{_END}"

        async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(ANSWER_S_MAX):
                    writer.write(figures())
                    await writer.drain()
            writer.close()

        try:
            path.unlink(missing_ok=True)
            server = await asyncio.start_unix_server(answer, str(path))
        except OSError as error:
            logger.warning("figures_not_shared", folder=str(self._folder), error=str(error))
            yield
            return
        try:
            yield
        finally:
            server.close()
            path.unlink(missing_ok=True)

    async def gathered(self) -> dict[str, Rows | None]:
        """The figures of every other process; None for one that does not answer."""
        if self._folder is None:
            return {}
        names = sorted(path.stem for path in self._folder.glob(f"*{_END}") if path.stem != self.name)
        found = await asyncio.gather(*(self._ask(name) for name in names))
        return dict(zip(names, found, strict=True))

    async def _ask(self, name: str) -> Rows | None:
        assert self._folder is not None
        try:
            async with asyncio.timeout(ANSWER_S_MAX):
                reader, writer = await asyncio.open_unix_connection(str(self._folder / f"{name}{_END}"))
                try:
                    sent = await reader.read(ANSWER_BYTES_MAX)
                    while part := await reader.read(ANSWER_BYTES_MAX - len(sent)):
                        sent += part
                finally:
                    writer.close()
            return unpacked(sent)
        except (OSError, TimeoutError, ValueError):
            return None
