"""Money: the balances, and how each came to be."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime

from voucherd_client.engine import Walk
from voucherd_client.operation import E, Resource, listing, operation, segment
from voucherd_client.shapes.accounts import Account, AccountEntry
from voucherd_client.shapes.pages import Page
from voucherd_client.steps import Steps, query


class Accounts(Resource[E]):
    """Balances and statements."""

    @operation
    def find_all(self, *, currency: str | None = None) -> Steps[list[Account]]:
        """The balance in each currency, or in this one."""
        return self._read("account", list[Account], query(currency=currency))

    @listing
    def entries(
        self,
        currency: str,
        *,
        kind: str | Sequence[str] | None = None,
        trx: str | None = None,
        date_from: datetime | date | None = None,
        date_to: datetime | date | None = None,
        sort_order: str | None = None,
        limit: int | None = None,
        cursor: str = "",
    ) -> Walk[AccountEntry]:
        """The movements of an account, newest first unless `sort_order` is `asc`."""
        given = query(
            kind=[kind] if isinstance(kind, str) else None if kind is None else list(kind),
            trx=trx,
            dateFrom=date_from,
            dateTo=date_to,
            sortOrder=sort_order,
            limit=limit,
        )
        return self._walk(f"account/{segment(currency)}/entry", Page[AccountEntry], cursor, given)

    @operation
    def statement_csv(
        self,
        currency: str,
        *,
        date_from: datetime | date | None = None,
        date_to: datetime | date | None = None,
    ) -> Steps[bytes]:
        """The statement as a file of CSV."""
        given = query(format="csv", dateFrom=date_from, dateTo=date_to)
        return self._bytes(f"account/{segment(currency)}/entry", given)
