"""API keys: everything about one but the key, which is only in the answer that makes it."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from msgspec import Struct

from voucherd_client.shapes.words import State


class ApiKey(Struct, rename="camel", frozen=True, kw_only=True):
    """An API key, as its owner may see it."""

    id: str
    state: State
    prefix: str
    standing: str
    is_caller: bool
    description: str
    scopes: list[str]
    allow_ips: list[str]
    rate_limit: int
    spend_order_eur: Decimal | None
    spend_day_eur: Decimal | None
    date_created: datetime
    date_last_used: datetime | None
    date_expires: datetime | None
    date_revoked: datetime | None
    replaced_by: str | None
    made_with: str | None
    confirms_alone: bool
    withheld_scopes: list[str]
    key: str | None = None
    """The key itself; only in the answer that makes it."""

    def __repr__(self) -> str:
        return f"ApiKey(id={self.id!r}, prefix={self.prefix!r}, standing={self.standing!r})"
