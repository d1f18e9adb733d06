"""Watching real processes: one scrape of a host shows all of them, and a worker tells how it is."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.cli.terminal import Terminal
from tests.cli.test_processes import children, gone, serving
from tests.patience import HANG_S, wait_until
from voucherd.metrics.siblings import ANSWER_S_MAX
from voucherd.networks import listen_address
from voucherd.settings import Settings, SettingsError

TOKEN = "s3cret-of-the-operator"
TRUSTED = {"authorization": f"Bearer {TOKEN}"}
ASK_S_MAX = 3 * ANSWER_S_MAX
"""A scrape that the kernel gives to a process that hangs is asked again; any other waits so long for that process."""


def scrape(address: str) -> dict[str, dict[str, float]]:
    """Figures by name and process, of whichever process answers."""

    def look() -> str | None:
        try:
            answer = httpx.get(f"{address}/metrics", headers=TRUSTED, timeout=ASK_S_MAX)
        except httpx.HTTPError:
            return None
        return answer.text if answer.status_code == 200 else None

    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(wait_until(look) or ""):
        for sample in family.samples:
            of = found.setdefault(sample.name, {})
            process = sample.labels.get("process", "")
            of[process] = of.get(process, 0.0) + sample.value
    return found


def test_one_scrape_shows_every_process_and_none_that_died_or_hangs(terminal: Terminal) -> None:
    """OP-125: whichever process answers; kill -9 leaves no figure behind, SIGSTOP is seen."""
    terminal.env["VOUCHERD_METRICS_TOKEN"] = TOKEN
    with serving(terminal, 2) as (process, address):
        for _ in range(6):
            found = scrape(address)
            assert found["voucherd_process_up"] == {"0": 1, "1": 1}
            assert set(found["voucherd_streams_open"]) == {"0", "1"}
            assert set(found["voucherd_database_ready"]) == {""}
        counted = sum(scrape(address)["voucherd_http_seconds_count"].values())
        assert counted >= 6

        first, second = children(process)
        os.kill(second, signal.SIGSTOP)
        frozen = wait_until(lambda: found if _up(found := scrape(address)) == 1 else {})
        assert sorted(frozen["voucherd_process_up"].values()) == [0, 1]
        assert len(frozen["voucherd_streams_open"]) == 1
        os.kill(second, signal.SIGCONT)
        wait_until(lambda: _up(scrape(address)) == 2)

        os.kill(first, signal.SIGKILL)
        assert gone([first])
        wait_until(lambda: _up(scrape(address)) == 2)
        # The one that was started again counts from nothing; what the dead one had counted is nobody's.
        assert set(scrape(address)["voucherd_streams_open"]) == {"0", "1"}


def _up(found: dict[str, dict[str, float]]) -> float:
    return sum(found["voucherd_process_up"].values())


@contextmanager
def working(terminal: Terminal) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A worker, and the line of its log that says where it answers, or that it does not."""
    process = terminal.start("worker")
    try:
        assert process.stderr is not None
        said = b""
        while not (line := re.search(rb'^.*"status_(?:not_)?shown".*$', said, re.MULTILINE)):
            ready, _, _ = select.select([process.stderr], [], [], HANG_S)
            assert ready
            part = os.read(process.stderr.fileno(), 65_536)
            assert part, said
            said += part
        yield process, line[0].decode()
    finally:
        process.kill()
        process.communicate()


def test_a_worker_tells_how_it_is_on_a_listener_of_its_own(terminal: Terminal) -> None:
    """OP-125, OP-98: health for everybody on the machine, figures for the token; a taken address stops no work."""
    terminal.env |= {"VOUCHERD_METRICS_TOKEN": TOKEN, "VOUCHERD_WORKER_LISTEN": "127.0.0.1:0"}
    with working(terminal) as (_, line):
        port = json.loads(line)["port"]
        address = f"http://127.0.0.1:{port}"
        assert httpx.get(f"{address}/healthz", timeout=HANG_S).text == "ok"
        assert httpx.get(f"{address}/readyz", timeout=HANG_S).text == "ready"
        for wrong in ({}, {"authorization": "Bearer wrong"}, {"authorization": f"Basic {TOKEN}"}):
            assert httpx.get(f"{address}/metrics", headers=wrong, timeout=HANG_S).status_code == 404
        assert httpx.get(f"{address}/nowhere", headers=TRUSTED, timeout=HANG_S).status_code == 404
        assert httpx.post(f"{address}/healthz", timeout=HANG_S).status_code == 405
        found = scrape(address)
        assert set(found["voucherd_round_lag_seconds"]) == {"worker"}
        assert wait_until(lambda: scrape(address)["voucherd_rounds_total"]["worker"]) > 0
        assert found["voucherd_database_ready"] == {"": 1}

        terminal.env["VOUCHERD_WORKER_LISTEN"] = f"127.0.0.1:{port}"
        with working(terminal) as (second, told):
            assert "status_not_shown" in told
            assert second.poll() is None


@pytest.mark.parametrize("given", ["8081", "127.0.0.1:", "127.0.0.1:99999", ":8081"])
def test_an_address_that_is_none_is_refused_in_one_line(given: str) -> None:
    """OP-125: before anything starts."""
    with pytest.raises(SettingsError, match="VOUCHERD_WORKER_LISTEN: must be an address and a port such as"):
        Settings.load({}, {"VOUCHERD_WORKER_LISTEN": given})
    assert listen_address("[::1]:0") == ("::1", 0)
    assert listen_address("OFF") is None
