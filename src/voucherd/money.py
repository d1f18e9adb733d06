"""Money: integers of a currency's smallest unit. The only place that rounds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

RATE_DIGITS: Final = 8
RATE_ONE: Final = 10**RATE_DIGITS
"""A rate of exactly one, in the unit of every `…_e8` number."""

MINOR_MAX: Final = 10**15
"""No single amount is larger than this many minor units; products of it stay inside a bigint's sums."""

_TWO_DIGITS: Final = (
    "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF "
    "CNY COP CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF "
    "IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR "
    "MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD "
    "SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD UYU UZS VED VES WST XCD XCG "
    "YER ZAR ZMW ZWG"
)
_NO_DIGITS: Final = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF"
_THREE_DIGITS: Final = "BHD IQD JOD KWD LYD OMR TND"

DIGITS: Final[dict[str, int]] = (
    dict.fromkeys(_TWO_DIGITS.split(), 2)
    | dict.fromkeys(_NO_DIGITS.split(), 0)
    | dict.fromkeys(_THREE_DIGITS.split(), 3)
)
"""ISO 4217: how many digits each currency has after the point."""


class UnknownCurrency(ValueError):
    """The code is not an ISO 4217 currency that money can be held in."""


class BadAmount(ValueError):
    """The text is not an amount of that currency."""


def digits(currency: str) -> int:
    """How many digits the currency has after the point."""
    try:
        return DIGITS[currency]
    except KeyError:
        raise UnknownCurrency(currency) from None


def divide_half_up(numerator: int, denominator: int) -> int:
    """The quotient of two integers, rounded half away from zero: the one rounding rule of the service."""
    if denominator < 0:
        numerator, denominator = -numerator, -denominator
    if numerator < 0:
        return -((-2 * numerator + denominator) // (2 * denominator))
    return (2 * numerator + denominator) // (2 * denominator)


@dataclass(frozen=True, slots=True, order=False)
class Money:
    """An exact amount in one currency."""

    minor: int
    currency: str

    def __post_init__(self) -> None:
        digits(self.currency)

    @classmethod
    def parse(cls, amount: str | Decimal, currency: str) -> Money:
        """The amount as written, refused if it has more digits than its currency."""
        code = currency.upper()
        return cls(to_minor(amount, code), code)

    @classmethod
    def read(cls, text: str) -> Money:
        """The amount in a text such as "48.10 EUR"."""
        parts = text.split()
        if len(parts) != 2:
            raise BadAmount(f"{text!r} is not an amount and a currency, such as '48.10 EUR'")
        return cls.parse(parts[0], parts[1])

    def decimal(self) -> Decimal:
        """The amount in whole units."""
        return Decimal(self.minor).scaleb(-digits(self.currency))

    def __str__(self) -> str:
        return f"{plain(self.minor, digits(self.currency))} {self.currency}"


_EUR_STEPS: Final = (1000, 100, 10, 1)


def worth(minor: int, currency: str, fx_e8: int) -> int:
    """What an amount is worth in EUR, exactly: a number of 10⁻¹¹ EUR, to compare and to subtract."""
    return minor * fx_e8 * _EUR_STEPS[digits(currency)]


def in_eur(worth: int) -> str:
    """Such a number for people, to the cent."""
    return str(Money(divide_half_up(worth, RATE_ONE * 10), "EUR"))


_AMOUNT: Final = re.compile(r"-?[0-9]{1,20}(\.[0-9]{1,20})?")


def to_minor(amount: str | Decimal, currency: str) -> int:
    """The amount in minor units, refused if it can't be said exactly in them."""
    places = digits(currency)
    # Written out plainly: an exponent such as 1e999999 would take minutes to become an integer.
    if isinstance(amount, Decimal) and not -21 < amount.adjusted() < 20:
        amount = str(amount) if amount else "0"
    text = f"{amount:f}" if isinstance(amount, Decimal) else amount
    if not _AMOUNT.fullmatch(text):
        raise BadAmount(f"{text[:40]!r} is not an amount")
    whole, _, fraction = text.partition(".")
    if fraction[places:].strip("0"):
        raise BadAmount(
            f"{text} has more than {places} digits after the point, which {currency} does not have"
        )
    minor = int(whole + fraction[:places].ljust(places, "0"))
    if abs(minor) > MINOR_MAX:
        raise BadAmount(f"{text} is too large")
    return minor


def plain(minor: int, places: int) -> str:
    """The amount with exactly that many digits after the point."""
    if places == 0:
        return str(minor)
    sign, text = ("-", str(-minor)) if minor < 0 else ("", str(minor))
    text = text.rjust(places + 1, "0")
    return f"{sign}{text[:-places]}.{text[-places:]}"
