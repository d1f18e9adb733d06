"""The only place that touches setup_link: the one link by which the operator's first person comes in (OP-150).

Its token is computed from a random number in the database and the root of the vault. So every host that starts prints
the same link, although the database alone does not open it.
"""

from __future__ import annotations

import hmac
import secrets
from base64 import urlsafe_b64encode
from datetime import timedelta
from typing import Final

from voucherd.db import Connection, Pool, Tx
from voucherd.ids import derive

LIFE: Final = timedelta(hours=24)
NONCE_BYTES: Final = 32


async def is_empty(connection: Connection | Pool) -> bool:
    """Whether the operator has nobody yet."""
    found: bool = await connection.fetchval("SELECT EXISTS (SELECT FROM app_user WHERE company_id IS NULL)")
    return not found


async def open_link(tx: Tx, root: bytes, *, renew: bool) -> tuple[str, bool]:
    """The token of the link, good for a day from now on, and whether it is new; with `renew` it always is."""
    nonce = secrets.token_bytes(NONCE_BYTES)
    # In one statement, so that two hosts that start at once end with the same link.
    kept = await tx.fetchval(
        """
        INSERT INTO setup_link AS l (nonce, ends_at) VALUES ($1, now() + $2::interval)
        ON CONFLICT (only_row) DO UPDATE SET ends_at = excluded.ends_at,
            nonce = CASE WHEN $3 OR l.ends_at <= now() THEN excluded.nonce ELSE l.nonce END
        RETURNING nonce
        """,
        nonce,
        LIFE,
        renew,
    )
    return _token(root, kept), kept == nonce


async def is_good(connection: Connection | Pool, root: bytes, token: str) -> bool:
    """Whether this is the token of the link, and the link is not over."""
    nonce = await connection.fetchval("SELECT nonce FROM setup_link WHERE ends_at > now()")
    return nonce is not None and hmac.compare_digest(
        _token(root, nonce).encode(), token.encode("utf-8", "replace")
    )


async def use(tx: Tx, root: bytes, token: str) -> bool:
    """Whether the link was good; it leads nowhere any more."""
    await tx.execute("SELECT FROM setup_link FOR UPDATE")
    good = await is_good(tx, root, token)
    if good:
        await tx.execute("DELETE FROM setup_link")
    return good


def _token(root: bytes, nonce: bytes) -> str:
    return urlsafe_b64encode(derive(root, f"setup-link/{nonce.hex()}")).decode("ascii").rstrip("=")
