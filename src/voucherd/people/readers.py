"""Who reads a letter: in which language, and in which time zone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from typing import TypeAlias

import asyncpg

from voucherd.db import Connection, Tx
from voucherd.ids import State
from voucherd.mail import outbox
from voucherd.words import SOURCE, ZONE, Words, zones

Readers: TypeAlias = dict[Words, list[str]]
"""The addresses of those who read the same words."""
Letter: TypeAlias = Callable[[Words], tuple[str, str]]
"""The subject and the text of a letter, in the words of its reader."""


async def by_address(connection: Connection, emails: Collection[str]) -> Readers:
    """Those people; an address that nobody has reads English."""
    rows = await connection.fetch(
        "SELECT asked.email, u.language, u.time_zone FROM unnest($1::text[]) WITH ORDINALITY AS asked (email, place)"
        " LEFT JOIN app_user u ON u.email = asked.email ORDER BY asked.place",
        list(emails),
    )
    return _grouped(rows)


async def of_company(connection: Connection, company_id: int, roles: Sequence[str]) -> Readers:
    """The company's people in these roles who can sign in."""
    rows = await connection.fetch(
        "SELECT email, language, time_zone FROM app_user WHERE company_id = $1 AND role = ANY($2) AND active"
        " AND invited_as IS NULL ORDER BY email LIMIT $3",
        company_id,
        list(roles),
        outbox.RECIPIENTS_MAX,
    )
    return _grouped(rows)


async def write(
    tx: Tx,
    readers: Readers,
    letter: Letter,
    *,
    link: bytes | None = None,
    good_for: timedelta | None = None,
) -> None:
    """Send the letter to all of them once the transaction is committed, each in words of their own."""
    for words, emails in readers.items():
        subject, body = letter(words)
        await outbox.write(tx, emails, subject, body, link=link, good_for=good_for)


def portal(state: State, path: str) -> str:
    """The address of a page of the portal, in the state that the letter is about."""
    return f"{outbox.SITE}{'/sandbox' if state is State.SANDBOX else ''}/portal{path}"


def _grouped(rows: Sequence[asyncpg.Record]) -> Readers:
    found: Readers = {}
    for email, language, zone in rows:
        # A zone that another machine knew may be unknown here.
        words = Words(language or SOURCE, zone if zone in zones() else ZONE)
        found.setdefault(words, []).append(email)
    return found
