"""VAT numbers of companies: by the rules of the company's country."""

from __future__ import annotations

import pytest

from voucherd.companies.model import BadCompany
from voucherd.companies.places import MEMBER_STATES, check_country, checked_vat_number, countries


@pytest.mark.parametrize(
    ("country", "written", "stored"),
    [
        ("NL", "nl 0012.30.013.b01", "NL001230013B01"),
        ("NL", "001230013B01", "NL001230013B01"),
        ("DE", "DE 123 456 106", "DE123456106"),
        ("GR", "GR094259216", "EL094259216"),
        ("GR", "094259216", "EL094259216"),
        ("FR", "K7399859412", "FRK7399859412"),
        ("AT", "U13585627", "ATU13585627"),
        ("US", "  12-345  678 ", "12-345 678"),
        ("GB", "XI 123", "XI 123"),
        ("NL", "  ", None),
        ("US", None, None),
    ],
)
def test_a_vat_number_is_stored_as_its_country_writes_it(
    country: str, written: str | None, stored: str | None
) -> None:
    """OP-155: without spaces and with the letters of its state; elsewhere as it is written."""
    assert checked_vat_number(country, written) == stored


@pytest.mark.parametrize(
    ("country", "written", "rule"),
    [
        ("NL", "NL123456789B01", "not a VAT number of Netherlands"),
        ("DE", "DE123456789", "not a VAT number of Germany"),
        ("NL", "DE123456106", "of another country than Netherlands"),
        ("NL", "²³Ⅷ", "not a VAT number"),
        ("NL", "9" * 500, "not a VAT number"),
        ("US", "123", "4 to 20 characters"),
        ("US", "1" * 21, "4 to 20 characters"),
    ],
)
def test_a_vat_number_that_can_not_be_one_is_refused(country: str, written: str, rule: str) -> None:
    """OP-155: a wrong digit would let a sale go without VAT."""
    with pytest.raises(BadCompany, match=rule) as refused:
        checked_vat_number(country, written)
    assert refused.value.field == "vat_number"


def test_countries_are_a_list_of_names() -> None:
    """OP-155: every member state is in it, and what is no country is not."""
    assert len(MEMBER_STATES) == 27
    assert countries().keys() > MEMBER_STATES
    assert countries()["NL"] == "Netherlands"
    assert list(countries().values())[:3] == ["Afghanistan", "Åland Islands", "Albania"]
    for code in ("XX", "EU", "ZZ", "nl", "", "001"):
        with pytest.raises(BadCompany, match="not a country"):
            check_country(code)
