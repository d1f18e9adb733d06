"""Files with sealed blocks of the audit trail: each row as it was hashed, so that the hashes can be made again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from voucherd.archive.files import OpenedFile, hash_of, library, opened_to_write, put_aside, sync, types
from voucherd.archive.model import ArchiveRefused
from voucherd.trail.archived import BlockFile
from voucherd.trail.chain import Block, Book
from voucherd.trail.verification import BlockUnreadable

LOOKED_UP: Final = ("id", "order_id")

Row = tuple[Any, ...]


class BlockWriter:
    """Writes one file of whole blocks; it has its name only once it is whole and on the disk."""

    def __init__(self, folder: Path, book: Book) -> None:
        kinds = types()
        self._book = book
        self._archive = folder
        self._folder = folder / book.name
        self._schema = library().schema([(name, kinds[kind]) for name, kind in book.kinds.items()])
        self._folder.mkdir(mode=0o750, parents=True, exist_ok=True)
        self._half = self._folder / "half"
        self._half.unlink(missing_ok=True)
        looked_up = [name for name in LOOKED_UP if name in book.kinds]
        self._file = opened_to_write(self._half, self._schema, looked_up)
        self._blocks: list[Block] = []
        self.rows = 0

    def add(self, blocks: Sequence[Block], rows: Sequence[Row]) -> None:
        """Write these blocks, which follow on those before, as one group."""
        columns = zip(*rows, strict=True)
        arrays = [
            library().array(column, kind) for column, kind in zip(columns, self._schema.types, strict=True)
        ]
        table = library().Table.from_arrays(arrays, schema=self._schema)
        self._file.write_table(table, row_group_size=len(rows))
        self._blocks += blocks
        self.rows += len(rows)

    def end(self, last_at: datetime) -> BlockFile:
        """End the file, see it on the disk, and give it its name; one that has the name already is put aside."""
        self._file.close()
        self._half.chmod(0o640)
        sync(self._half)
        first, last = self._blocks[0], self._blocks[-1]
        size, digest = self._half.stat().st_size, hash_of(self._half)
        file = BlockFile(
            self._book.name,
            first.block,
            last.block,
            first.first_id,
            last.last_id,
            self.rows,
            last_at,
            size,
            digest,
        )
        path = self._archive / file.place
        if path.exists() and hash_of(path) != digest:
            put_aside(path)
        self._half.replace(path)
        for place in (self._folder, self._archive):
            sync(place)
        return file


class BlockReader:
    """Reads blocks from the files, one after the other: the file that was read last stays open."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._opened: tuple[BlockFile, OpenedFile] | None = None

    def rows(self, file: BlockFile, block: Block) -> list[Row]:
        """The rows of a block, in order; raises `BlockUnreadable` if its file is not the one that was written."""
        try:
            if self._opened is None or self._opened[0] != file:
                self._opened = (file, OpenedFile(self._folder, file))
            return self._opened[1].between(block.first_id, block.last_id)
        except ArchiveRefused as refused:
            raise BlockUnreadable(str(refused)) from None
