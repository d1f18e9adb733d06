"""The files of the archive: written, synced and read back. Nothing here knows the database.

The library for Parquet is loaded by the first file that is written or read; whoever has no archive needs none.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from voucherd.archive.model import (
    MANIFEST,
    ORDER,
    PARTS,
    ArchivedRow,
    ArchiveFile,
    ArchiveRefused,
    folder_of,
)

GROUP_ORDERS: Final = 5_000
"""Orders that are read together to find one of them."""
FILE_ORDERS_MAX: Final = 500_000
"""Orders of one file; it is hashed as a whole before it is trusted."""
READ_BYTES: Final = 1 << 20

MISSING: Final = "the archive needs the library for Parquet: pip install 'voucherd[archive]'"


class Written(Protocol):
    """What is known of a file that was written."""

    @property
    def place(self) -> str:
        """Where it lies, from the folder of the archive on."""

    @property
    def size(self) -> int:
        """Its bytes."""

    @property
    def sha256(self) -> bytes:
        """Its hash."""


def library(name: str = "") -> Any:
    """The library for Parquet, or a part of it; refused where it is not installed."""
    try:
        return import_module(f"pyarrow{name}")
    except ImportError:
        raise ArchiveRefused(MISSING) from None


def refuse_without_library() -> None:
    """Refuse before anything is done, where the library is not installed."""
    library(".parquet")


def trouble(folder: Path) -> str | None:
    """Why an archive in this folder can't be read by this process; None if nothing speaks against it."""
    if find_spec("pyarrow") is None:
        return MISSING
    return None if folder.is_dir() else f"the folder of the archive, {folder}, is not there"


def types() -> dict[str, Any]:
    """The types of columns, by the names of their kinds."""
    pa = library()
    return {
        "int16": pa.int16(),
        "int32": pa.int32(),
        "int64": pa.int64(),
        "string": pa.string(),
        "bool": pa.bool_(),
        "moment": pa.timestamp("us", tz="UTC"),
        "numbers": pa.list_(pa.int64()),
    }


def _schema() -> Any:
    pa, kinds = library(), types()

    def struct(columns: Mapping[str, str]) -> Any:
        return pa.list_(pa.struct([(name, kinds[kind]) for name, kind in columns.items()]))

    parts = [(name, struct(columns)) for name, (_, columns, _) in PARTS.items()]
    head = [(name, kinds[kind]) for name, kind in ORDER.items()]
    return pa.schema([*head, ("webhook_url", pa.string()), *parts])


def opened_to_write(path: Path, schema: Any, looked_up: Sequence[str]) -> Any:
    """A new file; each of its groups knows the bounds of the columns that are looked up."""
    return library(".parquet").ParquetWriter(
        path, schema, compression="zstd", write_statistics=list(looked_up), write_page_checksum=True
    )


class MonthWriter:
    """Writes the files of a month into a new folder, each synced before the next begins."""

    def __init__(self, folder: Path, month: date) -> None:
        self._month = month
        self._archive = folder
        self._schema = _schema()
        self.folder = folder / folder_of(month)
        self.files: list[ArchiveFile] = []
        folder.mkdir(mode=0o750, parents=True, exist_ok=True)
        _clear(self.folder)
        self.folder.mkdir(mode=0o750)

    def begin(self, day: date) -> None:
        """Begin a file of orders of this day."""
        self._path = self.folder / f"{day:%Y-%m-%d}-{len(self.files):04d}.parquet"
        self._spans: list[tuple[int, int, int]] = []
        self._file = opened_to_write(self._path, self._schema, ["id"])

    def add(self, rows: Sequence[ArchivedRow]) -> None:
        """Write these orders, which follow on those before by their numbers."""
        table = library().Table.from_pylist(list(rows), schema=self._schema)
        self._file.write_table(table, row_group_size=len(rows))
        self._spans.append((rows[0]["id"], rows[-1]["id"], len(rows)))

    def end(self) -> None:
        """End the file, and see it on the disk."""
        self._file.close()
        path, spans = self._path, self._spans
        path.chmod(0o640)
        sync(path)
        orders = sum(count for _, _, count in spans)
        size, digest = path.stat().st_size, hash_of(path)
        self.files.append(
            ArchiveFile(self._month, path.name, spans[0][0], spans[-1][1], orders, size, digest)
        )

    def finish(self, facts: Mapping[str, Any]) -> None:
        """Write the manifest, which makes the folder whole, and see all names on the disk."""
        listed = [
            {
                "name": one.name,
                "orders": one.orders,
                "firstId": one.first_id,
                "lastId": one.last_id,
                "bytes": one.size,
                "sha256": one.sha256.hex(),
            }
            for one in self.files
        ]
        path = self.folder / MANIFEST
        text = msgspec.json.format(msgspec.json.encode({**facts, "files": listed}), indent=2)
        path.write_bytes(text + b"\n")
        for place in (path, self.folder, self._archive):
            sync(place)


def _clear(folder: Path) -> None:
    """Remove what a run that was cut off left; a whole month is kept under another name, for another database."""
    if not folder.exists():
        return
    if (folder / MANIFEST).exists():
        put_aside(folder)
    else:
        shutil.rmtree(folder)


def put_aside(path: Path) -> None:
    """Keep a file or a folder under another name."""
    number = 1
    while (other := path.with_name(f"{path.name}.old-{number}")).exists():
        number += 1
    path.rename(other)


def sync(path: Path) -> None:
    """See a file or the names in a folder on the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def hash_of(path: Path) -> bytes:
    """The SHA-256 of a file."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(READ_BYTES):
            found.update(part)
    return found.digest()


class OpenedFile:
    """A file of the archive that is what it was when it was written."""

    def __init__(self, folder: Path, file: Written) -> None:
        path = folder / file.place
        pq = library(".parquet")
        try:
            if path.stat().st_size != file.size or hash_of(path) != file.sha256:
                raise ArchiveRefused(f"{path} is not the file that was written")
            self._opened = pq.ParquetFile(path, page_checksum_verification=True)
        except OSError as error:
            raise ArchiveRefused(f"{path} can't be read: {error.strerror or error}") from None
        except ValueError as error:
            raise ArchiveRefused(f"{path} is no file of Parquet: {error}") from None
        self._known: dict[str, list[tuple[int, int]]] = {}
        self._group: tuple[int, list[int], list[tuple[Any, ...]]] = (-1, [], [])

    def _bounds(self, column: str) -> list[tuple[int, int]]:
        """The lowest and the highest value of a column that is looked up, in each group."""
        if column not in self._known:
            place = self._opened.schema_arrow.names.index(column)
            about = self._opened.metadata
            found = [about.row_group(at).column(place).statistics for at in range(about.num_row_groups)]
            self._known[column] = [(one.min, one.max) for one in found]
        return self._known[column]

    def find(self, order_id: int) -> ArchivedRow | None:
        """The order; None if it is not in this file."""
        return next(self.where("id", order_id), None)

    def rows(self) -> Iterator[list[ArchivedRow]]:
        """All orders, one group after the other."""
        for at in range(self._opened.num_row_groups):
            yield self._opened.read_row_group(at).to_pylist()

    def between(self, first_id: int, last_id: int) -> list[tuple[Any, ...]]:
        """The rows of one group with these ids and those between them; the group that was read last is kept."""
        for at, (low, high) in enumerate(self._bounds("id")):
            if low <= first_id and last_id <= high:
                if self._group[0] != at:
                    rows = [tuple(row.values()) for row in self._opened.read_row_group(at).to_pylist()]
                    self._group = (at, [row[0] for row in rows], rows)
                _, ids, rows = self._group
                return rows[bisect_left(ids, first_id) : bisect_right(ids, last_id)]
        return []

    def where(self, column: str, value: int) -> Iterator[dict[str, Any]]:
        """The rows with this value in a column that is looked up."""
        compute = library(".compute")
        for at, (low, high) in enumerate(self._bounds(column)):
            if low <= value <= high:
                group = self._opened.read_row_group(at)
                yield from group.filter(compute.equal(group[column], value)).to_pylist()
