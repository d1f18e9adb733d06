"""The examples of deploy/proxies, each with its addresses changed to this machine's, and started."""

from __future__ import annotations

import ipaddress
import os
import shutil
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import httpx
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.anywhere.installed import ROOT, clean_environment
from tests.anywhere.programs import free_ports, needed, running
from tests.patience import HANG_S, wait_until

EXAMPLES: Final = ROOT / "deploy" / "proxies"
HOSTS: Final = ("192.0.2.11:8080", "192.0.2.12:8080")
"""The addresses of voucherd in the examples."""


@dataclass(frozen=True)
class Certificate:
    """A certificate for this machine, its key, and both in one file."""

    pem: Path
    key: Path
    both: Path

    def trusted(self) -> ssl.SSLContext:
        """What a client needs to trust it, and nobody else."""
        return ssl.create_default_context(cafile=str(self.pem))


@dataclass(frozen=True)
class Proxy:
    """A proxy that runs, on a port with TLS."""

    port: int
    certificate: Certificate

    def client(self, address: str = "127.0.0.1", **headers: str) -> httpx.Client:
        """A client at this address of the machine."""
        transport = httpx.HTTPTransport(verify=self.certificate.trusted(), local_address=address)
        return httpx.Client(
            base_url=f"https://127.0.0.1:{self.port}", transport=transport, headers=headers, timeout=HANG_S
        )


def make_certificate(folder: Path) -> Certificate:
    """A certificate that signs itself, for 127.0.0.1."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "shop.example.com")])
    now = datetime.now(UTC)
    names = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("shop.example.com")]
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    certificate = Certificate(folder / "shop.pem", folder / "shop.key", folder / "shop.both.pem")
    for file, content in zip(
        (certificate.pem, certificate.key, certificate.both), (pem, secret, pem + secret), strict=True
    ):
        file.write_bytes(content)
    return certificate


def _changed(text: str, changes: dict[str, str]) -> str:
    """The example with these words of it changed; each must be there, or the example is another one by now."""
    for before, after in changes.items():
        assert before in text, before
        text = text.replace(before, after)
    return text


def _nginx(
    folder: Path, port: int, plain_port: int, certificate: Certificate, hosts: dict[str, str]
) -> list[str]:
    changes = hosts | {
        "listen 80;": f"listen 127.0.0.1:{plain_port};",
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "/etc/voucherd/tls/shop.pem": str(certificate.pem),
        "/etc/voucherd/tls/shop.key": str(certificate.key),
    }
    site = folder / "site.conf"
    site.write_text(_changed((EXAMPLES / "nginx.conf").read_text("utf-8"), changes))
    temporary = "".join(
        f"{kind}_temp_path {folder / kind}; " for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    # What the distribution's own nginx.conf says around a site.
    whole = folder / "nginx.conf"
    whole.write_text(
        ("user root; " if os.getuid() == 0 else "")
        + f"daemon off; pid {folder / 'pid'}; error_log stderr; events {{ }} "
        + f"http {{ access_log off; {temporary} include {site}; }}\n"
    )
    return [needed("nginx"), "-e", "stderr", "-c", str(whole)]


def _caddy(
    folder: Path, port: int, plain_port: int, certificate: Certificate, hosts: dict[str, str]
) -> list[str]:
    changes = hosts | {
        "shop.example.com {": f"https://127.0.0.1:{port} {{",
        "admin off": f"admin off\n\thttp_port {plain_port}",
        "/etc/voucherd/tls/shop.pem": str(certificate.pem),
        "/etc/voucherd/tls/shop.key": str(certificate.key),
    }
    file = folder / "Caddyfile"
    file.write_text(_changed((EXAMPLES / "Caddyfile").read_text("utf-8"), changes))
    return [needed("caddy"), "run", "--adapter", "caddyfile", "--config", str(file)]


def _haproxy(
    folder: Path, port: int, plain_port: int, certificate: Certificate, hosts: dict[str, str]
) -> list[str]:
    changes = hosts | {
        # As many as this machine has files for.
        "maxconn 20000": "maxconn 200",
        "bind :80\n": f"bind 127.0.0.1:{plain_port}\n",
        "bind :443 ssl": f"bind 127.0.0.1:{port} ssl",
        "/etc/voucherd/tls/shop.both.pem": str(certificate.both),
    }
    file = folder / "haproxy.cfg"
    file.write_text(_changed((EXAMPLES / "haproxy.cfg").read_text("utf-8"), changes))
    return [needed("haproxy"), "-db", "-f", str(file)]


PROXIES: Final[dict[str, Callable[..., list[str]]]] = {"nginx": _nginx, "caddy": _caddy, "haproxy": _haproxy}


@contextmanager
def started(name: str, folder: Path, first: int, second: int) -> Iterator[Proxy]:
    """The proxy of this name in front of two ports of this machine, once it takes connections."""
    home = folder / name
    home.mkdir()
    certificate = make_certificate(home)
    port, plain_port = free_ports(2)
    hosts = dict(zip(HOSTS, (f"127.0.0.1:{first}", f"127.0.0.1:{second}"), strict=True))
    command = PROXIES[name](home, port, plain_port, certificate, hosts)
    # Caddy keeps notes where its user's files are.
    env = clean_environment() | {"XDG_DATA_HOME": str(home), "XDG_CONFIG_HOME": str(home), "HOME": str(home)}
    with running(command, env) as process:

        def listens() -> bool:
            assert process.poll() is None, process.communicate()[1].decode()
            with socket.socket() as trying:
                return trying.connect_ex(("127.0.0.1", port)) == 0

        wait_until(listens, f"{name} never listened")
        yield Proxy(port, certificate)
    shutil.rmtree(home)
