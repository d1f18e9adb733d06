"""Links that somebody would find in a letter."""

from __future__ import annotations

from voucherd.db import Tx
from voucherd.people import links
from voucherd.people.links import LinkKind


async def mailed(tx: Tx, user_id: int, kind: LinkKind = LinkKind.RESET) -> str:
    """The token of a new link, as its letter would get it."""
    link = await links.make(tx, user_id, kind)
    assert link is not None
    renewed = await links.renew(tx, link)
    assert renewed is not None
    return renewed[0]
