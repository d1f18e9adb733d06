"""Finds one order in the files of the archive, for Find and for links; files that were trusted once stay open."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from pathlib import Path
from typing import Final

import structlog

from voucherd.archive import store
from voucherd.archive.files import OpenedFile
from voucherd.archive.model import ArchivedRow, ArchiveFile, ArchiveRefused
from voucherd.db import Connection, Pool

FILES_OPEN_MAX: Final = 64

logger = structlog.get_logger(__name__)


class ArchiveAway(OSError):
    """An order may be in the archive, but its files can't be read just now."""


class ArchiveReader:
    """Reads the archive of one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._opened: OrderedDict[bytes, OpenedFile] = OrderedDict()
        # One at a time: a file is large, and whoever asks for many old orders at once waits for himself.
        self._turn = asyncio.Lock()

    async def find(self, conn: Connection | Pool, order_id: int) -> ArchivedRow | None:
        """The order as it was when it left the tables; None if it is not in the archive.

        A service asks with its pool: whoever waits for a file keeps no connection from a sale.
        """
        files = await store.files_over(conn, order_id)
        if not files:
            return None
        async with self._turn:
            try:
                return await asyncio.to_thread(self._find, files, order_id)
            except ArchiveRefused as refused:
                logger.error("archive_unreadable", error=str(refused))
                raise ArchiveAway(str(refused)) from refused

    def _find(self, files: list[ArchiveFile], order_id: int) -> ArchivedRow | None:
        for file in files:
            row = self._open(file).find(order_id)
            if row is not None:
                return row
        return None

    def _open(self, file: ArchiveFile) -> OpenedFile:
        opened = self._opened.pop(file.sha256, None) or OpenedFile(self._folder, file)
        self._opened[file.sha256] = opened
        if len(self._opened) > FILES_OPEN_MAX:
            self._opened.popitem(last=False)
        return opened
