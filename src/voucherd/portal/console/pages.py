"""The pages of the operator's console: each part's in a table of its own."""

from __future__ import annotations

from typing import Final

from voucherd.portal.console.desk_pages import PAGES as DESK
from voucherd.portal.console.goods_pages import PAGES as GOODS
from voucherd.portal.page import Page

PAGES: Final[tuple[Page, ...]] = DESK + GOODS
