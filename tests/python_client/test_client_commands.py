"""`voucherd-client` against the real service: events brought to a program of one's own, and made to happen."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import StringIO

import pytest

import voucherd_client
from tests.patience import HANG_S, until_true
from tests.python_client.roads import url_of
from tests.shop import Company, Shop
from tests.webhooks.receiver import Got, receiving
from tests.wire.test_sockets import Street
from voucherd.ids import State
from voucherd.webhooks import signing
from voucherd_client import cli
from voucherd_client.cli import KEY, TRIGGERS, URL


def environment(street: Street, company: Company, state: State = State.SANDBOX) -> dict[str, str]:
    """Where the service is and who calls."""
    return {URL: url_of(street), KEY: company.keys[state]}


class Screen:
    """What a command prints: the service, which is in the same process here, writes its own log elsewhere."""

    def __init__(self) -> None:
        self.stdout, self.stderr, self.exit = StringIO(), StringIO(), sys.exit

    def read(self) -> tuple[str, str]:
        """What was printed and what was complained of since the last look."""
        said = self.stdout.getvalue(), self.stderr.getvalue()
        self.stdout, self.stderr = StringIO(), StringIO()
        return said


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """A screen for commands that run in this process."""
    made = Screen()
    monkeypatch.setattr(cli, "sys", made)
    return made


@asynccontextmanager
async def listening(street: Street, company: Company, *words: str) -> AsyncIterator[Process]:
    """`listen` in a process of its own, ended with the block."""
    path = os.pathsep.join(sys.path)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "voucherd_client", "listen", *words),
        env=os.environ | environment(street, company) | {"PYTHONPATH": path},
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def line_of(process: Process) -> str:
    """The next line that it prints."""
    assert process.stdout is not None
    said = (await asyncio.wait_for(process.stdout.readline(), HANG_S)).decode()
    assert said, await process.communicate()
    return said.rstrip("\n")


def verify(secret: str, got: Got) -> None:
    """Refuse a message that the service itself would not have signed so."""
    name, timestamp, signature = (got.headers[f"webhook-{one}"] for one in ("id", "timestamp", "signature"))
    signing.verify(secret, name, timestamp, signature, got.body, now_s=time.time())


async def test_events_are_brought_to_a_program_of_ones_own_signed_as_in_production(
    shop: Shop, street: Street, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-54, OP-80: with a key alone, from anywhere; the body is the one that a webhook carries, byte for byte."""
    company = await shop.company()
    for name, value in environment(street, company).items():
        monkeypatch.setenv(name, value)
    answers = iter([b"HTTP/1.1 204 No Content\r\n\r\n", b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"])
    async with (
        receiving(lambda _: next(answers)) as receiver,
        listening(street, company, "--forward", receiver.url("/hook"), "--type", "order.finished") as process,
    ):
        first = await line_of(process)
        secret = first.rpartition(" ")[2]
        assert first == f"Events go to {receiver.url('/hook')}, signed with {secret}"
        assert (await line_of(process)).startswith("Listening")
        await until_true(lambda: shop.program.services.streams.open == 1)
        for count, status in ((1, "204"), (2, "500")):
            await asyncio.to_thread(cli.main, ["trigger", "order.finished"])
            got = (await receiver.until(count))[-1]
            verify(secret, got)
            event = voucherd_client.verify_webhook(got.body, got.headers, secret)
            printed = await line_of(process)
            assert re.fullmatch(rf"\d\d:\d\d:\d\d  order\.finished  {event.id}  {status}  \{{.+\}}", printed)
            told = await shop.call("GET", f"/api/1.03/event/{event.id}", company, state=State.SANDBOX)
            assert (got.path, got.body, event.data["state"]) == ("/hook", told.content, "sandbox")
        process.send_signal(signal.SIGINT)
        _, complaints = await asyncio.wait_for(process.communicate(), HANG_S)
        assert (process.returncode, complaints) == (0, b"")
    await shop.assert_books_balance()


async def test_a_program_that_is_away_does_not_stop_the_events(
    shop: Shop, street: Street, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-80: it is printed that an event was not delivered, and the next one is tried."""
    company = await shop.company()
    for name, value in environment(street, company).items():
        monkeypatch.setenv(name, value)
    secret = signing.new_secret()
    async with listening(street, company, "--forward", "127.0.0.1:9/hook", "--secret", secret) as process:
        assert (await line_of(process)) == f"Events go to http://127.0.0.1:9/hook, signed with {secret}"
        await line_of(process)
        await until_true(lambda: shop.program.services.streams.open == 1)
        await asyncio.to_thread(cli.main, ["trigger", "order.deleted", "--product", "gift"])
        printed = [await line_of(process) for _ in range(2)]
    assert ["order.created" in printed[0], "order.deleted" in printed[1]] == [True, True]
    assert all("  not delivered: " in line for line in printed)


async def test_every_event_that_can_be_triggered_happens(
    shop: Shop, street: Street, monkeypatch: pytest.MonkeyPatch, screen: Screen
) -> None:
    """OP-49: an order of the sandbox's, to which just that happens."""
    company = await shop.company()
    for name, value in environment(street, company).items():
        monkeypatch.setenv(name, value)
    for event in TRIGGERS:
        await asyncio.to_thread(cli.main, ["trigger", event])
        printed, complaints = screen.read()
        assert complaints == ""
        said, *trx = printed.split()
        assert said == event
        if event.startswith("order."):
            assert (await shop.events(*trx))[-1] == event
        else:
            assert trx == []
            assert await shop.pool.fetchval("SELECT count(*) FROM event WHERE type = $1", event)
    await shop.assert_books_balance()


async def test_a_live_key_triggers_nothing_and_what_is_missing_is_said_in_one_line(
    shop: Shop, street: Street, screen: Screen
) -> None:
    """OP-49: a test that points at the wrong environment buys nothing."""
    company = await shop.company()
    before = await shop.snapshot()
    url = ["--url", url_of(street)]
    for words, line in (
        ([*url, "--key", company.keys[State.LIVE]], "trigger is for sandbox keys"),
        ([*url, "--key", "vk_test_nobody"], "unauthorized [401, unauthorized, request req_"),
        ([*url], "say where the service is and who you are"),
        (["--url", "http://shop.example.com", "--key", "x"], "url: the key would travel unencrypted"),
    ):
        with pytest.raises(SystemExit) as ended:
            await asyncio.to_thread(cli.main, ["trigger", "order.finished", *words])
        printed, complaints = screen.read()
        assert (ended.value.code, printed, complaints.count("\n")) == (1, "", 1)
        assert complaints.startswith(f"voucherd-client: {line}")
    with pytest.raises(SystemExit, match="2"):
        cli.main(["trigger", "order.lost"])
    assert await shop.snapshot() == before
