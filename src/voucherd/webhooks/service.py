"""What a company sees of its endpoints."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from voucherd.db import Pool, tenant
from voucherd.events import feed
from voucherd.events.feed import Event
from voucherd.ids import State
from voucherd.webhooks import endpoints, history
from voucherd.webhooks.addresses import Network
from voucherd.webhooks.endpoints import Endpoint
from voucherd.webhooks.history import Logged


class Owner(Struct, frozen=True):
    """Whose endpoints: a company in one state."""

    company_id: int
    state: State


class Log(Struct, frozen=True):
    """A page of deliveries, with the events that they are of."""

    deliveries: list[Logged]
    events: dict[int, Event]
    before: int | None
    """The event before which more may be found."""


class Webhooks:
    """The endpoints of everybody; each call names whose."""

    def __init__(self, pool: Pool, own: Sequence[Network]) -> None:
        self._pool = pool
        self.own = tuple(own)

    async def list_all(self, owner: Owner) -> list[Endpoint]:
        """All endpoints, oldest first."""
        async with tenant(self._pool, owner.company_id, owner.state) as conn:
            return await endpoints.list_all(conn, owner.company_id, owner.state)

    async def find(self, owner: Owner, number: int) -> Endpoint:
        """One endpoint."""
        async with tenant(self._pool, owner.company_id, owner.state) as conn:
            return await endpoints.find(conn, number, owner.company_id, owner.state)

    async def has_per_order(self, owner: Owner) -> bool:
        """Whether orders may name addresses of their own."""
        async with tenant(self._pool, owner.company_id, owner.state) as conn:
            return await endpoints.has_per_order(conn, owner.company_id, owner.state)

    async def log(
        self,
        endpoint: Endpoint,
        *,
        size: int,
        before: int | None = None,
        status: str | None = None,
        type_: str | None = None,
        oldest: bool = False,
    ) -> Log:
        """A page of deliveries, newest events first, or the oldest."""
        async with tenant(self._pool, endpoint.company_id, endpoint.state) as conn:
            found, onward = await history.deliveries(
                conn, endpoint.id, size=size, before=before, status=status, type_=type_, oldest=oldest
            )
            return Log(found, await feed.these(conn, [one.event_id for one in found]), onward)

    async def event(self, owner: Owner, number: int) -> Event | None:
        """One event that the company is told of."""
        async with tenant(self._pool, owner.company_id, owner.state) as conn:
            return await feed.find(conn, number, owner.company_id, owner.state)
