"""The answer limit: calls that take too long are answered for, and their work ends or goes on as it must."""

from __future__ import annotations

import asyncio
from time import perf_counter

from tests.patience import until_true
from voucherd.http import Request, Response
from voucherd.server.answer_limit import LOOK_EVERY_S, AnswerLimit


def request(*, limit_s: float = 0.0, goes_on: bool = False) -> Request:
    """A call that has just arrived."""
    return Request("GET", "/", b"", {}, b"", "", "req_1", perf_counter(), limit_s=limit_s, goes_on=goes_on)


async def test_work_that_ends_in_time_is_its_callers_answer() -> None:
    """OP-109: and nobody looks at the clock when no call is under way."""
    answer_limit, asked = AnswerLimit(60.0), request()
    answer = Response(204)

    async def work() -> Response:
        return answer

    assert await answer_limit.kept(asked, work(), asked.started) == (True, answer)
    await until_true(lambda: not answer_limit._looking)
    assert not answer_limit._calls


async def test_work_that_takes_too_long_is_not_waited_for() -> None:
    """OP-109: it ends where it hangs, however long it would take to do so."""
    answer_limit, asked, ended = AnswerLimit(60.0), request(limit_s=0.2), asyncio.Event()

    async def work() -> Response:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    assert await answer_limit.kept(asked, work(), asked.started) == (False, None)
    await ended.wait()
    await until_true(lambda: not answer_limit._abandoned)


async def test_work_whose_call_may_be_repeated_goes_on_to_its_end() -> None:
    """OP-28, OP-109: a repetition waits until it is known what became of the first."""
    answer_limit, asked = AnswerLimit(60.0), request(limit_s=0.2, goes_on=True)
    let_go, done = asyncio.Event(), asyncio.Event()

    async def work() -> Response:
        await let_go.wait()
        done.set()
        return Response(200)

    assert await answer_limit.kept(asked, work(), asked.started) == (False, None)
    assert not done.is_set()
    let_go.set()
    await done.wait()
    await until_true(lambda: not answer_limit._abandoned)


async def test_a_body_that_nobody_waits_for_any_more_is_closed() -> None:
    """OP-109: what a long answer holds is given back."""
    answer_limit, asked = AnswerLimit(60.0), request(limit_s=0.2, goes_on=True)
    let_go, closed = asyncio.Event(), asyncio.Event()

    class Body:
        def __aiter__(self) -> Body:
            return self

        async def __anext__(self) -> bytes:
            raise AssertionError

        async def aclose(self) -> None:
            closed.set()

    async def work() -> Response:
        await let_go.wait()
        return Response(200, Body())

    assert await answer_limit.kept(asked, work(), asked.started) == (False, None)
    let_go.set()
    await closed.wait()


async def test_the_time_that_a_body_takes_to_come_is_its_senders() -> None:
    """OP-109: a limit counts from the arrival, without the body's own time."""
    answer_limit, asked = AnswerLimit(60.0), request(limit_s=30.0)
    asked.started -= 100.0

    async def work() -> Response:
        await asyncio.sleep(3 * LOOK_EVERY_S)
        return Response(204)

    in_time, _ = await answer_limit.kept(asked, work(), asked.started + 100.0)
    assert in_time
    late, _ = await answer_limit.kept(asked, asyncio.sleep(3600, None), asked.started)
    assert not late
