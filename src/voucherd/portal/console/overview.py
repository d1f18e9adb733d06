"""The first page that the operator's people see."""

from __future__ import annotations

from voucherd.http import Response
from voucherd.portal.house import House
from voucherd.portal.render import render
from voucherd.portal.visit import Visit


async def overview(_house: House, visit: Visit) -> Response:
    """Where things stand."""
    return render("console/overview.html", visit)
