"""Signatures as Standard Webhooks has them: HMAC-SHA256 over id, time and body. Pure.

A secret is `whsec_` and base64 of 24 to 64 random bytes. A message is signed with every secret that is valid just
then, so that a receiver can change from one to the next without missing any.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
import secrets
from collections.abc import Sequence
from typing import Final

SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - How one begins, not one.
SECRET_BYTES: Final = 32
SECRET_BYTES_MIN: Final = 24
SECRET_BYTES_MAX: Final = 64
SECRET_RULE: Final = f"must be whsec_ and base64 of {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes"
TOLERANCE_S: Final = 300
"""How far a receiver lets the time of a message be from its own."""

_SCHEME: Final = "v1,"
_TIME: Final = re.compile(r"[0-9]{1,12}", re.ASCII)


class NotGenuine(Exception):
    """The message was not signed with this secret, was changed, or is too old; the text says which."""


def new_secret() -> str:
    """A secret that nobody has seen yet."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def check_secret(text: str) -> str:
    """The secret, if it is one; a ValueError otherwise, which never holds it."""
    _key(text)
    return text


def sign(keys: Sequence[str], message_id: str, timestamp_s: int, body: bytes) -> str:
    """The value of `webhook-signature`: one signature for each secret, newest first."""
    signed = f"{message_id}.{timestamp_s}.".encode() + body
    return " ".join([_SCHEME + _signature(_key(key), signed) for key in keys])


def verify(
    secret: str, message_id: str, timestamp: str, signature: str, body: bytes, *, now_s: float
) -> None:
    """Refuse a message that is not genuine: what a receiver does."""
    if not _TIME.fullmatch(timestamp) or abs(now_s - int(timestamp)) > TOLERANCE_S:
        raise NotGenuine("its time is too far from now")
    expected = _signature(_key(secret), f"{message_id}.{timestamp}.".encode() + body)
    given = [part.removeprefix(_SCHEME) for part in signature.split(" ") if part.startswith(_SCHEME)]
    # Each is compared, whatever the others said: the time that it takes tells nothing.
    if not any([hmac.compare_digest(expected.encode(), one.encode()) for one in given]):  # noqa: C419 - See above.
        raise NotGenuine("no signature of it fits")


def _signature(key: bytes, signed: bytes) -> str:
    return base64.b64encode(hmac.digest(key, signed, "sha256")).decode()


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX).encode("ascii"), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(SECRET_RULE) from None
    if not secret.startswith(SECRET_PREFIX) or not SECRET_BYTES_MIN <= len(key) <= SECRET_BYTES_MAX:
        raise ValueError(SECRET_RULE)
    return key
