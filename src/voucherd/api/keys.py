"""What an integrator does with the keys of his company: find, make, change, rotate and revoke them (OP-29)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from voucherd import clock
from voucherd.api import key_requests as requests
from voucherd.api.errors import KeyLimitReached, UnknownKey, UnusableKey
from voucherd.api.handlers import Call
from voucherd.api.idempotent import Write, write
from voucherd.api.wire import keys as wire
from voucherd.api.wire.shapes import WalkMetadata
from voucherd.api.wire.templates import encode
from voucherd.db import tenant
from voucherd.http import JSON, Response
from voucherd.keys import deeds as key_deeds
from voucherd.keys import store as key_store
from voucherd.keys.grants import BeyondOwn
from voucherd.keys.store import Key
from voucherd.orders.rules.refusals import BadInput
from voucherd.services import Services


async def find_all(services: Services, call: Call) -> Response:
    """A page of keys, newest first."""
    size, before = requests.page(call.request, services.ids)
    async with tenant(services.pool, call.caller.company_id, call.caller.state) as conn:
        found, more = await key_store.page_of_keys(
            conn, call.caller.company_id, call.caller.state, size=size, before=before
        )
    cursor = services.ids.key(found[-1].id) if more else None
    page = wire.ApiKeyPage([_shown(services, call, key) for key in found], WalkMetadata(size, cursor))
    return Response(200, encode(page), JSON)


async def find(services: Services, call: Call) -> Response:
    """Find one key."""
    number = _number(services, call)
    try:
        async with tenant(services.pool, call.caller.company_id, call.caller.state) as conn:
            key = await key_store.own_key(conn, number, call.caller.company_id, call.caller.state)
    except key_store.KeyNotFound:
        raise UnknownKey from None
    return Response(200, encode(_shown(services, call, key)), JSON)


async def add(services: Services, call: Call) -> Response:
    """Make a key. The only answer but that of a rotation that holds one."""
    wish = requests.wishes(call.request)
    async with _write(services, call) as work:
        made = await key_deeds.add(work.tx, call.actor, call.caller.company_id, call.caller.state, wish)
        return await work.answered(_made(services, call, *made))


async def change(services: Services, call: Call) -> Response:
    """Change a key."""
    number, wish = _number(services, call), requests.wishes(call.request)
    async with _write(services, call) as work:
        key = await key_deeds.change(work.tx, call.actor, number, wish)
        return await work.answered(Response(200, encode(_shown(services, call, key)), JSON))


async def rotate(services: Services, call: Call) -> Response:
    """Replace a key by one like it."""
    number, overlap = _number(services, call), requests.rotation(call.request)
    async with _write(services, call) as work:
        made = await key_deeds.rotate(work.tx, call.actor, number, overlap)
        return await work.answered(_made(services, call, *made))


async def revoke(services: Services, call: Call) -> Response:
    """Revoke a key, maybe the calling one, and unless it is told otherwise those that were made with it."""
    number, stay = _number(services, call), requests.children_stay(call.request)
    async with _write(services, call) as work:
        await key_deeds.revoke(work.tx, call.actor, number, children_stay=stay)
        return await work.answered(Response(204))


def _number(services: Services, call: Call) -> int:
    number = services.ids.key_number(call.parameter)
    if number is None:
        raise UnknownKey
    return number


def _shown(services: Services, call: Call, key: Key, text: str | None = None) -> wire.ApiKey:
    return wire.api_key(services.ids, key, clock.now(), call.caller.key_id, text)


def _made(services: Services, call: Call, key: Key, text: str) -> Response:
    shown = _shown(services, call, key, text)
    location = f"/api/{call.version}/key/{shown.id}".encode()
    return Response(201, encode(shown), JSON, [(b"location", location)])


@asynccontextmanager
async def _write(services: Services, call: Call) -> AsyncIterator[Write]:
    """A change of keys; what is refused in it has not happened."""
    try:
        async with write(services, call) as work:
            yield work
    except key_store.KeyNotFound:
        raise UnknownKey from None
    except key_store.KeyNotUsable:
        raise UnusableKey from None
    except key_deeds.TooManyKeys:
        raise KeyLimitReached from None
    except key_deeds.ExpiredAlready:
        raise BadInput("dateExpires", "must lie in the future") from None
    except BeyondOwn as beyond:
        raise BadInput(beyond.field, beyond.rule) from None
