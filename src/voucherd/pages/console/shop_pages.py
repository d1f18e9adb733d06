"""The console's pages about companies, their money, prices and rates, what was earned, and who did what."""

from __future__ import annotations

from typing import Final

from voucherd.catalogue.fx import FILE_BYTES_MAX
from voucherd.pages.console import companies, money, overview, prices, rates, reports, statements, trail
from voucherd.pages.page import Audience, Page
from voucherd.people.roles import Right

_HOUSE: Final = Audience.OPERATOR
_SEE, _MANAGE = Right.COMPANIES_VIEW, Right.COMPANIES_MANAGE
_GOODS: Final = Right.CATALOGUE_MANAGE
_ONE: Final = "/console/companies/{company}"
_LIST: Final = "/console/prices/{list}"

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
    # ── prices and rates ──
    Page("GET", "/console/prices", prices.price_lists, _HOUSE, _GOODS),
    Page("POST", "/console/prices", prices.add_list, _HOUSE, _GOODS),
    Page("GET", _LIST, prices.price_list, _HOUSE, _GOODS),
    Page("GET", f"{_LIST}/file", prices.export_entries, _HOUSE, _GOODS),
    Page("POST", f"{_LIST}/entries", prices.set_entry, _HOUSE, _GOODS),
    Page("POST", f"{_LIST}/entries/remove", prices.remove_entry, _HOUSE, _GOODS),
    Page("POST", f"{_LIST}/import", prices.import_entries, _HOUSE, _GOODS, prices.FILE_BYTES_MAX),
    Page("POST", f"{_LIST}/remove", prices.remove_list, _HOUSE, _GOODS),
    Page("GET", "/console/fx", rates.rates, _HOUSE, _GOODS),
    Page("POST", "/console/fx", rates.set_rate, _HOUSE, _GOODS),
    Page("POST", "/console/fx/import", rates.import_rates, _HOUSE, _GOODS, FILE_BYTES_MAX),
    Page("POST", "/console/fx/margin", rates.set_margin, _HOUSE, _GOODS),
    Page("POST", "/console/fx/margin/remove", rates.remove_margin, _HOUSE, _GOODS),
    Page("GET", "/console/fx/{currency}", rates.currency, _HOUSE, _GOODS),
    Page("GET", "/console/vat", rates.vat, _HOUSE, _GOODS),
    Page("POST", "/console/vat", rates.set_vat, _HOUSE, _GOODS),
    Page("POST", "/console/vat/remove", rates.remove_vat, _HOUSE, _GOODS),
    # ── reports ──
    Page("GET", "/console/reports", reports.report, _HOUSE, Right.REPORTS_VIEW),
    Page("GET", "/console/reports/{report}", reports.report, _HOUSE, Right.REPORTS_VIEW),
    Page("GET", "/console/reports/{report}/csv", reports.report_file, _HOUSE, Right.REPORTS_VIEW),
    # ── the audit trail ──
    Page("GET", "/console/trail", trail.deeds_done, _HOUSE, Right.TRAIL_VIEW),
    Page("GET", "/console/trail/check", trail.check_trail, _HOUSE, Right.TRAIL_VIEW),
    Page("GET", "/console/reveals", trail.reveals_of, _HOUSE, Right.TRAIL_VIEW),
)
