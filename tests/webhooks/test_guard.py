"""The guard: webhooks reach the public internet, the operator's own networks if he says so, and nothing else."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import uvloop

from tests.patience import HANG_S
from tests.webhooks import hostile
from tests.webhooks.receiver import LOOPBACK, OK, Got, Receiver, certificate, receiving
from voucherd.webhooks import post as post_module
from voucherd.webhooks.addresses import is_public, read_address
from voucherd.webhooks.exchange import BODY_BYTES_MAX, ReceiverExchange
from voucherd.webhooks.outbound import AddressRefused, checked, connect
from voucherd.webhooks.post import Post, PostOutcome
from voucherd.webhooks.targets import BadTarget, WebhookTarget, read_target

BODY = b'{"type":"ping"}'
TLS = ssl.create_default_context()
PUBLIC = (
    *("1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255"),
    *(
        "128.0.0.1",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.167.255.255",
    ),
    *(
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2001:200::1",
        "2606:4700::1111",
        "2a00::1",
    ),
)


def always(*addresses: str) -> Callable[[str, int], Awaitable[list[str]]]:
    """A name server that knows one answer."""

    async def resolve(_host: str, _port: int) -> list[str]:
        return list(addresses)

    return resolve


def test_addresses_that_are_not_public_are_known() -> None:
    """OP-54: every special range of IPv4 and IPv6, and whatever carries IPv4 inside; their neighbours are public."""
    for text in (*hostile.PRIVATE, *hostile.PRIVATE_6):
        assert not is_public(ip_address(text)), text
    for text in PUBLIC:
        assert is_public(ip_address(text)), text
    assert read_address("fe80::1%eth0") is None
    for spelling in hostile.SPELLINGS:
        assert read_address(spelling) is None or not is_public(ip_address(spelling)), spelling


def test_an_address_is_taken_apart_once() -> None:
    """OP-54: what is connected to, what TLS proves and what the header Host says come from the same parts."""
    assert read_target("https://Hooks.Shop.COM./a%20b?c=d&e") == WebhookTarget(
        "https", "hooks.shop.com", 443, "/a%20b?c=d&e"
    )
    assert read_target("https://hooks.shop.com") == WebhookTarget("https", "hooks.shop.com", 443, "/")
    assert read_target("https://8.8.8.8:8443/x").authority == "8.8.8.8:8443"
    assert read_target("https://[2606:4700::1111]/").authority == "[2606:4700::1111]"
    own = LOOPBACK
    assert read_target("http://127.0.0.1:8080/x", own) == WebhookTarget("http", "127.0.0.1", 8080, "/x")
    assert read_target("http://receiver:9000/", own).authority == "receiver:9000"
    for url, rule in (
        ("http://hooks.shop.com/", "must start with https://"),
        ("https://a:b@hooks.shop.com/", "must have no user or password in it"),
        ("https://hooks.shop.com/#x", "must have no fragment"),
        ("https://hooks.shop.com:25/", "must use one of the ports 443, 4443, 8443, 9443"),
        ("https://10.0.0.1/", "must not lead to an address that is not public"),
        ("https://127.1/", "must write an IP address in its usual form"),
        ("https://localhost/", "must name a host of the public internet"),
    ):
        with pytest.raises(BadTarget, match=rule):
            read_target(url)
    with pytest.raises(BadTarget, match="must start with https"):
        read_target("http://8.8.8.8/", own)


async def test_300_hostile_addresses_reach_nothing_on_this_machine() -> None:
    """OP-54: neither as they are written, nor when the first check is left out, nor by a name that leads here."""
    async with receiving() as receiver:
        urls = hostile.urls(receiver.port)
        assert len(set(urls)) > 300
        lying = Post(resolve=always("127.0.0.1"), timeout_s=HANG_S)
        for url in urls:
            with pytest.raises((BadTarget, AddressRefused)):
                await lying_send(lying, url)
            host, scheme = naive(url)
            for port in (receiver.port, 443, 80):
                with pytest.raises(AddressRefused):
                    await go(WebhookTarget(scheme, host, port, "/"), always("127.0.0.1", "::1"))
        await lying.close()
        assert receiver.connections == 0
        # The listener does count: the same way out, allowed by the operator, leads to it.
        allowed = Post(LOOPBACK, timeout_s=HANG_S)
        outcome = await allowed.send(read_target(receiver.url(), LOOPBACK), [], BODY)
        await allowed.close()
        assert (outcome.status, receiver.connections) == (204, 1)


async def lying_send(post: Post, url: str) -> None:
    """Send there as the sender does."""
    outcome = await post.send(read_target(url), [], BODY)
    assert outcome.status is None
    assert outcome.error is not None
    if outcome.error.startswith("refused: "):
        raise AddressRefused(outcome.error)


def naive(url: str) -> tuple[str, str]:
    """The host and scheme as a careless reader would find them."""
    try:
        parts = urlsplit(url.strip().lower())
        host = (parts.hostname or "localhost").replace("%25", "%")
    except ValueError:
        return "localhost", "https"
    public = ("hooks.voucherd.dev", "example.com", "8.8.8.8", "::ffff:8.8.8.8")
    return ("localhost" if host in public else host), parts.scheme if parts.scheme in (
        "http",
        "https",
    ) else "https"


async def test_a_name_is_looked_up_once_and_that_address_is_connected_to() -> None:
    """OP-54: a name server that answers first with a good address and then with another gains nothing."""
    own = (ip_network("127.0.0.2/32"),)
    answers = [
        ["127.0.0.2"],
        ["127.0.0.1"],
        ["127.0.0.2", "127.0.0.1"],
        ["127.0.0.2", "::1"],
        [],
        ["127.0.0.2"] * 17,
    ]
    asked: list[str] = []

    async def rebinding(host: str, _port: int) -> list[str]:
        asked.append(host)
        return answers[len(asked) - 1]

    async with receiving(lambda _: OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")) as receiver:
        post = Post(own, resolve=rebinding, timeout_s=HANG_S)
        target = read_target(receiver.url(host="rebind.shop.com"), own)
        outcomes = [await post.send(target, [], BODY) for _ in answers]
        await post.close()

    assert [one.status for one in outcomes] == [204, *[None] * 5]
    assert all((one.error or "").startswith("refused: ") for one in outcomes[1:])
    assert asked == ["rebind.shop.com"] * 6
    assert [got.address for got in receiver.got] == ["127.0.0.2"]
    assert receiver.connections == 1
    assert receiver.got[0].headers["host"] == f"rebind.shop.com:{receiver.port}"


async def test_tls_proves_the_name_and_not_the_address(tmp_path: Path) -> None:
    """OP-54: the connection goes to the checked address, and SNI, Host and certificate are about the name."""
    server, client = certificate(tmp_path, "hooks.shop.com")
    async with receiving(tls=server) as receiver:
        post = Post(LOOPBACK, resolve=always("127.0.0.1"), trusted=client, timeout_s=HANG_S)
        good = await post.send(
            read_target(receiver.url(host="hooks.shop.com", scheme="https"), LOOPBACK), [], BODY
        )
        other = await post.send(
            read_target(receiver.url(host="other.shop.com", scheme="https"), LOOPBACK), [], BODY
        )
        plain = Post(LOOPBACK, resolve=always("127.0.0.1"), timeout_s=HANG_S)
        unknown = await plain.send(
            read_target(receiver.url(host="hooks.shop.com", scheme="https"), LOOPBACK), [], BODY
        )
        await post.close()
        await plain.close()
    assert (good.status, receiver.server_names[0]) == (204, "hooks.shop.com")
    assert [got.headers["host"] for got in receiver.got] == [f"hooks.shop.com:{receiver.port}"]
    assert other.error is not None
    assert "certificate refused: Hostname mismatch" in other.error
    assert unknown.error == "certificate refused: self-signed certificate"


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """A receiver that answers as its path says."""
    async with receiving(strange) as opened:
        yield opened


async def strange(got: Got) -> bytes:
    """What receivers answer, as the path says."""
    if got.path == "/slow":
        await asyncio.sleep(1)
    return {
        "/redirect": b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/other\r\nContent-Length: 0\r\n\r\n",
        "/garbage": b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        "/long": b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n" + b"x" * (BODY_BYTES_MAX + 9),
        "/drip": b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nnever whole",
        "/head": b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 200_000 + b"\r\n\r\n",
        "/odd": b"HTTP/1.1 500 Oops\r\nX-A: \xff\r\nContent-Length: 4\r\n\r\n\x00\xffno",
        "/many": b"HTTP/1.1 200 OK\r\n" + b"X-A: y\r\n" * 500 + b"Content-Length: 0\r\n\r\n",
        "/escape": b"HTTP/1.1 200 OK\r\nX-A: \x1b[31m\r\nContent-Length: 0\r\n\r\n",
        "/trailers": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: y\r\n" * 90_000,
        "/informed": b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    }.get(got.path, OK)


async def test_whatever_a_receiver_does_costs_one_delivery_and_bounded_time(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-54: redirects are failures and are not followed; answers are bounded in time and size, and never raise."""
    monkeypatch.setattr(post_module, "REST_S_MAX", 0.2)
    post, hasty = Post(LOOPBACK, timeout_s=HANG_S), Post(LOOPBACK, timeout_s=0.5)

    async def send(path: str, post: Post = post) -> PostOutcome:
        return await post.send(read_target(receiver.url(path), LOOPBACK), [(b"x-a", b"b")], BODY)

    assert [(await send("/fine")).delivered, receiver.got[-1].body] == [True, BODY]
    assert receiver.got[-1].headers["x-a"] == "b"
    redirect = await send("/redirect")
    assert (redirect.status, redirect.delivered, len(receiver.got)) == (302, False, 2)
    assert "Location: http://127.0.0.1/other" in redirect.head
    assert (await send("/slow", hasty)).error == "no answer within 0.5 seconds"
    assert (await send("/garbage")).error == "what came back is not HTTP"
    assert [(await send(path)).status for path in ("/long", "/drip", "/informed", "/trailers")] == [200] * 4
    assert len((await send("/long")).body) == 500
    many = await send("/many")
    assert (many.status, len(many.head)) == (200, 1000)
    assert (await send("/head")).error is not None
    assert (await send("/escape")).error == "what came back is not HTTP"
    odd = await send("/odd")
    assert (odd.status, odd.body) == (500, "��no")
    closed = read_target("http://127.0.0.1:1/", LOOPBACK)
    assert (await post.send(closed, [], BODY)).error == "no connection"
    await post.close()
    await hasty.close()


def test_the_programs_own_event_loop_sends_as_well(tmp_path: Path) -> None:
    """OP-54: the program runs on uvloop, whose transports are of other classes; with TLS and without."""
    server, client = certificate(tmp_path, "hooks.shop.com")

    async def run() -> list[PostOutcome]:
        outcomes = []
        for scheme, tls in (("http", None), ("https", server)):
            async with receiving(tls=tls) as receiver:
                post = Post(LOOPBACK, resolve=always("127.0.0.1"), trusted=client, timeout_s=HANG_S)
                target = read_target(receiver.url(host="hooks.shop.com", scheme=scheme), LOOPBACK)
                outcomes += [await post.send(target, [], BODY) for _ in range(2)]
                assert receiver.connections == 1
                await post.close()
        return outcomes

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert [outcome.status for outcome in runner.run(run())] == [204] * 4


async def test_a_name_that_leads_nowhere_is_refused_and_a_closed_port_is_no_connection() -> None:
    """OP-54: no address, something that is none, a look-up that fails; and nobody at home."""
    target = WebhookTarget("https", "hooks.shop.com", 443, "/")
    with pytest.raises(AddressRefused, match="has no address"):
        await go(target, always())
    with pytest.raises(AddressRefused, match="no address"):
        checked(target, ["localhost"], ())

    async def unknown(_host: str, _port: int) -> list[str]:
        raise OSError

    with pytest.raises(AddressRefused, match="looked up"):
        await go(target, unknown)
    with pytest.raises(ConnectionRefusedError):
        await go(WebhookTarget("http", "127.0.0.1", 1, "/"), always(), LOOPBACK)


async def test_connections_are_kept_for_their_name_and_replaced_when_the_receiver_closed_them(
    receiver: Receiver,
) -> None:
    """OP-54: a second delivery pays for no handshake; one that was closed meanwhile costs no delivery."""
    post = Post(LOOPBACK, resolve=always("127.0.0.1"), timeout_s=HANG_S)
    for host in ("one.shop.com", "one.shop.com", "two.shop.com", "one.shop.com"):
        outcome = await post.send(read_target(receiver.url("/x", host=host), LOOPBACK), [], BODY)
        assert outcome.delivered
    assert receiver.connections == 2
    assert [got.headers["host"].partition(":")[0] for got in receiver.got] == [
        *("one.shop.com", "one.shop.com", "two.shop.com", "one.shop.com")
    ]
    for writer in list(receiver.open):
        writer.close()
    outcome = await post.send(read_target(receiver.url("/x", host="one.shop.com"), LOOPBACK), [], BODY)
    assert outcome.delivered
    assert receiver.connections == 3
    await post.close()


async def go(
    target: WebhookTarget,
    resolve: Callable[[str, int], Awaitable[list[str]]],
    own: tuple[IPv4Network | IPv6Network, ...] = (),
) -> None:
    """Connect as a delivery does."""
    made = await connect(target, own, resolve, TLS, ReceiverExchange)
    made.close()
