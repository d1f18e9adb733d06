"""Mail to people: written with what it is about, in the same transaction, and sent afterwards.

Without a mail server each message becomes one file (RFC 5322, `.eml`) in the folder of the setting `mail_folder`, for
a mail server or a person to take from there; both are for this account alone.

What a letter opens is not stored, neither here nor in the log of the database: the token of its link is made when the
letter is sent, anew at every try, and only its hash is kept.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, parseaddr
from pathlib import Path
from typing import Final, TypeAlias

import asyncpg
import structlog
from msgspec import Struct

from voucherd.db import Pool, Tx, transaction
from voucherd.mail import smtp
from voucherd.mail.smtp import Server

MAILS_MAX: Final = 50
"""Of one round."""
RECIPIENTS_MAX: Final = 100
SUBJECT_CHARS_MAX: Final = 200
PROBLEM_CHARS_MAX: Final = 300
TRIES_MAX: Final = 12
"""With pauses that double from a minute to two hours: most of a day."""
PAUSE_MAX: Final = timedelta(hours=2)
LEASE: Final = timedelta(minutes=5)
"""After this time a worker that died while sending is not waited for."""
KEPT: Final = timedelta(days=30)
SWEEP_MAX: Final = 1_000

LINK: Final = "{link}"
"""Stands in a letter's text where the token of its link belongs."""
SITE: Final = "{site}"
"""Stands in a letter's text where the address of the service belongs."""
Renew: TypeAlias = Callable[[Tx, bytes], Awaitable[tuple[str, bytes] | None]]
"""Gives the link with this hash a new token: the token and its hash; None if the link is over."""

logger = structlog.get_logger(__name__)


class Outbox(Struct, frozen=True):
    """Where mail goes: to a server, or else into a folder."""

    folder: Path
    sender: str
    server: Server | None = None
    url: str = ""
    """Where the pages are."""


async def write(
    tx: Tx,
    recipients: Sequence[str],
    subject: str,
    body: str,
    *,
    link: bytes | None = None,
    good_for: timedelta | None = None,
) -> None:
    """Send this to these people once the transaction is committed; to nobody if there are none.

    A letter with a link names it by its hash, and is not sent later than the link is good for.
    """
    assert link is None or (good_for is not None and LINK in body), "a link has a place and an end"
    if not recipients:
        return
    await tx.execute(
        """
        INSERT INTO mail (recipients, subject, body, link, secret, ends_at)
        VALUES ($1, $2, $3, $4, $4::bytea IS NOT NULL, now() + $5::interval)
        """,
        list(recipients[:RECIPIENTS_MAX]),
        subject[:SUBJECT_CHARS_MAX],
        body,
        link,
        good_for,
    )


async def put_out(pool: Pool, outbox: Outbox, renew: Renew) -> int:
    """Send the mail that is due; how many messages. One that fails is tried again later, and so are those behind it."""
    for done in range(MAILS_MAX):
        row = await _claim(pool)
        if row is None:
            return done
        if row["late"]:
            await _over(pool, row["id"], "it was too late to send it")
            continue
        try:
            token = None if row["link"] is None else await _token(pool, renew, row)
            if row["link"] is not None and token is None:
                await _over(pool, row["id"], "its link is over")
                continue
            await _send(outbox, row, token)
        except (smtp.MailRefused, ValueError) as refused:
            logger.warning("mail_refused", mail=row["id"], error=str(refused))
            await _over(pool, row["id"], str(refused))
        except (smtp.Unreachable, OSError) as error:
            logger.warning("mail_failed", mail=row["id"], tries=row["tries"], error=str(error))
            await _later(pool, row["id"], row["tries"], str(error))
            # The others would meet the same.
            return 0
        else:
            await _over(pool, row["id"], None)
    return MAILS_MAX


async def sweep(pool: Pool) -> int:
    """Remove mail that was sent or given up a month ago, and texts that the program before left; how many."""
    await pool.execute(
        "UPDATE mail SET body = '' WHERE next_at IS NOT NULL AND secret AND body <> '' AND ends_at < now()"
    )
    # The oldest come first, and whatever is behind one that is kept is younger.
    removed = await pool.fetch(
        """
        DELETE FROM mail WHERE id IN (
            SELECT id FROM (SELECT id, at, next_at FROM mail ORDER BY id LIMIT $2) oldest
            WHERE next_at IS NULL AND at < now() - $1::interval)
        RETURNING true
        """,
        KEPT,
        SWEEP_MAX,
    )
    return len(removed)


def message(
    number: int, at: datetime, recipients: Sequence[str], subject: str, body: str, sender: str
) -> bytes:
    """The message as mail servers read it."""
    mail = EmailMessage(policy=SMTP)
    mail["From"] = sender
    mail["To"] = ", ".join(recipients)
    mail["Subject"] = " ".join(subject.split())
    mail["Date"] = format_datetime(at)
    mail["Message-ID"] = f"<{number}.voucherd@{parseaddr(sender)[1].rpartition('@')[2]}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(body)
    return mail.as_bytes()


async def _claim(pool: Pool) -> asyncpg.Record | None:
    """The next message that is due, ours until the lease ends."""
    return await pool.fetchrow(
        """
        UPDATE mail SET tries = tries + 1, next_at = now() + $1::interval WHERE id =
            (SELECT id FROM mail WHERE next_at <= now() ORDER BY next_at, id LIMIT 1 FOR UPDATE SKIP LOCKED)
        RETURNING id, at, recipients, subject, body, link, tries, coalesce(ends_at < now(), false) AS late
        """,
        LEASE,
    )


async def _token(pool: Pool, renew: Renew, row: asyncpg.Record) -> str | None:
    """A token for the letter's link; what an earlier try may have sent opens nothing any more."""
    async with transaction(pool) as tx:
        renewed = await renew(tx, row["link"])
        if renewed is None:
            return None
        token, link = renewed
        await tx.execute("UPDATE mail SET link = $2 WHERE id = $1", row["id"], link)
    return token


async def _send(outbox: Outbox, row: asyncpg.Record, token: str | None) -> None:
    body = row["body"].replace(SITE, outbox.url)
    if token is not None:
        body = body.replace(LINK, token)
    text = message(row["id"], row["at"], row["recipients"], row["subject"], body, outbox.sender)
    if outbox.server is None:
        await asyncio.to_thread(_put, outbox.folder, f"{row['id']:010d}.eml", text)
    else:
        await asyncio.to_thread(smtp.send, outbox.server, outbox.sender, row["recipients"], text)


async def _over(pool: Pool, number: int, problem: str | None) -> None:
    """Nothing more is done about it; nobody needs its text any more."""
    await pool.execute(
        """
        UPDATE mail SET next_at = NULL, problem = $2, sent_at = CASE WHEN $2::text IS NULL THEN now() END, body = ''
        WHERE id = $1
        """,
        number,
        None if problem is None else problem[:PROBLEM_CHARS_MAX],
    )


async def _later(pool: Pool, number: int, tries: int, problem: str) -> None:
    if tries >= TRIES_MAX:
        await _over(pool, number, problem)
        return
    pause = min(PAUSE_MAX, timedelta(minutes=1) * (1 << (tries - 1)))
    await pool.execute(
        "UPDATE mail SET next_at = now() + $2::interval, problem = $3 WHERE id = $1",
        number,
        pause,
        problem[:PROBLEM_CHARS_MAX],
    )


def _put(folder: Path, name: str, content: bytes) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = folder / f".{name}.tmp"
    unfinished.unlink(missing_ok=True)
    # Private from its first byte on, whatever the umask is.
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    os.replace(unfinished, folder / name)
