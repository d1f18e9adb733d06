"""How the machine does things: each operation to the model and to the service, and what an answer must be."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeAlias

import asyncpg
import pytest
from hypothesis.stateful import RuleBasedStateMachine

from tests.faults.stumbling import ProcessFailed
from tests.patience import HANG_S
from tests.simulation.model import Model, Order, Refused
from tests.simulation.world import World
from voucherd.db import OutcomeUnknown
from voucherd.ids import State
from voucherd.orders.answers import Answer, StoredUnseen
from voucherd.orders.rules.decide import Cancel, Finalise
from voucherd.orders.rules.refusals import OrderNotFound, Refusal
from voucherd.orders.rules.sandbox import SandboxOutcome
from voucherd.orders.rules.states import Status

PARKED_S_MAX = HANG_S
FALLS = (
    OSError,
    TimeoutError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    StoredUnseen,
    OutcomeUnknown,
    ProcessFailed,
    RuntimeError,  # A gate whose batch was cancelled.
)
Op: TypeAlias = tuple[str, int]
"""An operation by name, and the order that it is about."""


class Driver(RuleBasedStateMachine):
    """The service and the model, side by side."""

    world: World

    def __init__(self) -> None:
        super().__init__()
        self.run = self.world.run
        self.model = Model()
        self.buyers: list[int] = []
        self.removed: dict[int, Order] = {}
        self.codes: dict[str, tuple[int, int]] = {}
        self.on_line: dict[tuple[int, int], str] = {}
        self.steps = 0
        self.start()

    def start(self) -> None:
        """Start the service anew: all that it knew is what the database knows."""
        self.order_service, self.worker = self.world.order_service(), self.world.worker()

    def expect(
        self, model: Model, op: Op, sandbox_outcome: SandboxOutcome = SandboxOutcome.FINISHED
    ) -> Refused | None:
        """Do it to the model; why it refuses."""
        name, order_id = op
        if name == "end_waiting":
            model.end_waiting()
            return None
        order = model.orders.get(order_id)
        if order is None:
            return OrderNotFound
        if name == "cancel":
            return model.cancel(order)
        refusal = model.refuses_finalise(order, sandbox_outcome, resolve=name == "resolve")
        if refusal is None:
            model.finalise(order, sandbox_outcome, resolve=name == "resolve")
        return refusal

    def calls(self, op: Op) -> Coroutine[Any, Any, Any]:
        """The same, done to the service."""
        name, order_id = op
        if name == "deliver":
            return self.worker.run_once("deliver")
        if name == "end_waiting":
            return self.worker.run_once("end_waiting")
        if name == "cancel":
            return self.order_service.cancel(self.command(order_id))
        command = self.finalise(order_id, SandboxOutcome.FINISHED, resolve=name == "resolve")
        return (
            self.order_service.resolve(command) if name == "resolve" else self.order_service.confirm(command)
        )

    def command(self, order_id: int) -> Cancel:
        """Whose order it is."""
        order = self.model.orders.get(order_id) or self.removed[order_id]
        return Cancel(order_id, order.company, order.state)

    def finalise(self, order_id: int, sandbox_outcome: SandboxOutcome, *, resolve: bool = False) -> Finalise:
        """A command to finalise the order."""
        mine = self.command(order_id)
        return Finalise(order_id, mine.company_id, mine.state, resolve, sandbox_outcome, 3600)

    def answer(self, call: Coroutine[Any, Any, Answer], refusal: Refused | None) -> Answer | None:
        """What the service says: the predicted refusal, or an answer that is true."""
        if refusal is None:
            return self.checked(self.run(call))
        with pytest.raises(refusal) as refused:
            self.run(call)
        assert refused.type is refusal
        return None

    def checked(self, answer: Answer) -> Answer:
        """An answer whose codes are codes of their shelf, each on one line for ever (invariant 3, OP-41)."""
        order = answer.order
        known = self.model.orders.get(order.id)
        if known is not None:
            assert (order.status, order.lines_finished) == (known.status, known.delivered)
        handed = [outcome for outcome in order.outcomes if outcome.lot_id is not None]
        for outcome, codes in zip(handed, answer.codes or [], strict=True):
            item = next(one for one in order.items if one.first_line <= outcome.line_from < one.end_line)
            for line, (code, _) in enumerate(codes, start=outcome.line_from):
                assert self.on_line.setdefault((order.id, line), code) == code
                if order.state is State.LIVE:
                    assert self.codes[code] == item.shelf
                else:
                    assert code.startswith("TEST")
        assert len(set(self.on_line.values())) == len(self.on_line), "a code is on two lines"
        return answer

    def keep_slow(self, order_id: int) -> None:
        """What is to be slow in the model does not become fast while the test runs."""
        order = self.model.orders.get(order_id)
        if order is not None and order.slow and order.status is Status.PENDING:
            self.run(self.world.set_slow(order_id, slow=True))

    async def parked(self, call: asyncio.Task[Any]) -> None:
        """Until the call is done or waits for codes."""
        async with asyncio.timeout(PARKED_S_MAX):
            while not call.done() and not self.order_service.watch.parked:  # noqa: ASYNC110 - Nothing tells us.
                await asyncio.sleep(0.002)

    async def die(self, call: asyncio.Task[Any]) -> None:
        """The process of the call dies, and nothing of it goes on."""
        call.cancel()
        end: Any = (await asyncio.gather(call, return_exceptions=True))[0]
        await self.order_service.stop()
        if isinstance(end, Exception) and not isinstance(end, (*FALLS, Refusal)):
            raise end
