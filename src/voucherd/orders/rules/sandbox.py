"""What a sandbox call was told to do, by its header or by the coin (OP-49, OP-145). Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import Enum
from typing import Final

SANDBOX_PENDING_S: Final = 10
"""How long a sandbox order that was asked to be pending, or partial, stays so."""
_NEVER: Final = timedelta(days=1)
"""Behind every limit of Resolve, and behind the end of a partial delivery."""


class SandboxOutcome(Enum):
    """What is to become of a call."""

    FINISHED = "finished"
    CANCELLED = "cancelled"
    PENDING = "pending"
    SLOW = "slow"
    PARTIAL = "partial"
    OUT_OF_STOCK = "out-of-stock"
    INSUFFICIENT_BALANCE = "insufficient-balance"
    WITHDRAWN = "offer-withdrawn"
    EXPIRED = "expired"
    UNVERIFIED = "unverified"
    SLOW_WEBHOOK = "slow-webhook"
    RATE_LIMITED = "rate-limited"
    UNAVAILABLE = "unavailable"


ANSWERED_AT_ONCE: Final = frozenset({SandboxOutcome.PENDING, SandboxOutcome.PARTIAL})
"""Outcomes with which Confirm does not wait for the last code."""


def codes_from(now: datetime, outcome: SandboxOutcome, slow_s: int, *, resolve: bool) -> datetime:
    """When lines that wait may get codes: later where the call asked for it, never for the rest of a partial order."""
    if outcome is SandboxOutcome.SLOW:
        return now + timedelta(seconds=slow_s)
    if outcome is SandboxOutcome.PENDING:
        return now + (_NEVER if resolve else timedelta(seconds=SANDBOX_PENDING_S))
    return now + _NEVER if outcome is SandboxOutcome.PARTIAL else now
