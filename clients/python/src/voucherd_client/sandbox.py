"""Your company's sandbox: its play money, its clock, events that are asked for; and the log of your calls."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from voucherd_client.engine import Walk
from voucherd_client.operation import E, Resource, listing, operation, segment
from voucherd_client.shapes.accounts import Account
from voucherd_client.shapes.pages import Page
from voucherd_client.shapes.sandbox import AdvancedClock, LoggedRequest, SandboxClock, TriggeredEvent
from voucherd_client.steps import Steps, camel, query


class Sandbox(Resource[E]):
    """For keys that begin with vk_test_ alone."""

    @operation
    def top_up(
        self,
        amount: Decimal | int | None = None,
        *,
        currency: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[Account]:
        """Add play money; the balance after it."""
        given = {"amount": amount, "currency": currency}
        body = camel({name: value for name, value in given.items() if value is not None})
        return self._write("POST", "sandbox/top-up", Account, body, key=idempotency_key)

    @operation
    def clock(self) -> Steps[SandboxClock]:
        """The time in your sandbox."""
        return self._read("sandbox/clock", SandboxClock)

    @operation
    def advance(self, by: timedelta, *, idempotency_key: str | None = None) -> Steps[AdvancedClock]:
        """Move the clock ahead, so that expiry, windows and retries are seen at once."""
        body = {"seconds": int(by.total_seconds())}
        return self._write("POST", "sandbox/clock/advance", AdvancedClock, body, key=idempotency_key)

    @operation
    def reset(self, *, idempotency_key: str | None = None) -> Steps[SandboxClock]:
        """Let the clock show the real time again."""
        return self._write("POST", "sandbox/clock/reset", SandboxClock, key=idempotency_key)

    @operation
    def trigger(
        self, type: str, *, product_slug: str | None = None, idempotency_key: str | None = None
    ) -> Steps[TriggeredEvent]:
        """Let an event happen, by doing what it tells of."""
        body = {"type": type} if product_slug is None else {"type": type, "productSlug": product_slug}
        return self._write("POST", "event/trigger", TriggeredEvent, body, key=idempotency_key)


class Requests(Resource[E]):
    """Your calls of the last days, without codes and secrets."""

    @listing
    def find_all(
        self,
        *,
        request_id: str | None = None,
        path: str | None = None,
        http_status: int | None = None,
        key_id: str | None = None,
        limit: int | None = None,
        cursor: str = "",
    ) -> Walk[LoggedRequest]:
        """All that the filters let through, newest first."""
        given = query(requestId=request_id, path=path, httpStatus=http_status, keyId=key_id, limit=limit)
        return self._walk("request", Page[LoggedRequest], cursor, given)

    @operation
    def find(self, request_id: str) -> Steps[LoggedRequest]:
        """One of them, with its bodies."""
        return self._read(f"request/{segment(request_id)}", LoggedRequest)
