"""The source of a wire shape: an answer of the order service, and how much of it the caller may see."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Final, TypeAlias

from msgspec import Struct

from voucherd.api.wire.templates import TemplateBook
from voucherd.ids import Identifiers
from voucherd.orders.answers import Answer
from voucherd.orders.model import Item, Order, Outcome, Viewed
from voucherd.orders.rules.states import Payment, Status

STATUS_WORDS: Final = tuple(status.name.lower() for status in Status)
PAYMENT_WORDS: Final = tuple(payment.name.lower() for payment in Payment)


ReadViews: TypeAlias = Callable[[int, int, int], Awaitable[tuple[Viewed, ...]]]


async def _no_views(_order_id: int, _line_from: int, _line_to: int) -> tuple[Viewed, ...]:
    return ()


class View(Struct, frozen=True):
    """An order about to be shown."""

    answer: Answer
    ids: Identifiers
    templates: TemplateBook
    public_url: str
    expose_costs: bool
    bare_lines: bool
    """Confirm and Resolve: an unfinished line carries only its tag and status (OP-05)."""
    show_codes: bool = True
    """Whether the key may see codes (OP-59)."""
    read_views: ReadViews = _no_views
    """What recipients saw of some lines of an order that is streamed."""

    @property
    def order(self) -> Order:
        """The order itself."""
        return self.answer.order


class Piece(Struct, frozen=True):
    """A range of an item's lines that share one outcome."""

    item: Item
    line_from: int
    line_to: int
    outcome: Outcome | None
    codes: list[tuple[str, str]] | None
    views: tuple[Viewed, ...] = ()
    """What was viewed of the order's lines, these among them."""

    @property
    def delivered(self) -> bool:
        """Whether the lines have codes."""
        return self.outcome is not None and self.outcome.lot_id is not None

    @property
    def status(self) -> str:
        """The word for the lines' status (OP-41)."""
        if self.outcome is None:
            return "pending"
        return "cancelled" if self.outcome.lot_id is None else "finished"

    @property
    def lines(self) -> range:
        """The numbers of the lines."""
        return range(self.line_from, self.line_to)

    def positions(self) -> range:
        """Where in the lot their codes lie."""
        assert self.outcome is not None
        assert self.outcome.seq_from is not None
        first = self.outcome.seq_from + self.line_from - self.outcome.line_from
        return range(first, first + self.line_to - self.line_from)


def pieces(answer: Answer, item: Item) -> Iterator[Piece]:
    """An item's lines from first to last, cut where their outcomes change."""
    at = item.first_line
    for outcome, codes in _with_codes(answer):
        start, stop = max(outcome.line_from, item.first_line), min(outcome.line_to, item.end_line)
        if start >= stop:
            continue
        if start > at:
            yield Piece(item, at, start, None, None)
        mine = None if codes is None else codes[start - outcome.line_from : stop - outcome.line_from]
        yield Piece(item, start, stop, outcome, mine, answer.order.views)
        at = stop
    if at < item.end_line:
        yield Piece(item, at, item.end_line, None, None)


def _with_codes(answer: Answer) -> list[tuple[Outcome, list[tuple[str, str]] | None]]:
    """The outcomes in the order of their lines, each with its codes if the answer holds them."""
    codes = iter(answer.codes or ())
    held = answer.codes is not None
    paired = [(o, next(codes) if held and o.lot_id is not None else None) for o in answer.order.outcomes]
    if len(paired) > 1:
        paired.sort(key=lambda pair: pair[0].line_from)
    return paired


def lines_completed(order: Order, item: Item) -> int:
    """How many of the item's lines are finished."""
    if order.lines_finished == 0:
        return 0
    return sum(
        max(0, min(outcome.line_to, item.end_line) - max(outcome.line_from, item.first_line))
        for outcome in order.outcomes
        if outcome.lot_id is not None
    )
