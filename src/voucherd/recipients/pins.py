"""A PIN before the codes of an order's links: set by the buyer, tried by recipients, and not to be guessed.

A PIN has a few digits, so no hash protects it from a thief who tries all: it is keyed with the master key, which is
not in the database, and a link takes a few wrong ones before it waits, longer each time. The counts are in the
database: all processes share them.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from msgspec import Struct

from voucherd import trail
from voucherd.actors import Actor
from voucherd.db import Connection, Tx
from voucherd.ids import derive
from voucherd.orders.rules.refusals import BadInput, OrderNotFound
from voucherd.orders.rules.states import Status

PIN_DIGITS_MIN: Final = 4
PIN_DIGITS_MAX: Final = 12
TRIES_MAX: Final = 5
"""So many wrong PINs in a row make a link wait."""
WAIT_MIN: Final = timedelta(minutes=15)
WAIT_MAX: Final = timedelta(days=1)
FORGOTTEN_AFTER: Final = timedelta(days=7)
"""Wrong PINs count no longer when nobody tried for so long."""

_SHAPE: Final = re.compile(rf"[0-9]{{{PIN_DIGITS_MIN},{PIN_DIGITS_MAX}}}", re.ASCII)


def checked(pin: str | None) -> str | None:
    """The PIN as a buyer sets it, refused if it is none; None where he wants none."""
    if pin is not None and _SHAPE.fullmatch(pin) is None:
        raise BadInput("pin", f"must be {PIN_DIGITS_MIN} to {PIN_DIGITS_MAX} digits, or null")
    return pin


class PinCheck(Enum):
    """What a PIN that was tried turned out to be."""

    RIGHT = "right"
    WRONG = "wrong"
    NOT_NOW = "not now"


class Tried(Struct, frozen=True):
    """What came of a try, and how many more there are or when the next one may be."""

    told: PinCheck
    left: int = 0
    blocked_until: datetime | None = None


class Pins:
    """Sets and tries PINs."""

    def __init__(self, master: bytes) -> None:
        self._key = derive(master, "recipient/pin")

    async def set(self, tx: Tx, actor: Actor, trx: str, order_id: int | None, pin: str | None) -> None:
        """Put a PIN before the order's codes, another one, or (None) none; earlier tries are forgotten.

        Refused for an order that is not the actor's company's, in the state that the actor works in.
        """
        pin = checked(pin)
        assert actor.company_id is not None, "only a company's people and keys protect its orders"
        assert actor.state is not None, "they work in one state at a time"
        # Held until the end, so that the order is not removed meanwhile.
        found = await tx.fetchval(
            """
            SELECT id FROM orders WHERE id = $1 AND company_id = $2 AND (id & 1) = $3 AND status <> $4
            FOR KEY SHARE
            """,
            order_id,
            actor.company_id,
            int(actor.state),
            int(Status.DELETED),
        )
        if found is None:
            raise OrderNotFound
        await trail.record(tx, actor, "order.protect", f"order {trx}", {"pin": pin is not None})
        if pin is None:
            await tx.execute("DELETE FROM order_pin WHERE order_id = $1", found)
            return
        # Changed in its place: between a row that goes and one that comes somebody would find none.
        await tx.execute(
            """
            INSERT INTO order_pin (order_id, hash) VALUES ($1, $2)
            ON CONFLICT (order_id) DO UPDATE SET hash = excluded.hash, set_at = now()
            """,
            found,
            self._hash(found, pin),
        )
        await tx.execute("DELETE FROM pin_try WHERE order_id = $1", found)

    async def tried(self, tx: Tx, order_id: int, line: int, pin: str) -> Tried:
        """Whether it is the order's PIN. A try is counted before it is looked at, so no two count as one."""
        known = await tx.fetchval("SELECT hash FROM order_pin WHERE order_id = $1 FOR KEY SHARE", order_id)
        if known is None:
            return Tried(PinCheck.RIGHT)
        wrong = await tx.fetchval(_COUNT, order_id, line, TRIES_MAX, WAIT_MIN, WAIT_MAX, FORGOTTEN_AFTER)
        if wrong is None:
            return Tried(PinCheck.NOT_NOW, blocked_until=await blocked_until(tx, order_id, line))
        if hmac.compare_digest(known, self._hash(order_id, pin)):
            await tx.execute("DELETE FROM pin_try WHERE order_id = $1 AND line = $2", order_id, line)
            return Tried(PinCheck.RIGHT)
        left = -wrong % TRIES_MAX
        return Tried(PinCheck.WRONG, left, await blocked_until(tx, order_id, line) if left == 0 else None)

    def _hash(self, order_id: int, pin: str) -> bytes:
        return hmac.digest(self._key, b"%d/%b" % (order_id, pin.encode()), hashlib.sha256)


# The wait doubles with each run of wrong ones; the exponent is bounded, or the interval would overflow.
_COUNT: Final = """
    INSERT INTO pin_try AS t (order_id, line, wrong) VALUES ($1, $2, 1)
    ON CONFLICT (order_id, line) DO UPDATE
    SET wrong = CASE WHEN t.tried_at < now() - $6::interval THEN 1 ELSE t.wrong + 1 END,
        tried_at = now(),
        blocked_until = CASE WHEN t.tried_at >= now() - $6::interval AND (t.wrong + 1) % $3::integer = 0
            THEN now() + least($4::interval * 2 ^ least((t.wrong + 1) / $3 - 1, 10), $5::interval) END
    WHERE t.blocked_until IS NULL OR t.blocked_until <= now()
    RETURNING wrong
"""


async def blocked_until(conn: Connection, order_id: int, line: int) -> datetime | None:
    """When the next PIN may be tried at this link; None if at once."""
    moment: datetime | None = await conn.fetchval(
        "SELECT blocked_until FROM pin_try WHERE order_id = $1 AND line = $2 AND blocked_until > now()",
        order_id,
        line,
    )
    return moment


async def has_pin(conn: Connection, order_id: int) -> bool:
    """Whether the order's links ask for a PIN."""
    return bool(await conn.fetchval("SELECT EXISTS (SELECT FROM order_pin WHERE order_id = $1)", order_id))
