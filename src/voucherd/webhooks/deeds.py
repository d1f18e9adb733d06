"""Deeds on endpoints and on their deliveries: by a key, by a company's people, or by the operator.

The trail tells of an address its host alone: the rest of it may be somebody's secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from msgspec import UNSET

from voucherd import trail
from voucherd.actors import Actor
from voucherd.db import Pool, Tx, transaction
from voucherd.events import feed
from voucherd.events.feed import Event
from voucherd.ids import State
from voucherd.vault.seal import Sealer
from voucherd.webhooks import endpoints, fanout, history
from voucherd.webhooks.endpoints import Changes, Draft, Endpoint, EndpointNotFound
from voucherd.webhooks.history import RECOVERED_MAX, RECOVERED_PAGE, Recovered


class EndpointDisabled(Exception):
    """Nothing is sent to an endpoint that is disabled."""

    def __init__(self) -> None:
        super().__init__("the endpoint is disabled")


class NoOwnAddress(Exception):
    """The endpoint is for the addresses that single orders name."""

    def __init__(self) -> None:
        super().__init__("each order names its own address here")


async def add(
    tx: Tx, actor: Actor, sealer: Sealer, company_id: int, state: State, draft: Draft
) -> tuple[Endpoint, str]:
    """A new endpoint and its secret, which is not to be had again."""
    assert actor.company_id in {None, company_id}, "nobody adds endpoints of another company"
    made, secret = await endpoints.add(tx, sealer, company_id, state, draft)
    await _record(tx, actor, "webhook.add", made, _standing(made))
    return made, secret


async def change(tx: Tx, actor: Actor, sealer: Sealer, number: int, changes: Changes) -> Endpoint:
    """The endpoint as it is from now on."""
    before = await _reached(tx, actor, number)
    if before.url is None and changes.url is not UNSET:
        raise NoOwnAddress
    changed = await endpoints.change(tx, sealer, before, changes)
    await _record(tx, actor, "webhook.set", changed, _standing(changed))
    return changed


async def remove(tx: Tx, actor: Actor, number: int) -> None:
    """Remove an endpoint and its deliveries."""
    endpoint = await _reached(tx, actor, number)
    await endpoints.remove(tx, number)
    await _record(tx, actor, "webhook.remove", endpoint, {"host": _host(endpoint)})


async def rotate(
    tx: Tx, actor: Actor, sealer: Sealer, number: int, overlap: timedelta, secret: str | None = None
) -> tuple[Endpoint, str]:
    """The endpoint and its new secret; the old one signs beside it for a while."""
    endpoint = await _reached(tx, actor, number)
    fresh = await endpoints.rotate(tx, sealer, endpoint, overlap, secret)
    detail = {"overlap_seconds": int(overlap.total_seconds())}
    await _record(tx, actor, "webhook.rotate", endpoint, detail)
    return await endpoints.find_any(tx, number), fresh


async def test(tx: Tx, actor: Actor, number: int) -> int:
    """Queue a test message; the id of its event."""
    endpoint = await _reached(tx, actor, number)
    if endpoint.url is None:
        raise NoOwnAddress
    if not endpoint.enabled:
        raise EndpointDisabled
    event_id = await history.ping(tx, endpoint)
    await _record(tx, actor, "webhook.test", endpoint, {"event": event_id})
    return event_id


async def replay(tx: Tx, actor: Actor, event: Event, number: int | None = None) -> int:
    """Send an event once more, to one endpoint or to all that are enabled and want its type; to how many."""
    if number is None:
        found = await endpoints.list_all(tx, actor.company_id or event.company_id, actor.state)
        chosen = [one for one in found if not one.types or event.type in one.types]
        chosen = [one for one in chosen if event.concerns(one.company_id, one.state)]
    else:
        chosen = [await _reached(tx, actor, number)]
        if not event.concerns(chosen[0].company_id, chosen[0].state):
            raise EndpointNotFound
        if not chosen[0].enabled:
            raise EndpointDisabled
    queued = await history.replay(tx, event, chosen)
    detail = {"queued": queued} | ({} if number is None else {"webhook": number})
    await trail.record(
        tx,
        actor,
        "webhook.replay",
        f"event {event.id}",
        detail,
        company_id=event.company_id,
        state=event.state,
    )
    return queued


async def recover(pool: Pool, actor: Actor, number: int, since: datetime) -> Recovered:
    """Queue everything since then that the endpoint wants and does not have: what failed, and what it never got.

    That may be long: each page of events has a transaction of its own, and the first one holds the row of the trail.
    """
    async with pool.acquire() as conn:
        endpoint = await _reached(conn, actor, number)
    if not endpoint.enabled:
        raise EndpointDisabled
    types = (fanout.TYPES & set(endpoint.types)) if endpoint.types else fanout.TYPES
    filters = feed.EventFilters(types=types, date_from=since)
    place, queued, seen = None, 0, 0
    while seen < RECOVERED_MAX:
        async with pool.acquire() as conn:
            page = await feed.after(
                conn,
                place,
                limit=RECOVERED_PAGE,
                company_id=endpoint.company_id,
                state=endpoint.state,
                filters=filters,
            )
        async with transaction(pool) as tx:
            queued += await history.queue_missed(tx, endpoint, page.events)
            if place is None:
                await _record(tx, actor, "webhook.recover", endpoint, {"since": since})
        seen += len(page.events)
        place = page.cursor
        if not page.more:
            return Recovered(queued, None)
    return Recovered(queued, page.events[-1].at if page.events else since)


async def _reached(tx: Tx, actor: Actor, number: int) -> Endpoint:
    """The endpoint, if it is within the actor's company and state; the operator reaches all."""
    found = await endpoints.find_any(tx, number)
    if actor.company_id is not None and (found.company_id, found.state) != (actor.company_id, actor.state):
        raise EndpointNotFound
    return found


def _standing(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "host": _host(endpoint),
        "format": endpoint.format.value,
        "types": endpoint.types,
        "description": endpoint.description,
        "enabled": endpoint.enabled,
        "headers": endpoint.header_names,
    }


def _host(endpoint: Endpoint) -> str | None:
    return None if endpoint.url is None else urlsplit(endpoint.url).hostname


async def _record(tx: Tx, actor: Actor, action: str, endpoint: Endpoint, detail: Mapping[str, Any]) -> None:
    await trail.record(
        tx,
        actor,
        action,
        f"webhook {endpoint.id}",
        detail,
        company_id=endpoint.company_id,
        state=endpoint.state,
    )
