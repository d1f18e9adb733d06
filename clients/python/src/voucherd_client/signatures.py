"""Signatures of webhooks, as Standard Webhooks has them: HMAC-SHA256 over id, time and body."""

from __future__ import annotations

import base64
import binascii
import hmac
import re
import time
from collections.abc import Mapping, Sequence
from typing import Final

from voucherd_client.errors import NotGenuine, UnreadableAnswer
from voucherd_client.shapes.events import Event
from voucherd_client.steps import decode

TOLERANCE_S: Final = 300
"""How far the time of a message may be from ours."""
SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - How one begins, not one.
SIGNATURES_MAX: Final = 20
_SCHEME: Final = "v1,"
_TIME: Final = re.compile(r"[0-9]{1,12}", re.ASCII)


def verify_webhook(
    body: bytes, headers: Mapping[str, str], secret: str | Sequence[str], *, now_s: float | None = None
) -> Event:
    """The event in a message of ours; raises NotGenuine. Give both secrets while one replaces the other."""
    verify_signature(body, headers, secret, now_s=now_s)
    try:
        return decode(body, Event)
    except UnreadableAnswer:
        raise NotGenuine("it is no event in the standard format") from None


def verify_signature(
    body: bytes, headers: Mapping[str, str], secret: str | Sequence[str], *, now_s: float | None = None
) -> None:
    """Raises NotGenuine unless one of the secrets signed the message; for the classic format, too."""
    if not isinstance(body, bytes):
        raise TypeError(
            "body: take the bytes as they came; what was read and written anew is not what was signed"
        )
    given = {name.lower(): value for name, value in headers.items()}
    message_id, timestamp = given.get("webhook-id", ""), given.get("webhook-timestamp", "")
    now_s = time.time() if now_s is None else now_s
    if not _TIME.fullmatch(timestamp) or abs(now_s - int(timestamp)) > TOLERANCE_S:
        raise NotGenuine("its time is too far from now")
    keys = [_key(one) for one in ([secret] if isinstance(secret, str) else secret)]
    signed = _signed(message_id, timestamp, body)
    words = given.get("webhook-signature", "").split(" ")[:SIGNATURES_MAX]
    signatures = [one.removeprefix(_SCHEME).encode() for one in words if one.startswith(_SCHEME)]
    # Each is compared, whatever the others said: the time that it takes tells nothing.
    fits = [hmac.compare_digest(_signature(key, signed), one) for key in keys for one in signatures]
    if not any(fits):
        raise NotGenuine("none of its signatures is by one of the secrets")


def signature_headers(
    secret: str, message_id: str, body: bytes, *, now_s: float | None = None
) -> dict[str, str]:
    """The headers of a message that is sent now."""
    timestamp = str(int(time.time() if now_s is None else now_s))
    signature = _signature(_key(secret), _signed(message_id, timestamp, body))
    return {
        "webhook-id": message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": _SCHEME + signature.decode(),
    }


def secret_of(key: str) -> str:
    """A secret for this API key: the same each time, and telling nobody the key."""
    return (
        SECRET_PREFIX
        + base64.b64encode(hmac.digest(key.encode(), b"voucherd-client listen", "sha256")).decode()
    )


def _signed(message_id: str, timestamp: str, body: bytes) -> bytes:
    return f"{message_id}.{timestamp}.".encode() + body


def _signature(key: bytes, signed: bytes) -> bytes:
    return base64.b64encode(hmac.digest(key, signed, "sha256"))


def _key(secret: str) -> bytes:
    # The message must not hold the secret: it may be logged.
    if not secret.startswith(SECRET_PREFIX):
        raise ValueError("secret: must begin with whsec_")
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("secret: must be whsec_ and base64") from None
    if not key:
        raise ValueError("secret: is empty")
    return key
