"""The only place that touches totp and recovery_code: what a person proves beside the password."""

from __future__ import annotations

import hashlib
import secrets
from typing import Final, Protocol

from msgspec import Struct

from voucherd.db import Connection, Pool, Tx
from voucherd.people import totp, user_store


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


ENROLMENT_S: Final = 600
"""So long an app may take from the square to its first code."""
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


class Enrolment(Struct, frozen=True):
    """An app that is being set up: its secret, and the sealed word that brings it back with the first code."""

    secret: bytes
    word: str


async def begin_totp(
    connection: Connection | Pool, sealing: TextSealer, user_id: int, session: bytes
) -> Enrolment:
    """A fresh secret to set an app up with; it is kept nowhere, and good for this session and a few minutes."""
    if (await factors(connection, user_id)).totp:
        raise SecondFactorSet
    place, now_s = await _enrolment(connection, user_id, session)
    secret = totp.new_secret()
    sealed = sealing.seal_bytes(place, (now_s + ENROLMENT_S).to_bytes(8, "big") + secret)
    return Enrolment(secret, sealed.hex())


async def open_enrolment(
    connection: Connection | Pool, sealing: TextSealer, user_id: int, session: bytes, word: str
) -> Enrolment | None:
    """The app that is being set up; None if it took too long, or the session or the password is another one now."""
    place, now_s = await _enrolment(connection, user_id, session)
    try:
        opened = sealing.open_bytes(place, bytes.fromhex(word))
    except ValueError:
        return None
    return Enrolment(opened[8:], word) if now_s < int.from_bytes(opened[:8], "big") else None


async def confirm_totp(
    tx: Tx, sealing: TextSealer, user_id: int, session: bytes, word: str, text: str
) -> list[str] | None:
    """New recovery codes, if the first code of the app is right; it is the second factor from now on."""
    enrolment = await open_enrolment(tx, sealing, user_id, session, word)
    if enrolment is None:
        return None
    step = totp.matching_step(enrolment.secret, text, await tx.fetchval(f"SELECT {_NOW_S}"))
    if step is None:
        return None
    # Of two that are set up at once the second finds the first one's.
    made = await tx.fetchval(
        """
        INSERT INTO totp (user_id, secret, confirmed_at, last_step) VALUES ($1, $2, now(), $3)
        ON CONFLICT (user_id) DO UPDATE
        SET secret = excluded.secret, confirmed_at = excluded.confirmed_at, last_step = excluded.last_step
        WHERE totp.confirmed_at IS NULL RETURNING true
        """,
        user_id,
        sealing.seal_bytes(totp_place(user_id), enrolment.secret),
        step,
    )
    return await new_recovery_codes(tx, user_id) if made else None


async def _enrolment(connection: Connection | Pool, user_id: int, session: bytes) -> tuple[bytes, int]:
    """Where the secret of an app that is being set up is sealed, and the time in seconds.

    The place names the session and the password, so a sign-out and another password void what was begun before.
    """
    row = await connection.fetchrow(
        f"SELECT s.key, u.password_hash, {_NOW_S} FROM app_user u"  # noqa: S608 - Ours.
        " LEFT JOIN session s ON s.user_id = u.id AND s.key = $2 WHERE u.id = $1",
        user_id,
        session,
    )
    assert row is not None, "whoever is signed in is somebody"
    # A session that has ended seals for no place that another one opens.
    key = secrets.token_bytes(32) if row[0] is None else row[0]
    bound = hashlib.sha256(key + (row[1] or "").encode()).hexdigest()
    return f"enrolment/{user_id}/{bound}".encode("ascii"), row[2]


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
    # Of two that ask at once the codes of one are void.
    await user_store.lock(tx, user_id)
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
