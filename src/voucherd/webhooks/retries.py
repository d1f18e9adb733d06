"""When to try again: the pauses between attempts, and the rest that a failing endpoint is given. Pure."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

PAUSES_S: Final = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
"""5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h: ten attempts within about three days."""
JITTER: Final = 0.1
"""A pause is longer by up to this part of itself, so that what failed together does not come back together."""
BROKEN_FAILURES: Final = 5
REST_S_MAX: Final = 60
DISABLED_AFTER: Final = timedelta(days=5)
"""How long an endpoint may fail without one success between."""


def pause_s(tries: int, sandbox_outcome: float) -> float | None:
    """How long to wait after so many attempts; None if that was the last. `chance` is from 0 to 1."""
    assert tries >= 1, "there was an attempt"
    if tries > len(PAUSES_S):
        return None
    return PAUSES_S[tries - 1] * (1 + JITTER * sandbox_outcome)


def rest_s(failures: int) -> float:
    """How long to leave an endpoint alone that failed so often in a row: a dead one is asked once a minute."""
    if failures < BROKEN_FAILURES:
        return 0.0
    return float(min(2 ** min(failures - BROKEN_FAILURES, 10), REST_S_MAX))
