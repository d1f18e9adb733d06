"""Whether calls that overlapped in time can be put into one order that a simple model explains.

The search follows Wing and Gong: take any call that began before every other open call had ended, let the model do it,
and go on if the model answers what the client was told. As Lowe found, it is enough to come once to the same set of
calls done with the same state of the model.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

S = TypeVar("S", bound=Hashable)

PLACES_MAX: Final = 2_000_000
"""Ends a search that would take for ever; a short history needs a few hundred."""


@dataclass(frozen=True)
class Call:
    """One call as its client saw it."""

    what: str
    about: Any
    answer: Hashable
    """What the client was told; None if it never heard."""
    began_at: float
    ended_at: float
    """For a call whose answer was lost: never. It may have been done at any time, or not at all."""
    after: int | None = None
    """The number of a call that comes before this one: the first step of the same request."""

    @property
    def lost(self) -> bool:
        """Whether nobody knows if it was done."""
        return math.isinf(self.ended_at)


class Model(Protocol[S]):
    """What the calls do, one after another."""

    def do(self, state: S, call: Call) -> tuple[Hashable, S]:
        """The answer to a call, and the state after it."""
        ...

    def silent(self, state: S) -> Iterable[S]:
        """The states that may follow without anybody's call."""
        ...


@dataclass(frozen=True)
class Verdict:
    """Whether an order of the calls was found, and the longest that was."""

    explained: bool
    order: tuple[int, ...]
    places: int

    def told(self, calls: Sequence[Call]) -> str:
        """What could be explained, and the calls that could not be put behind it."""
        done = [f"  {calls[number]}" for number in self.order]
        rest = [f"  {call}" for number, call in enumerate(calls) if number not in self.order]
        return "\n".join(["explained so far:", *done, "none of these fits next:", *rest])


class Search(Generic[S]):
    """The search for an order of one history."""

    def __init__(self, model: Model[S], calls: Sequence[Call]) -> None:
        self._model = model
        self._calls = calls
        self._must = sum(1 << number for number, call in enumerate(calls) if not call.lost)
        self._seen: set[tuple[int, S]] = set()
        self._longest: tuple[int, ...] = ()

    def run(self, start: S) -> Verdict:
        """The verdict about the history that began in this state."""
        # A stack of its own: a long history would be deeper than Python's.
        stack: list[tuple[int, S, tuple[int, ...]]] = [(0, start, ())]
        while stack:
            done, state, order = stack.pop()
            if done & self._must == self._must:
                return Verdict(True, order, len(self._seen))
            if (done, state) in self._seen:
                continue
            self._seen.add((done, state))
            assert len(self._seen) < PLACES_MAX, "this history is too long to be searched"
            if len(order) > len(self._longest):
                self._longest = order
            stack += [(done, after, order) for after in self._model.silent(state)]
            stack += self._next(done, state, order)
        return Verdict(False, self._longest, len(self._seen))

    def _next(self, done: int, state: S, order: tuple[int, ...]) -> Iterable[tuple[int, S, tuple[int, ...]]]:
        """Every call that may come next, if the model answers as the service did."""
        open_calls = [number for number in range(len(self._calls)) if not done >> number & 1]
        first_end = min(self._calls[number].ended_at for number in open_calls)
        for number in open_calls:
            call = self._calls[number]
            if call.began_at > first_end or (call.after is not None and not done >> call.after & 1):
                continue
            answer, after = self._model.do(state, call)
            if call.lost or answer == call.answer:
                yield done | 1 << number, after, (*order, number)


def check(model: Model[S], start: S, calls: Sequence[Call]) -> Verdict:
    """Whether the calls of one history are linearizable."""
    return Search(model, calls).run(start)
