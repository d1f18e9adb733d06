"""The pages of the set-up, on one screen."""

from __future__ import annotations

from typing import Final

from voucherd.pages.page import Audience, Page
from voucherd.pages.setup import begin, customers, goods, wizard
from voucherd.people.roles import Right

_PUBLIC, _OPERATOR = Audience.PUBLIC, Audience.OPERATOR
_GOODS, _STOCK, _MANAGE = Right.CATALOGUE_MANAGE, Right.STOCK_MANAGE, Right.COMPANIES_MANAGE
_CODES: Final = goods.CODES_BYTES_MAX

PAGES: Final[tuple[Page, ...]] = (
    Page("GET", "/console/set-up", wizard.resume, _OPERATOR),
    Page("GET", "/set-up/{token}", begin.page, _PUBLIC),
    Page("POST", "/set-up/{token}", begin.begin, _PUBLIC),
    Page("GET", "/console/set-up/second-factor", begin.second_factor_page, _OPERATOR),
    Page("POST", "/console/set-up/second-factor", begin.second_factor, _OPERATOR),
    Page("GET", "/console/set-up/currencies", goods.currencies_page, _OPERATOR, _GOODS),
    Page("POST", "/console/set-up/currencies", goods.currencies, _OPERATOR, _GOODS),
    Page("GET", "/console/set-up/product", goods.product_page, _OPERATOR, _GOODS),
    Page("POST", "/console/set-up/product", goods.product, _OPERATOR, _GOODS),
    Page("GET", "/console/set-up/codes", goods.codes_page, _OPERATOR, _STOCK),
    Page("POST", "/console/set-up/codes", goods.codes, _OPERATOR, _STOCK, _CODES, slow=True),
    Page("GET", "/console/set-up/company", customers.company_page, _OPERATOR, _MANAGE),
    Page("POST", "/console/set-up/company", customers.company, _OPERATOR, _MANAGE),
    Page("GET", "/console/set-up/balance", customers.balance_page, _OPERATOR, Right.MONEY_PROPOSE),
    Page("POST", "/console/set-up/balance", customers.balance, _OPERATOR, Right.MONEY_PROPOSE),
    Page("GET", "/console/set-up/sale", customers.sale_page, _OPERATOR, Right.COMPANIES_VIEW),
)
