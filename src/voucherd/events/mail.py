"""Mail to people: written with what it is about, in the same transaction, and put into a folder afterwards.

Each message becomes one file (RFC 5322, `.eml`) in the folder of the setting `mail_folder`, for a mail server or a
person to take from there.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from pathlib import Path
from typing import Final

from voucherd.db import Pool, Tx

MAILS_MAX: Final = 50
"""Of one round."""
RECIPIENTS_MAX: Final = 100
SUBJECT_CHARS_MAX: Final = 200
SENDER: Final = "voucherd <no-reply@localhost>"


async def write(tx: Tx, recipients: Sequence[str], subject: str, body: str) -> None:
    """Send this to these people once the transaction is committed; to nobody if there are none."""
    if not recipients:
        return
    await tx.execute(
        "INSERT INTO mail (recipients, subject, body) VALUES ($1, $2, $3)",
        list(recipients[:RECIPIENTS_MAX]),
        subject[:SUBJECT_CHARS_MAX],
        body,
    )


async def put_out(pool: Pool, folder: Path) -> int:
    """Put what was written into the folder; how many messages. A file is whole or not there, and there once."""
    async with pool.acquire() as conn, conn.transaction():
        rows = await conn.fetch(
            """
            SELECT id, at, recipients, subject, body FROM mail WHERE sent_at IS NULL
            ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED
            """,
            MAILS_MAX,
        )
        for row in rows:
            text = message(row["id"], row["at"], row["recipients"], row["subject"], row["body"])
            await asyncio.to_thread(_put, folder, f"{row['id']:010d}.eml", text)
        await conn.execute(
            "UPDATE mail SET sent_at = now() WHERE id = ANY($1::bigint[])", [row["id"] for row in rows]
        )
    return len(rows)


def message(number: int, at: datetime, recipients: Sequence[str], subject: str, body: str) -> bytes:
    """The message as mail servers read it."""
    mail = EmailMessage(policy=SMTP)
    mail["From"] = SENDER
    mail["To"] = ", ".join(recipients)
    mail["Subject"] = " ".join(subject.split())
    mail["Date"] = format_datetime(at)
    mail["Message-ID"] = f"<{number}@voucherd.localhost>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(body)
    return mail.as_bytes()


def _put(folder: Path, name: str, content: bytes) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = folder / f".{name}.tmp"
    unfinished.write_bytes(content)
    os.replace(unfinished, folder / name)
