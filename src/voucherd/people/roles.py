"""Roles: what a person may do in the portal, and in the operator's console."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Right(StrEnum):
    """One thing that a person may do."""

    # A company's people.
    ORDERS_VIEW = "orders:view"
    ORDERS_PLACE = "orders:place"
    ORDERS_APPROVE = "orders:approve"
    CODES_VIEW = "codes:view"
    WALLET_VIEW = "wallet:view"
    KEYS_MANAGE = "keys:manage"
    WEBHOOKS_MANAGE = "webhooks:manage"
    TEAM_MANAGE = "team:manage"
    # The operator's people.
    COMPANIES_VIEW = "companies:view"
    COMPANIES_MANAGE = "companies:manage"
    MONEY_PROPOSE = "money:propose"
    MONEY_APPROVE = "money:approve"
    CATALOGUE_MANAGE = "catalogue:manage"
    STOCK_MANAGE = "stock:manage"
    SUPPLIERS_MANAGE = "suppliers:manage"
    ATTEMPTS_MANAGE = "attempts:manage"
    ORDERS_ALL = "orders:all"
    ORDERS_CANCEL = "orders:cancel"
    REPORTS_VIEW = "reports:view"
    TRAIL_VIEW = "trail:view"
    STAFF_MANAGE = "staff:manage"
    SETTINGS_MANAGE = "settings:manage"


COMPANY_RIGHTS: Final = frozenset(
    {
        Right.ORDERS_VIEW,
        Right.ORDERS_PLACE,
        Right.ORDERS_APPROVE,
        Right.CODES_VIEW,
        Right.WALLET_VIEW,
        Right.KEYS_MANAGE,
        Right.WEBHOOKS_MANAGE,
        Right.TEAM_MANAGE,
    }
)
OPERATOR_RIGHTS: Final = frozenset(Right) - COMPANY_RIGHTS

COMPANY: Final[dict[str, frozenset[Right]]] = {
    "owner": COMPANY_RIGHTS,
    "buyer": frozenset({Right.ORDERS_VIEW, Right.ORDERS_PLACE, Right.CODES_VIEW, Right.WALLET_VIEW}),
    "finance": frozenset({Right.ORDERS_VIEW, Right.ORDERS_APPROVE, Right.WALLET_VIEW}),
    "viewer": frozenset({Right.ORDERS_VIEW, Right.WALLET_VIEW}),
    "developer": frozenset({Right.ORDERS_VIEW, Right.KEYS_MANAGE, Right.WEBHOOKS_MANAGE, Right.WALLET_VIEW}),
}
OPERATOR: Final[dict[str, frozenset[Right]]] = {
    "admin": OPERATOR_RIGHTS,
    "support": frozenset(
        {Right.COMPANIES_VIEW, Right.ORDERS_ALL, Right.ORDERS_CANCEL, Right.ATTEMPTS_MANAGE}
    ),
    "stock": frozenset(
        {
            Right.CATALOGUE_MANAGE,
            Right.STOCK_MANAGE,
            Right.SUPPLIERS_MANAGE,
            Right.ATTEMPTS_MANAGE,
            Right.REPORTS_VIEW,
        }
    ),
    "finance": frozenset(
        {
            Right.COMPANIES_VIEW,
            Right.MONEY_PROPOSE,
            Right.MONEY_APPROVE,
            Right.REPORTS_VIEW,
            Right.ORDERS_ALL,
            Right.TRAIL_VIEW,
        }
    ),
}


def approval_right(company_id: int | None) -> Right:
    """The right to be the second person: for a company's orders, or for the operator's payments for None."""
    return Right.MONEY_APPROVE if company_id is None else Right.ORDERS_APPROVE


def rights_of(role: str, *, of_company: bool) -> frozenset[Right]:
    """What a role may do; one that a newer version of the program stored may do nothing."""
    return (COMPANY if of_company else OPERATOR).get(role, frozenset())
