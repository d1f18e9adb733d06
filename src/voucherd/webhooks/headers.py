"""Headers that an integrator adds to his deliveries, such as a token of his gateway. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

HEADERS_MAX: Final = 10
NAME_CHARS_MAX: Final = 100
VALUE_CHARS_MAX: Final = 1_000

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*", re.ASCII)
_VALUE: Final = re.compile(r"[!-~]([ -~]*[!-~])?", re.ASCII)
_OURS: Final = frozenset(
    {
        *(
            "accept",
            "accept-encoding",
            "connection",
            "content-encoding",
            "content-length",
            "content-type",
            "date",
        ),
        *("expect", "forwarded", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"),
        *("user-agent", "via"),
    }
)
"""Headers of the connection, of the body, and of proxies."""
_OUR_BEGINNINGS: Final = ("webhook-", "svix-", "proxy-", "x-forwarded-", "sec-")


def read_headers(given: Mapping[str, str]) -> dict[str, str]:
    """The headers with their names in lower case; a ValueError of one line for those that can't be added."""
    if len(given) > HEADERS_MAX:
        raise ValueError(f"must hold at most {HEADERS_MAX} headers")
    read: dict[str, str] = {}
    for name, value in given.items():
        if len(name) > NAME_CHARS_MAX or not _NAME.fullmatch(name):
            raise ValueError(f"must have names of at most {NAME_CHARS_MAX} letters, digits and dashes")
        low = name.lower()
        if low in _OURS or low.startswith(_OUR_BEGINNINGS):
            raise ValueError(f"must not hold {low}")
        if low in read:
            raise ValueError(f"must hold {low} once")
        if not isinstance(value, str) or len(value) > VALUE_CHARS_MAX or not _VALUE.fullmatch(value):
            raise ValueError(f"must have values of 1 to {VALUE_CHARS_MAX} printable ASCII characters")
        read[low] = value
    return read
