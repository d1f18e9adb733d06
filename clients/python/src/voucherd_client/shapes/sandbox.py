"""The sandbox's own resources, and the log of your calls."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class SandboxClock(Struct, rename="camel", frozen=True, kw_only=True):
    """The clock of your sandbox."""

    date_now: datetime
    ahead_seconds: int


class AdvancedClock(Struct, rename="camel", frozen=True, kw_only=True):
    """The clock after a step, and what came closer by it."""

    date_now: datetime
    ahead_seconds: int
    orders: int
    expired_orders: int
    deliveries: int


class TriggeredEvent(Struct, rename="camel", frozen=True, kw_only=True):
    """An event that was asked for."""

    type: str
    trx: str | None


class LoggedRequest(Struct, rename="camel", frozen=True, kw_only=True):
    """A call of one of your keys; its bodies are there if it was asked for by itself."""

    request_id: str
    date_created: datetime
    method: str
    path: str
    http_status: int
    duration_ms: int
    key_id: str
    request_body: str | None = None
    response_body: str | None = None
