"""A PIN before the codes of an order's links: set by the buyer, tried by recipients, and not to be guessed.

A PIN has a few digits, so no hash protects it from a thief who tries all: it is keyed with the master key, which is
not in the database. Wrong ones are counted for the order, whatever link they came from, and for the network that they
came from, whatever order they were for; each pause is longer than the one before. The counts are in the database: all
processes share them.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from msgspec import Struct

from voucherd import trail
from voucherd.actors import Actor
from voucherd.db import Connection, Tx
from voucherd.ids import derive
from voucherd.limits.allowances import Allowance
from voucherd.orders.rules.refusals import BadInput, OrderNotFound
from voucherd.orders.rules.states import Status

PIN_DIGITS_MIN: Final = 4
PIN_DIGITS_MAX: Final = 12
PIN_DIGITS_PROPOSED: Final = 6
"""So many digits we propose; a PIN that has fewer waits longer."""
TRIES_MAX: Final = 5
"""So many wrong PINs at the links of an order make all of them wait."""
WAIT_MIN: Final = timedelta(minutes=15)
WAIT_MAX: Final = timedelta(days=1)
SHORT_WAIT_MIN: Final = timedelta(hours=1)
SHORT_WAIT_MAX: Final = timedelta(days=3)
"""With five tries in three days it takes eight years to find four digits, on average."""
FORGOTTEN_AFTER: Final = timedelta(days=7)
"""Wrong PINs count no longer when nobody tried one for so long after the last pause."""
OF_NETWORK: Final = Allowance("pin", 20, 60, 86_400, timedelta(hours=24))
"""Wrong PINs that one network may try, at the links of all orders."""

_SHAPE: Final = re.compile(rf"[0-9]{{{PIN_DIGITS_MIN},{PIN_DIGITS_MAX}}}", re.ASCII)


def checked(pin: str | None) -> str | None:
    """The PIN as a buyer sets it, refused if it is none; None where he wants none."""
    if pin is not None and _SHAPE.fullmatch(pin) is None:
        raise BadInput("pin", f"must be {PIN_DIGITS_MIN} to {PIN_DIGITS_MAX} digits, or null")
    return pin


def proposed() -> str:
    """A PIN that nobody can guess, for a buyer who has none in mind."""
    return f"{secrets.randbelow(10**PIN_DIGITS_PROPOSED):0{PIN_DIGITS_PROPOSED}d}"


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
            INSERT INTO order_pin (order_id, hash, digits) VALUES ($1, $2, $3)
            ON CONFLICT (order_id) DO UPDATE SET hash = excluded.hash, digits = excluded.digits, set_at = now()
            """,
            found,
            self._hash(found, pin),
            len(pin),
        )
        await tx.execute("DELETE FROM pin_try WHERE order_id = $1", found)

    async def tried(self, tx: Tx, order_id: int, line: int, pin: str) -> Tried:
        """Whether it is the order's PIN. A try is counted before it is looked at, so no two count as one."""
        # The order's links take turns here: otherwise two that are tried at once would not see each other's count.
        known = await tx.fetchrow(
            "SELECT hash, digits FROM order_pin WHERE order_id = $1 FOR NO KEY UPDATE", order_id
        )
        if known is None:
            return Tried(PinCheck.RIGHT)
        guessed = await guesses(tx, order_id)
        if guessed.blocked_until is not None:
            return Tried(PinCheck.NOT_NOW, blocked_until=guessed.blocked_until)
        if hmac.compare_digest(known["hash"], self._hash(order_id, pin)):
            # Only those of its own link: whoever has another one goes on where he was.
            await tx.execute("DELETE FROM pin_try WHERE order_id = $1 AND line = $2", order_id, line)
            return Tried(PinCheck.RIGHT)
        wrong = guessed.wrong + 1
        if guessed.wrong == 0:
            await tx.execute("DELETE FROM pin_try WHERE order_id = $1", order_id)
        until = await tx.fetchval(_COUNT, order_id, line, pause(wrong, known["digits"]))
        return Tried(PinCheck.WRONG, -wrong % TRIES_MAX, until)

    def _hash(self, order_id: int, pin: str) -> bytes:
        return hmac.digest(self._key, b"%d/%b" % (order_id, pin.encode()), hashlib.sha256)


_COUNT: Final = """
    INSERT INTO pin_try AS t (order_id, line, wrong, blocked_until) VALUES ($1, $2, 1, now() + $3::interval)
    ON CONFLICT (order_id, line) DO UPDATE
    SET wrong = t.wrong + 1, tried_at = now(), blocked_until = excluded.blocked_until
    RETURNING blocked_until
"""


def pause(wrong: int, digits: int) -> timedelta | None:
    """How long the order's links wait after so many wrong PINs; twice as long after each run of them."""
    if wrong % TRIES_MAX:
        return None
    short = digits < PIN_DIGITS_PROPOSED
    first, longest = (SHORT_WAIT_MIN, SHORT_WAIT_MAX) if short else (WAIT_MIN, WAIT_MAX)
    return min(longest, first * (1 << min(wrong // TRIES_MAX - 1, 10)))


class Guesses(Struct, frozen=True):
    """The wrong PINs that count against an order, and until when its links wait."""

    wrong: int
    blocked_until: datetime | None


async def guesses(conn: Connection, order_id: int) -> Guesses:
    """What was tried in vain at all links of the order; nothing if nobody tried for long after the last pause."""
    row = await conn.fetchrow(
        """
        SELECT CASE WHEN max(greatest(tried_at, blocked_until)) >= now() - $2::interval THEN sum(wrong) ELSE 0 END::int,
               max(blocked_until) FILTER (WHERE blocked_until > now())
        FROM pin_try WHERE order_id = $1
        """,
        order_id,
        FORGOTTEN_AFTER,
    )
    assert row is not None, "an aggregate gives one row"
    return Guesses(*row)


async def has_pin(conn: Connection, order_id: int) -> bool:
    """Whether the order's links ask for a PIN."""
    return bool(await conn.fetchval("SELECT EXISTS (SELECT FROM order_pin WHERE order_id = $1)", order_id))
