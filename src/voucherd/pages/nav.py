"""What the navigation offers to whom. A page that is found through another one need not be here."""

from __future__ import annotations

from typing import Final, NamedTuple

from voucherd.people.roles import Right
from voucherd.people.sessions import Person

WAITING: Final = frozenset({"/portal/approvals", "/console/money"})
"""Where requests wait for a second person: how many they are stands beside the link."""


class NavItem(NamedTuple):
    """One link of the navigation."""

    path: str
    label: str
    right: Right | None = None


class NavGroup(NamedTuple):
    """Links that belong together; the first group needs no title."""

    title: str
    entries: tuple[NavItem, ...]


def _group(title: str, *entries: NavItem) -> NavGroup:
    return NavGroup(title, entries)


BUYER: Final = (
    _group(
        "",
        NavItem("/portal", "Overview"),
        NavItem("/portal/catalogue", "Catalogue", Right.ORDERS_VIEW),
        NavItem("/portal/cart", "Cart", Right.ORDERS_PLACE),
        NavItem("/portal/orders", "Orders", Right.ORDERS_VIEW),
    ),
    _group("Money", NavItem("/portal/balances", "Balances", Right.WALLET_VIEW)),
    _group(
        "Company",
        NavItem("/portal/approvals", "Approvals", Right.ORDERS_VIEW),
        NavItem("/portal/team", "Team", Right.TEAM_MANAGE),
    ),
    _group(
        "Developers",
        NavItem("/portal/keys", "API keys", Right.KEYS_MANAGE),
        NavItem("/portal/webhooks", "Webhooks", Right.WEBHOOKS_MANAGE),
        NavItem("/portal/requests", "Requests", Right.KEYS_MANAGE),
        NavItem("/portal/sandbox", "Sandbox", Right.KEYS_MANAGE),
        NavItem("/docs", "API guide"),
    ),
)

CONSOLE: Final = (
    _group("", NavItem("/console", "Overview")),
    _group(
        "Customers",
        NavItem("/console/companies", "Companies", Right.COMPANIES_VIEW),
        NavItem("/console/money", "Money", Right.COMPANIES_VIEW),
        NavItem("/console/orders", "Orders", Right.ORDERS_ALL),
    ),
    _group(
        "Goods",
        NavItem("/console/products", "Products", Right.CATALOGUE_MANAGE),
        NavItem("/console/stock/import", "Import codes", Right.STOCK_MANAGE),
        NavItem("/console/lots", "Lots", Right.STOCK_MANAGE),
        NavItem("/console/late-codes", "Late codes", Right.STOCK_MANAGE),
        NavItem("/console/suppliers", "Suppliers", Right.SUPPLIERS_MANAGE),
        NavItem("/console/purchases", "Purchases", Right.ATTEMPTS_MANAGE),
    ),
    _group(
        "Prices",
        NavItem("/console/prices", "Price lists", Right.CATALOGUE_MANAGE),
        NavItem("/console/fx", "Exchange rates", Right.CATALOGUE_MANAGE),
        NavItem("/console/vat", "VAT rates", Right.CATALOGUE_MANAGE),
    ),
    _group(
        "Books",
        NavItem("/console/reports", "Reports", Right.REPORTS_VIEW),
        NavItem("/console/trail", "Audit trail", Right.TRAIL_VIEW),
    ),
    _group("People", NavItem("/console/staff", "Staff", Right.STAFF_MANAGE)),
)


def nav_of(person: Person | None) -> list[NavGroup]:
    """The links that this person may follow."""
    if person is None:
        return []
    groups = CONSOLE if person.company is None else BUYER
    allowed = [NavGroup(title, tuple(e for e in entries if person.may(e.right))) for title, entries in groups]
    return [group for group in allowed if group.entries]


def current(groups: list[NavGroup], path: str) -> str:
    """The entry that a path belongs to: the longest one that it begins with."""
    paths = [entry.path for group in groups for entry in group.entries]
    inside = [one for one in paths if path == one or path.startswith(one + "/")]
    return max(inside, key=len, default="")
