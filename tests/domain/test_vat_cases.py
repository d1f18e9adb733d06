"""VAT, case by case: the table of docs/prices.md, with the rates that the migration brings."""

from __future__ import annotations

import re
from datetime import date
from importlib.resources import files

import pytest

from tests.domain.test_pricing import read_table, version
from voucherd.catalogue.pricing import price_unit, vat_bp
from voucherd.catalogue.texts import read_selling, read_share
from voucherd.money import RATE_ONE, Money

CASES = read_table("case", "buyer")
RATES = re.findall(
    r"\('([A-Z]{2})', '([0-9-]{10})', ([0-9]+)\)",
    (files("voucherd") / "migrations" / "0004_prices.sql").read_text(encoding="utf-8"),
)


def rates_on(day: date) -> dict[str, int]:
    """Every country's rate on that day."""
    return {country: int(bp) for country, start, bp in sorted(RATES) if date.fromisoformat(start) <= day}


@pytest.mark.parametrize("case", CASES)
def test_a_case_of_vat_is_as_it_was_worked_out_by_hand(case: str) -> None:
    """OP-52: what VAT is due on, at whose rate, and the rate of the day."""
    row = CASES[case]
    number = None if row["VAT number"] == "–" else row["VAT number"]
    rate_bp = vat_bp(row["buyer"], number, "NL", rates_on(date.fromisoformat(row["day"])))
    assert rate_bp == read_share("VAT rate", row["VAT rate"])
    face, text = Money.read(row["face value"]), row["sells at"]
    selling = read_selling(None, text[4:]) if text.startswith("fee ") else read_selling(text, None)

    unit = price_unit(
        version(face, selling, row["vatCategory"]),
        face.minor,
        payment_currency=face.currency,
        rates={face.currency: RATE_ONE},
        vat_bp=rate_bp,
    )

    amounts = (unit.price_minor, unit.turnover_minor, unit.vat_minor, unit.price_minor + unit.vat_minor)
    told = [row[name] for name in ("price", "VAT turnover", "VAT", "including VAT")]
    assert [str(Money(amount, unit.price_currency)) for amount in amounts] == told


def test_no_case_is_missing() -> None:
    """OP-52: every category, each kind of buyer, and a change of rate."""
    assert len(CASES) == 15
    assert {row["vatCategory"] for row in CASES.values()} == {"single_purpose", "multi_purpose", "exempt"}
    assert {row["buyer"] for row in CASES.values()} >= {"NL", "FI", "EE", "GR", "US", "GB"}
