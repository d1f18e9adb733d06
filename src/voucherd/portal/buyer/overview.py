"""The first page that a company's people see."""

from __future__ import annotations

from typing import Final

from voucherd.access.roles import Right
from voucherd.http import Response
from voucherd.orders import carts
from voucherd.orders.find import Filters
from voucherd.orders.states import Status
from voucherd.portal.buyer.orders import row
from voucherd.portal.buyer.purse import purses_of
from voucherd.portal.house import House
from voucherd.portal.render import render
from voucherd.portal.visit import Visit

ORDERS_SHOWN: Final = 6


async def overview(house: House, visit: Visit) -> Response:
    """Balances, what is under way, and what to do next."""
    found = await house.desk.find_all(
        visit.company_id, visit.state, Filters(), size=ORDERS_SHOWN, page=None, after=None
    )
    waiting = Filters(statuses=(Status.PENDING,))
    pending = await house.desk.find_all(visit.company_id, visit.state, waiting, size=1, page=1, after=None)
    purses = await purses_of(house, visit)
    return render(
        "buyer/overview.html",
        visit,
        purses=purses,
        low=[purse for purse in purses if purse.low],
        rows=[row(house, answer.order) for answer in found.answers],
        pending=pending.total or 0,
        cart=await carts.read(house.pool, visit.someone.id, visit.state),
        may_buy=visit.may(Right.ORDERS_PLACE),
    )
