"""The files of the archive: written, synced and read back. Nothing here knows the database.

The library for Parquet is loaded by the first file that is written or read; whoever has no archive needs none.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

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


def _library(name: str = "") -> Any:
    try:
        return import_module(f"pyarrow{name}")
    except ImportError:
        raise ArchiveRefused(MISSING) from None


def refuse_without_library() -> None:
    """Refuse before anything is done, where the library is not installed."""
    _library(".parquet")


def trouble(folder: Path) -> str | None:
    """Why an archive in this folder can't be read by this process; None if nothing speaks against it."""
    if find_spec("pyarrow") is None:
        return MISSING
    return None if folder.is_dir() else f"the folder of the archive, {folder}, is not there"


def _schema() -> Any:
    pa = _library()
    kinds = {
        "int16": pa.int16(),
        "int32": pa.int32(),
        "int64": pa.int64(),
        "string": pa.string(),
        "bool": pa.bool_(),
        "moment": pa.timestamp("us", tz="UTC"),
        "numbers": pa.list_(pa.int64()),
    }

    def struct(columns: Mapping[str, str]) -> Any:
        return pa.list_(pa.struct([(name, kinds[kind]) for name, kind in columns.items()]))

    parts = [(name, struct(columns)) for name, (_, columns, _) in PARTS.items()]
    head = [(name, kinds[kind]) for name, kind in ORDER.items()]
    return pa.schema([*head, ("webhook_url", pa.string()), *parts])


class MonthWriter:
    """Writes the files of a month into a new folder, each synced before the next begins."""

    def __init__(self, folder: Path, month: date) -> None:
        self._month = month
        self._archive = folder
        self._schema = _schema()
        self.folder = folder / folder_of(month)
        self.files: list[ArchiveFile] = []
        folder.mkdir(mode=0o750, parents=True, exist_ok=True)
        _put_aside(self.folder)
        self.folder.mkdir(mode=0o750)

    def begin(self, day: date) -> None:
        """Begin a file of orders of this day."""
        self._path = self.folder / f"{day:%Y-%m-%d}-{len(self.files):04d}.parquet"
        self._spans: list[tuple[int, int, int]] = []
        self._file = _library(".parquet").ParquetWriter(
            self._path, self._schema, compression="zstd", write_statistics=["id"], write_page_checksum=True
        )

    def add(self, rows: Sequence[ArchivedRow]) -> None:
        """Write these orders, which follow on those before by their numbers."""
        table = _library().Table.from_pylist(list(rows), schema=self._schema)
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


def _put_aside(folder: Path) -> None:
    """Remove what a run that was cut off left; a whole month is kept under another name, for another database."""
    if not folder.exists():
        return
    if not (folder / MANIFEST).exists():
        shutil.rmtree(folder)
        return
    number = 1
    while (other := folder.with_name(f"{folder.name}.old-{number}")).exists():
        number += 1
    folder.rename(other)


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

    def __init__(self, folder: Path, file: ArchiveFile) -> None:
        path = folder / file.place
        pq = _library(".parquet")
        try:
            if path.stat().st_size != file.size or hash_of(path) != file.sha256:
                raise ArchiveRefused(f"{path} is not the file that was written")
            self._opened = pq.ParquetFile(path, page_checksum_verification=True)
        except OSError as error:
            raise ArchiveRefused(f"{path} can't be read: {error.strerror or error}") from None
        ids = self._opened.schema_arrow.names.index("id")
        about = self._opened.metadata
        spans = [about.row_group(at).column(ids).statistics for at in range(about.num_row_groups)]
        self._spans = [(one.min, one.max) for one in spans]

    def find(self, order_id: int) -> ArchivedRow | None:
        """The order; None if it is not in this file."""
        compute = _library(".compute")
        for at, (low, high) in enumerate(self._spans):
            if low <= order_id <= high:
                group = self._opened.read_row_group(at)
                rows: list[ArchivedRow] = group.filter(compute.equal(group["id"], order_id)).to_pylist()
                if rows:
                    return rows[0]
        return None

    def rows(self) -> Iterator[list[ArchivedRow]]:
        """All orders, one group after the other."""
        for at in range(len(self._spans)):
            yield self._opened.read_row_group(at).to_pylist()
