"""Mail to people: written with what it is about, in the same transaction, and sent afterwards.

Without a mail server each message becomes one file (RFC 5322, `.eml`) in the folder of the setting `mail_folder`, for
a mail server or a person to take from there.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from datetime import datetime, timedelta
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, parseaddr
from pathlib import Path
from typing import Final

import asyncpg
import structlog
from msgspec import Struct

from voucherd.db import Pool, Tx
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

logger = structlog.get_logger(__name__)


class Outbox(Struct, frozen=True):
    """Where mail goes: to a server, or else into a folder."""

    folder: Path
    sender: str
    server: Server | None = None


async def write(
    tx: Tx, recipients: Sequence[str], subject: str, body: str, *, good_for: timedelta | None = None
) -> None:
    """Send this to these people once the transaction is committed; to nobody if there are none.

    What is good for a while only opens something: it is not sent later than that, and its text is not kept.
    """
    if not recipients:
        return
    await tx.execute(
        """
        INSERT INTO mail (recipients, subject, body, secret, ends_at)
        VALUES ($1, $2, $3, $4::interval IS NOT NULL, now() + $4::interval)
        """,
        list(recipients[:RECIPIENTS_MAX]),
        subject[:SUBJECT_CHARS_MAX],
        body,
        good_for,
    )


async def put_out(pool: Pool, outbox: Outbox) -> int:
    """Send the mail that is due; how many messages. One that fails is tried again later, and so are those behind it."""
    for done in range(MAILS_MAX):
        row = await _claim(pool)
        if row is None:
            return done
        if row["late"]:
            await _over(pool, row["id"], "it was too late to send it")
            continue
        try:
            await _send(outbox, row)
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
    """Remove mail that was sent or given up a month ago, and texts that are of no use any more; how many."""
    # A text that opens something is removed with its last try, so only mail that is still to be sent can have one.
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
        RETURNING id, at, recipients, subject, body, tries, coalesce(ends_at < now(), false) AS late
        """,
        LEASE,
    )


async def _send(outbox: Outbox, row: asyncpg.Record) -> None:
    text = message(row["id"], row["at"], row["recipients"], row["subject"], row["body"], outbox.sender)
    if outbox.server is None:
        await asyncio.to_thread(_put, outbox.folder, f"{row['id']:010d}.eml", text)
    else:
        await asyncio.to_thread(smtp.send, outbox.server, outbox.sender, row["recipients"], text)


async def _over(pool: Pool, number: int, problem: str | None) -> None:
    """Nothing more is done about it; a text that opens something is not kept."""
    await pool.execute(
        """
        UPDATE mail SET next_at = NULL, problem = $2, sent_at = CASE WHEN $2::text IS NULL THEN now() END,
                        body = CASE WHEN secret THEN '' ELSE body END
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
    unfinished.write_bytes(content)
    os.replace(unfinished, folder / name)
