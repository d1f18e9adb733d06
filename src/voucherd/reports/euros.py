"""Amounts in euro cents, as SQL. Multiplying by powers of ten is exact, so each is rounded once and like ours."""

from __future__ import annotations

from typing import Final

from voucherd.money import DIGITS

_BY_DIGITS: Final = {
    places: ", ".join(f"'{code}'" for code in sorted(DIGITS) if DIGITS[code] == places) for places in (0, 3)
}


def exact(minor: str, currency: str, fx_e8: str) -> str:
    """The amount in euro cents with all its digits."""
    return (
        f"{minor}::numeric * {fx_e8} * CASE WHEN {currency} IN ({_BY_DIGITS[0]}) THEN 0.000001"
        f" WHEN {currency} IN ({_BY_DIGITS[3]}) THEN 0.000000001 ELSE 0.00000001 END"
    )


def rounded(minor: str, currency: str, fx_e8: str) -> str:
    """The amount in whole euro cents, rounded half away from zero as `money.divide_half_up` does."""
    return f"round({exact(minor, currency, fx_e8)})"
