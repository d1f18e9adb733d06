"""Every path, version and operation on one screen (OP-04). Any other pair of operation and version: 404."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from voucherd.access.keys import Scope
from voucherd.api import handlers
from voucherd.api.errors import Op
from voucherd.api.handlers import Handler


class Route(Struct, frozen=True):
    """One operation on one path."""

    method: str
    path: str
    versions: tuple[str, ...]
    op: Op
    scope: Scope
    handler: Handler


_ALL: Final = ("1.00", "1.03", "Next")

ROUTES: Final = (
    Route("POST", "order", ("1.03",), Op.CREATE, Scope.ORDERS_WRITE, handlers.create),
    Route("GET", "order", _ALL, Op.FIND_ALL, Scope.ORDERS_READ, handlers.find_all),
    Route("GET", "order/{trx}", _ALL, Op.FIND, Scope.ORDERS_READ, handlers.find),
    Route("PATCH", "order/confirm/{trx}", ("1.03", "1.00"), Op.CONFIRM, Scope.ORDERS_WRITE, handlers.confirm),
    Route("PATCH", "order/resolve/{trx}", ("1.03", "Next"), Op.RESOLVE, Scope.ORDERS_WRITE, handlers.resolve),
    Route("PATCH", "order/cancel/{trx}", ("1.03",), Op.CANCEL, Scope.ORDERS_WRITE, handlers.cancel),
)


def _table() -> dict[tuple[str, ...], dict[str, Route]]:
    """The routes by version and path segments; a parameter is an empty segment."""
    table: dict[tuple[str, ...], dict[str, Route]] = {}
    for route in ROUTES:
        segments = tuple("" if part.startswith("{") else part for part in route.path.split("/"))
        for version in route.versions:
            table.setdefault((version, *segments), {})[route.method] = route
    return table


_TABLE: Final = _table()


def match(path: str) -> tuple[dict[str, Route], str, str] | None:
    """The routes of a path by method, its version, and its parameter; None for a path that does not exist."""
    segments = path.split("/")
    if len(segments) < 4 or segments[1] != "api":
        return None
    found = _TABLE.get(tuple(segments[2:]))
    if found is not None and segments[-1]:
        return found, segments[2], ""
    found = _TABLE.get((*segments[2:-1], ""))
    return (found, segments[2], segments[-1]) if found is not None and segments[-1] else None
