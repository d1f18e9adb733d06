"""The batcher: fair batches out of single calls."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

import asyncpg
import pytest

from voucherd.batcher import BATCH_MAX, PARTS, SECOND_BATCH_FROM, Batcher, BatcherFull
from voucherd.db import Undone


class Counterpart:
    """What a gate runs: it keeps every batch, and waits while it is told to."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.running = asyncio.Event()
        self.open = asyncio.Event()
        self.open.set()

    async def run(self, commands: Sequence[str]) -> list[str]:
        """Every command in capitals."""
        self.batches.append(list(commands))
        self.running.set()
        await self.open.wait()
        return [command.upper() for command in commands]


@pytest.fixture
def counterpart() -> Counterpart:
    """A counterpart that answers at once."""
    return Counterpart()


def gate_to(counterpart: Counterpart, waiting_max: int = 10_000) -> Batcher[str, str]:
    """A gate in front of the counterpart."""
    return Batcher(counterpart.run, waiting_max=waiting_max)


async def some_turns() -> None:
    """Let the loop go round often enough for whatever is ready: nothing here waits for anything outside it."""
    for _ in range(20):
        await asyncio.sleep(0)


async def busy_gate(counterpart: Counterpart, waiting_max: int = 10_000) -> Batcher[str, str]:
    """A gate whose first batch is in flight and stays there until the counterpart opens."""
    counterpart.open.clear()
    batcher = gate_to(counterpart, waiting_max)
    batcher.submit(0, "first")
    await counterpart.running.wait()
    return batcher


async def test_a_call_alone_is_a_batch_of_one_and_does_not_wait(counterpart: Counterpart) -> None:
    """OP-48: there is no timer; an idle gate starts at once."""
    batcher = gate_to(counterpart)

    assert await batcher.submit(1, "a") == "A"

    assert counterpart.batches == [["a"]]
    assert (batcher.waiting, batcher.in_flight, batcher.batches, batcher.calls) == (0, 0, 1, 1)


async def test_calls_that_arrive_together_start_together(counterpart: Counterpart) -> None:
    """OP-48: one batch serves them all."""
    batcher = gate_to(counterpart)

    answers = await asyncio.gather(*[batcher.submit(1, letter) for letter in "abc"])

    assert answers == ["A", "B", "C"]
    assert counterpart.batches == [["a", "b", "c"]]


async def test_a_batch_takes_every_companys_first_call_before_anyones_second(
    counterpart: Counterpart,
) -> None:
    """OP-48: round robin by company."""
    batcher = await busy_gate(counterpart)
    calls = [batcher.submit(1, f"a{n}") for n in range(5)]
    calls += [batcher.submit(2, f"b{n}") for n in range(2)]
    calls += [batcher.submit(3, "c0")]

    counterpart.open.set()
    await asyncio.gather(*calls)

    assert counterpart.batches[1] == ["a0", "b0", "c0", "a1", "b1", "a2", "a3", "a4"]


async def test_a_backlog_delays_another_company_by_at_most_one_batch(counterpart: Counterpart) -> None:
    """OP-48: behind thousands of waiting calls of one company, another's single call is in the next batch."""
    batcher = await busy_gate(counterpart)
    backlog = [batcher.submit(1, f"a{n}") for n in range(3_000)]
    late = batcher.submit(2, "single")

    counterpart.open.set()
    await late

    # One batch may have started beside the first before the single call came; the next one holds it.
    assert any("single" in batch for batch in counterpart.batches[:3])
    await asyncio.gather(*backlog)
    assert max(map(len, counterpart.batches)) == BATCH_MAX


async def test_a_second_batch_starts_beside_the_first_only_under_load(counterpart: Counterpart) -> None:
    """OP-48: two batches in flight when many wait, never three."""
    batcher = await busy_gate(counterpart)
    calls = [batcher.submit(1, f"a{n}") for n in range(SECOND_BATCH_FROM - 1)]
    await some_turns()
    assert batcher.in_flight == 1

    calls.append(batcher.submit(2, "b"))
    await some_turns()
    assert batcher.in_flight == 2
    calls += [batcher.submit(3, f"c{n}") for n in range(3 * SECOND_BATCH_FROM)]
    await some_turns()
    assert batcher.in_flight == 2

    counterpart.open.set()
    await asyncio.gather(*calls)


async def test_too_many_waiting_calls_are_turned_away_and_room_is_given_again(
    counterpart: Counterpart,
) -> None:
    """OP-48: every queue has a maximum."""
    batcher = await busy_gate(counterpart, waiting_max=3)
    calls = [batcher.submit(1, f"a{n}") for n in range(3)]

    with pytest.raises(BatcherFull):
        batcher.submit(2, "one too many")

    counterpart.open.set()
    await asyncio.gather(*calls)
    assert await batcher.submit(2, "now") == "NOW"


async def test_a_caller_that_left_is_not_served_and_takes_no_place(counterpart: Counterpart) -> None:
    """OP-48: a client that left before its turn asks for nothing any more."""
    batcher = await busy_gate(counterpart)
    left, stays = batcher.submit(1, "left"), batcher.submit(1, "stays")
    left.cancel()

    counterpart.open.set()
    assert await stays == "STAYS"

    assert counterpart.batches[1:] == [["stays"]]
    assert batcher.waiting == 0


async def test_a_gate_whose_callers_all_left_still_serves_the_next(counterpart: Counterpart) -> None:
    """OP-48: an empty batch is no batch, and no stop either."""
    batcher = await busy_gate(counterpart)
    for call in [batcher.submit(1, f"a{n}") for n in range(100)]:
        call.cancel()

    counterpart.open.set()
    await some_turns()
    assert await batcher.submit(2, "next") == "NEXT"
    assert batcher.in_flight == 0


async def test_a_caller_that_leaves_during_its_batch_harms_nobody(counterpart: Counterpart) -> None:
    """OP-48: the batch is stored for all; one of its answers is thrown away."""
    batcher = await busy_gate(counterpart)
    leaves, stays = batcher.submit(1, "leaves"), batcher.submit(2, "stays")
    counterpart.open.set()
    await asyncio.sleep(0)
    leaves.cancel()

    assert await stays == "STAYS"


async def test_a_command_that_the_database_refuses_fails_alone() -> None:
    """OP-48: its neighbours are tried again without it, and are stored."""
    runs: list[list[str]] = []

    async def run(commands: Sequence[str]) -> list[str]:
        runs.append(list(commands))
        if "poison" in commands:
            raise asyncpg.CheckViolationError("no")
        return list(commands)

    batcher: Batcher[str, str] = Batcher(run, waiting_max=10)
    calls = [batcher.submit(n, word) for n, word in enumerate(("a", "poison", "b"))]

    answers = await asyncio.gather(*calls, return_exceptions=True)

    assert [answers[0], answers[2]] == ["a", "b"]
    assert isinstance(answers[1], asyncpg.CheckViolationError)
    assert runs == [["a", "poison", "b"], ["a"], ["poison"], ["b"]]


class Fragile:
    """What a batcher runs: it fails with an error of its own when a poisoned command is among the commands."""

    def __init__(self, error: Exception, *, undone: bool) -> None:
        self.error = error
        self.undone = undone
        self.runs: list[list[str]] = []

    async def run(self, commands: Sequence[str]) -> list[str]:
        """The commands as they came."""
        self.runs.append(list(commands))
        if any(command.startswith("poison") for command in commands):
            if self.undone:
                raise Undone from self.error
            raise self.error
        return list(commands)


async def test_a_command_whose_decision_raises_fails_alone_with_its_own_error() -> None:
    """OP-48: whatever was raised before anything was stored, the neighbours are served."""
    error = ZeroDivisionError("a bug")
    fragile = Fragile(error, undone=True)
    batcher: Batcher[str, str] = Batcher(fragile.run, waiting_max=10)

    calls = [batcher.submit(n, word) for n, word in enumerate(("a", "poison", "b"))]
    answers = await asyncio.gather(*calls, return_exceptions=True)

    assert answers == ["a", error, "b"]
    assert fragile.runs == [["a", "poison", "b"], ["a"], ["poison"], ["b"]]


async def test_a_large_batch_is_taken_apart_in_few_runs() -> None:
    """OP-48: one bad call among 256 costs two dozen transactions, not 256."""
    fragile = Fragile(ZeroDivisionError("a bug"), undone=True)
    batcher: Batcher[str, str] = Batcher(fragile.run, waiting_max=BATCH_MAX)
    words = ["poison" if n == 100 else str(n) for n in range(BATCH_MAX)]

    calls = [batcher.submit(n, word) for n, word in enumerate(words)]
    answers = await asyncio.gather(*calls, return_exceptions=True)

    assert [answer for answer in answers if isinstance(answer, str)] == [w for w in words if w != "poison"]
    assert isinstance(answers[100], ZeroDivisionError)
    assert len(fragile.runs) <= 1 + 3 * PARTS


async def test_a_batch_that_may_have_been_stored_is_not_tried_again() -> None:
    """OP-48: an error after COMMIT was sent, or of which nobody knows, fails all of its batch at once."""
    fragile = Fragile(ZeroDivisionError("a bug after the commit"), undone=False)
    batcher: Batcher[str, str] = Batcher(fragile.run, waiting_max=10)

    calls = [batcher.submit(n, word) for n, word in enumerate(("a", "poison", "b"))]
    answers = await asyncio.gather(*calls, return_exceptions=True)

    assert answers == [fragile.error] * 3
    assert len(fragile.runs) == 1


async def test_a_batch_that_was_undone_because_the_database_is_away_is_not_tried_again() -> None:
    """OP-48: nobody in it is at fault, and each try would wait for the database anew."""
    fragile = Fragile(asyncpg.ConnectionDoesNotExistError("gone"), undone=True)
    batcher: Batcher[str, str] = Batcher(fragile.run, waiting_max=10)

    calls = [batcher.submit(n, word) for n, word in enumerate(("a", "poison", "b"))]
    answers = await asyncio.gather(*calls, return_exceptions=True)

    assert answers == [fragile.error] * 3
    assert len(fragile.runs) == 1


async def test_what_only_reads_is_tried_again_after_any_error() -> None:
    """OP-48: a Find that can't be answered takes no other Find along."""
    fragile = Fragile(ZeroDivisionError("a bug"), undone=False)
    batcher: Batcher[str, str] = Batcher(fragile.run, waiting_max=10, stores=False)

    calls = [batcher.submit(n, word) for n, word in enumerate(("a", "poison", "b"))]

    assert await asyncio.gather(*calls, return_exceptions=True) == ["a", fragile.error, "b"]


async def test_a_lost_database_fails_the_batch_at_once_and_the_gate_lives_on() -> None:
    """OP-48: whether a batch was stored before the connection broke is unknown, so it is not tried again."""
    lost = True
    runs = 0

    async def run(commands: Sequence[str]) -> list[str]:
        nonlocal runs
        runs += 1
        if lost:
            raise asyncpg.ConnectionDoesNotExistError("gone")
        return list(commands)

    batcher: Batcher[str, str] = Batcher(run, waiting_max=10)
    answers = await asyncio.gather(*[batcher.submit(n, "x") for n in range(3)], return_exceptions=True)
    assert [type(answer) for answer in answers] == [asyncpg.ConnectionDoesNotExistError] * 3
    assert runs == 1

    lost = False
    assert await batcher.submit(1, "again") == "again"


async def test_a_batch_whose_database_hangs_ends_at_its_limit_and_the_gate_lives_on(
    counterpart: Counterpart,
) -> None:
    """OP-109: nobody waits behind a batch that gets no answer."""
    batcher: Batcher[str, str] = Batcher(counterpart.run, waiting_max=10, run_s_max=0.01)
    counterpart.open.clear()
    with pytest.raises(TimeoutError):
        await batcher.submit(0, "hung")
    batcher._run_s_max = None
    counterpart.open.set()
    assert await batcher.submit(0, "next") == "NEXT"


async def test_a_call_that_waited_too_long_for_its_turn_is_told_to_come_again(
    counterpart: Counterpart,
) -> None:
    """OP-109: nothing is done for who was answered long ago."""
    batcher: Batcher[str, str] = Batcher(counterpart.run, waiting_max=10, wait_s_max=60.0)
    counterpart.open.clear()
    first = batcher.submit(0, "first")
    await counterpart.running.wait()
    old, new = batcher.submit(1, "old"), batcher.submit(2, "new")
    (command, future, request, since) = batcher._lanes[1].popleft()
    batcher._lanes[1].append((command, future, request, since - 61.0))
    counterpart.open.set()
    assert await first == "FIRST"
    assert await new == "NEW"
    with pytest.raises(BatcherFull):
        await old
    assert counterpart.batches == [["first"], ["new"]]


async def test_any_other_failure_belongs_to_the_callers_of_that_batch() -> None:
    """OP-48: nobody waits for ever."""

    async def run(commands: Sequence[str]) -> list[str]:
        raise LookupError(commands[0])

    batcher: Batcher[str, str] = Batcher(run, waiting_max=10)
    with pytest.raises(LookupError, match="a"):
        await batcher.submit(1, "a")
    with pytest.raises(LookupError, match="b"):
        await batcher.submit(1, "b")


async def test_fifty_equal_companies_are_served_equally(counterpart: Counterpart) -> None:
    """OP-48: Jain's index of what 50 companies got is at least 0.99, at any moment."""
    batcher = await busy_gate(counterpart)
    companies, each = 50, 60
    # One company after another asks for everything it wants: the worst order of arrival.
    calls = [batcher.submit(c, str(c)) for c in range(1, companies + 1) for _ in range(each)]

    counterpart.open.set()
    await asyncio.gather(*calls)

    served: Counter[str] = Counter()
    batches = iter(counterpart.batches)
    next(batches)
    early = next(batches)  # It may have started beside the first, before all of them had asked.
    for batch in batches:
        served.update(batch)
        shares = [served[str(c)] for c in range(1, companies + 1)]
        jain = sum(shares) ** 2 / (companies * sum(share * share for share in shares))
        assert jain >= 0.99
    assert len(early) + sum(served.values()) == companies * each


async def test_a_stop_waits_for_everything_that_was_submitted(counterpart: Counterpart) -> None:
    """OP-48: a call that was taken in is answered, also one whose batch has not started yet."""
    batcher = gate_to(counterpart)
    calls = [batcher.submit(1, "a"), batcher.submit(2, "b")]

    await batcher.drain()

    assert [call.result() for call in calls] == ["A", "B"]
