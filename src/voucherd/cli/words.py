"""The words of the command line: how states, durations, dates and amounts are written."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Final, TypeAlias

import typer
from typer import Argument, Option

from voucherd import clock
from voucherd.catalogue.texts import read_amount
from voucherd.cli.output import Document, Output, facts, table_of
from voucherd.ids import State
from voucherd.money import DIGITS, Money, digits
from voucherd.vault.lines import BadLine, read_expiry

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


StateOption: TypeAlias = Annotated[StateWord, Option("--state", help="Real money, or play money.")]
CompanyArgument: TypeAlias = Annotated[str, Argument(metavar="COMPANY", help="The company's name.")]


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


SpendOption: TypeAlias = Annotated[str | None, Option(metavar='"500 EUR"')]


def read_spend(field: str, text: str | None) -> int | None:
    """A limit of what may be spent, in euro cents; None for none."""
    if text is None:
        return None
    money = read_money(field, text)
    if money.currency != "EUR" or money.minor <= 0:
        raise typer.BadParameter(f"{field}: must be an amount in EUR above 0")
    return money.minor


def spend_words(order_eur: Decimal | None, day_eur: Decimal | None) -> str:
    """The limits of what may be spent, for people."""
    parts = [(order_eur, "an order"), (day_eur, "a day")]
    return ", ".join(f"{eur} EUR {what}" for eur, what in parts if eur is not None) or "no limit"


def spend_facts(order_minor: int | None, day_minor: int | None) -> dict[str, Any]:
    """The limits of what may be spent, for programs."""
    return {"spendOrderEur": amount(order_minor, "EUR"), "spendDayEur": amount(day_minor, "EUR")}


def decimal(minor: int, currency: str) -> Decimal:
    """The amount as the wire writes it: a number with the currency's digits (OP-07)."""
    return Decimal(minor).scaleb(-digits(currency))


def amount(minor: int | None, currency: str | None) -> Decimal | None:
    """The amount as the wire writes it, or None without one."""
    return None if minor is None or currency is None else decimal(minor, currency)


def priced(name: str, minor: int | None, currency: str | None) -> dict[str, Any]:
    """An amount and its currency, each in a field of its own."""
    return {name: amount(minor, currency), f"{name}Currency": currency}


def read_day(text: str) -> date:
    """The day in an ISO date."""
    if _DAY.fullmatch(text):
        with suppress(ValueError):
            day = date.fromisoformat(text)
            if clock.in_reach(day):
                return day
    raise typer.BadParameter(f"{text[:40]!r} is not a day such as 2027-12-31")


def midnight(day: date) -> datetime:
    """The moment at which the day begins, UTC."""
    return datetime.combine(day, time(), UTC)


def span(length: timedelta) -> str:
    """A length of time in its two largest units at most."""
    seconds = max(0, int(length.total_seconds()))
    for unit, size, smaller in (("d", 86_400, "h"), ("h", 3_600, "m"), ("m", 60, "s")):
        if seconds >= size:
            rest = seconds % size // {"h": 3_600, "m": 60, "s": 1}[smaller]
            return f"{seconds // size}{unit} {rest}{smaller}" if rest else f"{seconds // size}{unit}"
    return f"{seconds}s"


def moment_day(field: str) -> Callable[[Document], str | None]:
    """The day of a moment in a document."""
    return lambda document: document[field] and f"{document[field]:%Y-%m-%d}"


def bad_lines(bad: Sequence[BadLine], /, **counts: object) -> Output:
    """The lines of a file that can't be read, and why not."""
    lines = [facts(line, "line reason") for line in bad]
    return Output({**counts, "bad": lines}, table_of(lines, [">line", ("~what is wrong", "reason")]))
