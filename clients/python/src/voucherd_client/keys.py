"""API keys of your company."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import TypedDict, Unpack

from voucherd_client.engine import Walk
from voucherd_client.operation import E, Resource, listing, operation, segment
from voucherd_client.shapes.keys import ApiKey
from voucherd_client.shapes.pages import Page
from voucherd_client.steps import Steps, camel, query


class KeyFields(TypedDict, total=False):
    """What a key is to be; what is not named is as with the calling key, or stays as it is."""

    description: str
    scopes: Sequence[str]
    allow_ips: Sequence[str]
    rate_limit: int
    date_expires: datetime | None
    spend_order_eur: Decimal | None
    spend_day_eur: Decimal | None


class Keys(Resource[E]):
    """Keys of the calling key's company and state."""

    @listing
    def find_all(self, *, limit: int | None = None, cursor: str = "") -> Walk[ApiKey]:
        """All of them."""
        return self._walk("key", Page[ApiKey], cursor, query(limit=limit))

    @operation
    def find(self, id: str) -> Steps[ApiKey]:
        """One of them."""
        return self._read(f"key/{segment(id)}", ApiKey)

    @operation
    def add(self, *, idempotency_key: str | None = None, **fields: Unpack[KeyFields]) -> Steps[ApiKey]:
        """A new key; its `key` is in this answer alone."""
        return self._write("POST", "key", ApiKey, camel(fields), key=idempotency_key)

    @operation
    def change(
        self, id: str, *, idempotency_key: str | None = None, **fields: Unpack[KeyFields]
    ) -> Steps[ApiKey]:
        """Change what is named; None takes a limit or an expiry away."""
        return self._write("PATCH", f"key/{segment(id)}", ApiKey, camel(fields), key=idempotency_key)

    @operation
    def revoke(
        self, id: str, *, children: str | None = None, idempotency_key: str | None = None
    ) -> Steps[None]:
        """Revoke a key and those that were made with it, which stay with `children="keep"`."""
        yield from self._do(
            "DELETE", f"key/{segment(id)}", key=idempotency_key, query=query(children=children)
        )

    @operation
    def rotate(
        self, id: str, *, overlap_seconds: int | None = None, idempotency_key: str | None = None
    ) -> Steps[ApiKey]:
        """A key like this one, in this answer alone; the old one ends after the overlap, a day unless you say."""
        body = None if overlap_seconds is None else {"overlapSeconds": overlap_seconds}
        return self._write("POST", f"key/{segment(id)}/rotate", ApiKey, body, key=idempotency_key)
