"""What an integrator asks about his own calls: the request log (OP-148)."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from voucherd.api import query
from voucherd.api.errors import RequestNotFound
from voucherd.api.handlers import Call
from voucherd.api.wire import request_log as wire
from voucherd.api.wire.shapes import WalkMetadata
from voucherd.api.wire.templates import encode
from voucherd.db import tenant
from voucherd.http import JSON, Request, Response
from voucherd.ids import Identifiers
from voucherd.orders.rules.refusals import BadInput
from voucherd.request_log import store
from voucherd.request_log.collector import REQUEST_ID_CHARS_MAX
from voucherd.request_log.redaction import PATH_CHARS_MAX
from voucherd.request_log.store import Answered, Filters
from voucherd.services import Services

_CURSOR: Final = query.cursor(
    "Where to go on: the `nextCursor` of the last page, or empty to begin.", query.write_place(412)
)
_LIMIT: Final = query.limit("calls")
_REQUEST_ID: Final = query.word(
    "requestId", "Only calls with this `X-Request-Id`.", most=REQUEST_ID_CHARS_MAX
)
_PATH: Final = query.word("path", "Only calls whose path begins so.", most=PATH_CHARS_MAX)
_STATUS: Final = replace(
    query.whole(
        "httpStatus", "Only calls that were answered with this status.", least=100, most=599, default=0
    ),
    schema={"type": "integer", "minimum": 100, "maximum": 599},
)
_KEY: Final = query.text("keyId", "Only calls of the key with this id.")
PAGE: Final = (_CURSOR, _LIMIT, _REQUEST_ID, _PATH, _STATUS, _KEY)


async def find_all(services: Services, call: Call) -> Response:
    """A page of calls, newest first."""
    size, before, filters = read_page(call.request, services.ids)
    found = await _page(services, call, filters, size=size + 1, before=before)
    data = [wire.logged(services.ids, one) for one in found[:size]]
    cursor = query.write_place(found[size - 1].seq) if len(found) > size else None
    return Response(200, encode(wire.LoggedRequestPage(data, WalkMetadata(size, cursor))), JSON)


async def find(services: Services, call: Call) -> Response:
    """The newest call with an id, and its bodies if the key may make such calls itself."""
    found = await _page(services, call, Filters(request_id=call.parameter), size=1)
    if not found:
        raise RequestNotFound
    shown = wire.detail(services.ids, found[0], bodies=_may_make(call, found[0]))
    return Response(200, encode(shown), JSON)


async def _page(
    services: Services, call: Call, filters: Filters, *, size: int, before: int | None = None
) -> list[Answered]:
    caller = call.caller
    async with tenant(services.pool, caller.company_id, caller.state) as conn:
        return await store.page(conn, caller.company_id, caller.state, filters, size=size, before=before)


def _may_make(call: Call, logged: Answered) -> bool:
    """Whether the calling key has the scopes of that call: nobody reads here what he may not ask for himself."""
    from voucherd.api import routes  # noqa: PLC0415 - The table of routes names this handler.

    found = routes.match(logged.path.partition("?")[0])
    target = None if found is None else found.methods.get(logged.method)
    return target is not None and set(target[0].scopes) <= call.caller.scopes


def read_page(request: Request, ids: Identifiers) -> tuple[int, int | None, Filters]:
    """The part of the log that is asked for."""
    given = query.read(request)
    cursor, key = _CURSOR.read(given), _KEY.read(given)
    number = None if key is None else ids.key_number(key)
    if key is not None and number is None:
        raise BadInput(_KEY.name, "must be the id of a key")
    filters = Filters(_REQUEST_ID.read(given), _PATH.read(given), _STATUS.read(given) or None, number)
    return _LIMIT.read(given), query.read_place(cursor) if cursor else None, filters
