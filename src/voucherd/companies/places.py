"""Where a company is, and its VAT number: checked by the rules of its country (OP-155). Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from functools import cache
from typing import Final

from babel import Locale
from stdnum.eu import vat
from stdnum.exceptions import ValidationError

from voucherd.companies.model import BadCompany

VAT_CHARACTERS: Final = (4, 20)
MEMBER_STATES: Final = frozenset(state.upper() for state in vat.MEMBER_STATES) - {"XI"}
"""Of the EU, by ISO 3166 code. Northern Ireland, which keeps its VAT numbers, is no country of a company."""
_NO_COUNTRIES: Final = frozenset({"EU", "EZ", "QO", "UN", "XA", "XB", "ZZ"})
_LETTERS: Final = {"GR": "EL"}
"""Before the numbers of a member state, where they are not its code."""


@cache
def countries() -> Mapping[str, str]:
    """Every country by its code of two letters, with its English name, sorted by that."""
    known = Locale("en").territories
    found = {code: name for code, name in known.items() if len(code) == 2 and code.isalpha()}
    return dict(
        sorted(((code, found[code]) for code in found.keys() - _NO_COUNTRIES), key=lambda one: _plain(one[1]))
    )


def _plain(name: str) -> str:
    """The name as it is sorted: Åland among the A."""
    return unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()


def check_country(code: str) -> None:
    """Refuse what is no country."""
    if code not in countries():
        raise BadCompany("country", f"{code[:20]!r} is not a country of two capital letters, such as NL")


def checked_vat_number(country: str, text: str | None) -> str | None:
    """The VAT number as it is stored; refused if its country's rules say that it can't be one."""
    number = " ".join((text or "").split())
    if not number:
        return None
    if country not in MEMBER_STATES:
        low, high = VAT_CHARACTERS
        if not low <= len(number) <= high:
            raise BadCompany("vat_number", f"a VAT number has {low} to {high} characters")
        return number
    letters = _LETTERS.get(country, country)
    compact = "".join(letter for letter in number.upper() if letter.isalnum())
    if compact[:2] not in (letters, country):
        if vat.is_valid(compact):
            raise BadCompany("vat_number", f"is a VAT number of another country than {countries()[country]}")
        # Some write the number alone.
        compact = country + compact
    compact = letters + compact[2:]
    try:
        return str(vat.validate(compact))
    except ValidationError:
        name = countries()[country]
        raise BadCompany(
            "vat_number", f"is not a VAT number of {name}: a digit is wrong, missing or one too many"
        ) from None
