"""A world with suppliers, without a database: purchases that come back as they please, and in any order."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from msgspec.structs import replace

from tests.domain.books import World
from tests.handmade import lot
from voucherd.orders.rules import waiting
from voucherd.orders.rules.ruling import Ruling
from voucherd.orders.rules.waits import Wait, go_on
from voucherd.purchasing import outcomes
from voucherd.purchasing.attempts import LIVE, AttemptPhase
from voucherd.purchasing.turns import cut, purchases
from voucherd.vault.model import Shelf


@dataclass
class Trial:
    """A purchase."""

    id: UUID
    supplier_id: int
    shelf: Shelf
    urgent: bool
    lines: list[tuple[int, int, int]]
    """Order, first line, and the line after the last."""
    phase: AttemptPhase = AttemptPhase.CALLING
    codes: int = 0
    lots: list[int] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many codes were asked for."""
        return sum(line_to - line_from for _, line_from, line_to in self.lines)


@dataclass
class Trade(World):
    """The world of `books`, with suppliers."""

    trials: dict[UUID, Trial] = field(default_factory=dict)

    def claim(self, supplier_id: int, *, room: int, bulk_max: int) -> None:
        """Buy at a supplier what waits there, as `purchasing.claims` does."""
        stocks = {
            shelf: offer.stock
            for shelf, offers in self.offers.items()
            for offer in offers
            if offer.supplier_id == supplier_id and offer.stock
        }
        waits = [
            wait
            for _, wait in sorted(self.waits.items())
            if wait.supplier_id == supplier_id
            and wait.deadline_at > self.now
            and stocks.get(wait.shelf, 0) >= (wait.count if wait.urgent else 1)
        ]
        pieces: list[Wait] = []
        for made in purchases(waits, stocks, room=room, bulk_max=bulk_max).purchases:
            trial_id = UUID(int=len(self.trials) + 1)
            lines = [(piece.order_id, piece.line_from, piece.line_to) for piece in made.pieces]
            self.trials[trial_id] = Trial(trial_id, supplier_id, made.shelf, made.urgent, lines)
            pieces += [replace(piece, supplier_id=None, attempt_id=trial_id) for piece in made.pieces]
        over, rest = cut(waits, pieces)
        for key in over:
            del self.waits[key]
        for wait in (*pieces, *rest):
            self.begin(wait)

    def route(self) -> None:
        """Send on what has paused, whoever it belongs to, as `purchasing.routing` does."""
        for key, wait in self.waits.items():
            if wait.ask_at is not None:
                self.waits[key] = go_on(wait, self.offers.get(wait.shelf, ()), self.now, 0.5)

    def receive(self, trial: Trial, count: int, *, settled: bool) -> None:
        """A supplier hands over codes, as `purchasing.outcomes.receive` takes them."""
        facts = self.facts(sorted({order_id for order_id, _, _ in trial.lines}))
        fresh = []
        if count:
            number = (len(self.lots) + 1) * 2 + trial.shelf[2]
            fresh = [lot(number, trial.shelf[0], count)]
        # They are written before the ruling is stored, and are not on the shelf that it was loaded with.
        self.lots |= {one.id: one for one in fresh}
        trial.lots += [one.id for one in fresh]
        self.store(waiting.receive(facts, trial.id, fresh))
        trial.codes += count
        told: Any = SimpleNamespace(count=trial.count, settled=settled)
        self._become(trial, outcomes._phase(told, trial.phase, trial.codes, trial.codes, over=False))
        if trial.phase not in LIVE:
            if trial.codes >= trial.count:
                self.store(waiting.park(facts, trial.id))
            else:
                self._release(facts, trial)

    def fail(self, trial: Trial) -> None:
        """A supplier surely sells nothing (more)."""
        if trial.phase in LIVE or trial.phase is AttemptPhase.UNKNOWN:
            facts = self.facts(sorted({order_id for order_id, _, _ in trial.lines}))
            self._become(trial, AttemptPhase.BOUGHT if trial.codes else AttemptPhase.FAILED)
            self._release(facts, trial)

    def give_up(self, trial: Trial, *, rebuy: bool) -> None:
        """Nobody will find out what became of it."""
        if trial.phase in LIVE:
            facts = self.facts(sorted({order_id for order_id, _, _ in trial.lines}))
            self._become(trial, AttemptPhase.UNKNOWN)
            if rebuy:
                self._release(facts, trial)

    def _release(self, facts: Any, trial: Trial) -> Ruling:
        return self.store(waiting.release(facts, trial.id, trial.supplier_id))

    def end_unserved(self, shelf: Shelf) -> None:
        """Nobody sells a product any more, and none is to be had for those who wait, as `purchasing.routing` finds."""
        waits = [w for w in self.waits.values() if w.shelf == shelf and w.ask_at is not None]
        facts = self.facts(sorted({wait.order_id for wait in waits}))
        self.store(waiting.end_unserved(facts, {wait.needs for wait in waits}))

    def _become(self, trial: Trial, phase: AttemptPhase) -> None:
        """What was bought stays bought, and nobody calls again."""
        assert trial.phase is not AttemptPhase.BOUGHT or phase is AttemptPhase.BOUGHT
        assert trial.phase is not AttemptPhase.FAILED or phase in {AttemptPhase.BOUGHT, AttemptPhase.FAILED}
        assert phase is not AttemptPhase.CALLING
        trial.phase = phase

    def refuse_leaving(self, attempt_id: UUID) -> None:
        """A wait leaves a purchase only when that can't bring anything for it any more by itself."""
        assert self.trials[attempt_id].phase not in LIVE, "a purchase is under way for these lines"

    def check(self) -> None:
        """Every invariant of the books, and those of purchases."""
        super().check()
        for wait in self.waits.values():
            if wait.attempt_id is None:
                continue
            trial = self.trials[wait.attempt_id]
            assert trial.phase in (*LIVE, AttemptPhase.UNKNOWN)
            assert (trial.shelf, trial.urgent) == (wait.shelf, wait.urgent)
            assert any(
                order_id == wait.order_id and line_from <= wait.line_from and wait.line_to <= line_to
                for order_id, line_from, line_to in trial.lines
            )
        for trial in self.trials.values():
            assert sum(self.lots[number].size for number in trial.lots) == trial.codes
            assert trial.phase is not AttemptPhase.FAILED or trial.codes == 0
        self._check_once()

    def _check_once(self) -> None:
        """No line is in two purchases that are under way."""
        live: set[tuple[int, int]] = set()
        for trial in self.trials.values():
            if trial.phase in LIVE:
                for order_id, line_from, line_to in trial.lines:
                    lines = {(order_id, line) for line in range(line_from, line_to)}
                    assert not live & lines
                    live |= lines
