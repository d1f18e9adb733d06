"""What a company can pay with: its balances, and which of them ran low."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from voucherd.db import Connection, tenant
from voucherd.money import Money
from voucherd.pages.visit import Visit
from voucherd.people.roles import Right
from voucherd.wallet import low_balance
from voucherd.wallet import store as wallets

CURRENCY_FIRST: Final = "EUR"


class Funds(Struct, frozen=True):
    """One balance: what there is, what of it can be spent, and from where on it is low."""

    balance: Money
    available: Money
    alert: Money | None

    @property
    def currency(self) -> str:
        """What it is in."""
        return self.balance.currency

    @property
    def low(self) -> bool:
        """Whether it fell below what its owner chose."""
        return self.alert is not None and self.available.minor < self.alert.minor


async def purses_of(visit: Visit) -> list[Funds]:
    """The company's balances in the state that the visitor looks at; none for who may not see them."""
    if not visit.may(Right.WALLET_VIEW):
        return []
    async with tenant(visit.pool, visit.company_id, visit.state) as connection:
        return await _purses(connection, visit)


async def _purses(connection: Connection, visit: Visit) -> list[Funds]:
    found = await wallets.balances(connection, visit.company_id, visit.state)
    alerts = await low_balance.alerts(connection, [one.wallet_id for one in found])
    return [
        Funds(
            Money(one.balance_minor, one.currency),
            Money(one.balance_minor - one.held_minor, one.currency),
            Money(alerts[one.wallet_id], one.currency) if one.wallet_id in alerts else None,
        )
        for one in found
    ]


def usual_currency(purses: list[Funds]) -> str:
    """What to pay with until somebody chooses: euros if there are any, else whatever there is."""
    filled = [purse.currency for purse in purses if purse.available.minor > 0]
    return CURRENCY_FIRST if CURRENCY_FIRST in filled or not filled else filled[0]
