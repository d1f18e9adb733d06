"""The pages of the operator's console, on one screen."""

from __future__ import annotations

from typing import Final

from voucherd.catalogue.fx import FILE_BYTES_MAX
from voucherd.pages.console import (
    companies,
    health,
    lots,
    money,
    orders,
    prices,
    product_files,
    products,
    purchases,
    rates,
    reports,
    stock,
    suppliers,
    trail,
)
from voucherd.pages.page import Audience, Page
from voucherd.pages.people import approvals
from voucherd.people.roles import Right
from voucherd.vault.uploads import FILE_BYTES_MAX as UPLOAD_BYTES_MAX

_OPERATOR: Final = Audience.OPERATOR
_SEE, _MANAGE = Right.COMPANIES_VIEW, Right.COMPANIES_MANAGE
_GOODS, _STOCK, _SUPPLY = Right.CATALOGUE_MANAGE, Right.STOCK_MANAGE, Right.SUPPLIERS_MANAGE
_HAND, _ORDERS, _CANCEL = Right.ATTEMPTS_MANAGE, Right.ORDERS_ALL, Right.ORDERS_CANCEL

# A product's texts in full, in letters that take nine characters each in a form.
_TEXTS: Final = 256 * 1024
# The file, and room for the fields around it.
_FILE: Final = UPLOAD_BYTES_MAX + 64 * 1024
_ONE: Final = "/console/companies/{company}"
_LIST: Final = "/console/prices/{list}"

PAGES: Final[tuple[Page, ...]] = (
    Page("GET", "/console", health.overview, _OPERATOR),
    # ── companies ──
    Page("GET", "/console/companies", companies.companies, _OPERATOR, _SEE),
    Page("POST", "/console/companies", companies.add_company, _OPERATOR, _MANAGE),
    Page("GET", "/console/companies/new", companies.new_company, _OPERATOR, _MANAGE),
    Page("GET", _ONE, companies.company, _OPERATOR, _SEE),
    Page("GET", f"{_ONE}/statement", companies.statement, _OPERATOR, _SEE),
    Page("POST", f"{_ONE}/standing", companies.set_standing, _OPERATOR, _MANAGE),
    Page("POST", f"{_ONE}/limits", companies.set_limits, _OPERATOR, _MANAGE),
    Page("POST", f"{_ONE}/prices", companies.set_prices, _OPERATOR, _MANAGE),
    Page("POST", f"{_ONE}/policy", companies.set_policy, _OPERATOR, _MANAGE),
    Page("POST", f"{_ONE}/keys/{{key}}/revoke", companies.revoke_key, _OPERATOR, _MANAGE),
    # ── money ──
    Page("GET", "/console/money", money.payments, _OPERATOR, _SEE),
    Page("POST", "/console/money", money.propose, _OPERATOR, Right.MONEY_PROPOSE),
    Page("GET", "/console/companies/{company}/payment", money.new_payment, _OPERATOR, Right.MONEY_PROPOSE),
    Page("GET", "/console/money/{number}", money.payment, _OPERATOR, _SEE),
    Page("POST", "/console/money/{number}/approve", money.approve, _OPERATOR, Right.MONEY_APPROVE),
    Page("POST", "/console/money/{number}/reject", money.reject, _OPERATOR, Right.MONEY_APPROVE),
    Page("POST", "/console/money/{number}/withdraw", money.withdraw, _OPERATOR, Right.MONEY_PROPOSE),
    Page(
        "POST", "/console/money/-/people/{person}", approvals.confirm_person, _OPERATOR, Right.MONEY_APPROVE
    ),
    # ── prices and rates ──
    Page("GET", "/console/prices", prices.price_lists, _OPERATOR, _GOODS),
    Page("POST", "/console/prices", prices.add_list, _OPERATOR, _GOODS),
    Page("GET", _LIST, prices.price_list, _OPERATOR, _GOODS),
    Page("GET", f"{_LIST}/file", prices.export_entries, _OPERATOR, _GOODS, slow=True),
    Page("POST", f"{_LIST}/entries", prices.set_entry, _OPERATOR, _GOODS),
    Page("POST", f"{_LIST}/entries/remove", prices.remove_entry, _OPERATOR, _GOODS),
    Page("POST", f"{_LIST}/import", prices.import_entries, _OPERATOR, _GOODS, prices.FILE_BYTES_MAX),
    Page("POST", f"{_LIST}/remove", prices.remove_list, _OPERATOR, _GOODS),
    Page("GET", "/console/fx", rates.rates, _OPERATOR, _GOODS),
    Page("POST", "/console/fx", rates.set_rate, _OPERATOR, _GOODS),
    Page("POST", "/console/fx/import", rates.import_rates, _OPERATOR, _GOODS, FILE_BYTES_MAX),
    Page("POST", "/console/fx/margin", rates.set_margin, _OPERATOR, _GOODS),
    Page("POST", "/console/fx/margin/remove", rates.remove_margin, _OPERATOR, _GOODS),
    Page("GET", "/console/fx/{currency}", rates.currency, _OPERATOR, _GOODS),
    Page("GET", "/console/vat", rates.vat, _OPERATOR, _GOODS),
    Page("POST", "/console/vat", rates.set_vat, _OPERATOR, _GOODS),
    Page("POST", "/console/vat/remove", rates.remove_vat, _OPERATOR, _GOODS),
    # ── reports ──
    Page("GET", "/console/reports", reports.report, _OPERATOR, Right.REPORTS_VIEW, slow=True),
    Page("GET", "/console/reports/{report}", reports.report, _OPERATOR, Right.REPORTS_VIEW, slow=True),
    Page(
        "GET", "/console/reports/{report}/csv", reports.report_file, _OPERATOR, Right.REPORTS_VIEW, slow=True
    ),
    # ── the audit trail ──
    Page("GET", "/console/trail", trail.deeds_done, _OPERATOR, Right.TRAIL_VIEW),
    Page("GET", "/console/trail/check", trail.check_trail, _OPERATOR, Right.TRAIL_VIEW, slow=True),
    Page("GET", "/console/reveals", trail.reveals_of, _OPERATOR, Right.TRAIL_VIEW),
    # ── goods ──
    Page("GET", "/console/products", products.products, _OPERATOR, _GOODS),
    Page("GET", "/console/products/-/new", products.new_page, _OPERATOR, _GOODS),
    Page("POST", "/console/products/-/new", products.add, _OPERATOR, _GOODS, _TEXTS),
    Page("GET", "/console/products/-/files", product_files.FILES.form, _OPERATOR, _GOODS),
    Page("POST", "/console/products/-/files", product_files.upload, _OPERATOR, _GOODS, _FILE),
    Page("GET", "/console/products/-/export", product_files.export, _OPERATOR, _GOODS, slow=True),
    Page("GET", "/console/products/-/files/{upload}", product_files.FILES.report, _OPERATOR, _GOODS),
    Page("POST", "/console/products/-/files/{upload}", product_files.take, _OPERATOR, _GOODS),
    Page(
        "GET", "/console/products/-/files/{upload}/progress", product_files.FILES.progress, _OPERATOR, _GOODS
    ),
    Page("GET", "/console/products/{slug}", products.product, _OPERATOR, _GOODS),
    Page("GET", "/console/products/{slug}/edit", products.edit_page, _OPERATOR, _GOODS),
    Page("POST", "/console/products/{slug}/edit", products.edit, _OPERATOR, _GOODS, _TEXTS),
    Page("POST", "/console/products/{slug}/active", products.activate, _OPERATOR, _GOODS),
    Page("GET", "/console/stock/import", stock.import_page, _OPERATOR, _STOCK),
    Page("POST", "/console/stock/import", stock.upload, _OPERATOR, _STOCK, _FILE),
    Page("GET", "/console/stock/import/{upload}", stock.FILES.report, _OPERATOR, _STOCK),
    Page("POST", "/console/stock/import/{upload}", stock.take, _OPERATOR, _STOCK),
    Page("GET", "/console/stock/import/{upload}/progress", stock.FILES.progress, _OPERATOR, _STOCK),
    Page("GET", "/console/lots", lots.lots, _OPERATOR, _STOCK),
    Page("GET", "/console/late-codes", lots.late, _OPERATOR, _STOCK),
    Page("GET", "/console/suppliers", suppliers.suppliers, _OPERATOR, _SUPPLY),
    Page("GET", "/console/suppliers/{name}", suppliers.supplier, _OPERATOR, _SUPPLY),
    Page("POST", "/console/suppliers/{name}", suppliers.change, _OPERATOR, _SUPPLY),
    Page("POST", "/console/suppliers/{name}/active", suppliers.activate, _OPERATOR, _SUPPLY),
    Page("POST", "/console/suppliers/{name}/breaker", suppliers.close_breaker, _OPERATOR, _SUPPLY),
    Page("GET", "/console/suppliers/{name}/test", suppliers.test, _OPERATOR, _SUPPLY, slow=True),
    Page("GET", "/console/purchases", purchases.purchases, _OPERATOR, _HAND),
    Page("GET", "/console/purchases/{purchase}", purchases.purchase, _OPERATOR, _HAND),
    Page("POST", "/console/purchases/{purchase}/ask", purchases.ask, _OPERATOR, _HAND, slow=True),
    Page("GET", "/console/purchases/{purchase}/settle", purchases.settle_page, _OPERATOR, _HAND),
    Page("POST", "/console/purchases/{purchase}/failed", purchases.settle_failed, _OPERATOR, _HAND),
    Page(
        "POST", "/console/purchases/{purchase}/bought", purchases.settle_bought, _OPERATOR, _HAND, 1024 * 1024
    ),
    Page("GET", "/console/orders", orders.orders, _OPERATOR, _ORDERS),
    Page("GET", "/console/orders/{trx}", orders.order, _OPERATOR, _ORDERS),
    Page("GET", "/console/orders/{trx}/cancel", orders.cancel_page, _OPERATOR, _CANCEL),
    Page("POST", "/console/orders/{trx}/cancel", orders.cancel, _OPERATOR, _CANCEL, slow=True),
)
