"""What a company does with its endpoints; whoever changes something brings the transaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from voucherd.db import Pool, Tx, tenant
from voucherd.events import feed
from voucherd.events.feed import Event
from voucherd.ids import State
from voucherd.vault.seal import Sealer
from voucherd.webhooks import endpoints, history
from voucherd.webhooks.addresses import Network
from voucherd.webhooks.endpoints import Changes, Draft, Endpoint
from voucherd.webhooks.history import Logged, Recovered


class Owner(Struct, frozen=True):
    """Whose endpoints: a company in one state."""

    company_id: int
    state: State


class Log(Struct, frozen=True):
    """A page of deliveries, with the events that they are of."""

    deliveries: list[Logged]
    events: dict[int, Event]
    more: bool


class Webhooks:
    """The endpoints of everybody; each call names whose."""

    def __init__(self, pool: Pool, sealer: Sealer, own: Sequence[Network]) -> None:
        self._pool = pool
        self._sealer = sealer
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

    async def add(self, tx: Tx, owner: Owner, draft: Draft) -> tuple[Endpoint, str]:
        """A new endpoint and its secret."""
        return await endpoints.add(tx, self._sealer, owner.company_id, owner.state, draft)

    async def change(self, tx: Tx, owner: Owner, number: int, changes: Changes) -> Endpoint:
        """The endpoint as it is from now on."""
        endpoint = await endpoints.find(tx, number, owner.company_id, owner.state)
        return await endpoints.change(tx, self._sealer, endpoint, changes)

    async def remove(self, tx: Tx, owner: Owner, number: int) -> None:
        """Remove an endpoint and its deliveries."""
        endpoint = await endpoints.find(tx, number, owner.company_id, owner.state)
        await endpoints.remove(tx, endpoint.id)

    async def rotate(
        self, tx: Tx, owner: Owner, number: int, overlap: timedelta, secret: str | None
    ) -> tuple[Endpoint, str]:
        """A new secret; the old one signs beside it for a while."""
        endpoint = await endpoints.find(tx, number, owner.company_id, owner.state)
        fresh = await endpoints.rotate(tx, self._sealer, endpoint, overlap, secret)
        return await endpoints.find(tx, number, owner.company_id, owner.state), fresh

    async def log(
        self,
        endpoint: Endpoint,
        *,
        size: int,
        before: int | None = None,
        status: str | None = None,
        type_: str | None = None,
    ) -> Log:
        """A page of deliveries, newest events first."""
        async with tenant(self._pool, endpoint.company_id, endpoint.state) as conn:
            found, more = await history.deliveries(
                conn, endpoint.id, size=size, before=before, status=status, type_=type_
            )
            return Log(found, await feed.these(conn, [one.event_id for one in found]), more)

    async def ping(self, tx: Tx, endpoint: Endpoint) -> int:
        """Queue a test message; the id of its event."""
        return await history.ping(tx, endpoint)

    async def event(self, owner: Owner, number: int) -> Event | None:
        """One event that the company is told of."""
        async with tenant(self._pool, owner.company_id, owner.state) as conn:
            return await feed.find(conn, number, owner.company_id, owner.state)

    async def replay(self, tx: Tx, event: Event, chosen: Sequence[Endpoint]) -> int:
        """Send an event once more; to how many endpoints."""
        return await history.replay(tx, event, chosen)

    async def recover(self, endpoint: Endpoint, since: datetime) -> Recovered:
        """Queue what the endpoint did not get since then."""
        return await history.recover(self._pool, endpoint, since)
