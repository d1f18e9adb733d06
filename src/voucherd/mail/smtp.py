"""Handing a message to a mail server, over TLS unless it is on this machine. Blocking: for a thread of its own."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from email.utils import parseaddr
from typing import Final
from urllib.parse import unquote, urlsplit

from voucherd.setting_values import SMTP_PORTS

TIMEOUT_S: Final = 20.0


class MailRefused(Exception):
    """The server will never take this message."""


class Unreachable(Exception):
    """The server can't be talked to now; later it may."""


@dataclass(frozen=True, slots=True)
class Server:
    """Where mail is handed over."""

    scheme: str
    host: str
    port: int
    user: str | None = None
    password: str | None = field(default=None, repr=False)


def server_of(url: str) -> Server:
    """The server of an address such as smtp+starttls://user:password@host:587; settings have looked at it before."""
    parts = urlsplit(url)
    assert parts.hostname is not None, "the setting refuses an address without a host"
    return Server(
        parts.scheme,
        parts.hostname,
        parts.port or SMTP_PORTS[parts.scheme],
        None if parts.username is None else unquote(parts.username),
        None if parts.password is None else unquote(parts.password),
    )


def send(server: Server, sender: str, recipients: Sequence[str], message: bytes) -> None:
    """Hand one message over; the server has it when this returns."""
    try:
        with _connect(server) as connection:
            if server.user is not None:
                connection.login(server.user, server.password or "")
            connection.sendmail(parseaddr(sender)[1], list(recipients), message)
    except smtplib.SMTPRecipientsRefused as refused:
        codes = [code for code, _ in refused.recipients.values()]
        # All of them for good, or some may be taken later.
        kind = MailRefused if min(codes) >= 500 else Unreachable
        raise kind(f"no recipient was taken: {sorted(set(codes))}") from None
    except (smtplib.SMTPSenderRefused, smtplib.SMTPDataError) as answer:
        kind = MailRefused if answer.smtp_code >= 500 else Unreachable
        raise kind(f"{answer.smtp_code} {_text(answer.smtp_error)}") from None
    except smtplib.SMTPAuthenticationError as answer:
        raise Unreachable(f"signing in: {answer.smtp_code}") from None
    except UnicodeEncodeError:
        raise MailRefused("an address that is not ASCII") from None
    except (smtplib.SMTPException, OSError) as error:
        # Some of these repeat what was sent; their names are enough.
        raise Unreachable(f"{type(error).__name__} at {server.host}:{server.port}") from None


def _connect(server: Server) -> smtplib.SMTP:
    context = ssl.create_default_context()
    if server.scheme == "smtps":
        return smtplib.SMTP_SSL(server.host, server.port, timeout=TIMEOUT_S, context=context)
    connection = smtplib.SMTP(server.host, server.port, timeout=TIMEOUT_S)
    if server.scheme == "smtp+starttls":
        try:
            # Raises where the server offers none: nothing is ever sent in clear instead.
            connection.starttls(context=context)
        except BaseException:
            connection.close()
            raise
    return connection


def _text(answer: bytes | str) -> str:
    return answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer
