"""One process's side of rate limits, with loans that are written down here (OP-27)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence

import pytest
from structlog.testing import capture_logs

from voucherd.companies.model import Company
from voucherd.ids import State
from voucherd.keys.callers import Caller
from voucherd.keys.key_text import SCOPES_DEFAULT
from voucherd.limits import rate_limits
from voucherd.limits.rate_limits import RateLimiter, Taken
from voucherd.limits.rate_store import Ask, Loan

COMPANY = Company(1, "Acme", "NL", None, active=True, verified=True, expose_costs=True)
WAIT_S_MAX = 10.0
"""Nothing here takes time; whoever is not answered never will be."""


class Process:
    """A limiter, its clock, which stands until it is moved, and a lender that answers from a list."""

    def __init__(self, *loans: Loan | Exception) -> None:
        self.now_s = 1_000.0
        self.loans = list(loans)
        self.asks: list[Ask] = []
        self.limiter = RateLimiter(self._lend, lambda: self.now_s)

    async def _lend(self, asks: Sequence[Ask]) -> list[Loan]:
        self.asks += asks
        answer = self.loans.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return [answer]

    def caller(self, key_id: int = 1, rate_limit: int = 600) -> Caller:
        """A caller with this key."""
        window = self.limiter.window(key_id)
        return Caller(key_id, 1, State.LIVE, SCOPES_DEFAULT, COMPANY, rate_limit, window)

    async def take(self, key_id: int = 1, rate_limit: int = 600) -> Taken:
        """One request."""
        return await answered(self.pending(key_id, rate_limit))

    async def pending(self, key_id: int = 1, rate_limit: int = 600) -> Taken:
        """One request that may wait for a loan."""
        who = self.caller(key_id, rate_limit)
        return self.limiter.take(who) or await self.limiter.borrow(who)

    async def take_all(self, count: int, rate_limit: int = 600) -> list[bool]:
        """Whether each of so many requests, one after another, may pass."""
        return [(await self.take(rate_limit=rate_limit)).allowed for _ in range(count)]

    async def quiet(self) -> None:
        """Let what was asked ahead be answered."""
        for _ in range(20):
            await asyncio.sleep(0)


async def answered(waiting: Awaitable[Taken]) -> Taken:
    """The answer to a request, which must come."""
    return await asyncio.wait_for(waiting, WAIT_S_MAX)


def loan(
    given: int, number: int = 5, *, lent: int | None = None, before: int = 0, left_s: float = 30
) -> Loan:
    """A loan to key 1."""
    return Loan(1, number, given, given if lent is None else lent, before, int(left_s * 1_000))


async def test_a_loan_is_handed_out_from_memory_and_told_in_the_headers() -> None:
    """OP-27: what remains is what nobody has borrowed and what this process still holds; it resets with the minute."""
    process = Process(loan(6))

    first = await process.take()
    process.now_s += 0.5
    second = await process.take()

    assert (first, second) == (Taken(True, 599, 30), Taken(True, 598, 30))
    assert process.asks == [Ask(1, 600, 6, 0, -1)]


@pytest.mark.parametrize(
    ("before", "left_s", "remaining"),
    [(100, 30, 549), (101, 30, 549), (100, 60, 499), (100, 90, 499), (2_000, 30, 5)],
)
async def test_the_last_minute_counts_in_the_header_for_the_part_of_it_that_is_within_a_minute(
    before: int, left_s: float, remaining: int
) -> None:
    """OP-27: the window slides, a minute is never counted more than once, and nothing remains below nothing."""
    process = Process(loan(6, before=before, left_s=left_s))
    assert (await process.take()).remaining == remaining


async def test_what_a_minute_left_unused_goes_back_with_the_next_question() -> None:
    """OP-27: a loan that lay idle is returned to its own minute, and not a second time."""
    process = Process(loan(6), loan(6, 6), loan(6, 8))
    await process.take_all(2)

    process.now_s += 30
    assert await process.take() == Taken(True, 599, 30)
    process.now_s += 30.5
    await process.take()

    assert process.asks == [Ask(1, 600, 6), Ask(1, 600, 6, 4, 5), Ask(1, 600, 6, 5, 6)]


async def test_a_loan_ends_with_its_minute_and_not_before() -> None:
    """OP-27: at its very end more is borrowed; a moment earlier it still holds."""
    process = Process(loan(6), loan(6, 6))
    await process.take()

    process.now_s += 29.75
    assert (await process.take()).reset_s == 1
    assert len(process.asks) == 1
    process.now_s += 0.25
    await process.take()
    assert process.asks[1:] == [Ask(1, 600, 6, 4, 5)]


async def test_more_is_borrowed_before_the_last_is_used_and_a_new_minute_begins_from_nothing() -> None:
    """OP-27: what is left of an old minute is not added to a loan of the new one."""
    process = Process(loan(6), loan(6, 6, lent=6))
    await process.take_all(2)
    await process.quiet()
    assert len(process.asks) == 1
    await process.take_all(1)
    await process.quiet()

    assert process.asks[1:] == [Ask(1, 600, 12)], "three are left, and the minute is not over"
    assert (await process.take()).remaining == 594 + 5


async def test_a_second_loan_of_the_same_minute_is_added_to_the_first() -> None:
    """OP-27: nothing that was borrowed is lost."""
    process = Process(loan(6), loan(4, lent=10))
    await process.take_all(3)
    await process.quiet()
    assert (await process.take()).remaining == 590 + 3 + 4 - 1
    await process.quiet()
    assert len(process.asks) == 2, "the next is due when half of the last loan is used"


async def test_small_loans_are_not_followed_by_another_before_it_is_needed() -> None:
    """OP-27: it might lie idle, and be missed by another process."""
    process = Process(loan(3), loan(4, lent=7), loan(1, lent=8))
    await process.take_all(3)
    await process.quiet()
    assert len(process.asks) == 1
    await process.take_all(2)
    await process.quiet()
    assert len(process.asks) == 3


async def test_loans_double_while_they_are_used_up_within_a_second_and_shrink_again() -> None:
    """OP-27: from a hundredth of the limit to a twentieth, so that a busy key costs few writes."""
    process = Process(*[loan(1, lent=at) for at in range(1, 9)])
    for pause_s in (0.0, 0.5, 0.99, 0.5, 0.5, 1.0, 0.5):
        process.now_s += pause_s
        await process.take()
    assert [ask.want for ask in process.asks] == [6, 12, 24, 30, 30, 6, 12]

    small = Process(loan(1), loan(1, lent=2))
    await small.take_all(2, rate_limit=198)
    assert [ask.want for ask in small.asks] == [1, 2]
    tiny = Process(loan(1), loan(1, lent=2))
    await tiny.take_all(2, rate_limit=1)
    assert [ask.want for ask in tiny.asks] == [1, 1]


async def test_all_who_wait_are_one_question_and_are_served_in_turn() -> None:
    """OP-27: as much is asked for as wait, and again for those for whom it was not enough."""
    process = Process(loan(4), loan(0, lent=600))

    taken = await asyncio.wait_for(asyncio.gather(*[process.pending() for _ in range(9)]), WAIT_S_MAX)

    assert [one.allowed for one in taken] == [True] * 4 + [False] * 5
    assert [ask.want for ask in process.asks] == [9, 12]


async def test_a_loan_that_is_not_enough_is_followed_by_another_for_the_rest() -> None:
    """OP-27: nobody waits in vain, however small the loans are."""
    process = Process(loan(3), loan(2, lent=5))

    taken = await asyncio.wait_for(asyncio.gather(*[process.pending() for _ in range(5)]), WAIT_S_MAX)

    assert [one.remaining for one in taken] == [599, 598, 597, 596, 595]
    assert [ask.want for ask in process.asks] == [6, 12]


async def test_what_went_back_is_not_handed_out_if_the_minute_goes_on() -> None:
    """OP-27: by the database's clock the minute may end a little later."""
    process = Process(loan(6), loan(6, lent=8, left_s=1))
    await process.take_all(2)
    process.now_s += 30

    assert await process.take() == Taken(True, 592 + 5, 1)
    assert process.asks[1] == Ask(1, 600, 6, 4, 5)


async def test_a_process_that_counts_alone_says_so_in_the_log() -> None:
    """OP-27: an operator learns that limits are not shared just now, and why."""
    with capture_logs() as lines:
        await Process(OSError("no route"), OSError()).take()

    assert {
        "event": "rate_limits_counted_alone",
        "keys": 1,
        "error": "OSError('no route')",
        "log_level": "warning",
    } in lines


async def test_whoever_comes_while_a_question_is_under_way_waits_for_its_answer() -> None:
    """OP-27: one question for each key at a time."""
    process, answer = Process(), asyncio.Event()

    async def lend(asks: Sequence[Ask]) -> list[Loan]:
        process.asks += asks
        await answer.wait()
        return [loan(3)]

    process.limiter._lend = lend
    waiting = []
    for _ in range(3):
        waiting.append(asyncio.create_task(process.pending()))
        await process.quiet()
    answer.set()

    taken = await asyncio.wait_for(asyncio.gather(*waiting), WAIT_S_MAX)

    assert [one.remaining for one in taken] == [599, 598, 597]
    assert len(process.asks) == 1


@pytest.mark.parametrize(
    ("answer", "taken"), [(loan(1), Taken(True, 98, 30)), (OSError(), Taken(True, 98, 60))]
)
async def test_the_first_second_of_a_clock_is_like_any_other(answer: Loan | Exception, taken: Taken) -> None:
    """OP-27: a clock that has just begun to run makes nobody wait or borrow more."""
    process = Process(answer, OSError())
    process.now_s = 0.5

    assert await process.take(rate_limit=99) == taken
    assert process.asks[0] == Ask(1, 99, 1)


async def test_whoever_has_gone_takes_nothing_of_a_loan() -> None:
    """OP-27: a request that was cancelled while it waited is not counted."""
    process = Process(loan(3))
    waiting = [asyncio.create_task(process.pending()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()

    taken = await asyncio.wait_for(asyncio.gather(*waiting[1:]), WAIT_S_MAX)

    assert [one.remaining for one in taken] == [599, 598]


@pytest.mark.parametrize(
    ("refusal", "rate_limit", "wait_s"),
    [
        (loan(0, lent=5, before=20, left_s=50), 10, 35.001),
        (loan(0, lent=10, before=0, left_s=20), 10, 20.001),
        (loan(0, lent=10, before=20, left_s=20), 10, 20.001),
        (loan(0, lent=20, before=0, left_s=20), 10, 50.001),
        (loan(0, lent=20, before=40, left_s=20), 10, 50.001),
        (loan(0, lent=1, before=0, left_s=20), 1, 20.001),
        (loan(0, lent=5, before=0, left_s=20), 10, 20.001),
        (loan(0, lent=10, before=0, left_s=0.125), 10, 0.25),
        (loan(0, lent=0, before=0, left_s=3), 0, 63.001),
    ],
    ids=[
        "last minute",
        "full",
        "full of both",
        "limit was lowered",
        "lowered in both",
        "one a minute",
        "not full",
        "at the turn",
        "no quota",
    ],
)
async def test_a_refusal_lasts_until_one_more_request_fits(
    refusal: Loan, rate_limit: int, wait_s: float
) -> None:
    """OP-27: `Retry-After` is a promise, and until then nothing is asked."""
    process = Process(refusal, loan(1))

    assert await process.take(rate_limit=rate_limit) == Taken(False, 0, max(1, int(wait_s) + 1))
    process.now_s += wait_s - 0.0005
    assert await process.take(rate_limit=rate_limit) == Taken(False, 0, 1)
    assert len(process.asks) == 1
    process.now_s += 0.001
    assert (await process.take(rate_limit=rate_limit)).allowed


async def test_a_minute_ends_by_the_clock_of_the_question_whatever_the_answer_took() -> None:
    """OP-27: no loan outlives its minute at the database; a refusal counts from the answer."""
    process = Process()

    async def slow(asks: Sequence[Ask]) -> list[Loan]:
        process.now_s += 1.5
        return [loan(6 if len(process.asks) == 0 else 0, lent=600, left_s=10)]

    process.limiter._lend = slow
    assert (await process.take()).reset_s == 9
    process.limiter.window(1).left = 0
    process.asks.append(Ask(1, 600, 0))
    assert (await process.take()) == Taken(False, 0, 11)
    assert process.limiter.window(1).size == 12, "by its answer the first loan was just now"


async def test_a_process_that_lost_the_database_lends_itself_the_quota_once_a_minute() -> None:
    """OP-27: limits hold without the database, which is asked again before long."""
    process = Process(*[OSError("no route")] * 20)

    assert await process.take(rate_limit=5) == Taken(True, 4, 60)
    assert await process.take_all(6, rate_limit=5) == [True] * 4 + [False] * 2
    refused = await process.take(rate_limit=5)
    assert refused == Taken(False, 0, 1)
    asked = len(process.asks)
    process.now_s += 0.5
    assert not (await process.take(rate_limit=5)).allowed
    assert len(process.asks) == asked, "refused from memory for a second"
    process.now_s += 0.5
    assert not (await process.take(rate_limit=5)).allowed
    assert len(process.asks) == asked + 1
    process.now_s += 58.75
    assert not (await process.take(rate_limit=5)).allowed
    process.now_s += 0.25
    process.now_s += 1.0
    assert await process.take(rate_limit=5) == Taken(True, 4, 60)


@pytest.mark.parametrize("rate_limit", [1, 5])
async def test_a_process_that_counts_alone_asks_again_after_one_request_of_a_small_quota(
    rate_limit: int,
) -> None:
    """OP-27: a hundredth of the quota is one request at least."""
    process = Process(*[OSError("no route")] * 3)
    await process.take(rate_limit=rate_limit)
    await process.quiet()
    assert [ask.want for ask in process.asks] == [1, 1]


async def test_a_process_that_counts_alone_has_a_new_quota_just_when_its_minute_is_over() -> None:
    """OP-27: once a minute, whatever the database lent before it went away."""
    process = Process(loan(1), *[OSError("no route")] * 30)
    assert await process.take_all(7, rate_limit=5) == [True] * 6 + [False]
    process.now_s += 60
    assert await process.take(rate_limit=5) == Taken(True, 4, 60)


async def test_a_process_that_counts_alone_asks_after_a_hundredth_of_the_quota() -> None:
    """OP-27: quotas are shared again as soon as the database is back."""
    process = Process(OSError("no route"), OSError("no route"), loan(6, lent=100))
    await process.take_all(6)
    await process.quiet()
    assert (len(process.asks), process.limiter.window(1).left) == (2, 594)
    await process.take_all(6)
    await process.quiet()

    assert len(process.asks) == 3
    assert (await process.take()).remaining == 500 + 5, "what it lent itself counts no longer"


async def test_a_database_that_goes_away_in_a_minute_leaves_the_rest_of_it_to_each_process() -> None:
    """OP-27: a loan of the database's is replaced by a quota of the process's own, with a minute of its own."""
    process = Process(loan(6), OSError("no route"))
    await process.take_all(3)
    await process.quiet()

    assert await process.take() == Taken(True, 599, 60)


async def test_a_lender_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """OP-27: past the longest wait this process counts by itself."""
    monkeypatch.setattr(rate_limits, "WAIT_S_MAX", 0.01)
    process = Process()
    process.limiter._lend = never

    assert await process.take(rate_limit=5) == Taken(True, 4, 60)
    await process.limiter.stop()


async def never(_asks: Sequence[Ask]) -> list[Loan]:
    """A lender that does not answer."""
    await asyncio.Event().wait()
    raise AssertionError("nobody sets it")


async def test_a_limiter_that_stops_answers_those_who_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """OP-27: nobody hangs because a process ends, and nothing is under way when it has stopped."""
    monkeypatch.setattr(rate_limits, "WAIT_S_MAX", 3_600.0)
    process = Process()
    await process.limiter.stop()
    process.limiter._lend = never
    waiting = asyncio.create_task(process.pending(rate_limit=5))
    await process.quiet()

    async def stop() -> bool:
        await process.limiter.stop()
        return process.limiter._borrowing is not None and process.limiter._borrowing.done()

    stopping = asyncio.create_task(stop())
    await process.quiet()
    assert stopping.done(), "it does not wait for the lender"
    assert stopping.result()
    assert await answered(waiting) == Taken(True, 4, 60)


async def test_a_key_that_the_lender_forgot_is_counted_alone() -> None:
    """OP-27: one answer for each key, whatever becomes of the question."""
    process = Process(loan(6))

    mine, other = await asyncio.wait_for(
        asyncio.gather(process.pending(1, 600), process.pending(2, 5)), WAIT_S_MAX
    )

    assert (mine, other) == (Taken(True, 599, 30), Taken(True, 4, 60))
    assert [ask.key_id for ask in process.asks[:2]] == [1, 2]


async def test_many_keys_are_asked_for_in_pieces_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """OP-27: one statement locks so many rows at most, in one order everywhere."""
    monkeypatch.setattr(rate_limits, "ASKS_MAX", 2)
    questions: list[list[int]] = []

    async def lend(asks: Sequence[Ask]) -> list[Loan]:
        questions.append([ask.key_id for ask in asks])
        return [Loan(ask.key_id, 5, 1, 1, 0, 30_000) for ask in asks]

    process = Process()
    process.limiter._lend = lend
    taken = await asyncio.wait_for(asyncio.gather(*[process.pending(key) for key in (3, 1, 2)]), WAIT_S_MAX)

    assert all(one.allowed for one in taken)
    assert questions == [[1, 2], [3]]


def test_counts_outlive_a_look_up_of_the_key_until_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """OP-27: a changed key keeps its past; beyond the bound the one that was seen first starts anew."""
    monkeypatch.setattr(rate_limits, "WINDOWS_MAX", 2)
    limiter = RateLimiter(never)
    first, second = limiter.window(1), limiter.window(2)

    assert limiter.window(1) is first
    assert limiter.window(2) is second
    limiter.window(3)
    assert limiter.window(2) is second
    assert limiter.window(1) is not first
    assert limiter.window(1).key_id == 1


def test_nothing_is_taken_of_a_window_that_never_borrowed() -> None:
    """OP-27: the first request of a key takes a loan, and is not refused meanwhile."""
    process = Process()
    process.now_s = 0.0
    assert process.limiter.take(process.caller()) is None
