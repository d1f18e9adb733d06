"""The demo: one command, and everything runs; Ctrl-C, and everything is gone but the data."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import socket
import stat
import subprocess
import time
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.cli.terminal import PROGRAM, Terminal, assert_refused
from tests.patience import HANG_S

READY_S_MAX: Final = HANG_S
STOP_S_MAX: Final = HANG_S


class Running:
    """A demo in a process of its own."""

    def __init__(self, terminal: Terminal, *words: str) -> None:
        self._process = subprocess.Popen(
            [*PROGRAM, "demo", "--port", "0", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=terminal.env,
            start_new_session=True,
        )
        self.began = time.monotonic()

    def said(self, until: bytes = b"\n") -> str:
        """What it prints, up to and with these bytes."""
        assert self._process.stdout is not None
        said = b""
        while until not in said:
            left_s = self.began + READY_S_MAX - time.monotonic()
            ready, _, _ = select.select([self._process.stdout], [], [], max(left_s, 0))
            piece = os.read(self._process.stdout.fileno(), 65536) if ready else b""
            if not piece:
                _, err = self._kill()
                raise AssertionError(f"the demo said {said!r}, then nothing: {err!r}")
            said += piece
        return said.decode()

    def stop(self, number: signal.Signals) -> tuple[int, bytes, bytes]:
        """Send the signal to the whole group, as a terminal does; the exit code and what else was printed."""
        os.killpg(self._process.pid, number)
        out, err = self._process.communicate(timeout=STOP_S_MAX)
        return self._process.returncode, out, err

    def _kill(self) -> tuple[bytes, bytes]:
        if self._process.poll() is None:
            self._process.kill()
        return self._process.communicate(timeout=STOP_S_MAX)

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self._kill()


def _servers(data: Path) -> list[str]:
    """The database servers that run on this data folder."""
    shown = subprocess.run(["/bin/ps", "axww", "-o", "command"], capture_output=True, text=True, check=True)
    return [line for line in shown.stdout.splitlines() if f"-D {data.resolve()}" in line]


def _buy(demo: dict[str, Any], whose: str, amount: int = 2) -> dict[str, Any]:
    """An order of the first product, created and confirmed with one of the demo's keys."""
    headers = {"Authorization": f"Bearer {demo[whose]['key']}", "X-Sandbox-Outcome": "finished"}
    if whose == "live":
        del headers["X-Sandbox-Outcome"]
    with httpx.Client(base_url=demo["baseUrl"], headers=headers, timeout=HANG_S) as client:
        cart = [{"productSlug": demo["products"][0], "amount": amount}]
        made = client.post("/api/1.03/order", json={"items": cart, "paymentCurrency": "EUR"})
        assert made.status_code == 201, made.text
        confirmed = client.patch(f"/api/1.00/order/confirm/{made.json()['trx']}")
    assert confirmed.status_code == 200, confirmed.text
    order: dict[str, Any] = confirmed.json()
    return order


def test_one_command_runs_everything_and_a_second_start_keeps_the_data(bare_terminal: Terminal) -> None:
    """The command line: `demo` prints one line of JSON when ready; Ctrl-C stops all; a second start keeps the data."""
    data = bare_terminal.data
    with Running(bare_terminal, "--json") as first:
        line = first.said()
        assert line.count("\n") == 1
        demo = json.loads(line)
        assert list(demo) == ["baseUrl", "live", "sandbox", "operator", "buyer", "voucher", "products"]
        assert demo["live"].keys() == demo["sandbox"].keys() == {"company", "key"}
        assert demo["operator"].keys() == demo["buyer"].keys() == {"email", "password"}
        assert len(demo["products"]) >= 40
        for whose in ("live", "sandbox"):
            bought = _buy(demo, whose)
            assert (bought["orderStatus"], bought["state"]) == ("finished", whose)
        # Other commands work on the same folder meanwhile; the first order is the one of the link that was printed.
        states = [order["state"] for order in bare_terminal.json("order", "list")]
        assert states == ["sandbox", "live", "sandbox"]
        assert "Your game card from Nimbari Play" in httpx.get(demo["voucher"], timeout=HANG_S).text
        assert bare_terminal.json("audit")["ok"]
        assert_refused(bare_terminal.run("demo", "--port", "0"))
        assert first.stop(signal.SIGINT) == (0, b"", b"")
    assert _servers(data) == []

    with Running(bare_terminal, "--json") as second:
        again = json.loads(second.said())
        moved = {"baseUrl": "", "voucher": ""}
        assert again | moved == demo | moved
        assert len(bare_terminal.json("order", "list")) == 3
        assert _buy(again, "live")["orderStatus"] == "finished"
        assert second.stop(signal.SIGTERM) == (0, b"", b"")
    assert _servers(data) == []


def test_the_greeting_can_be_copied_into_a_shell(bare_terminal: Terminal) -> None:
    """The command line: `demo` prints keys, addresses and a `curl` to try."""
    with Running(bare_terminal) as demo:
        greeting = demo.said(until=b'confirm/$TRX \\\n    -H "Authorization: Bearer $KEY"\n')
        assert all(len(line) <= 80 for line in greeting.splitlines() if str(bare_terminal.data) not in line)
        script = greeting[greeting.index("  KEY=") :]
        done = subprocess.run(
            ["/bin/sh", "-c", script], capture_output=True, text=True, timeout=HANG_S, check=True
        )
        order = json.loads(done.stdout)
        assert order["orderStatus"] == "finished"
        codes = [line["voucherCode"] for item in order["items"] for line in item["orderLines"]]
        assert len(codes) == 2
        assert all(re.fullmatch(r"[0-9A-Z]{4}(-[0-9A-Z]{4}){3}", code) for code in codes)
        # The demo's own secrets are kept for the next start, where only their owner can read them.
        assert stat.S_IMODE((bare_terminal.data / "demo.json").stat().st_mode) == 0o600
        code, _, err = demo.stop(signal.SIGHUP)
        assert (code, err) == (0, b"")
    assert _servers(bare_terminal.data) == []


def test_a_demo_that_was_killed_starts_again_with_books_that_balance(bare_terminal: Terminal) -> None:
    """A crash loses nothing that was answered, and the next start mends the rest."""
    with Running(bare_terminal, "--json") as first:
        demo = json.loads(first.said())
        bought = _buy(demo, "live", amount=1_000)
        assert first.stop(signal.SIGKILL)[0] == -signal.SIGKILL

    with Running(bare_terminal, "--json") as second:
        again = json.loads(second.said())
        assert again["live"] == demo["live"]
        assert again["voucher"].rpartition("/")[2] == demo["voucher"].rpartition("/")[2]
        [order] = bare_terminal.json("order", "list", "--state", "live")
        assert (order["trx"], order["orderStatus"]) == (bought["trx"], "finished")
        assert bare_terminal.json("audit")["ok"]
        assert second.stop(signal.SIGINT)[0] == 0
    assert _servers(bare_terminal.data) == []


def test_a_port_that_is_taken_is_one_line_and_starts_nothing(bare_terminal: Terminal) -> None:
    """The command line: exits 1 when refused, with one clear line on stderr."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert_refused(bare_terminal.run("demo", "--port", str(port)), f"127.0.0.1:{port}", "--port 0")
        assert_refused(bare_terminal.run("serve", "--port", str(port)), f"127.0.0.1:{port}")
    assert not (bare_terminal.data / "demo.json").exists()


def test_a_database_with_companies_of_its_own_is_no_place_for_a_demo(terminal: Terminal) -> None:
    """The demo: never opens its shop in somebody's own database."""
    terminal.json("company", "add", "Acme", "--country", "NL")
    assert_refused(terminal.run("demo", "--port", "0"), "no place for a demo")
    assert terminal.json("product", "list") == []


@pytest.mark.parametrize("words", [["serve", "--port", "0"], ["worker"]], ids=lambda words: str(words[0]))
def test_the_parts_run_until_they_are_told_to_stop(terminal: Terminal, words: list[str]) -> None:
    """The command line: `serve` and `worker` are the same parts, one each, for production."""
    process = terminal.start(*words, "--json")
    try:
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], READY_S_MAX)
        assert ready
        document = json.loads(process.stdout.readline())
        if words[0] == "serve":
            assert httpx.get(f"{document['baseUrl']}/api/1.03/order", timeout=HANG_S).status_code == 401
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_S_MAX) == 0
    finally:
        process.kill()
        process.communicate()
