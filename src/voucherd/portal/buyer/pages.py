"""The pages of the buyer's portal, on one screen."""

from __future__ import annotations

from typing import Final

from voucherd.portal.buyer import overview
from voucherd.portal.buyer.account_pages import PAGES as ACCOUNT
from voucherd.portal.page import Audience, Page

_BUYER: Final = Audience.COMPANY

PAGES: Final[tuple[Page, ...]] = (Page("GET", "/portal", overview.overview, _BUYER), *ACCOUNT)
