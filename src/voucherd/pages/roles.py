"""The words for roles and rights: what people are called, and what to say to who may not do something."""

from __future__ import annotations

from typing import Final

from voucherd.people.roles import Right
from voucherd.words import phrase

ROLES: Final[dict[str, str]] = {
    # ── a company's people ──
    "owner": phrase("Owner"),
    "buyer": phrase("Buyer"),
    "finance": phrase("Finance"),
    "viewer": phrase("Viewer"),
    "developer": phrase("Developer"),
    # ── the operator's people ──
    "admin": "Administrator",
    "support": "Support",
    "stock": "Stock",
}
DUTIES: Final[dict[str, str]] = {
    "owner": phrase("Everything, including the team and API keys."),
    "buyer": phrase("Places orders and sees their codes."),
    "finance": phrase("Approves orders and sees balances; sees no codes."),
    "viewer": phrase("Sees orders and balances; sees no codes."),
    "developer": phrase("Manages API keys and webhooks; sees no codes."),
}
STAFF_DUTIES: Final[dict[str, str]] = {
    "admin": "Everything, including staff and settings.",
    "support": "Helps companies: sees and cancels orders, settles purchases.",
    "stock": "Manages products, prices, codes and suppliers; sees reports.",
    "finance": "Manages payments; sees companies, orders, reports and the audit trail.",
}
REFUSALS: Final[dict[Right, str]] = {
    Right.ORDERS_VIEW: phrase("Your role does not let you see orders."),
    Right.ORDERS_PLACE: phrase("Your role does not let you place orders."),
    Right.ORDERS_APPROVE: phrase("Your role does not let you approve orders."),
    Right.CODES_VIEW: phrase("Your role does not let you see codes."),
    Right.WALLET_VIEW: phrase("Your role does not let you see balances."),
    Right.KEYS_MANAGE: phrase("Your role does not let you manage API keys."),
    Right.WEBHOOKS_MANAGE: phrase("Your role does not let you manage webhooks."),
    Right.TEAM_MANAGE: phrase("Your role does not let you manage the team."),
    Right.COMPANIES_VIEW: "Your role does not let you see companies.",
    Right.COMPANIES_MANAGE: "Your role does not let you change companies.",
    Right.MONEY_PROPOSE: "Your role does not let you propose payments.",
    Right.MONEY_APPROVE: "Your role does not let you approve payments.",
    Right.CATALOGUE_MANAGE: "Your role does not let you change products and prices.",
    Right.STOCK_MANAGE: "Your role does not let you import codes.",
    Right.SUPPLIERS_MANAGE: "Your role does not let you manage suppliers.",
    Right.ATTEMPTS_MANAGE: "Your role does not let you settle purchases.",
    Right.ORDERS_ALL: "Your role does not let you see the orders of companies.",
    Right.ORDERS_CANCEL: "Your role does not let you cancel orders of companies.",
    Right.REPORTS_VIEW: "Your role does not let you see reports.",
    Right.TRAIL_VIEW: "Your role does not let you see the audit trail.",
    Right.STAFF_MANAGE: "Your role does not let you manage staff.",
    Right.SETTINGS_MANAGE: "Your role does not let you change settings.",
}


def role_word(role: str) -> str:
    """What a role is called; one that a newer version of the program stored keeps its name."""
    return ROLES.get(role, role)
