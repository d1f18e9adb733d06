"""The console's pages about companies, their money, prices and rates, what was earned, and who did what."""

from __future__ import annotations

from typing import Final

from voucherd.portal.console import overview
from voucherd.portal.page import Audience, Page

_HOUSE: Final = Audience.OPERATOR

PAGES: Final[tuple[Page, ...]] = (Page("GET", "/console", overview.overview, _HOUSE),)
