"""Accounts and their statements on the wire. Currency codes are upper case here, as on an order (OP-06)."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Raw

from voucherd.api.wire.shapes import Account, AccountEntry
from voucherd.clock import written
from voucherd.ids import Identifiers
from voucherd.money import digits, plain
from voucherd.wallet.statement import StatementLine
from voucherd.wallet.store import Balance


def account(balance: Balance) -> Account:
    """A balance as clients see it."""
    places = digits(balance.currency)
    held_minor = balance.held_minor
    total, held, available = (
        # Not kept like prices are: hardly two balances are alike.
        Raw(plain(minor, places).encode())
        for minor in (balance.balance_minor, held_minor, balance.balance_minor - held_minor)
    )
    return Account(balance.currency, balance.state.word, total, held, available)


def entries(lines: Iterable[StatementLine], currency: str, ids: Identifiers) -> list[AccountEntry]:
    """Movements as clients see them."""
    places = digits(currency)
    return [
        AccountEntry(
            line.seq,
            written(line.at),
            line.kind.word,
            Raw(plain(line.amount_minor, places).encode()),
            Raw(plain(line.hold_minor, places).encode()),
            Raw(plain(line.balance_after_minor, places).encode()),
            Raw(plain(line.held_after_minor, places).encode()),
            currency,
            None if line.order_id is None else ids.trx_unkept(line.order_id),
            line.reference,
        )
        for line in lines
    ]
