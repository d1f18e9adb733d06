"""Events: in pages, one by its id, and as they happen."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime

from voucherd_client.engine import Walk
from voucherd_client.operation import E, Resource, listing, operation, segment, streaming
from voucherd_client.shapes.events import Event, QueuedEvents
from voucherd_client.shapes.pages import Page
from voucherd_client.steps import Request, Steps, decode, query
from voucherd_client.stream import Stream


class Events(Resource[E]):
    """What happened to your orders, your balance and the catalogue."""

    @listing
    def find_all(
        self,
        *,
        type: str | Sequence[str] | None = None,
        trx: str | None = None,
        date_from: datetime | date | None = None,
        date_to: datetime | date | None = None,
        limit: int | None = None,
        cursor: str = "",
    ) -> Walk[Event]:
        """Events that are kept, oldest first; the id of an event is a cursor, too."""
        given = query(type=_types(type), trx=trx, dateFrom=date_from, dateTo=date_to, limit=limit)
        return self._walk("event", Page[Event], cursor, given)

    @operation
    def find(self, id: str) -> Steps[Event]:
        """One event."""
        return self._read(f"event/{segment(id)}", Event)

    @operation
    def replay(
        self, id: str, *, webhook_id: str | None = None, idempotency_key: str | None = None
    ) -> Steps[QueuedEvents]:
        """Send an event to your endpoints once more, or to one of them."""
        body = None if webhook_id is None else {"webhookId": webhook_id}
        return self._write("POST", f"event/{segment(id)}/replay", QueuedEvents, body, key=idempotency_key)

    @streaming
    def stream(self, *, type: str | Sequence[str] | None = None, cursor: str | None = None) -> Stream[Event]:
        """Events as they happen, from now on or after the event `cursor`; it goes on after every break."""
        return Stream(_stream(type, cursor), lambda data: decode(data, Event), self._retries)

    @streaming
    def stream_bytes(
        self, *, type: str | Sequence[str] | None = None, cursor: str | None = None
    ) -> Stream[bytes]:
        """The same, each event as the very JSON that a webhook would carry."""
        return Stream(_stream(type, cursor), bytes, self._retries)


def _stream(type: str | Sequence[str] | None, cursor: str | None) -> Request:
    return Request(method="GET", path="event/stream", query=query(type=_types(type), cursor=cursor))


def _types(type: str | Sequence[str] | None) -> list[str] | None:
    return [type] if isinstance(type, str) else None if type is None else list(type)
