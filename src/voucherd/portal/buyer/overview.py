"""The first page that a company's people see."""

from __future__ import annotations

from voucherd.access.roles import Right
from voucherd.http import Response
from voucherd.money import Money
from voucherd.portal.house import House
from voucherd.portal.render import render
from voucherd.portal.visit import Visit
from voucherd.wallet import store as wallets


async def overview(house: House, visit: Visit) -> Response:
    """Balances, and what to do next."""
    balances = []
    if visit.may(Right.WALLET_VIEW):
        async with house.pool.acquire() as connection:
            balances = await wallets.balances(connection, visit.company_id, visit.state)
    return render(
        "buyer/overview.html", visit, balances=[Money(one.balance_minor, one.currency) for one in balances]
    )
