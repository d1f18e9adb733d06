"""The progress of an order that is under way, as server-sent events."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Final

import msgspec

from voucherd.http import EVENT_STREAM, HttpError, Response
from voucherd.orders.model import Order
from voucherd.orders.rules.refusals import OrderNotFound
from voucherd.orders.rules.states import Status
from voucherd.pages.visit import Visit
from voucherd.people import sessions

BEAT_S: Final = 15.0
"""After so long without news a comment is sent: proxies cut off what is silent, and who signed out is let go."""
LIVE_S_MAX: Final = 900.0
"""A browser comes back by itself when its stream ends."""
LIVE_OF_PERSON_MAX: Final = 20

_open: Final[Counter[int]] = Counter()


async def live(visit: Visit) -> Response:
    """What happens to the order, as long as it is in progress."""
    order_id = visit.services.ids.order_id(visit.parameters["trx"])
    answer = await visit.services.orders.find(order_id, visit.company_id, visit.state)
    if _open[visit.someone.id] >= LIVE_OF_PERSON_MAX:
        raise HttpError(503, "too_many_streams", "", headers=[(b"retry-after", b"5")])
    return Response(200, _stream(visit, answer.order), EVENT_STREAM, endless=True)


async def _stream(visit: Visit, order: Order) -> AsyncIterator[bytes]:
    me, ends_at = visit.someone.id, asyncio.get_running_loop().time() + LIVE_S_MAX
    assert visit.session is not None
    _open[me] += 1
    try:
        while order.status is Status.PENDING and asyncio.get_running_loop().time() < ends_at:
            if visit.services.orders.watch.letting_go:
                return  # The browser asks another process.
            yield b"data: " + msgspec.json.encode(progress(order)) + b"\n\n"
            moved = await visit.services.orders.watch.until_moved(order.id, order.version, BEAT_S)
            if not moved:
                yield b": still here\n\n"
            if not await sessions.is_open(visit.pool, visit.session.key):
                return
            order = (await visit.services.orders.find(order.id, visit.company_id, visit.state)).order
        yield b"event: reload\ndata: {}\n\n"
    except OrderNotFound:
        yield b"event: reload\ndata: {}\n\n"
    finally:
        _open[me] -= 1
        if not _open[me]:
            del _open[me]


def progress(order: Order) -> dict[str, int | str]:
    """How far the order is, under the names that the page has places for."""
    return {"finished": order.lines_finished, "lines": order.lines, "bar": order.lines_finished}
