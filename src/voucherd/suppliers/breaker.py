"""The circuit breaker of a supplier: who keeps failing is left alone for a while, then tried with one call. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

FAILURES_MAX: Final = 5
"""So many failures in a row open the breaker."""
OPEN_S_MIN: Final = 5.0
OPEN_S_MAX: Final = 300.0


class Health(Struct, frozen=True):
    """How a supplier has been lately: failures in a row, and until when it is left alone."""

    failures: int = 0
    open_until: datetime | None = None

    def word(self, now: datetime) -> str:
        """`closed` (all is well), `open` (left alone) or `half-open` (one call tries)."""
        if self.failures < FAILURES_MAX:
            return "closed"
        return "open" if self.open_until is not None and now < self.open_until else "half-open"


def after_call(health: Health, now: datetime, *, failed: bool) -> Health:
    """The health after one more call."""
    if not failed:
        return Health()
    failures = health.failures + 1
    if failures < FAILURES_MAX:
        return Health(failures)
    open_s = min(OPEN_S_MIN * 2.0 ** min(failures - FAILURES_MAX, 10), OPEN_S_MAX)
    return Health(failures, now + timedelta(seconds=open_s))


def room(health: Health, now: datetime, *, calling: int, calling_max: int) -> int:
    """How many more calls may be made at once."""
    most = {"closed": calling_max, "half-open": 1, "open": 0}[health.word(now)]
    return max(0, most - calling)
