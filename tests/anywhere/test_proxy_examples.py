"""nginx, Caddy and HAProxy in front of voucherd, as the examples of deploy/proxies set them up."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx
import pytest

from tests.anywhere.installed import clean_environment
from tests.anywhere.programs import OpenShop, free_ports
from tests.anywhere.proxies import PROXIES, Proxy, started
from tests.patience import HANG_S, wait_until

UPLOAD_BYTES: Final = 2 * 1024 * 1024
CLIENT, STRANGER = "127.0.0.2", "127.0.0.3"


@pytest.fixture(params=sorted(PROXIES))
def proxy(request: pytest.FixtureRequest, open_shop: OpenShop, tmp_path: Path) -> Iterator[Proxy]:
    """A proxy with two hosts behind it, of which one is dead."""
    [dead] = free_ports(1)
    with started(request.param, tmp_path, dead, open_shop.port) as running:
        with running.client() as client:
            # A proxy that asks for /readyz sends nothing anywhere before it was answered.
            wait_until(lambda: client.get("/api/1.03/order").status_code == 401, "the shop is not reached")
        yield running


@pytest.fixture(scope="module")
def narrow_key(open_shop: OpenShop) -> dict[str, str]:
    """A key that is good at one address only."""
    company = open_shop.handout["live"]["company"]
    words = ("key", "add", company, "--state", "live", "--allow-ip", CLIENT, "--json")
    done = subprocess.run(
        [sys.executable, "-m", "voucherd.cli", *words],
        capture_output=True,
        timeout=HANG_S,
        check=True,
        env=clean_environment() | open_shop.env,
    )
    return {"Authorization": f"Bearer {json.loads(done.stdout)['key']}"}


def _sign_in(client: httpx.Client, shop: OpenShop) -> None:
    person = shop.handout["operator"]
    form = {"csrf": _secret(client.get("/sign-in")), "email": person["email"], "password": person["password"]}
    assert client.post("/sign-in", data=form).is_redirect


def _secret(page: httpx.Response) -> str:
    """What a form must bring back."""
    found = re.search(r'name="csrf"[^>]*value="([^"]+)"', page.text)
    return found[1] if found else ""


def test_a_sale_goes_through_although_a_host_is_dead_and_health_stays_inside(
    proxy: Proxy, open_shop: OpenShop
) -> None:
    """OP-128: a call that a dead host never took goes to the other one, a POST as well; /metrics is for the inside."""
    with proxy.client(**open_shop.bearer()) as client:
        for _ in range(6):
            made = client.post("/api/1.03/order", json=open_shop.cart())
            assert made.status_code == 201, made.text
            sold = client.patch(f"/api/1.00/order/confirm/{made.json()['trx']}")
            assert sold.json()["orderStatus"] == "finished", sold.text
        for path in ("/healthz", "/readyz", "/metrics"):
            assert client.get(path).status_code == 404


def test_a_key_is_good_at_its_address_and_a_claimed_address_gets_nowhere(
    proxy: Proxy, narrow_key: dict[str, str]
) -> None:
    """OP-24, OP-128: voucherd sees the client's address as the proxy saw it, whatever the client writes."""
    for address, claimed, status in (
        (CLIENT, {}, 200),
        (STRANGER, {}, 403),
        (STRANGER, {"X-Forwarded-For": CLIENT}, 403),
        (STRANGER, {"X-Forwarded-For": f"{CLIENT}, 127.0.0.1"}, 403),
        (CLIENT, {"X-Forwarded-For": STRANGER}, 200),
    ):
        with proxy.client(address, **narrow_key, **claimed) as client:
            assert client.get("/api/1.03/order").status_code == status, (address, claimed)


def test_an_event_arrives_while_its_stream_stays_open(proxy: Proxy, open_shop: OpenShop) -> None:
    """OP-128: streams are not buffered: the event of a sale comes through at once, not at the end."""
    with (
        proxy.client(**open_shop.bearer()) as listener,
        proxy.client(**open_shop.bearer()) as buyer,
        listener.stream("GET", "/api/1.03/event/stream") as stream,
    ):
        lines = stream.iter_lines()
        assert next(lines).startswith("retry:")
        trx = buyer.post("/api/1.03/order", json=open_shop.cart()).json()["trx"]
        sold = buyer.patch(f"/api/1.00/order/confirm/{trx}")
        assert sold.status_code == 200, sold.text
        told = next(line for line in lines if line.startswith("data:") and trx in line and "finished" in line)
        assert json.loads(told.removeprefix("data:"))["type"] == "order.finished"


def test_a_large_file_reaches_the_console_and_a_large_call_does_not_reach_the_api(
    proxy: Proxy, open_shop: OpenShop
) -> None:
    """OP-128: files of codes pass; a body that is too large for the API is refused, by whoever sees it first."""
    codes = "code\n" + "".join(f"PROXY-{number:010d}\n" for number in range(UPLOAD_BYTES // 17))
    with proxy.client() as client:
        _sign_in(client, open_shop)
        form = client.get("/console/stock/import")
        assert form.status_code == 200
        sent = client.post(
            "/console/stock/import",
            data={
                "csrf": _secret(form),
                "slug": open_shop.handout["products"][0],
                "supplier": "wholesale",
                "purchase": "9.00 EUR",
            },
            files={"file": ("codes.csv", codes.encode())},
        )
        assert sent.is_redirect, (sent.status_code, sent.text[:2000])
    with proxy.client(**open_shop.bearer()) as client:
        assert client.post("/api/1.03/order", content=b" " * 300_000).status_code == 413


@contextmanager
def _crashing_host(sales: list[str]) -> Iterator[int]:
    """A host that is ready, and breaks off without an answer whenever a sale has reached it."""
    ended = threading.Event()

    def answer(peer: socket.socket) -> None:
        with peer:
            head = b""
            while b"\r\n\r\n" not in head and (piece := peer.recv(65536)):
                head += piece
            if head.startswith(b"GET"):
                peer.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            elif head:
                sales.append(head.decode().partition("\r\n")[0])

    def serve(listener: socket.socket) -> None:
        while not ended.is_set():
            try:
                peer, _ = listener.accept()
            except TimeoutError:
                continue
            peer.settimeout(HANG_S)
            answer(peer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.1)
        serving = threading.Thread(target=serve, args=(listener,))
        serving.start()
        try:
            yield listener.getsockname()[1]
        finally:
            ended.set()
            serving.join()


@pytest.mark.parametrize("name", sorted(PROXIES))
def test_a_sale_that_may_have_been_made_is_sent_to_no_other_host(name: str, tmp_path: Path) -> None:
    """OP-128: a host that dies over a POST or a PATCH has it alone; the client hears of it and tries again itself."""
    sales: list[str] = []
    with (
        _crashing_host(sales) as first,
        _crashing_host(sales) as second,
        started(name, tmp_path, first, second) as proxy,
        proxy.client() as client,
    ):
        wait_until(lambda: client.get("/").status_code == 200, "no host is reached")
        for method in ("POST", "PATCH"):
            sales.clear()
            try:
                assert client.request(method, "/api/1.03/order", json={}).status_code in (502, 503)
            except httpx.RemoteProtocolError:
                # HAProxy breaks off as the host did, if the client's connection has been used before.
                assert name == "haproxy"
            assert sales == [f"{method} /api/1.03/order HTTP/1.1"]
