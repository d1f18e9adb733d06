"""What people pick from instead of typing slugs and codes: products, brands, currencies, countries."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import cache
from typing import Final

from babel import Locale

from voucherd.catalogue import search as register
from voucherd.catalogue import store as catalogue
from voucherd.catalogue.products import Listing
from voucherd.catalogue.rules import is_slug
from voucherd.catalogue.search import ProductSearch
from voucherd.catalogue.store import UnknownProduct
from voucherd.db import Connection
from voucherd.money import DIGITS
from voucherd.storefront import search

OPTIONS_MAX: Final = 500
"""So many products or brands are offered; whoever has more writes part of the name."""
SELECT_MAX: Final = 200
"""Up to so many are a list to choose from; beyond that the field takes the label itself (`pieces.picker`)."""
_SLUG_AT_END: Final = re.compile(r".*\(([a-z0-9-]{1,100})\)")

Option = tuple[str, str]


class NotPicked(ValueError):
    """The text names nothing, or several things."""


async def product_options(conn: Connection, *, active: bool | None = None) -> list[Option]:
    """The products, by name."""
    found = await register.page_of_products(
        conn, ProductSearch(words=[], query="", active=active), size=OPTIONS_MAX
    )
    named = [(one.version.slug, product_label(one)) for one in found]
    return sorted(named, key=lambda one: one[1].casefold())


def product_label(listing: Listing) -> str:
    """How a product is called in a list to pick from."""
    return f"{listing.version.name} ({listing.version.slug})"


async def pick_product(conn: Connection, text: str) -> Listing:
    """The product that is meant: by its slug, its label, its name, or words that no other product has."""
    if not text:
        raise NotPicked("Choose a product.")
    labelled = _SLUG_AT_END.fullmatch(text)
    for slug in filter(is_slug, (text, labelled[1] if labelled else "")):
        try:
            return await register.find(conn, slug)
        except UnknownProduct:
            continue
    words = search.terms(text[: search.QUERY_CHARS_MAX])[: search.TERMS_MAX]
    found = []
    if words:
        wanted = ProductSearch(words=words, query=search.prefix_query(words))
        found = await register.page_of_products(conn, wanted, size=SELECT_MAX)
    exact = [one for one in found if one.version.name.casefold() == text.casefold()]
    if len(exact or found) != 1:
        some = ", ".join(product_label(one) for one in found[:3])
        raise NotPicked(
            f"Several products fit, such as {some}. Write more of the name." if found else "No product fits."
        )
    return (exact or found)[0]


async def brand_options(conn: Connection) -> list[Option]:
    """The brands, by name."""
    found = await catalogue.list_brands(conn)
    return sorted(((one.slug, one.name) for one in found), key=lambda one: one[1].casefold())[:OPTIONS_MAX]


async def pick_brand(conn: Connection, text: str) -> str:
    """The slug of the brand that is meant: by its slug or its name."""
    found = await catalogue.list_brands(conn)
    for one in found:
        if text == one.slug or text.casefold() == one.name.casefold():
            return one.slug
    raise NotPicked("There is no such brand.")


def shown(options: Collection[Option], value: str) -> str:
    """The value as the picker has it: of a long list it is the label."""
    return value if len(options) <= SELECT_MAX else dict(options).get(value, value)


@cache
def _currency_names() -> dict[str, str]:
    known = Locale("en").currencies
    return {code: f"{code} – {known.get(code, code)}" for code in DIGITS}


def currency_options(first: Iterable[str] = ()) -> list[Option]:
    """Every currency by its code and name; those that are usual here come first."""
    names = _currency_names()
    usual = [code for code in dict.fromkeys(first) if code in names]
    return [(code, names[code]) for code in [*usual, *sorted(names.keys() - set(usual))]]


def with_currency(amount: str, currency: str) -> str:
    """An amount and its currency as one text; a currency beside the amount wins over the list's."""
    return f"{amount} {currency}" if amount and not any(map(str.isalpha, amount)) else amount
