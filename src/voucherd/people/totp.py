"""Time-based one-time passwords (RFC 6238), as every authenticator app computes them. Pure."""

from __future__ import annotations

import hmac
import secrets
from base64 import b32encode
from typing import Final
from urllib.parse import quote, urlencode

STEP_S: Final = 30
DIGITS: Final = 6
STEPS_AROUND: Final = 1
"""So many steps a telephone's clock may be off, either way."""
SECRET_BYTES: Final = 20


def new_secret() -> bytes:
    """A secret for one person's app."""
    return secrets.token_bytes(SECRET_BYTES)


def code(secret: bytes, step: int) -> str:
    """The code of one step (RFC 4226, 5.3)."""
    digest = hmac.digest(secret, step.to_bytes(8, "big"), "sha1")
    at = digest[-1] & 15
    number = int.from_bytes(digest[at : at + 4], "big") & 0x7FFFFFFF
    return f"{number % 10**DIGITS:0{DIGITS}d}"


def matching_step(secret: bytes, text: str, now_s: int) -> int | None:
    """The step that this code belongs to, if it is one of those around now."""
    given = "".join(text.split())
    if not (len(given) == DIGITS and given.isascii() and given.isdigit()):
        return None
    now = now_s // STEP_S
    steps = range(max(0, now - STEPS_AROUND), now + STEPS_AROUND + 1)
    # All are compared, so that the time does not tell which one came close.
    right = [step for step in steps if hmac.compare_digest(code(secret, step), given)]
    return right[-1] if right else None


def shown(secret: bytes) -> str:
    """The secret as people type it."""
    return b32encode(secret).decode("ascii")


def uri(secret: bytes, email: str, shop: str) -> str:
    """What the square says that a telephone reads; the app lists it under the shop's name."""
    issuer = shop.replace(":", " ")
    label = quote(f"{issuer}:{email}")
    query = urlencode({"secret": shown(secret), "issuer": issuer, "digits": DIGITS, "period": STEP_S})
    return f"otpauth://totp/{label}?{query}"
