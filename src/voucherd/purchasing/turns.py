"""Who is bought for next: waits in fair turns become purchases. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from voucherd.orders.rules.waits import Wait
from voucherd.ranges import overlap
from voucherd.vault.model import Shelf

TURN_LINES_MAX: Final = 100
"""Lines that a company gets in one turn: its share of a purchase, not its whole backlog."""
PASSES_MAX: Final = 1_000


class CompanyTurn(Struct, frozen=True):
    """Whose turn is next, and how many lines of its share it had when there was no more."""

    company_id: int = 0
    had: int = 0


FIRST: Final = CompanyTurn()


class PlannedPurchase(Struct):
    """Lines of one product and face value that are bought together."""

    shelf: Shelf
    urgent: bool
    count: int = 0
    """How many codes."""
    parts: dict[tuple[int, int], Wait] = field(default_factory=dict)
    """By the order and the end of the wait that a part was cut from."""

    @property
    def pieces(self) -> list[Wait]:
        """What is bought of each wait, in the order of lines."""
        return sorted(self.parts.values(), key=lambda one: (one.order_id, one.line_from))

    def take(self, wait: Wait, count: int) -> Wait:
        """Take lines from the front of a wait; the rest of it."""
        at = wait.line_from + count
        # A wait's next share follows its last one. Waits stay apart even where their lines touch: one may end where
        # an item of the order ends.
        key = (wait.order_id, wait.line_to)
        self.parts[key] = replace(self.parts.get(key, wait), line_to=at)
        self.count += count
        return replace(wait, line_from=at)


class TurnRound(Struct):
    """The purchases of one round, and whose turn is next: among others (False) and among Resolves (True)."""

    stock: dict[Shelf, int]
    room: int
    bulk_max: int
    purchases: list[PlannedPurchase] = field(default_factory=list)
    next_turns: dict[bool, CompanyTurn] = field(default_factory=dict)
    shares: int = 0
    companies: set[int] = field(default_factory=set)
    """Those who had a share, Resolves apart."""

    def serve(self, wait: Wait, had: dict[int, int]) -> Wait | None:
        """Give a wait its share of this pass; the rest of it, None if nothing is left or no more can be had."""
        company_id, urgent = wait.company_id, wait.urgent
        before = had.get(company_id, 0)
        share = wait.count if urgent else min(wait.count, TURN_LINES_MAX - before)
        if share == 0:
            return wait  # Its company had its share already.
        given = 0
        while given < share and self.stock[wait.shelf] and (purchase := self._with_space(wait)) is not None:
            taken = min(share - given, self.stock[wait.shelf], self.bulk_max - purchase.count)
            wait = purchase.take(wait, taken)
            self.stock[wait.shelf] -= taken
            given += taken
            if urgent:
                break  # What one purchase can't hold comes in the next turn.
        if given == 0:
            return None
        self.shares += 1
        self.next_turns[urgent] = CompanyTurn(company_id + 1)
        if not urgent:
            had[company_id] = before + given
            self.companies.add(company_id)
            # Who had all that there was, and was cut short even so, does not begin the next round as well.
            if given < share and len(self.companies) > 1:
                self.next_turns[urgent] = CompanyTurn(company_id, before + given)
        return wait if wait.count else None

    def _with_space(self, wait: Wait) -> PlannedPurchase | None:
        """A purchase that can take something of the wait, a new one if need be; None where there is no room."""
        if not wait.urgent:
            for one in self.purchases:
                if one.shelf == wait.shelf and not one.urgent and one.count < self.bulk_max:
                    return one
        if len(self.purchases) >= self.room:
            return None
        self.purchases.append(PlannedPurchase(wait.shelf, wait.urgent))
        return self.purchases[-1]


def purchases(
    waits: Sequence[Wait], stocks: Mapping[Shelf, int], *, room: int, bulk_max: int, turn: CompanyTurn = FIRST
) -> TurnRound:
    """At most `room` purchases of at most `bulk_max` codes each, filled in turns, as far as the stocks go.

    The waits come in the order of their turns. In each pass every company gets its share of lines before any gets a
    second one; a company whose share was cut short last time begins, and gets the rest of it. A Resolve is bought for
    by itself.
    """
    made = TurnRound(dict(stocks), room, bulk_max)
    left, had = list(waits), {turn.company_id: turn.had}
    for _ in range(PASSES_MAX):
        before = made.shares
        left = [rest for wait in left if (rest := made.serve(wait, had)) is not None]
        if made.shares == before:
            break
        had = {}
    return made


def cut(waits: Sequence[Wait], pieces: Sequence[Wait]) -> tuple[list[tuple[int, int]], list[Wait]]:
    """The waits that pieces were cut from, by order and first line, and the rest of each."""
    by_order: dict[int, list[Wait]] = {}
    for piece in pieces:
        by_order.setdefault(piece.order_id, []).append(piece)
    over: list[tuple[int, int]] = []
    rest: list[Wait] = []
    for wait in waits:
        ends = [
            piece.line_to for piece in by_order.get(wait.order_id, ()) if overlap(piece.lines, wait.lines)
        ]
        if ends:
            over.append((wait.order_id, wait.line_from))
            # Pieces are cut from the front, so the rest is one range.
            rest += [replace(wait, line_from=max(ends))] if max(ends) < wait.line_to else []
    return over, rest
