"""Webhooks: the endpoints that events are sent to, their secrets, and what was sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import TypedDict, Unpack

from voucherd_client.engine import Walk
from voucherd_client.operation import E, Resource, listing, operation, segment
from voucherd_client.shapes.events import QueuedEvent, QueuedEvents, Webhook, WebhookDelivery
from voucherd_client.shapes.pages import Page
from voucherd_client.steps import Steps, camel, query


class WebhookFields(TypedDict, total=False):
    """What an endpoint is to be; what is not named stays as it is, or as the service chooses."""

    url: str
    event_types: Sequence[str] | None
    description: str
    enabled: bool
    headers: Mapping[str, str]


class NewWebhook(WebhookFields, total=False):
    """What only a new endpoint can be told."""

    per_order: bool
    secret: str


class Rotation(TypedDict, total=False):
    """How a secret is replaced."""

    overlap_seconds: int
    secret: str


class Webhooks(Resource[E]):
    """Endpoints of the key's company and state."""

    @operation
    def find_all(self) -> Steps[list[Webhook]]:
        """All endpoints, oldest first."""
        return (yield from self._read("webhook", Page[Webhook])).data

    @operation
    def add(self, *, idempotency_key: str | None = None, **fields: Unpack[NewWebhook]) -> Steps[Webhook]:
        """A new endpoint; its `secret` is in this answer alone."""
        return self._write("POST", "webhook", Webhook, camel(fields), key=idempotency_key)

    @operation
    def find(self, id: str) -> Steps[Webhook]:
        """One endpoint."""
        return self._read(f"webhook/{segment(id)}", Webhook)

    @operation
    def change(
        self, id: str, *, idempotency_key: str | None = None, **fields: Unpack[WebhookFields]
    ) -> Steps[Webhook]:
        """Change what is named."""
        return self._write("PATCH", f"webhook/{segment(id)}", Webhook, camel(fields), key=idempotency_key)

    @operation
    def remove(self, id: str, *, idempotency_key: str | None = None) -> Steps[None]:
        """Remove an endpoint."""
        yield from self._do("DELETE", f"webhook/{segment(id)}", key=idempotency_key)

    @operation
    def rotate(
        self, id: str, *, idempotency_key: str | None = None, **fields: Unpack[Rotation]
    ) -> Steps[Webhook]:
        """A new secret, in this answer alone; the old one signs beside it for the overlap."""
        path = f"webhook/{segment(id)}/rotate"
        return self._write("POST", path, Webhook, camel(fields), key=idempotency_key)

    @listing
    def deliveries(
        self,
        id: str,
        *,
        status: str | None = None,
        event_type: str | None = None,
        limit: int | None = None,
        cursor: str = "",
    ) -> Walk[WebhookDelivery]:
        """What was sent to an endpoint in the last 30 days, newest first."""
        given = query(status=status, eventType=event_type, limit=limit)
        return self._walk(f"webhook/{segment(id)}/delivery", Page[WebhookDelivery], cursor, given)

    @operation
    def test(self, id: str, *, idempotency_key: str | None = None) -> Steps[QueuedEvent]:
        """Send a `ping`."""
        return self._write("POST", f"webhook/{segment(id)}/test", QueuedEvent, key=idempotency_key)

    @operation
    def recover(
        self, id: str, since: datetime | date, *, idempotency_key: str | None = None
    ) -> Steps[QueuedEvents]:
        """Send everything since then that did not arrive."""
        path, given = f"webhook/{segment(id)}/recover", query(since=since)
        return self._write("POST", path, QueuedEvents, key=idempotency_key, query=given)
