"""The console's pages about companies, their money, prices and rates, what was earned, and who did what."""

from __future__ import annotations

from typing import Final

from voucherd.access.roles import Right
from voucherd.portal.console import companies, money, overview, reports, statements
from voucherd.portal.page import Audience, Page

_HOUSE: Final = Audience.OPERATOR
_SEE, _MANAGE = Right.COMPANIES_VIEW, Right.COMPANIES_MANAGE
_ONE: Final = "/console/companies/{company}"

PAGES: Final[tuple[Page, ...]] = (
    Page("GET", "/console", overview.overview, _HOUSE),
    # ── companies ──
    Page("GET", "/console/companies", companies.companies, _HOUSE, _SEE),
    Page("POST", "/console/companies", companies.add_company, _HOUSE, _MANAGE),
    Page("GET", "/console/companies/new", companies.new_company, _HOUSE, _MANAGE),
    Page("GET", _ONE, companies.company, _HOUSE, _SEE),
    Page("GET", f"{_ONE}/statement", statements.statement, _HOUSE, _SEE),
    Page("POST", f"{_ONE}/standing", companies.set_standing, _HOUSE, _MANAGE),
    Page("POST", f"{_ONE}/limits", companies.set_limits, _HOUSE, _MANAGE),
    Page("POST", f"{_ONE}/prices", companies.set_prices, _HOUSE, _MANAGE),
    Page("POST", f"{_ONE}/policy", companies.set_policy, _HOUSE, _MANAGE),
    Page("POST", f"{_ONE}/keys/{{key}}/revoke", companies.revoke_key, _HOUSE, _MANAGE),
    # ── money ──
    Page("GET", "/console/money", money.payments, _HOUSE, _SEE),
    Page("POST", "/console/money", money.propose, _HOUSE, Right.MONEY_PROPOSE),
    Page("GET", "/console/companies/{company}/payment", money.new_payment, _HOUSE, Right.MONEY_PROPOSE),
    Page("GET", "/console/money/{number}", money.payment, _HOUSE, _SEE),
    Page("POST", "/console/money/{number}/approve", money.approve, _HOUSE, Right.MONEY_APPROVE),
    Page("POST", "/console/money/{number}/reject", money.reject, _HOUSE, Right.MONEY_APPROVE),
    Page("POST", "/console/money/{number}/withdraw", money.withdraw, _HOUSE, Right.MONEY_PROPOSE),
    # ── reports ──
    Page("GET", "/console/reports", reports.report, _HOUSE, Right.REPORTS_VIEW),
    Page("GET", "/console/reports/{report}", reports.report, _HOUSE, Right.REPORTS_VIEW),
    Page("GET", "/console/reports/{report}/csv", reports.report_file, _HOUSE, Right.REPORTS_VIEW),
)
