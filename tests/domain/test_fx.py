"""Exchange rates: the European Central Bank's files, and files that only pretend to be."""

from __future__ import annotations

from datetime import date
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voucherd.catalogue.fx import (
    FILE_BYTES_MAX,
    BadRates,
    DayRates,
    parse_csv,
    parse_ecb,
    parse_rate,
    parse_xml,
)
from voucherd.money import RATE_ONE

XML = b"""<?xml version="1.0" encoding="UTF-8"?>
<gesmes:Envelope xmlns:gesmes="http://www.gesmes.org/xml/2002-08-01" xmlns="http://www.ecb.int/vocabulary/2002-08-01/eurofxref">
\t<gesmes:subject>Reference rates</gesmes:subject>
\t<gesmes:Sender>
\t\t<gesmes:name>European Central Bank</gesmes:name>
\t</gesmes:Sender>
\t<Cube>
\t\t<Cube time='2026-11-13'>
\t\t\t<Cube currency='USD' rate='1.0832'/>
\t\t\t<Cube currency='JPY' rate='163.45'/>
\t\t\t<Cube currency='IDR' rate='17899.52'/>
\t\t</Cube>
\t</Cube>
</gesmes:Envelope>
"""
CSV = b"Date, USD, JPY, IDR, \n13 November 2026, 1.0832, 163.45, 17899.52, \n"
HISTORY = (
    b"Date,USD,JPY,HRK,LTL,IDR,\n"
    b"2026-11-13,1.0832,163.45,N/A,N/A,17899.52,\n"
    b"2009-01-02,1.3866,126.64,7.3555,3.4528,15239.12,\n"
)
TODAY = DayRates(date(2026, 11, 13), {"USD": 92319055, "JPY": 611808, "IDR": 5587})


@pytest.mark.parametrize(
    "content", [XML, CSV, b"\xef\xbb\xbf" + XML, b"\xef\xbb\xbf" + CSV, CSV.replace(b"\n", b"\r\n")]
)
def test_the_bank_s_daily_file_gives_the_worth_of_each_currency_in_eur(content: bytes) -> None:
    """OP-50: 1 ÷ 1.0832 = 0.923190546… EUR for a dollar, kept with eight digits."""
    assert parse_ecb(content) == [TODAY]


def test_the_bank_s_history_gives_every_day_and_skips_what_is_not_there() -> None:
    """OP-50: N/A is no rate, and nothing is sold in currencies that were replaced by the euro."""
    assert parse_ecb(HISTORY) == [
        TODAY,
        DayRates(date(2009, 1, 2), {"USD": 72118852, "JPY": 789640, "IDR": 6562}),
    ]


def test_an_xml_with_several_days_gives_them_all() -> None:
    """OP-50: the bank's 90 days and its whole history have the daily file's form."""
    second = b"\t\t<Cube time='2026-11-12'><Cube currency='USD' rate='2'/></Cube>\n\t</Cube>\n</gesmes"

    days = parse_xml(XML.replace(b"\t</Cube>\n</gesmes", second))

    assert days == [TODAY, DayRates(date(2026, 11, 12), {"USD": 50_000_000})]


@pytest.mark.parametrize(
    ("text", "eur_e8"),
    [
        ("0.92", 92_000_000),
        ("1", RATE_ONE),
        ("0.00000001", 1),
        ("3.25000000000", 325_000_000),
        (" 0.92 ", 92_000_000),
    ],
)
def test_a_rate_is_read_as_it_is_written(text: str, eur_e8: int) -> None:
    """OP-07: fx multipliers have eight digits."""
    assert parse_rate(text) == eur_e8


@pytest.mark.parametrize(
    "text",
    ["", "0", "0.000000001", "-1", "1,5", "1e3", "NaN", "inf", "0x1", "1_0", "٣", "9" * 400, "10001", "1.\n"],
)
def test_what_is_no_rate_is_refused(text: str) -> None:
    """OP-07: a rate is more than nothing and has at most eight digits."""
    with pytest.raises(BadRates) as refused:
        parse_rate(text)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 120


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (XML.replace(b"1.0832", b"1,0832"), "line 9: USD: '1,0832' is not a rate"),
        (XML.replace(b"1.0832", b"-1"), "line 9: USD: '-1' is not a rate"),
        (XML.replace(b"1.0832", b"0"), "line 9: USD: '0' is out of bounds"),
        (XML.replace(b"1.0832", b"999999999999"), "line 9: USD: '999999999999' is out of bounds"),
        (XML.replace(b"USD", b"U$D"), "line 9: 'U$D' is not a currency code"),
        (XML.replace(b"USD", b"EUR"), "line 9: EUR: is the base and has no rate"),
        (XML.replace(b"JPY", b"USD"), "line 10: USD: is there twice"),
        (XML.replace(b" rate='1.0832'", b""), "line 9: USD: has no rate"),
        (XML.replace(b" time='2026-11-13'", b""), "line 9: USD: stands outside a day"),
        (XML.replace(b"2026-11-13", b"2026-02-30"), "line 8: '2026-02-30' is not a date"),
        (XML[:-20], "line 13: not XML: no element found"),
        (b"<a><b></a>", "line 1: not XML: mismatched tag"),
        (b"<html><body>Sorry</body></html>", "the file holds no rates"),
        (b"<a>&undefined;</a>", "line 1: not XML: undefined entity"),
        (b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", "line 1: a document type is not allowed"),
        (
            XML.replace(b"\n<gesmes:Env", b"\n\n<!DOCTYPE x SYSTEM 'file:///etc/passwd'><gesmes:Env"),
            "line 3: a document type is not allowed",
        ),
        (
            "<?xml version='1.0' encoding='utf-16'?><!DOCTYPE a><a/>".encode("utf-16"),
            "line 1: not UTF-8 text",
        ),
        (b"PK\x03\x04", "this is a zip archive: unpack it first"),
    ],
)
def test_a_hostile_or_broken_xml_is_refused_in_one_line_that_says_where(content: bytes, said: str) -> None:
    """OP-25: one line that names the field and the rule; no entity is ever expanded."""
    with pytest.raises(BadRates) as refused:
        parse_ecb(content)
    assert str(refused.value) == said


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "line 1: not a file of the ECB: it must start with Date or be XML"),
        (b"hello", "line 1: not a file of the ECB: it must start with Date or be XML"),
        (b"Date, USD, \n", "the file holds no rates"),
        (b"Date,\n2026-11-13,\n", "the file holds no rates"),
        (CSV.replace(b"USD", b"usd"), "line 1: 'usd' is not a currency code"),
        (CSV.replace(b"JPY", b"USD"), "line 1: a currency is named twice"),
        (CSV.replace(b"13 November", b"31 November"), "line 2: '31 November 2026' is not a date"),
        (CSV.replace(b"November", b"Brumaire"), "line 2: '13 Brumaire 2026' is not a date"),
        (CSV.replace(b"163.45", b"=1+1"), "line 2: JPY: '=1+1' is not a rate"),
        (CSV.replace(b"163.45", b"1e5"), "line 2: JPY: '1e5' is not a rate"),
        (CSV.replace(b"163.45, ", b""), "line 2: has 3 fields, the header 4"),
        (CSV.replace(b"1.0832", b"\xff"), "line 2: not UTF-8 text"),
        (CSV.replace(b"1.0832", b"\x00"), "line 2: USD: '\\x00' is not a rate"),
        (HISTORY.replace(b"2009-01-02", b"2026-11-13"), "line 3: 2026-11-13 is there twice"),
    ],
)
def test_a_hostile_or_broken_csv_is_refused_in_one_line_that_says_where(content: bytes, said: str) -> None:
    """OP-25: one line that names the field and the rule."""
    with pytest.raises(BadRates) as refused:
        parse_ecb(content)
    assert str(refused.value) == said


def test_a_file_that_is_too_large_is_not_even_looked_at() -> None:
    """OP-25: everything has a bound."""
    for parse in (parse_xml, parse_csv):
        with pytest.raises(BadRates, match="larger than 16 MiB"):
            parse(b" " * (FILE_BYTES_MAX + 1))


@settings(max_examples=1_000, deadline=None)
@given(
    st.integers(0, len(XML)), st.integers(0, 40), st.binary(max_size=20), st.sampled_from([XML, CSV, HISTORY])
)
def test_a_mangled_file_is_read_or_refused_and_never_breaks_anything(
    at: int, cut: int, instead: bytes, content: bytes
) -> None:
    """OP-25: hostile input gives a clear line, never a traceback."""
    said = ""
    days = []
    try:
        days = parse_ecb(content[:at] + instead + content[at + cut :])
    except BadRates as refused:
        said = str(refused)
    assert bool(days) != bool(said)
    assert said.isprintable()
    assert all(e8 > 0 for day in days for e8 in day.eur_e8.values())


@settings(max_examples=1_000, deadline=None)
@given(st.decimals(min_value="0.001", max_value="99999", places=5))
def test_a_rate_turned_round_is_off_by_half_a_step_at_most(rate: object) -> None:
    """OP-50: EUR per unit ×1e8, rounded half up once."""
    content = f"Date,USD,\n2026-11-13,{rate},\n".encode()

    [day] = parse_csv(content)

    assert abs(day.eur_e8["USD"] - RATE_ONE / Fraction(str(rate))) <= Fraction(1, 2)
