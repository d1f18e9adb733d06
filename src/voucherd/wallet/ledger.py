"""The ledger's arithmetic. Pure: a wallet and a movement give the next wallet and the entry that carries it."""

from __future__ import annotations

from enum import IntEnum

from msgspec import Struct


class EntryKind(IntEnum):
    """Why money moved; the number is what the database keeps."""

    TOP_UP = 1
    ORDER = 2
    REFUND = 3
    HOLD = 4
    RELEASE = 5
    CORRECTION = 6

    @property
    def word(self) -> str:
        """The word in statements."""
        return self.name.lower().replace("_", "-")


class Wallet(Struct, frozen=True):
    """A company's balance in one currency and state."""

    id: int
    balance_minor: int
    held_minor: int
    seq: int

    @property
    def available_minor(self) -> int:
        """What can be spent: the balance less what is held."""
        return self.balance_minor - self.held_minor


class LedgerEntry(Struct, frozen=True):
    """One whole transfer between a wallet and the operator."""

    wallet_id: int
    seq: int
    kind: EntryKind
    amount_minor: int
    vat_minor: int
    hold_minor: int
    balance_after_minor: int
    held_after_minor: int
    order_id: int | None = None
    reference: str | None = None


class Overdrawn(Exception):
    """The movement would take more than the wallet has."""


def post(
    wallet: Wallet,
    kind: EntryKind,
    *,
    amount_minor: int = 0,
    vat_minor: int = 0,
    hold_minor: int = 0,
    order_id: int | None = None,
    reference: str | None = None,
) -> tuple[Wallet, LedgerEntry]:
    """The wallet after the movement and the entry that records it; refused if it would be overdrawn."""
    balance = wallet.balance_minor + amount_minor
    held = wallet.held_minor + hold_minor
    if held < 0 or balance < held:
        raise Overdrawn(wallet.id)
    after = Wallet(wallet.id, balance, held, wallet.seq + 1)
    entry = LedgerEntry(
        wallet.id, after.seq, kind, amount_minor, vat_minor, hold_minor, balance, held, order_id, reference
    )
    return after, entry
