"""Events, the endpoints that they are sent to, and what became of each."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct

from voucherd_client.shapes.words import State


class Event(Struct, rename="camel", frozen=True, kw_only=True):
    """Something that happened. It looks the same in a page, in a stream and in a webhook; it never holds a code."""

    id: str
    type: str
    timestamp: datetime
    data: dict[str, Any]

    @property
    def trx(self) -> str | None:
        """The order that it happened to, if it was one."""
        trx = self.data.get("trx")
        return trx if isinstance(trx, str) else None


class Webhook(Struct, rename="camel", frozen=True, kw_only=True):
    """An endpoint: where events are sent."""

    id: str
    state: State
    url: str | None
    per_order: bool
    event_types: list[str]
    description: str
    enabled: bool
    disabled_reason: str | None
    header_names: list[str]
    failures: int
    date_failing_since: datetime | None
    date_old_secret_expires: datetime | None
    date_created: datetime
    date_updated: datetime
    format: str | None = None
    """How events are written to it: `standard` or `classic`."""
    secret: str | None = None
    """What deliveries are signed with; only in the answer that makes it."""

    def __repr__(self) -> str:
        return f"Webhook(id={self.id!r}, url={self.url!r}, enabled={self.enabled!r})"


class WebhookAttempt(Struct, rename="camel", frozen=True, kw_only=True):
    """One time that a delivery was tried."""

    number: int
    date_sent: datetime
    url: str
    duration_ms: int
    http_status: int | None
    error: str | None
    response_head: str
    response_body: str


class WebhookDelivery(Struct, rename="camel", frozen=True, kw_only=True):
    """One event on its way to one endpoint."""

    event_id: str
    type: str
    status: str
    date_created: datetime
    date_next_attempt: datetime | None
    attempts: list[WebhookAttempt]
    message: dict[str, Any] | None


class QueuedEvent(Struct, rename="camel", frozen=True, kw_only=True):
    """A message that will be sent in a moment."""

    event_id: str


class QueuedEvents(Struct, rename="camel", frozen=True, kw_only=True):
    """How much will be sent in a moment."""

    queued: int
    date_next: datetime | None = None
    """Of a recovery: from when to ask again, because it looked at as many events as it may."""
