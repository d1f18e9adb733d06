"""Suppliers' statements as files: columns by their usual names or by yours, amounts exact, bad rows told by number."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from uuid import UUID

import pytest

from tests.workbooks import workbook
from voucherd.reports.charges import BAD_ROWS_MAX, BadStatement, Charge, Reading, Statement
from voucherd.sheets import csv_text, reading

OURS = UUID("0b5e2f6c-5f0e-4f8e-9d0c-6b1f2a3c4d5e")


def read(content: str | bytes, how: Reading | None = None) -> tuple[list[Charge], Statement]:
    """The charges of a file."""
    statement = Statement(how or Reading())
    raw = content.encode() if isinstance(content, str) else content
    return list(statement.charges(reading.streamed(io.BytesIO(raw)))), statement


def test_usual_columns_are_found_and_credits_count_backwards() -> None:
    """The command line: `supplier reconcile`; header names are mapped, with good defaults."""
    charges, statement = read(
        "Date;Order ID;Our_Reference;Quantity;Total Amount;Currency;Status\n"
        f"2026-05-01;W-1;{OURS.hex.upper()};3;27.00;eur;done\n"
        "\n"
        "2026-05-02T10:00:00+02:00;W-2;;2;-18.00;EUR;credited\n"
        "2026-05-03;W-3;;1;9;EUR;Cancelled\n"
    )
    day = datetime(2026, 5, 1, tzinfo=UTC)
    assert charges == [
        Charge(2, OURS, OURS.hex.upper(), "W-1", 3, 2700, "EUR", day),
        Charge(4, None, "W-2", "W-2", -2, -1800, "EUR", datetime(2026, 5, 2, 8, tzinfo=UTC)),
    ]
    assert (statement.rows, statement.not_charged) == (3, 1)


def test_columns_may_have_any_name_and_a_sheet_will_do() -> None:
    """The command line: `--amount-column` and the like; `--currency` where no column says it; `--charged`."""
    how = Reading({"amount": "netto", "date": "Tag"}, "JPY", frozenset({"ok"}))
    day = datetime(2026, 5, 1)  # noqa: DTZ001 - As a spreadsheet has it.
    sheet = workbook(["Tag", "netto", "id", "status"], [day, 900, "7", "OK"], ["2026-05-01", 1, "8", "no"])
    charges, statement = read(sheet, how)
    assert [(one.key, one.count, one.amount_minor, one.currency) for one in charges] == [
        ("7", None, 900, "JPY")
    ]
    assert statement.not_charged == 1


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "the file is empty"),
        ("date,amount,currency\n", "no column for reference: say which is the reference column"),
        ("id,count\n", "no column for amount, currency, date: say which is the amount column; the file has "),
        ("id,amount,currency,date\n1,1.005,EUR,2026-05-01\n", "row 2, column amount: 1.005 has more than 2 digits"),
        ("id,amount,currency,date\n1,1,EUR,1.5.2026\n", "row 2, column date: '1.5.2026' is not a date"),
        ("id,amount,currency,date\n1,1,XXX,2026-05-01\n", "row 2, column currency: 'XXX' is not a currency"),
        ("id,amount,currency,date\n,1,EUR,2026-05-01\n", "row 2, column reference: is empty"),
        ("id,amount,currency,date,qty\n1,1,EUR,2026-05-01,many\n", "row 2, column count: 'many' is not a number"),
        (b"id,amount,currency,date\n\n\xff,1,EUR,2026-05-01\n", "row 3: is not UTF-8"),
        ("id," + "x" * csv_text.LINE_BYTES_MAX + "\n", "row 1: is longer than 65,536 bytes"),
    ],
)  # fmt: skip
def test_a_statement_that_cant_be_read_says_where(content: str | bytes, complaint: str) -> None:
    """Invariant 6: nothing is compared with half a file."""
    with pytest.raises(BadStatement) as refused:
        read(content)
    assert complaint in str(refused.value)


def test_a_file_of_nonsense_is_given_up_after_a_few_rows() -> None:
    """Every loop is bounded."""
    with pytest.raises(BadStatement) as refused:
        read("id,amount,currency,date\n" + "1,?,EUR,2026-05-01\n" * 1_000)
    assert len(refused.value.lines) == BAD_ROWS_MAX


def test_rows_are_the_same_whether_a_file_is_read_whole_or_line_by_line() -> None:
    """A file of any length is read by the same rules."""
    for text in ("sep=;\na;b,c\n", "\ufeffa\tb\r\n\r\n'=1\t2\r\n", '\n"a,1",b\nc\n', "a;b;;\n;;\nx"):
        raw = text.encode()
        assert list(reading.streamed(io.BytesIO(raw))) == list(reading.rows(io.BytesIO(raw)))
