"""Whether anything was changed in the audit trail, added to it or taken out of it."""

from __future__ import annotations

from typing import Any

import msgspec

from voucherd.db import Connection
from voucherd.trail import chain


async def broken_chain(conn: Connection, flaws_max: int) -> list[dict[str, Any]]:
    """What is wrong with the trail, up to so many."""
    found: list[dict[str, Any]] = []
    async for flaw in chain.verify(conn):
        found.append(msgspec.to_builtins(flaw))
        if len(found) >= flaws_max:
            break
    return found
