"""The console's pages about companies, their money, prices and rates, what was earned, and who did what."""

from __future__ import annotations

from typing import Final

from voucherd.access.roles import Right
from voucherd.portal.console import companies, overview, statements
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
    Page("POST", f"{_ONE}/keys/{{key}}/revoke", companies.revoke_key, _HOUSE, _MANAGE),
)
