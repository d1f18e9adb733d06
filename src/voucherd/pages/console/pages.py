"""The pages of the operator's console: each part's in a table of its own."""

from __future__ import annotations

from typing import Final

from voucherd.pages.console.goods_pages import PAGES as GOODS
from voucherd.pages.console.shop_pages import PAGES as DESK
from voucherd.pages.page import Page

PAGES: Final[tuple[Page, ...]] = DESK + GOODS
