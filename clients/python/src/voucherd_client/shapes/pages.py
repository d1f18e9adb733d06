"""A page of any list."""

from __future__ import annotations

from datetime import datetime
from typing import Generic, TypeVar

from msgspec import Struct

T = TypeVar("T")


class PageMetadata(Struct, rename="camel", frozen=True, kw_only=True):
    """Where a page stands in its list."""

    page_size: int | None = None
    next_cursor: str | None = None
    more: bool | None = None
    """Of events: whether there is more to read already; their cursor goes on after the last page, too."""
    page: int | None = None
    total_items: int | None = None
    total_pages: int | None = None
    more_items: bool | None = None
    archived_before: datetime | None = None
    """Orders created before this are found by their trx, and are in no list."""


class Page(Struct, Generic[T], rename="camel", frozen=True):
    """A part of a list."""

    data: list[T]
    metadata: PageMetadata

    @property
    def next_cursor(self) -> str | None:
        """Where the next page begins; None after the last one."""
        return None if self.metadata.more is False else self.metadata.next_cursor
