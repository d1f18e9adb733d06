"""The only place that touches totp and recovery_code: what a person proves beside the password."""

from __future__ import annotations

import hashlib
import secrets
from typing import Final, Protocol

from msgspec import Struct

from voucherd.db import Connection, Pool, Tx
from voucherd.people import totp


class TextSealer(Protocol):
    """What keeps secrets unreadable in the database; the vault has one."""

    def seal_bytes(self, place: bytes, data: bytes) -> bytes:
        """The data, readable again only for this place."""

    def open_bytes(self, place: bytes, sealed: bytes) -> bytes:
        """What was sealed for this place."""


class SecondFactorSet(ValueError):
    """There is a second factor already: it has to be removed before another one is set up."""


class Factors(Struct, frozen=True):
    """What a person can prove beside the password."""

    totp: bool
    passkeys: int
    recovery_codes: int

    @property
    def any(self) -> bool:
        """Whether there is one; recovery codes alone are none."""
        return self.totp or self.passkeys > 0


_NOW_S: Final = "extract(epoch FROM clock_timestamp())::bigint"


async def factors(connection: Connection | Pool, user_id: int) -> Factors:
    """What this person has set up."""
    row = await connection.fetchrow(
        """
        SELECT EXISTS (SELECT FROM totp WHERE user_id = $1 AND confirmed_at IS NOT NULL),
               (SELECT count(*) FROM passkey WHERE user_id = $1),
               (SELECT count(*) FROM recovery_code WHERE user_id = $1 AND used_at IS NULL)
        """,
        user_id,
    )
    assert row is not None, "a row of sums is always there"
    return Factors(*row)


async def begin_totp(tx: Tx, sealing: TextSealer, user_id: int) -> bytes:
    """The secret to set an app up with: that of the last try, so that a page that is loaded again shows the same."""
    row = await tx.fetchrow("SELECT secret, confirmed_at FROM totp WHERE user_id = $1 FOR UPDATE", user_id)
    if row is not None and row["confirmed_at"] is not None:
        raise SecondFactorSet
    if row is not None:
        return sealing.open_bytes(totp_place(user_id), row["secret"])
    secret = totp.new_secret()
    made = await tx.fetchval(
        "INSERT INTO totp (user_id, secret) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING true",
        user_id,
        sealing.seal_bytes(totp_place(user_id), secret),
    )
    # Two pages at once: the other one's secret counts.
    return secret if made else await begin_totp(tx, sealing, user_id)


async def confirm_totp(tx: Tx, sealing: TextSealer, user_id: int, text: str) -> list[str] | None:
    """New recovery codes, if the first code of the app is right; it is the second factor from now on."""
    row = await tx.fetchrow(
        f"SELECT secret, {_NOW_S} FROM totp WHERE user_id = $1 AND confirmed_at IS NULL FOR UPDATE",  # noqa: S608 - Ours.
        user_id,
    )
    if row is None:
        return None
    step = totp.matching_step(sealing.open_bytes(totp_place(user_id), row[0]), text, row[1])
    if step is None:
        return None
    await tx.execute("UPDATE totp SET confirmed_at = now(), last_step = $2 WHERE user_id = $1", user_id, step)
    return await new_recovery_codes(tx, user_id)


async def use_totp(tx: Tx | Pool, sealing: TextSealer, user_id: int, text: str) -> bool:
    """Whether the code is right and was not used before; it is used from now on."""
    row = await tx.fetchrow(
        f"SELECT secret, {_NOW_S} FROM totp WHERE user_id = $1 AND confirmed_at IS NOT NULL",  # noqa: S608 - Ours.
        user_id,
    )
    if row is None:
        return False
    step = totp.matching_step(sealing.open_bytes(totp_place(user_id), row[0]), text, row[1])
    if step is None:
        return False
    # Of two that give the same code at once the second finds no row.
    used = await tx.fetchval(
        "UPDATE totp SET last_step = $2 WHERE user_id = $1 AND last_step < $2 RETURNING true",
        user_id,
        step,
    )
    return used is not None


async def use_recovery_code(tx: Tx | Pool, user_id: int, text: str) -> bool:
    """Whether it is one of the person's codes and unused; it is used from now on."""
    digest = code_hash(user_id, text)
    if digest is None:
        return False
    used = await tx.fetchval(
        """
        UPDATE recovery_code SET used_at = now() WHERE user_id = $1 AND hash = $2 AND used_at IS NULL RETURNING true
        """,
        user_id,
        digest,
    )
    return used is not None


async def new_recovery_codes(tx: Tx, user_id: int) -> list[str]:
    """Ten codes, shown this once; those before are void."""
    await tx.execute("DELETE FROM recovery_code WHERE user_id = $1", user_id)
    codes = new_codes()
    await tx.executemany(
        "INSERT INTO recovery_code (user_id, hash) VALUES ($1, $2)",
        [(user_id, code_hash(user_id, one)) for one in codes],
    )
    return codes


async def remove_totp(tx: Tx, user_id: int) -> bool:
    """Take the app's secret away; whether there was one."""
    removed = await tx.fetchval(
        "DELETE FROM totp WHERE user_id = $1 RETURNING confirmed_at IS NOT NULL", user_id
    )
    await tidy(tx, user_id)
    return bool(removed)


async def remove_all(tx: Tx, user_id: int) -> None:
    """Take everything away, passkeys too: for an operator who has made sure who asks."""
    await tx.execute("DELETE FROM totp WHERE user_id = $1", user_id)
    await tx.execute("DELETE FROM passkey WHERE user_id = $1", user_id)
    await tidy(tx, user_id)


async def tidy(tx: Tx, user_id: int) -> None:
    """Recovery codes are of no use to who has nothing to recover."""
    await tx.execute(
        """
        DELETE FROM recovery_code WHERE user_id = $1 AND NOT EXISTS (SELECT FROM totp WHERE user_id = $1)
        AND NOT EXISTS (SELECT FROM passkey WHERE user_id = $1)
        """,
        user_id,
    )


def totp_place(user_id: int) -> bytes:
    """Where a person's secret is sealed."""
    return f"totp/{user_id}".encode("ascii")


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
