"""CSV as RFC 4180 has it: commas, CRLF, a header line; UTF-8 without a mark."""

from __future__ import annotations

from typing import Final

CSV: Final = b"text/csv; charset=utf-8; header=present"

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""How a cell begins that a spreadsheet may run instead of show."""


def quoted(text: str) -> str:
    """The text, letter for letter, in quotes: what a program reads back is exactly what was put in."""
    return '"' + text.replace('"', '""') + '"'


def safe(text: str | None) -> str:
    """Somebody's text in quotes, with an apostrophe before it if a spreadsheet might run it; empty for none."""
    if text is None:
        return ""
    return quoted("'" + text if text.startswith(_FORMULA) else text)


def headers(file_name: str) -> list[tuple[bytes, bytes]]:
    """What makes a browser keep the answer as a file of this name, and never show it as a page."""
    return [
        (b"content-disposition", f'attachment; filename="{file_name}"'.encode("ascii")),
        (b"x-content-type-options", b"nosniff"),
    ]
