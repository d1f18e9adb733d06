"""Tables in files: where a command reads one from, and where it writes one to."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, BinaryIO, Final, TypeAlias

import typer
from typer import Argument, Option

from voucherd.cli.context import CommandContext
from voucherd.cli.output import Output
from voucherd.sheets import reading
from voucherd.sheets.model import SheetRow
from voucherd.sheets.writing import Format, Value, write

STDOUT: Final = "-"

InFile: TypeAlias = Annotated[
    typer.FileBinaryRead, Argument(metavar="FILE", help="CSV or XLSX; - for stdin.")
]
OutFile: TypeAlias = Annotated[str, Argument(metavar="FILE", help="Where to write; - for stdout, as CSV.")]
FormatOption: TypeAlias = Annotated[
    Format | None, Option("--format", help="Else what the file's name ends with, else csv.")
]


def name_of(file: BinaryIO) -> str:
    """What a file is called, without the folder that it is in."""
    return Path(file.name).name


async def read_rows(context: CommandContext, file: BinaryIO) -> list[SheetRow]:
    """Every row of a table; a slow pipe stalls nothing and can be interrupted."""
    return await asyncio.to_thread(lambda: list(reading.rows(context.stream(file))))


def save(
    context: CommandContext,
    file: str,
    format_: Format | None,
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Value]],
) -> Output | None:
    """Write a table to a file or to stdout; the answer says how many rows, where stdout is free to say it."""
    format_ = format_ or _format_of(file)
    if file == STDOUT:
        if format_ is Format.XLSX or context.as_json:
            raise typer.BadParameter("stdout takes CSV alone: name a file for XLSX, or for --json")
        write(sys.stdout.buffer, format_, title, columns, rows)
        sys.stdout.flush()
        return None
    path = Path(file)
    count = _write_file(path, lambda stream: write(stream, format_, title, columns, rows))
    return Output({"file": str(path), "format": format_.value, "rows": count}, f"{count} rows in {path}.")


def _format_of(file: str) -> Format:
    return Format.XLSX if file.lower().endswith(".xlsx") else Format.CSV


def _write_file(path: Path, fill: Callable[[BinaryIO], int]) -> int:
    """Fill a file beside it first: what was there stays whole until the new one is."""
    if path.exists() and not path.is_file():
        with path.open("wb") as device:
            return fill(device)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            count = fill(stream)
        Path(name).chmod(0o644 & ~_umask())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return count


def _umask() -> int:
    """What the process takes from the rights of a new file; it can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
