"""What a command says: a document for programs, a view for people. Never both."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeAlias

import msgspec
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.progress import Progress, ProgressColumn
from rich.table import Table

PIPE_COLUMNS: Final = 1_000
"""How wide a view may be where no terminal cuts it: a pipe gets whole lines."""

_MARKS: Final = ">~?"
_CAPITAL: Final = re.compile(r"[A-Z]")
_GAP: Final = 2
_encoder: Final = msgspec.json.Encoder(decimal_format="number")


Document: TypeAlias = Mapping[str, Any]
Column: TypeAlias = str | tuple[str, str | Callable[[Any], object]]
"""A name for people, and where its value is in a document: a field, an amount and its currency, or a function.

A name alone is that of its field: "sold out" stands for `soldOut`.
"""


@dataclass(frozen=True, slots=True)
class Output:
    """What a command has to say."""

    document: Any
    view: RenderableType


class CommandRefused(Exception):
    """The command was refused: one line for stderr, and perhaps a report for stdout."""

    def __init__(self, line: str, report: Output | None = None) -> None:
        super().__init__(line)
        self.report = report


def show(answer: Output, *, as_json: bool) -> None:
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


@contextmanager
def progress(
    title: str, *columns: ProgressColumn, total: float | None = 100, **fields: Any
) -> Iterator[Callable[..., None]]:
    """A bar on a terminal and the function that moves it; nothing elsewhere."""
    console = screen(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        yield partial(bar.update, bar.add_task(title, total=total, **fields))


def facts(thing: object, names: str, **given: object) -> dict[str, Any]:
    """The named facts of a thing, for programs; `soldOut` is its attribute `sold_out`, unless it is given."""
    found = {name: given[name] if name in given else _attribute(thing, name) for name in names.split()}
    return found | given


def _attribute(thing: object, name: str) -> object:
    value = getattr(thing, _CAPITAL.sub(lambda letter: f"_{letter[0].lower()}", name))
    return getattr(value, "word", value)


def listed(documents: Sequence[Document], columns: Sequence[Column], *, empty: str) -> Output:
    """Documents and a table of them."""
    return Output(documents, table_of(documents, columns, empty=empty))


def table_of(documents: Iterable[Document], columns: Sequence[Column], *, empty: str = "") -> RenderableType:
    """A row for each document."""
    heads = [column if isinstance(column, str) else column[0] for column in columns]
    return table(heads, [[_value(one, column) for column in columns] for one in documents], empty=empty)


def shown(document: Document, columns: Sequence[Column]) -> Output:
    """A document and a line for each of its columns."""
    return Output(document, record(pairs(document, columns)))


def once(document: Document, columns: Sequence[Column] = ()) -> Output:
    """A document with a secret in it, which is shown this once."""
    said = pairs(document, columns or list(document))
    return Output(document, record([*said, ("", "It is not shown again.")]))


def pairs(document: Document, columns: Sequence[Column]) -> list[tuple[str, object]]:
    """The names for people, and the document's values."""
    return [
        (column if isinstance(column, str) else column[0], _value(document, column)) for column in columns
    ]


def _value(document: Document, column: Column) -> object:
    if isinstance(column, str):
        first, *more = column.lstrip(_MARKS).split()
        return document[first + "".join(word.capitalize() for word in more)]
    source = column[1]
    if not isinstance(source, str):
        return source(document)
    name, _, currency = source.partition(" ")
    value = document[name]
    return f"{value} {document[currency]}" if currency and value is not None else value


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> RenderableType:
    """Aligned rows, or the sentence for none.

    A column named ">balance" is right-aligned, one named "~name" may wrap, and one named "?region" is left out of a
    terminal that is too narrow for it, the last one first.
    """
    texts = [tuple(map(cell, row)) for row in rows]
    return _Columns(columns, texts) if texts else empty


class _Columns:
    """Rows that know the width of the terminal only when they are drawn."""

    def __init__(self, columns: Sequence[str], rows: list[tuple[str, ...]]) -> None:
        self._columns = columns
        self._rows = rows

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        places = self._fitting(options.max_width)
        drawn = _bare(header_style="bold")
        for place in places:
            name = self._columns[place]
            mark = name[: len(name) - len(name.lstrip(_MARKS))]
            drawn.add_column(
                name.lstrip(_MARKS),
                justify="right" if ">" in mark else "left",
                no_wrap="~" not in mark,
                overflow="fold",
            )
        for row in self._rows:
            drawn.add_row(*[row[place] for place in places])
        yield drawn

    def _fitting(self, width_max: int) -> list[int]:
        """The columns that there is room for."""
        widths = [
            max(cell_len(text) for text in (name.lstrip(_MARKS), *(row[place] for row in self._rows)))
            for place, name in enumerate(self._columns)
        ]
        places = list(range(len(widths)))
        spare = [place for place in places if "?" in self._columns[place]]
        while spare and sum(widths[place] + _GAP for place in places) - _GAP > width_max:
            places.remove(spare.pop())
        return places


def record(pairs: Iterable[tuple[str, object]]) -> RenderableType:
    """Names and values, one pair a line."""
    drawn = _bare(show_header=False)
    drawn.add_column(style="dim", no_wrap=True)
    drawn.add_column(overflow="fold")
    for name, value in pairs:
        drawn.add_row(name, cell(value))
    return drawn


def _bare(**look: Any) -> Table:
    """A table without lines: the columns say enough."""
    return Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), **look)


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
