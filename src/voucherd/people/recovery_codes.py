"""Recovery codes: for who has lost the telephone. Each opens once. Pure."""

from __future__ import annotations

import hashlib
import secrets
from typing import Final

CODES: Final = 10
_LETTERS: Final = "23456789abcdefghjkmnpqrstuvwxyz"
"""Nothing that is taken for something else when it is read from paper."""
_GROUPS: Final = 4
_GROUP_LETTERS: Final = 4
_SHAPE: Final = _GROUPS * _GROUP_LETTERS


def new_codes() -> list[str]:
    """Codes of 79 random bits each: too many to guess even for who has their hashes."""
    return [
        "-".join("".join(secrets.choice(_LETTERS) for _ in range(_GROUP_LETTERS)) for _ in range(_GROUPS))
        for _ in range(CODES)
    ]


def code_hash(user_id: int, text: str) -> bytes | None:
    """The hash of a code, however it was typed; None for a text that can't be one."""
    letters = "".join(text.lower().replace("-", "").split())
    if len(letters) != _SHAPE or not set(letters) <= set(_LETTERS):
        return None
    return hashlib.sha256(f"recovery/{user_id}/{letters}".encode("ascii")).digest()
