"""A browser that has asked for an order's codes may see them for some minutes, also when it goes back to the page.

The word for it stands in the page's address. It is tied to the session and to the order, so it opens nothing for
anybody else, and nothing at all afterwards.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from voucherd import clock
from voucherd.pages.visit import Visit

LASTS_S: Final = 600


def grant(visit: Visit) -> str:
    """The word that lets this session see the codes of the order that the path names."""
    ends = int(clock.now().timestamp()) + LASTS_S
    return f"{ends:x}.{_signed(visit, ends)}"


def holds(visit: Visit, word: str) -> bool:
    """Whether the word was given to this session for this order, and not too long ago."""
    ends_hex, _, signature = word.partition(".")
    try:
        ends = int(ends_hex[:16], 16)
    except ValueError:
        return False
    signed = hmac.compare_digest(signature.encode(), _signed(visit, ends).encode())
    return signed and clock.now().timestamp() <= ends


def _signed(visit: Visit, ends: int) -> str:
    assert visit.session is not None, "only whoever signed in sees codes"
    about = f"codes/{visit.parameters['trx']}/{ends:x}"
    return hmac.digest(visit.session.key, about.encode(), hashlib.sha256).hex()
