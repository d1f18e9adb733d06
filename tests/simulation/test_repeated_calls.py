"""Requests under idempotency keys on two hosts that crash, freeze and hang: each is done once, and answered truly."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import os
import secrets
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, TypeAlias

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    multiple,
    rule,
    run_state_machine_as_test,
)
from structlog.testing import capture_logs

from tests.patience import LOOK_EVERY_S
from tests.simulation.hosts import Host, Point, Sent, Way, open_host
from tests.simulation.world import World, open_world
from voucherd.api import idempotent
from voucherd.db import Pool, Tx
from voucherd.heartbeat import EVERY_S, GONE_S
from voucherd.http import Response
from voucherd.idempotency import store
from voucherd.idempotency.model import Ticket
from voucherd.ids import State
from voucherd.orders import confirm

OPERATIONS = ("create", "confirm", "confirm", "resolve", "cancel")
IDLE_S_MAX = 5.0
"""A transaction that stands still is ended by the server after so long."""
PRICE_MINOR = 1_000
TRIES_MAX = 20
stops = st.one_of(st.none(), st.tuples(st.sampled_from(Point), st.sampled_from(Way)))
POINTS = (*Point, Point.AFTER_CLAIM, Point.AFTER_CLAIM, Point.BEFORE_NAMING)
WAYS = (*Way, Way.FREEZE, Way.FREEZE)
"""The ones that two hosts meet by come more often."""
places = st.integers(0, 1)
_count = itertools.count(1)


class Repeats(RuleBasedStateMachine):
    """A client sends requests again and again, to either host, whatever happens to them."""

    world: World
    clock_s = 1_000.0
    keys: Bundle[str] = Bundle("keys")

    def __init__(self) -> None:
        super().__init__()
        self.run = self.world.run
        self.hosts: list[Host | None] = [None, None]
        self.sent: dict[str, Sent] = {}
        self.said: dict[str, tuple[int, Any]] = {}
        """What the client was told for good, by key."""
        self.crashed_s: dict[str, float] = {}
        """When a host died that was at it, by key."""
        self.orders: list[str] = []
        self.fine = False
        """Whether nothing was found to be wrong."""
        self.deliver = self.world.worker()

    @initialize(target=keys)
    def begin(self) -> Any:
        """A company with money for two orders, three orders, and a key for each operation."""
        self.company = self.run(self.world.company()).id
        self.now = self.run(self.world.product("now", price="10.00 EUR"))
        self.later = self.run(self.world.product("later", price="10.00 EUR", async_delivery=True))
        self.run(self.world.stock(self.now, 1_000, 20))
        self.run(self.world.top_up(self.company, State.LIVE, 2 * PRICE_MINOR))
        for at, slug in enumerate((self.now.slug, self.now.slug, self.later.slug)):
            key = self.ask("create", 0, slug)
            self.send(key, at % 2, None)
            assert key in self.said
        return multiple(*[self.ask(operation, at, self.now.slug) for at, operation in enumerate(OPERATIONS)])

    @rule(target=keys, operation=st.sampled_from(OPERATIONS), at=st.integers(0, 9), late=st.booleans())
    def want(self, operation: str, at: int, late: bool) -> str:
        """Something that the client wants done once."""
        return self.ask(operation, at, self.later.slug if late else self.now.slug)

    def ask(self, operation: str, at: int, slug: str) -> str:
        key = f"key-{next(_count)}-{secrets.token_hex(4)}"
        if operation == "create":
            items = [{"productSlug": slug, "amount": 1}]
            body = {"items": items, "paymentCurrency": "EUR", "reference": key}
            self.sent[key] = Sent("POST", "/api/1.03/order", msgspec.json.encode(body))
        else:
            self.sent[key] = Sent(
                "PATCH", f"/api/1.03/order/{operation}/{self.orders[at % len(self.orders)]}"
            )
        return key

    # ── what the client does ──────────────────────────────────────────────────────────────────────────

    @rule(key=keys, at=places, stop=stops)
    def send(self, key: str, at: int, stop: tuple[Point, Way] | None) -> None:
        """Send the request, for the first time or again; the host may stop on its way."""
        self.run(self._send(key, at, stop))

    @rule(
        target=keys,
        operation=st.sampled_from(OPERATIONS),
        at=places,
        stop=st.tuples(st.sampled_from(POINTS), st.sampled_from(WAYS)),
        seconds=st.sampled_from([1, 6, 6, 20]),
        again=stops,
        action=st.sampled_from(["", "top up", "deliver"]),
        end=st.sampled_from(["go on", "go on", "crash", ""]),
    )
    def repeat(
        self,
        operation: str,
        at: int,
        stop: tuple[Point, Way],
        seconds: int,
        again: tuple[Point, Way] | None,
        action: str,
        end: str,
    ) -> str:
        """A host stops in the middle, the client asks the other one, and then the first goes on, or does not."""
        if operation != "create":
            self.send(self.ask("create", 0, self.now.slug), 1 - at, None)
        key = self.ask(operation, -1, self.now.slug)
        self.send(key, at, stop)
        self.pass_time(seconds)
        self.send(key, 1 - at, again)
        if action:
            self.move_on(action)
        if end == "go on":
            self.go_on(at)
        elif end == "crash":
            self.crash(at)
        return key

    async def _send(self, key: str, at: int, stop: tuple[Point, Way] | None) -> None:
        host = await self._host(at)
        if host.call is not None:
            return
        host.key, host.gate.plan, host.excused = key, stop, self._is_held(key)
        host.call = asyncio.create_task(host.send(key, self.sent[key]))
        await self._settle()
        if host.call is None:
            host.gate.plan = None

    def _others_at(self, key: str, but: Host | None = None) -> list[Host]:
        """The hosts that are at this request, or stand still in it."""
        hosts = [host for host in self.hosts if host is not None and host is not but and host.key == key]
        return [host for host in hosts if host.call is not None or host.gate.stopped is not None]

    def _is_held(self, key: str, but: Host | None = None) -> bool:
        """Whether a repeated request may be told to wait: somebody is at it, or was until a moment ago."""
        return self.clock_s < self.crashed_s.get(key, 0.0) + EVERY_S or any(
            not host.gate.frozen or self.clock_s <= host.gate.frozen_s + GONE_S
            for host in self._others_at(key, but)
        )

    async def _host(self, at: int) -> Host:
        found = self.hosts[at]
        if found is None:
            found = self.hosts[at] = await open_host(
                self.world, self.company, f"host {at} {secrets.token_hex(4)}", lambda: self.clock_s
            )
        return found

    # ── what happens to hosts ─────────────────────────────────────────────────────────────────────────

    @rule(at=places)
    def go_on(self, at: int) -> None:
        """A host that stood still goes on."""
        self.run(self._go_on(at))

    async def _go_on(self, at: int) -> None:
        host = self.hosts[at]
        if host is not None and host.gate.stopped is not None:
            # One that took the ticket meanwhile and died holds nobody up; but who wakes up without it has to ask again.
            host.excused = host.excused or host.key in self.crashed_s or self._is_held(host.key, host)
            for other in self._others_at(host.key, host):
                host.excused = other.excused = True
            host.gate.go_on()
            await self._settle()

    @rule(at=places)
    def crash(self, at: int) -> None:
        """A host dies, in whatever it is at."""
        self.run(self._crash(at))

    async def _crash(self, at: int) -> None:
        host, self.hosts[at] = self.hosts[at], None
        if host is not None:
            if host.call is not None:
                self.crashed_s[host.key] = self.clock_s
            await host.end()
            await self._settle()

    @rule(seconds=st.sampled_from([1, 6, 6, 20]))
    def pass_time(self, seconds: int) -> None:
        """Time goes by: those that are there say so, and the server ends transactions that stand still."""
        self.run(self._pass_time(seconds))

    async def _pass_time(self, seconds: int) -> None:
        type(self).clock_s += seconds
        pool, passed = self.world.pool, timedelta(seconds=seconds)
        stopped = [host.name for host in self.hosts if host is not None and host.gate.stopped is not None]
        if seconds > IDLE_S_MAX:
            await pool.execute(
                "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
                " WHERE application_name = ANY($1::text[]) AND state = 'idle in transaction'",
                stopped,
            )
            await self._settle()
        await pool.execute("UPDATE process_seen SET seen_at = seen_at - $1::interval", passed)
        await pool.execute(
            "UPDATE idempotency SET running_until = running_until - $1::interval WHERE (company_id, state, key) IN"
            " (SELECT company_id, state, key FROM idempotency WHERE answer IS NULL FOR UPDATE SKIP LOCKED)",
            passed,
        )
        for host in self.hosts:
            if host is not None and not host.gate.frozen:
                await host.beat()

    @rule(action=st.sampled_from(["top up", "deliver"]))
    def move_on(self, action: str) -> None:
        """Money comes in, or codes for those that wait: what was refused or pending would be answered otherwise now."""
        if any(host is not None and host.gate.in_transaction for host in self.hosts):
            return  # It has locks.
        if action == "top up":
            self.run(self.world.top_up(self.company, State.LIVE, PRICE_MINOR))
        else:
            self.run(self.world.stock(self.later, 1_000, 1))
            self.run(self.deliver.run_once("deliver"))

    # ── what must be true ─────────────────────────────────────────────────────────────────────────────

    async def _settle(self) -> None:
        """Until every call is answered, or its host stands still, or it waits for a lock of one that does."""
        while waiting := [host for host in self.hosts if host is not None and host.call is not None]:
            going = [host for host in waiting if host.gate.stopped is None and not host.call.done()]  # type: ignore[union-attr]
            for at, host in enumerate(self.hosts):
                if host is None or host.call is None:
                    continue
                if host.gate.dead:
                    await self._crash(at)
                elif host.call.done():
                    answer, host.call = host.call.result(), None
                    await self._heard(host, answer)
            if not going:
                return
            if len(going) < len(waiting) and await self._blocked(going):
                return
            await asyncio.wait([host.call for host in going if host.call is not None], timeout=LOOK_EVERY_S)

    async def _blocked(self, hosts: Sequence[Host]) -> bool:
        waiting = await self.world.pool.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = ANY($1::text[])"
            " AND wait_event_type = 'Lock'",
            [host.name for host in hosts],
        )
        return int(waiting) >= len(hosts)

    async def _heard(self, host: Host, response: Response) -> None:
        """What the client is told is true, and stays so."""
        self.fine, key = False, host.key
        await self._judge(host, key, response)
        self.fine = True

    async def _judge(self, host: Host, key: str, response: Response) -> None:
        told = (response.status, response.body)
        if response.status == 409:
            assert host.excused, "a repeated request waits for nobody"
            return
        if response.status >= 500:
            return
        named = await self._named(key)
        if response.status >= 400:
            assert named is None, f"refused for what its own key did: {told}"
        else:
            assert named is not None
            if self.sent[key].method == "POST":
                self._remember(response)
        assert self.said.setdefault(key, told) == told, "answered in two ways"

    def _remember(self, response: Response) -> None:
        assert isinstance(response.body, bytes)
        trx = msgspec.json.decode(response.body)["trx"]
        if trx not in self.orders:
            self.orders.append(trx)

    async def _named(self, key: str) -> int | None:
        number = await self.world.pool.fetchval(
            "SELECT order_id FROM idempotency WHERE company_id = $1 AND key = $2",
            self.company,
            hashlib.sha256(key.encode()).digest(),
        )
        return None if number is None else int(number)

    def teardown(self) -> None:
        """In the end everything goes on, every request is answered, and each was done once."""
        try:
            if self.fine:
                self.run(self._finish())
        finally:
            for host in self.hosts:
                if host is not None:
                    self.run(host.end())

    async def _finish(self) -> None:
        self.fine = False
        for host in self.hosts:
            if host is not None:
                # One that waits for the other's lock would stop only now.
                host.gate.plan = None
        for at in range(2):
            await self._go_on(at)
        await self._pass_time(6)
        for key, _ in itertools.product(self.sent, range(TRIES_MAX)):
            if key not in self.said:
                await self._send(key, 0, None)
        assert self.said.keys() == self.sent.keys()
        for key, (status, _) in self.said.items():
            assert (await self._named(key) is None) == (status >= 400), "refused, and done afterwards"
            if self.sent[key].method == "POST":
                made = await self.world.pool.fetchval("SELECT count(*) FROM orders WHERE reference = $1", key)
                assert made == (status < 400), "one key made several orders"
        moved = await self.world.pool.fetchval(
            "SELECT count(*) FROM orders o WHERE company_id = $1 AND status <> 0 AND NOT EXISTS"
            " (SELECT FROM idempotency i WHERE i.order_id = o.id GROUP BY i.order_id HAVING count(*) > 1)",
            self.company,
        )
        assert moved == 0, "an order was changed for nobody"
        await self.world.assert_books_balance()


Plant: TypeAlias = Callable[[pytest.MonkeyPatch], None]


def repeat(
    server_url: str, master: bytes, *, lives: int, steps: int, number: int | None, plant: Plant | None = None
) -> None:
    """So many random lives of so many steps each; the same ones for the same number."""
    chosen = settings(
        max_examples=lives,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
        phases=(Phase.generate,),
    )
    with open_world(server_url, master) as world, capture_logs(), pytest.MonkeyPatch.context() as patch:
        machine: Any = type("Repeats", (Repeats,), {"world": world})
        patch.setattr(idempotent, "monotonic", lambda: machine.clock_s)
        if plant is not None:
            plant(patch)
        if number is not None:
            machine = seed(number)(machine)
        run_state_machine_as_test(machine, settings=chosen)


def test_a_request_is_done_once_and_answered_truly_whatever_happens_to_its_hosts(
    server_url: str, master: bytes
) -> None:
    """OP-28, OP-112, OP-113: whatever crashes, freezes or hangs, and whichever host is asked again."""
    repeat(server_url, master, lives=12, steps=20, number=1)


def without_fence(patch: pytest.MonkeyPatch) -> None:
    """Let an effect be named whoever has the ticket by then."""

    async def name_effects(tx: Tx, effects: Sequence[tuple[Ticket, int]]) -> None:
        for ticket, order_id in effects:
            await tx.execute(
                "UPDATE idempotency SET order_id = e.order_id FROM (SELECT $1::bigint AS order_id) AS e"
                " WHERE company_id = $2 AND state = $3 AND key = $4 AND idempotency.order_id IS NULL",
                order_id,
                ticket.company_id,
                ticket.state,
                ticket.key,
            )

    patch.setattr(store, "name_effects", name_effects)


def as_before(patch: pytest.MonkeyPatch) -> None:
    """Let refusals ask nobody either, and anybody answer."""

    async def unasked(_tx: Tx, _commands: object, answers: Sequence[Any]) -> list[Any]:
        return list(answers)

    async def keep(pool: Pool, answers: Sequence[tuple[Ticket, bytes | None]]) -> dict[Any, Any]:
        for ticket, answer in answers:
            await pool.execute(
                "UPDATE idempotency SET answer = a.answer, running_until = now()"
                " FROM (SELECT $1::bytea AS answer) AS a"
                " WHERE company_id = $2 AND state = $3 AND key = $4 AND idempotency.answer IS NULL",
                answer,
                ticket.company_id,
                ticket.state,
                ticket.key,
            )
        return {}

    without_fence(patch)
    patch.setattr(confirm, "_own_deeds_known", unasked)
    patch.setattr(store, "keep", keep)


def without_heartbeats(patch: pytest.MonkeyPatch) -> None:
    """Let nobody notice that a process is gone."""
    there = "NOT EXISTS (SELECT FROM process_seen"
    assert there in store._CLAIM
    patch.setattr(store, "_CLAIM", store._CLAIM.replace(there, f"false AND {there}"))


HARM = "what its own key did|in two ways|several orders|done afterwards|for nobody"


@pytest.mark.parametrize(
    ("plant", "found"),
    [
        pytest.param(as_before, HARM, marks=pytest.mark.soak),
        pytest.param(without_fence, HARM, marks=pytest.mark.soak),
        (without_heartbeats, "waits for nobody"),
    ],
    ids=["as before", "without a fence", "without heartbeats"],
)
def test_the_model_finds_what_was_wrong_before(
    server_url: str, master: bytes, plant: Plant, found: str
) -> None:
    """OP-112, OP-113: a model that finds no fault where there is one would show nothing."""
    with pytest.raises(AssertionError, match=found):
        repeat(server_url, master, lives=30, steps=20, number=2, plant=plant)


@pytest.mark.soak
def test_thousands_of_requests_are_done_once_and_answered_truly(server_url: str, master: bytes) -> None:
    """OP-28, OP-112, OP-113: the same for long, and different every time."""
    lives = int(os.environ.get("VOUCHERD_TEST_LIVES", "1000"))
    repeat(server_url, master, lives=lives, steps=60, number=None)
