"""The only place that touches account_link and reset_request: links that are mailed and open once."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from voucherd import email_address
from voucherd.db import Connection, Pool, Tx
from voucherd.people import user_store

TOKEN_BYTES: Final = 32
OPEN_MAX: Final = 3
"""So many links of one person are good at a time: asking again and again must not fill a mailbox."""
REQUESTS_MAX: Final = 50
"""Of one round."""
EMAIL_CHARACTERS_MAX: Final = 254
SWEEP_MAX: Final = 5_000


class LinkKind(StrEnum):
    """What a link is for."""

    RESET = "reset"
    INVITATION = "invitation"


LIVES: Final = {LinkKind.RESET: timedelta(minutes=30), LinkKind.INVITATION: timedelta(days=7)}


@dataclass(frozen=True, slots=True)
class Holder:
    """Whose link it is."""

    user_id: int
    email: str


async def make(tx: Tx, user_id: int, kind: LinkKind, open_max: int = OPEN_MAX) -> bytes | None:
    """The hash of a new link, to be mailed; None if enough are open. It has no token before its letter is sent."""
    link = secrets.token_bytes(TOKEN_BYTES)
    made = await tx.fetchval(
        """
        INSERT INTO account_link (hash, user_id, kind, ends_at)
        SELECT $1, $2, $3, now() + $4::interval
        WHERE (SELECT count(*) FROM account_link WHERE user_id = $2 AND ends_at > now()) < $5 RETURNING true
        """,
        link,
        user_id,
        kind.value,
        LIVES[kind],
        open_max,
    )
    return link if made else None


async def renew(tx: Tx, link: bytes) -> tuple[str, bytes] | None:
    """A new token of the link, to be mailed and kept nowhere, and its hash; None if the link is over."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    fresh = _hash(token)
    found = await tx.fetchval(
        "UPDATE account_link SET hash = $2 WHERE hash = $1 AND ends_at > now() RETURNING true", link, fresh
    )
    return (token, fresh) if found else None


async def look(connection: Connection | Pool, token: str, kind: LinkKind) -> Holder | None:
    """Whose link this is, while it is good; it stays good."""
    row = await connection.fetchrow(
        """
        SELECT u.id, u.email FROM account_link l JOIN app_user u ON u.id = l.user_id
        WHERE l.hash = $1 AND l.kind = $2 AND l.ends_at > now() AND u.active AND u.invited_as IS NULL
        """,
        _hash(token),
        kind.value,
    )
    return None if row is None else Holder(*row)


async def use(tx: Tx, token: str, kind: LinkKind) -> Holder | None:
    """Whose link this was; neither it nor another one of that person opens anything any more."""
    holder = await look(tx, token, kind)
    if holder is None:
        return None
    # One at a time for a person: of two links that are used at once each would wait for the other to go.
    await user_store.lock(tx, holder.user_id)
    if await look(tx, token, kind) is None:
        return None
    await void(tx, holder.user_id)
    return holder


async def void(tx: Tx, user_id: int) -> None:
    """End all links of a person."""
    await tx.execute("DELETE FROM account_link WHERE user_id = $1", user_id)


async def request_reset(pool: Pool, email: str) -> None:
    """Note that somebody wants a new password for this address; whether it is anybody's is looked up later."""
    # A stranger's address takes as long as a known one, and the answer is the same.
    address = email_address.looked_up(email)
    if 1 <= len(address) <= EMAIL_CHARACTERS_MAX and address.isprintable():
        await pool.execute("INSERT INTO reset_request (email) VALUES ($1)", address)


async def take_requests(tx: Tx) -> tuple[int, list[Holder]]:
    """How many requests there were, now removed, and those who can get a link."""
    rows = await tx.fetch(
        """
        WITH taken AS (
            DELETE FROM reset_request WHERE id IN
                (SELECT id FROM reset_request ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED)
            RETURNING email
        )
        SELECT u.id, u.email FROM taken t
        LEFT JOIN (app_user u LEFT JOIN company c ON c.id = u.company_id)
               ON u.email = t.email AND u.active AND u.invited_as IS NULL AND coalesce(c.active, true)
        """,
        REQUESTS_MAX,
    )
    return len(rows), [Holder(*row) for row in rows if row["id"] is not None]


async def sweep(pool: Pool) -> int:
    """Remove links that are over; how many."""
    removed = await pool.fetch(
        """
        DELETE FROM account_link WHERE hash IN
            (SELECT hash FROM account_link WHERE ends_at < now() ORDER BY ends_at LIMIT $1) RETURNING true
        """,
        SWEEP_MAX,
    )
    return len(removed)


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()
