"""The countries whose VAT the service knows. Their rates are dated rows of vat_rate (migration 0004)."""

from __future__ import annotations

from typing import Final

_MEMBER_STATES: Final = "AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK"

EU_COUNTRIES: Final = frozenset(_MEMBER_STATES.split())
"""The member states by ISO 3166 code: Greece is GR here, though its VAT numbers start with EL."""
