"""What the console's handlers read out of paths and forms; what can't be read is refused in words."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import date
from typing import Final

from voucherd import clock
from voucherd.catalogue import store as product_store
from voucherd.catalogue.texts import read_amount
from voucherd.companies import store as company_store
from voucherd.companies.model import Company, CompanyNotFound
from voucherd.db import Connection
from voucherd.money import DIGITS, Money
from voucherd.pages.visit import Visit, missing

OFFERED_MAX: Final = 500
"""Companies or products that a field offers; whoever has more types the name."""
FILE_ROWS_MAX: Final = 100_000
"""Rows of a list that is taken away as a file."""
_PICKED: Final = re.compile(r".*\(([a-z0-9-]{1,100})\)")
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,17}")
_INT_MAX: Final = 2**31 - 1
_DAY: Final = re.compile(r"2[0-9]{3}-[0-9]{2}-[0-9]{2}")


def number_in(visit: Visit, place: str, highest: int = _INT_MAX) -> int:
    """The number in a place of the path; a path with anything else in it leads nowhere."""
    text = visit.parameters[place]
    if not _NUMBER.fullmatch(text) or int(text) > highest:
        raise missing()
    return int(text)


def number_of(text: str, highest: int = 2**63 - 1) -> int | None:
    """A number out of a query; None for none, and for what is none."""
    return int(text) if _NUMBER.fullmatch(text) and int(text) <= highest else None


async def company_of(conn: Connection, visit: Visit) -> Company:
    """The company in the path."""
    number = number_in(visit, "company")
    found = (await company_store.companies(conn, [number])).get(number)
    if found is None:
        raise missing()
    return found


async def company_options(conn: Connection) -> list[tuple[str, str]]:
    """Companies to pick from, by name; of more than fit into a page the first ones."""
    return [(name, name) for name in await company_store.names(conn, OFFERED_MAX)]


async def company_in_query(conn: Connection, visit: Visit) -> int | None:
    """The company that the address names; one that does not exist is a problem beside its field."""
    name = visit.query.get("company")
    if not name:
        return None
    try:
        return (await company_store.find_company(conn, name)).id
    except CompanyNotFound:
        visit.problems["company"] = "There is no company with this name."
        return None


async def product_options(conn: Connection) -> list[tuple[str, str]]:
    """Products to pick from, by slug; of more than fit into a page the first ones."""
    listings = await product_store.list_products(conn, limit=OFFERED_MAX)
    return [(one.version.slug, f"{one.version.name} ({one.version.slug})") for one in listings]


async def product_names(conn: Connection, slugs: Collection[str]) -> dict[str, str]:
    """What the products of these slugs are called."""
    found = await product_store.current(conn, sorted(set(slugs)))
    return {slug: listing.version.name for slug, listing in found.items()}


def picked(text: str) -> str:
    """The slug of a product that was picked from a list, or typed."""
    found = _PICKED.fullmatch(text.strip())
    return found[1] if found else text.strip()


def day_of(text: str) -> date:
    """A day such as 2026-01-31."""
    if not _DAY.fullmatch(text):
        raise ValueError("must be a day such as 2026-01-31")
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text} is not a day of the calendar") from None
    if not clock.in_reach(day):
        raise ValueError(f"must be between the years {clock.YEAR_MIN} and {clock.YEAR_MAX}")
    return day


def optional_day(text: str) -> date | None:
    """The same, or None where nothing was written."""
    return day_of(text) if text else None


def currency_of(text: str) -> str:
    """A currency's code, in capitals."""
    code = text.upper()
    if code not in DIGITS:
        raise ValueError("must be a currency code such as EUR")
    return code


def euros_of(text: str) -> int | None:
    """An amount of euros above 0 in cents, or None where nothing was written."""
    if not text:
        return None
    money = read_amount("amount", f"{text} EUR")
    if money.minor <= 0:
        raise ValueError("must be more than 0")
    return money.minor


def amount_of(text: str, currency: str) -> Money:
    """An amount above 0."""
    money = read_amount("amount", f"{text} {currency}")
    if money.minor <= 0:
        raise ValueError("must be more than 0")
    return money


def plain_euros(minor: int | None) -> str:
    """Cents as the field of a form holds them."""
    return "" if minor is None else str(Money(minor, "EUR").decimal())
