"""The pages of recipients."""

from __future__ import annotations

from typing import Final

from voucherd.pages.page import Audience, Page
from voucherd.pages.recipient import link

PAGES: Final[tuple[Page, ...]] = (
    Page("GET", "/r/{token}", link.voucher, Audience.LINK),
    Page("POST", "/r/{token}", link.reveal, Audience.LINK),
    Page("GET", "/logo/{name}", link.logo, Audience.LINK),
)
