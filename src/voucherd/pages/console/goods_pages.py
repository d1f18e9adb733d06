"""The console's pages about goods: products, codes, suppliers, purchases, and everybody's orders."""

from __future__ import annotations

from typing import Final

from voucherd.pages.console import lots, orders, product_files, products, purchases, stock, suppliers, uploads
from voucherd.pages.page import Audience, Page
from voucherd.people.roles import Right
from voucherd.vault.uploads import FILE_BYTES_MAX

_HOUSE: Final = Audience.OPERATOR
_GOODS, _STOCK, _SUPPLY = Right.CATALOGUE_MANAGE, Right.STOCK_MANAGE, Right.SUPPLIERS_MANAGE
_HAND, _ORDERS, _CANCEL = Right.ATTEMPTS_MANAGE, Right.ORDERS_ALL, Right.ORDERS_CANCEL

# A product's texts in full, in letters that take nine characters each in a form.
_TEXTS: Final = 256 * 1024
# The file, and room for the fields around it.
_FILE: Final = FILE_BYTES_MAX + 64 * 1024

PAGES: Final[tuple[Page, ...]] = (
    Page("GET", "/console/products", products.products, _HOUSE, _GOODS),
    Page("GET", "/console/products/-/new", products.new_page, _HOUSE, _GOODS),
    Page("POST", "/console/products/-/new", products.add, _HOUSE, _GOODS, _TEXTS),
    Page("GET", "/console/products/-/files", product_files.files_page, _HOUSE, _GOODS),
    Page("POST", "/console/products/-/files", product_files.upload, _HOUSE, _GOODS, _FILE),
    Page("GET", "/console/products/-/export", product_files.export, _HOUSE, _GOODS),
    Page("GET", "/console/products/-/files/{upload}", product_files.report, _HOUSE, _GOODS),
    Page("POST", "/console/products/-/files/{upload}", product_files.take, _HOUSE, _GOODS),
    Page("GET", "/console/products/-/files/{upload}/progress", uploads.product_progress, _HOUSE, _GOODS),
    Page("GET", "/console/products/{slug}", products.product, _HOUSE, _GOODS),
    Page("GET", "/console/products/{slug}/edit", products.edit_page, _HOUSE, _GOODS),
    Page("POST", "/console/products/{slug}/edit", products.edit, _HOUSE, _GOODS, _TEXTS),
    Page("POST", "/console/products/{slug}/active", products.activate, _HOUSE, _GOODS),
    Page("GET", "/console/stock/import", stock.import_page, _HOUSE, _STOCK),
    Page("POST", "/console/stock/import", stock.upload, _HOUSE, _STOCK, _FILE),
    Page("GET", "/console/stock/import/{upload}", stock.report, _HOUSE, _STOCK),
    Page("POST", "/console/stock/import/{upload}", stock.take, _HOUSE, _STOCK),
    Page("GET", "/console/stock/import/{upload}/progress", uploads.stock_progress, _HOUSE, _STOCK),
    Page("GET", "/console/lots", lots.lots, _HOUSE, _STOCK),
    Page("GET", "/console/late-codes", lots.late, _HOUSE, _STOCK),
    Page("GET", "/console/suppliers", suppliers.suppliers, _HOUSE, _SUPPLY),
    Page("GET", "/console/suppliers/{name}", suppliers.supplier, _HOUSE, _SUPPLY),
    Page("POST", "/console/suppliers/{name}", suppliers.change, _HOUSE, _SUPPLY),
    Page("POST", "/console/suppliers/{name}/active", suppliers.activate, _HOUSE, _SUPPLY),
    Page("POST", "/console/suppliers/{name}/breaker", suppliers.close_breaker, _HOUSE, _SUPPLY),
    Page("GET", "/console/suppliers/{name}/test", suppliers.test, _HOUSE, _SUPPLY),
    Page("GET", "/console/purchases", purchases.purchases, _HOUSE, _HAND),
    Page("GET", "/console/purchases/{purchase}", purchases.purchase, _HOUSE, _HAND),
    Page("POST", "/console/purchases/{purchase}/ask", purchases.ask, _HOUSE, _HAND),
    Page("GET", "/console/purchases/{purchase}/settle", purchases.settle_page, _HOUSE, _HAND),
    Page("POST", "/console/purchases/{purchase}/failed", purchases.settle_failed, _HOUSE, _HAND),
    Page("POST", "/console/purchases/{purchase}/bought", purchases.settle_bought, _HOUSE, _HAND, 1024 * 1024),
    Page("GET", "/console/orders", orders.orders, _HOUSE, _ORDERS),
    Page("GET", "/console/orders/{trx}", orders.order, _HOUSE, _ORDERS),
    Page("GET", "/console/orders/{trx}/cancel", orders.cancel_page, _HOUSE, _CANCEL),
    Page("POST", "/console/orders/{trx}/cancel", orders.cancel, _HOUSE, _CANCEL),
)
