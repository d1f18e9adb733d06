"""How often something may be tried in vain, and how long to pause then. Pure.

Nobody can lock another person out: what counts is an account *and* where the try comes from, or a place alone, never
an account alone. A device that signed in before has an allowance of its own, so that strangers behind the same address
don't use it up. Only the second factor is counted for the account as a whole, because to try one takes the password.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

DEVICE_BYTES: Final = 16


class Allowance(Struct, frozen=True):
    """So many tries without a pause; then each pause is twice the one before."""

    name: str
    free: int
    pause_s_first: int
    pause_s_max: int
    forget: timedelta
    """After so long without a try everything is forgotten."""


HERE: Final = Allowance("here", 5, 2, 900, timedelta(hours=1))
"""An account from one network."""
NETWORK: Final = Allowance("network", 30, 1, 300, timedelta(hours=1))
"""Any account from one network: many people may share one."""
DEVICE: Final = Allowance("device", 10, 2, 900, timedelta(hours=1))
"""An account from a device that signed in to it before."""
SECOND_FACTOR: Final = Allowance("second factor", 5, 2, 900, timedelta(hours=24))
RESET: Final = Allowance("reset", 5, 60, 3600, timedelta(hours=24))
"""Mails about forgotten passwords that one network asks for."""


class Tally(Struct, frozen=True):
    """What was tried in vain so far."""

    failures: int
    last_at: datetime
    until: datetime


def pause_s(allowance: Allowance, failures: int) -> int:
    """How long to wait after so many failures."""
    if failures < allowance.free:
        return 0
    doublings = min(failures - allowance.free, 20)
    return min(allowance.pause_s_max, allowance.pause_s_first << doublings)


def wait_s(tally: Tally, now: datetime) -> int:
    """How many seconds are left of the pause; 0 when it is over."""
    left = (tally.until - now).total_seconds()
    return 0 if left <= 0 else int(left) + 1


def one_more(tally: Tally, allowance: Allowance, now: datetime) -> Tally:
    """The tally with one more try, which counts as failed until it is known to be right."""
    before = 0 if now - tally.last_at > allowance.forget else tally.failures
    failures = before + 1
    return Tally(failures, now, now + timedelta(seconds=pause_s(allowance, failures)))


def key_of(allowance: Allowance, *parts: str) -> bytes:
    """What a tally is stored under: nobody can read addresses out of the table."""
    return hashlib.sha256("\0".join((allowance.name, *parts)).encode("utf-8", "replace")).digest()


class Devices:
    """Knows devices that signed in to an account before, by a cookie that nobody else can make."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def issue(self, email: str) -> str:
        """A cookie for a device that just signed in."""
        device = secrets.token_hex(DEVICE_BYTES)
        return f"{device}.{self._mac(device, email)}"

    def known(self, cookie: str | None, email: str) -> str | None:
        """The device, if the cookie was made for it and this account."""
        device, dot, mac = (cookie or "").partition(".")
        if not (dot and device.isascii() and mac.isascii()):
            return None
        return device if hmac.compare_digest(self._mac(device, email), mac) else None

    def _mac(self, device: str, email: str) -> str:
        return hmac.digest(self._key, f"device\0{device}\0{email}".encode("utf-8", "replace"), "sha256").hex()
