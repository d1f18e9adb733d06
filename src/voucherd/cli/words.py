"""The words of the command line: how states, durations, dates and amounts are written."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Final, TypeAlias

import typer

from voucherd.catalogue.texts import read_amount
from voucherd.ids import State
from voucherd.money import DIGITS, Money, digits
from voucherd.vault.lines import read_expiry

_DURATION: Final = re.compile(r"([0-9]{1,6})([smhd])")
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class StateWord(StrEnum):
    """Live or sandbox, as they are written."""

    LIVE = "live"
    SANDBOX = "sandbox"

    @property
    def state(self) -> State:
        """The state that the word names."""
        return State.SANDBOX if self is StateWord.SANDBOX else State.LIVE


StateOption: TypeAlias = Annotated[StateWord, typer.Option("--state", help="Real money, or play money.")]
CompanyArgument: TypeAlias = Annotated[str, typer.Argument(metavar="COMPANY", help="The company's name.")]


def read_duration(text: str) -> timedelta:
    """The span in a text such as 30m, 24h or 7d."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise typer.BadParameter(f"{text!r} is not a duration such as 30m, 24h or 7d")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def read_moment(text: str) -> datetime:
    """The moment in an ISO date (its end, UTC) or date-time."""
    moment = read_expiry(text.strip())
    if moment is None:
        raise typer.BadParameter(f"{text!r} is not a date such as 2027-12-31")
    return moment


def read_currency(text: str) -> str:
    """The ISO 4217 code, in capitals."""
    code = text.strip().upper()
    if code not in DIGITS:
        raise typer.BadParameter(f"{text!r} is not a currency code of ISO 4217")
    return code


def read_money(field: str, text: str) -> Money:
    """The amount in a text such as "48.10 EUR"."""
    try:
        return read_amount(field, text)
    except ValueError as unreadable:
        raise typer.BadParameter(str(unreadable)) from None


SpendOption: TypeAlias = Annotated[str | None, typer.Option(metavar='"500 EUR"')]


def read_spend(field: str, text: str | None) -> int | None:
    """A limit of what may be spent, in euro cents; None for none."""
    if text is None:
        return None
    money = read_money(field, text)
    if money.currency != "EUR" or money.minor <= 0:
        raise typer.BadParameter(f"{field}: must be an amount in EUR above 0")
    return money.minor


def spend_words(order_minor: int | None, day_minor: int | None) -> str:
    """The limits of what may be spent, for people."""
    parts = [(order_minor, "an order"), (day_minor, "a day")]
    said = [f"{Money(minor, 'EUR')} {what}" for minor, what in parts if minor is not None]
    return ", ".join(said) or "no limit"


def decimal(minor: int, currency: str) -> Decimal:
    """The amount as the wire writes it: a number with the currency's digits (OP-07)."""
    return Decimal(minor).scaleb(-digits(currency))


def read_day(text: str) -> date:
    """The day in an ISO date."""
    if _DAY.fullmatch(text):
        with suppress(ValueError):
            return date.fromisoformat(text)
    raise typer.BadParameter(f"{text[:40]!r} is not a day such as 2027-12-31")
