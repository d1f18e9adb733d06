"""Mail: handed to a real server over TLS, tried again while there is none, and not kept once it is sent."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.policy import default
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from voucherd.db import Pool, Tx, transaction
from voucherd.mail import outbox as mail
from voucherd.mail.outbox import Outbox
from voucherd.mail.smtp import Server, server_of
from voucherd.people import letters, links, user_store
from voucherd.people.links import LinkKind
from voucherd.people.users import UserDraft

SENDER = "Shop <no-reply@shop.example>"


class Mailroom:
    """Takes mail of whoever knows the password, and refuses one recipient."""

    def __init__(self) -> None:
        self.taken: list[tuple[list[str], str]] = []

    def authenticator(
        self, _server: Any, _session: Any, _envelope: Any, _mechanism: Any, data: Any
    ) -> AuthResult:
        """Whether the user may send."""
        known = (data.login, data.password) == (b"shop", b"p@ss/word")
        return AuthResult(success=known, handled=known)

    async def handle_RCPT(  # noqa: N802 - The library's name.
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        """Refuse one address for good."""
        if address == "nobody@acme.example":
            return "550 no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:  # noqa: N802 - The same.
        """Take the message."""
        self.taken.append((envelope.rcpt_tos, (envelope.content or b"").decode()))  # type: ignore[union-attr]
        return "250 OK"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for localhost and its key in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "localhost.pem"
    file.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return file


@asynccontextmanager
async def running(room: Mailroom, tls: ssl.SSLContext | None) -> AsyncIterator[int]:
    """The port of a mail server that is running; with TLS it takes nothing without it, nor without a password."""
    strict: dict[str, Any] = {}
    if tls is not None:
        strict = {
            "tls_context": tls,
            "require_starttls": True,
            "auth_required": True,
            "authenticator": room.authenticator,
        }
    server = await asyncio.get_running_loop().create_server(lambda: SMTP(room, **strict), "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def renew(_tx: Tx, link: bytes) -> tuple[str, bytes]:
    """A token that can be recognised, for any link."""
    return "the secret link", link


async def write(pool: Pool, *recipients: str, good_for: timedelta | None = None) -> None:
    """A message, with a link that must not be kept where it is good for a while."""
    async with transaction(pool) as tx:
        link = None if good_for is None else bytes(32)
        await mail.write(tx, recipients, "Hello", f"open {mail.LINK}\n", link=link, good_for=good_for)


async def test_mail_goes_to_a_server_over_tls_and_its_secrets_are_not_kept(
    pool: Pool, certificate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-92: TLS and a password, one bad recipient refused for good, no text kept of what opens something."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    room = Mailroom()
    async with running(room, tls) as port:
        server = server_of(f"smtp+starttls://shop:p%40ss%2Fword@localhost:{port}")
        assert "p@ss" not in repr(server)
        outbox = Outbox(tmp_path, SENDER, server)
        await write(pool, "ann@acme.example", good_for=timedelta(minutes=30))

        # A certificate that nobody vouches for is no TLS: the message waits.
        began = datetime.now(UTC)
        assert await mail.put_out(pool, outbox, renew) == 0
        assert room.taken == []
        row = await pool.fetchrow("SELECT * FROM mail")
        assert row is not None
        assert (row["tries"], row["sent_at"], row["body"]) == (1, None, "open {link}\n")
        assert row["problem"].startswith("SSLCertVerificationError at localhost")
        assert began + timedelta(seconds=50) < row["next_at"] < datetime.now(UTC) + timedelta(minutes=2)

        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        await pool.execute("UPDATE mail SET next_at = now()")
        await write(pool, "nobody@acme.example", good_for=timedelta(minutes=30))
        await write(pool, "bob@acme.example", "ann@acme.example")
        await write(pool, "late@acme.example", good_for=timedelta())
        assert await mail.put_out(pool, outbox, renew) == 4
        assert await mail.put_out(pool, outbox, renew) == 0

        await pool.execute("UPDATE mail SET next_at = now(), sent_at = NULL WHERE id = 3")
        wrong = Outbox(tmp_path, SENDER, Server("smtp+starttls", "localhost", port, "shop", "wrong"))
        assert await mail.put_out(pool, wrong, renew) == 0
    assert [to for to, _ in room.taken] == [["ann@acme.example"], ["bob@acme.example", "ann@acme.example"]]
    taken = message_from_bytes(room.taken[0][1].encode())
    assert (taken["From"], taken["To"]) == (SENDER, "ann@acme.example")
    assert taken["Message-ID"] == "<1.voucherd@shop.example>"
    assert "the secret link" in room.taken[0][1]

    rows = await pool.fetch("SELECT body, sent_at IS NOT NULL AS sent, problem FROM mail ORDER BY id")
    assert [(row["body"], row["sent"]) for row in rows] == [
        ("", True),
        ("", False),
        ("", False),
        ("", False),
    ]
    assert rows[1]["problem"] == "no recipient was taken: [550]"
    assert rows[2]["problem"] == "signing in: 535"


async def test_without_tls_only_this_machine_gets_mail_and_a_dead_server_is_given_up(
    pool: Pool, tmp_path: Path
) -> None:
    """OP-92: a server on this machine needs no TLS; one that offers none never gets a message that wants it."""
    room = Mailroom()
    async with running(room, None) as port:
        await write(pool, "ann@acme.example")
        bare = Outbox(tmp_path, SENDER, Server("smtp+starttls", "127.0.0.1", port))
        assert await mail.put_out(pool, bare, renew) == 0
        assert room.taken == []
        await pool.execute("UPDATE mail SET next_at = now()")
        here = Outbox(tmp_path, SENDER, server_of(f"smtp://127.0.0.1:{port}"))
        assert await mail.put_out(pool, here, renew) == 1
        assert len(room.taken) == 1
    gone = Outbox(tmp_path, SENDER, server_of(f"smtp://127.0.0.1:{port}"))
    await write(pool, "ann@acme.example")
    await pool.execute("UPDATE mail SET tries = $1 WHERE sent_at IS NULL", mail.TRIES_MAX - 1)
    assert await mail.put_out(pool, gone, renew) == 0
    assert await pool.fetchval("SELECT next_at IS NULL AND sent_at IS NULL FROM mail WHERE id = 2")
    await pool.execute("UPDATE mail SET at = now() - interval '31 days' WHERE id = 1")
    assert await mail.sweep(pool) == 1


async def test_a_forgotten_password_is_answered_by_mail_and_only_where_there_is_an_account(
    pool: Pool, tmp_path: Path
) -> None:
    """OP-92: asking takes one row for a stranger's address as for a known one; only the known one gets a link."""
    async with transaction(pool) as tx:
        ann = await user_store.add_user(tx, UserDraft("ann@shop.example", None, "admin"), "x")
        gone = await user_store.add_user(tx, UserDraft("gone@shop.example", None, "admin"), "x")
        await tx.execute("UPDATE app_user SET active = false WHERE id = $1", gone.id)
    for address in ("Ann@shop.example ", "gone@shop.example", "who@shop.example", "\0", "x" * 300):
        await links.request_reset(pool, address)
    assert await letters.answer_resets(pool, "https://shop.example") == 3
    assert await letters.answer_resets(pool, "https://shop.example") == 0

    assert await mail.put_out(pool, Outbox(tmp_path, SENDER), links.renew) == 1
    (file,) = await asyncio.to_thread(lambda: list(tmp_path.glob("*.eml")))
    text = file.read_text()
    token = text.partition("https://shop.example/reset/")[2].split()[0]
    found = await links.look(pool, token, LinkKind.RESET)
    assert found == links.Holder(ann.id, "ann@shop.example")
    assert await pool.fetchval("SELECT body FROM mail") == ""


async def test_a_link_is_in_its_letter_alone_and_the_letter_is_for_one_account(
    pool: Pool, tmp_path: Path
) -> None:
    """OP-104: no table and no log of the database ever held the token; the file is 0600, in a folder that is 0700."""
    async with transaction(pool) as tx:
        ann = await user_store.add_user(tx, UserDraft("ann@shop.example", None, "admin"), "x")
        link = await links.make(tx, ann.id, LinkKind.INVITATION)
        assert link is not None
        await letters.invite(
            tx, "https://shop.example", ann.email, link, where="the shop", by="bob", language="en"
        )
    before = os.umask(0)
    try:
        # A try that fails, then one that comes through: each has a token of its own.
        refused = Outbox(tmp_path, SENDER, server_of("smtp://127.0.0.1:1"))
        assert await mail.put_out(pool, refused, links.renew) == 0
        await pool.execute("UPDATE mail SET next_at = now()")
        assert await mail.put_out(pool, Outbox(tmp_path / "mail", SENDER), links.renew) == 1
    finally:
        os.umask(before)
    (file,) = await asyncio.to_thread(lambda: list((tmp_path / "mail").iterdir()))
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    text = message_from_bytes(file.read_bytes(), policy=default).get_content()
    token = text.partition("https://shop.example/invitation/")[2].split()[0]
    assert await links.look(pool, token, LinkKind.INVITATION) == links.Holder(ann.id, ann.email)

    tables = [row[0] for row in await pool.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'shop'")]
    rows = [str(await pool.fetch(f"SELECT * FROM {table}")) for table in tables]  # noqa: S608 - From the catalogue.
    folder = Path(await pool.fetchval("SHOW data_directory")) / "pg_wal"
    log = b"".join([one.read_bytes() for one in folder.iterdir() if one.is_file()])
    assert b"Invitation to the shop" in log, "the search finds what is there"
    assert token.encode() not in log
    assert token not in "".join(rows)

    await links.void(pool, ann.id)  # type: ignore[arg-type]
    await pool.execute("UPDATE mail SET next_at = now(), sent_at = NULL")
    assert await mail.put_out(pool, Outbox(tmp_path / "mail", SENDER), links.renew) == 1
    assert await pool.fetchval("SELECT problem FROM mail") == "its link is over"
