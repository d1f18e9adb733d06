"""Answers that were never meant well: what is read of them, and what they cost us."""

from __future__ import annotations

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.patience import HANG_S
from tests.suppliers.crossing import Crossing, answer, crossing
from voucherd.money import Money
from voucherd.suppliers import untrusted
from voucherd.suppliers.exchange import BODY_BYTES_MAX, Lost, NotSent, Reply, SupplierExchange, room_for
from voucherd.suppliers.protocol import CODE_CHARS_MAX, SURPLUS_MAX, Code
from voucherd.suppliers.untrusted import Garbled

TIMEOUT_S = HANG_S


@pytest.fixture
async def way() -> AsyncIterator[Crossing]:
    """An address that leads nowhere: it says what it is told."""
    async with crossing() as opened:
        yield opened


@pytest.fixture
async def exchange() -> AsyncIterator[SupplierExchange]:
    """Calls with a limit that no machine is too slow for."""
    opened = SupplierExchange(TIMEOUT_S)
    yield opened
    await opened.close()


# ── the call ─────────────────────────────────────────────────────────────────────────────────────────


async def test_a_plain_answer_comes_back_whole(exchange: SupplierExchange, way: Crossing) -> None:
    """Whatever its status; a redirect is followed by nobody, and no proxy of the environment is asked."""
    for status in ("200 OK", "302 Found", "500 Internal Server Error"):
        way.say(answer(status, b"{}", "location: /elsewhere", "set-cookie: a=b"))
        reply = await exchange.call(exchange.deadline(), "GET", f"{way.url}/x?a=b", {})
        assert reply == Reply(int(status[:3]), b"{}")
    assert way.seen == ["GET /x?a=b"] * 3


async def test_proxies_of_the_environment_are_not_asked(
    way: Crossing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A purchase goes where the operator said, and nowhere else."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    way.say(answer("200 OK", b"{}"))
    exchange = SupplierExchange(TIMEOUT_S)
    assert await exchange.call(exchange.deadline(), "GET", way.url, {}) == Reply(200, b"{}")
    await exchange.close()


async def test_a_bomb_is_not_unpacked(exchange: SupplierExchange, way: Crossing) -> None:
    """We ask for no encoding; one that comes anyway is refused unread."""
    bomb = gzip.compress(b"0" * 50_000_000)
    way.say(answer("200 OK", bomb, "content-encoding: gzip"))
    assert isinstance(await exchange.call(exchange.deadline(), "GET", way.url, {}), Lost)


async def test_an_answer_that_does_not_end_is_not_read_to_its_end(
    exchange: SupplierExchange, way: Crossing
) -> None:
    """By its length, by its pieces, by its headers, and by its patience."""
    too_long = BODY_BYTES_MAX + 1
    way.say(answer("200 OK", b" " * too_long))
    patient = SupplierExchange(TIMEOUT_S)
    assert isinstance(await patient.call(patient.deadline(), "GET", way.url, {}), Lost)
    chunk = b"10000\r\n" + b" " * 65_536 + b"\r\n"
    way.say(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + chunk * (too_long // 65_536 + 1))
    assert isinstance(await patient.call(patient.deadline(), "GET", way.url, {}), Lost)
    way.say(answer("200 OK", b" " * (room_for(1) + 1)))
    url, limit = way.url, room_for(1)
    assert isinstance(await patient.call(patient.deadline(), "GET", url, {}, reply_max=limit), Lost)
    assert isinstance(await patient.call(patient.deadline(), "GET", url, {}, reply_max=limit + 1), Reply)
    way.say(b"HTTP/1.1 200 OK\r\n" + b"x-more: of it\r\n" * 100_000)
    assert isinstance(await patient.call(patient.deadline(), "GET", way.url, {}), Lost)
    await patient.close()


async def test_a_byte_at_a_time_ends_at_the_limit() -> None:
    """The limit is for the whole call and not for each read."""
    exchange = SupplierExchange(1.0)
    stopped, ended = asyncio.Event(), asyncio.Event()

    async def drip(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
        while not stopped.is_set():
            writer.write(b" ")
            await asyncio.sleep(0.05)
        writer.close()
        ended.set()

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    # To its end it would come after fifty seconds.
    assert await exchange.call(exchange.deadline(), "GET", url, {}) == Lost("no answer in time")
    stopped.set()
    server.close()
    await ended.wait()
    await exchange.close()


async def test_only_what_surely_never_left_is_not_sent(exchange: SupplierExchange, way: Crossing) -> None:
    """A closed port, a name that does not exist, a header that can't be; but not a connection that broke later."""
    nowhere = ("http://127.0.0.1:9", "http://no-such-host.invalid")
    for url in nowhere:
        assert isinstance(await exchange.call(exchange.deadline(), "GET", url, {}), NotSent)
    assert isinstance(await exchange.call(exchange.deadline(), "GET", way.url, {"x": "ü\n"}), NotSent)
    assert isinstance(await exchange.call(exchange.deadline() - 2 * TIMEOUT_S, "GET", way.url, {}), NotSent)
    assert way.seen == []
    way.reset()
    assert isinstance(await exchange.call(exchange.deadline(), "POST", way.url, {}, b"{}"), Lost)


async def test_a_certificate_that_nobody_signed_is_not_trusted(
    exchange: SupplierExchange, tmp_path: Path
) -> None:
    """TLS is checked, and a failed handshake means that nothing was sent."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = tmp_path / "server.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pem.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    reached: list[bytes] = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.append(await reader.read(1))
        writer.close()

    server = await asyncio.start_server(note, "127.0.0.1", 0, ssl=context)
    url = f"https://localhost:{server.sockets[0].getsockname()[1]}"
    assert isinstance(await exchange.call(exchange.deadline(), "GET", url, {"key": "secret"}), NotSent)
    server.close()
    assert reached in ([], [b""])


# ── the document ─────────────────────────────────────────────────────────────────────────────────────


def test_numbers_are_exact() -> None:
    """No float on the way, nor an exponent that would take minutes."""
    assert untrusted.tree(b'{"a": 0.10, "b": 9007199254740993}') == {
        "a": Decimal("0.10"),
        "b": 9007199254740993,
    }
    assert str(untrusted.tree(b"0.10")) == "0.10"
    assert untrusted.amount(Decimal("9.50"), "eur") == Money(950, "EUR")
    assert untrusted.amount("9.5", "EUR") == untrusted.amount(950, "EUR", minor=True) == Money(950, "EUR")
    wrong: list[Any] = [Decimal("1e999999"), Decimal("9.501"), 0, -1, True, "9,50", "", None, [], "٩", 10**30]
    for value in wrong:
        with pytest.raises(Garbled):
            untrusted.amount(value, "EUR")
        with pytest.raises(Garbled):
            untrusted.amount(value if value != 10**30 else "1e5", "EUR", minor=True)
    for currency in (None, "", "EURO", "ſek", 978):
        with pytest.raises(Garbled):
            untrusted.amount("9.50", currency)


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"<html>", b"\xff\xfe", b'{"a": 1, "a": 2}', b"NaN", b"[Infinity]", b"1" * 41, b"0." + b"1" * 100,
        b"[" * 50_000, b'{"a":' * 50_000, b'"\x01"', b"1e", b"1e9999999999999999999", b"'a'", b"\xef\xbb\xbf{}",
    ],
)  # fmt: skip
def test_what_is_not_strictly_json_is_garbled(body: bytes) -> None:
    """A key that comes twice has no value that one could trust."""
    with pytest.raises(Garbled):
        untrusted.tree(body)


def test_codes_are_printable_and_short_and_each_counts_once() -> None:
    """What can't be shown to a person can't be redeemed."""
    rows = [("A-1", "S1", "2031-12-31"), ("A-1", "S1", None), (None, None, None), (12345678, None, "")]
    first, second = untrusted.codes(rows, 2)
    assert first == Code("A-1", "S1", datetime(2031, 12, 31, 23, 59, 59, tzinfo=UTC))
    assert (second.code, second.serial, second.expires_at) == ("12345678", "", None)
    wrong: list[Any] = [
        "a\x00b",
        "a\nb",
        "\u202egnp",
        "x" * (CODE_CHARS_MAX + 1),
        "  ",
        ["A"],
        {"a": 1},
        True,
        "\ud800",
    ]
    for bad in wrong:
        with pytest.raises(Garbled) as refused:
            untrusted.codes([(bad, None, None)], 1)
        assert repr(bad) not in str(refused.value)
    for serial in ("a\x00b", "x" * 201, ["S"]):
        with pytest.raises(Garbled):
            untrusted.codes([("A-1", serial, None)], 1)


def test_a_flood_of_codes_is_not_believed() -> None:
    """A few more than asked for are kept; thousands are a mistake of somebody's."""
    assert (
        len(untrusted.codes([(f"A-{at}", None, None) for at in range(SURPLUS_MAX + 1)], 1)) == SURPLUS_MAX + 1
    )
    for count in (SURPLUS_MAX + 2, 10_000_000):
        with pytest.raises(Garbled):
            untrusted.codes(((f"A-{at}", None, None) for at in range(count)), 1)
    with pytest.raises(Garbled):
        untrusted.codes((("A-1", None, None) for _ in range(10_000_000)), 1)


def test_dates_are_dates() -> None:
    """Year 0 and year 99999 are not; a supplier's word for never can be told."""
    assert untrusted.moment("2031-01-31T10:00:00+02:00") == datetime(2031, 1, 31, 8, tzinfo=UTC)
    assert (
        untrusted.moment(None)
        is untrusted.moment("")
        is untrusted.moment("0000-00-00", ["0000-00-00"])
        is None
    )
    wrong: list[Any] = [
        "0000-00-00",
        "0001-01-01",
        "99999-01-01",
        "9999-12-31",
        "tomorrow",
        "1" * 100,
        1893456000,
        [],
    ]
    for bad in wrong:
        with pytest.raises(Garbled):
            untrusted.moment(bad)


def test_stock_is_a_whole_number() -> None:
    """However it is written; more than anyone has is cut."""
    assert [untrusted.stock(value) for value in (5, "5", Decimal("5.0"), True, 10**30)] == [5, 5, 5, 1, 10**9]
    wrong: list[Any] = [-1, "many", Decimal("1.5"), None, [], "-5", Decimal("NaN"), Decimal("1e999999999")]
    for bad in wrong:
        with pytest.raises(Garbled):
            untrusted.stock(bad)
