"""What the navigation offers to whom. A page that is found through another one need not be here."""

from __future__ import annotations

from typing import Final, NamedTuple

from voucherd.people.roles import Right
from voucherd.people.sessions import Person

WAITING: Final = frozenset({"/portal/approvals", "/console/money"})
"""Where requests wait for a second person: how many they are stands beside the link."""


class NavItem(NamedTuple):
    """One link of the navigation, with its icon."""

    path: str
    label: str
    icon: str
    right: Right | None = None
    also: tuple[str, ...] = ()
    """Other paths that belong to it."""


class NavGroup(NamedTuple):
    """Links that belong together; the first group needs no title."""

    title: str
    entries: tuple[NavItem, ...]


def _group(title: str, *entries: NavItem) -> NavGroup:
    return NavGroup(title, entries)


BUYER: Final = (
    _group(
        "",
        NavItem("/portal", "Overview", "home"),
        NavItem("/portal/catalogue", "Catalogue", "catalogue", Right.ORDERS_VIEW, ("/portal/bulk",)),
        NavItem("/portal/cart", "Cart", "cart", Right.ORDERS_PLACE),
        NavItem("/portal/orders", "Orders", "orders", Right.ORDERS_VIEW),
    ),
    _group(
        "Money",
        NavItem("/portal/balances", "Balances", "balance", Right.WALLET_VIEW, ("/portal/alerts",)),
    ),
    _group(
        "Company",
        NavItem("/portal/approvals", "Approvals", "approvals", Right.ORDERS_VIEW),
        NavItem("/portal/team", "Team", "team", Right.TEAM_MANAGE),
    ),
    _group(
        "Developers",
        NavItem("/portal/keys", "API keys", "keys", Right.KEYS_MANAGE),
        NavItem("/portal/webhooks", "Webhooks", "webhooks", Right.WEBHOOKS_MANAGE),
        NavItem("/portal/requests", "Requests", "requests", Right.KEYS_MANAGE),
        NavItem("/portal/sandbox", "Sandbox tools", "sandbox", Right.KEYS_MANAGE),
        NavItem("/docs", "API guide", "guide"),
    ),
)

_STOCK: Final = ("/console/stock", "/console/late-codes")

CONSOLE: Final = (
    _group("", NavItem("/console", "Overview", "overview", None, ("/console/health", "/console/search"))),
    _group(
        "Sales",
        NavItem("/console/orders", "Orders", "orders", Right.ORDERS_ALL),
        NavItem("/console/companies", "Companies", "companies", Right.COMPANIES_VIEW),
        NavItem("/console/money", "Payments", "money", Right.COMPANIES_VIEW),
    ),
    _group(
        "Goods",
        NavItem("/console/products", "Products", "products", Right.CATALOGUE_MANAGE),
        NavItem("/console/brands", "Brands", "brands", Right.CATALOGUE_MANAGE),
        NavItem("/console/lots", "Stock", "lots", Right.STOCK_MANAGE, _STOCK),
        NavItem("/console/suppliers", "Suppliers", "suppliers", Right.SUPPLIERS_MANAGE),
        NavItem("/console/purchases", "Purchases", "purchases", Right.ATTEMPTS_MANAGE),
    ),
    _group(
        "Prices",
        NavItem("/console/prices", "Price lists", "prices", Right.CATALOGUE_MANAGE),
        NavItem("/console/fx", "Exchange rates", "rates", Right.CATALOGUE_MANAGE),
        NavItem("/console/vat", "VAT rates", "vat", Right.CATALOGUE_MANAGE),
    ),
    _group(
        "Books",
        NavItem("/console/reports", "Reports", "reports", Right.REPORTS_VIEW),
        NavItem("/console/trail", "Audit trail", "trail", Right.TRAIL_VIEW, ("/console/reveals",)),
    ),
    _group(
        "Shop",
        NavItem("/console/staff", "Staff", "team", Right.STAFF_MANAGE),
        NavItem("/console/settings", "Settings", "settings", Right.SETTINGS_MANAGE),
    ),
)


def nav_of(person: Person | None) -> list[NavGroup]:
    """The links that this person may follow."""
    if person is None:
        return []
    groups = CONSOLE if person.company is None else BUYER
    allowed = [NavGroup(title, tuple(e for e in entries if person.may(e.right))) for title, entries in groups]
    return [group for group in allowed if group.entries]


def home(person: Person | None) -> str:
    """Where a person's own pages begin."""
    if person is None:
        return "/"
    return "/console" if person.company is None else "/portal"


def current(groups: list[NavGroup], path: str) -> str:
    """The entry that a path belongs to: the one with the longest path that it begins with."""
    inside = [
        (len(one), entry.path)
        for group in groups
        for entry in group.entries
        for one in (entry.path, *entry.also)
        if path == one or path.startswith(one + "/")
    ]
    return max(inside, default=(0, ""))[1]
