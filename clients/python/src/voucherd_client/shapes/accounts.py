"""Balances, and how each came to be."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from msgspec import Struct

from voucherd_client.shapes.words import State


class Account(Struct, rename="camel", frozen=True, kw_only=True):
    """A balance in one currency."""

    currency: str
    state: State
    total_amount: Decimal
    held_amount: Decimal
    available_amount: Decimal
    """What an order can be paid from."""


class AccountEntry(Struct, rename="camel", frozen=True, kw_only=True):
    """One movement of an account."""

    seq: int
    date_created: datetime
    kind: str
    amount: Decimal
    hold_amount: Decimal
    balance_after: Decimal
    held_after: Decimal
    currency: str
    trx: str | None
    reference: str | None
