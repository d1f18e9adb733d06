"""A receiver of webhooks on loopback: keeps what it got, and answers as it is told."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.patience import until_true

LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
EVERYWHERE = "0.0.0.0"  # noqa: S104 - All of 127.0.0.0/8; nobody else reaches a test machine.
OK = b"HTTP/1.1 204 No Content\r\n\r\n"


@dataclass(frozen=True)
class Got:
    """One request as it came in."""

    address: str
    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        """What was asked for."""
        return self.line.split(" ")[1]


Answer = Callable[[Got], bytes | Awaitable[bytes]]


@dataclass
class Receiver:
    """What a running receiver knows."""

    port: int = 0
    connections: int = 0
    got: list[Got] = field(default_factory=list)
    answer: Answer = lambda _: OK
    server_names: list[str | None] = field(default_factory=list)
    open: set[asyncio.StreamWriter] = field(default_factory=set)

    def url(self, path: str = "/hook", host: str = "127.0.0.1", scheme: str = "http") -> str:
        """Where it listens."""
        return f"{scheme}://{host}:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        self.connections += 1
        self.open.add(writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                line, *rest = head.decode("latin-1").split("\r\n")
                headers = {
                    name.lower(): value.strip()
                    for name, _, value in (one.partition(":") for one in rest if one)
                }
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                got = Got(writer.get_extra_info("sockname")[0], line, headers, body)
                self.got.append(got)
                answer = self.answer(got)
                writer.write(answer if isinstance(answer, bytes) else await answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError, asyncio.LimitOverrunError):
            pass
        finally:
            self.open.discard(writer)
            writer.close()

    async def until(self, count: int) -> list[Got]:
        """What came in, once it is so many."""
        await until_true(lambda: len(self.got) >= count)
        return self.got


@asynccontextmanager
async def receiving(
    answer: Answer | None = None,
    *,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[Receiver]:
    """A receiver on all of loopback."""
    receiver = Receiver()
    if answer is not None:
        receiver.answer = answer
    if tls is not None:

        def named(_socket: Any, name: str | None, _context: Any) -> None:
            receiver.server_names.append(name)

        tls.sni_callback = named
    server = await asyncio.start_server(receiver.serve, EVERYWHERE, 0, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        for writer in list(receiver.open):
            writer.transport.abort()
        while receiver.open:  # noqa: ASYNC110 - They end in the next turns of the loop.
            await asyncio.sleep(0)


def certificate(folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's context with a certificate for this name, and a client's that believes it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / f"{name}.pem"
    pem = made.public_bytes(serialization.Encoding.PEM)
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        + pem
    )
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(file)
    return server, ssl.create_default_context(cadata=pem.decode())
