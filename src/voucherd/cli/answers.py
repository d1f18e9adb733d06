"""What a command says: a document for programs, a view for people. Never both."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec
from rich.console import Console, Group, RenderableType
from rich.table import Table

PIPE_COLUMNS: Final = 1_000
"""How wide a view may be where no terminal cuts it: a pipe gets whole lines."""

_encoder: Final = msgspec.json.Encoder(decimal_format="number")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command has to say."""

    document: object
    view: RenderableType


class Refused(Exception):
    """The command was refused: one line for stderr, and perhaps a report for stdout."""

    def __init__(self, line: str, report: Answer | None = None) -> None:
        super().__init__(line)
        self.report = report


def show(answer: Answer, *, as_json: bool) -> None:
    """Write the answer to stdout: one line of JSON and nothing else, or the view."""
    if as_json:
        sys.stdout.write(_encoder.encode(answer.document).decode() + "\n")
    else:
        # Plain text is printed as it is: a command to copy must not be broken where the window ends.
        screen().print(answer.view, soft_wrap=isinstance(answer.view, str))
    sys.stdout.flush()


def screen(*, stderr: bool = False) -> Console:
    """The terminal, or what stands in for it; nothing in the data is taken for markup."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PIPE_COLUMNS
    return Console(file=stream, width=width, markup=False, highlight=False, emoji=False)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> RenderableType:
    """Aligned rows. A column named ">balance" is right-aligned, one named "~name" may wrap, others stay whole."""
    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        drawn.add_column(
            column.lstrip(">~"),
            justify="right" if column.startswith(">") else "left",
            no_wrap=not column.startswith("~"),
            overflow="fold",
        )
    for row in rows:
        drawn.add_row(*map(cell, row))
    return drawn if drawn.row_count else empty


def record(pairs: Iterable[tuple[str, object]]) -> RenderableType:
    """Names and values, one pair a line."""
    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    drawn.add_column(style="dim", no_wrap=True)
    drawn.add_column(overflow="fold")
    for name, value in pairs:
        drawn.add_row(name, cell(value))
    return drawn


def stacked(*views: RenderableType) -> RenderableType:
    """One view above the other."""
    return Group(*views)


def cell(value: object) -> str:
    """The value for people: a dash for none, yes or no, minutes for moments, nothing that a terminal obeys."""
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in str(value))
