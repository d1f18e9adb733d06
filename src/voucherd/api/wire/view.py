"""The source of a wire shape: an answer of the order service, and how much of it the caller may see."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from voucherd.api.wire.templates import TemplateBook
from voucherd.ids import Identifiers
from voucherd.orders.answers import Answer
from voucherd.orders.model import INLINE_LINES_MAX, Item, Order, Outcome, Viewed
from voucherd.orders.rules.states import Payment, Status
from voucherd.ranges import overlap
from voucherd.ranges import pieces as parts_of

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
        lines = overlap(outcome.lines, item.lines)
        if not lines:
            continue
        if lines.start > at:
            yield Piece(item, at, lines.start, None, None)
        first = lines.start - outcome.line_from
        mine = None if codes is None else codes[first : first + len(lines)]
        yield Piece(item, lines.start, lines.stop, outcome, mine, answer.order.views)
        at = lines.stop
    if at < item.end_line:
        yield Piece(item, at, item.end_line, None, None)


def small_pieces(view: View, item: Item, within: range) -> Iterator[Piece]:
    """An item's lines among these, cut where their outcomes change, and every few lines."""
    for piece in pieces(view.answer, item):
        for lines in parts_of(overlap(piece.lines, within), INLINE_LINES_MAX):
            first = lines.start - piece.line_from
            codes = None if piece.codes is None else piece.codes[first : first + len(lines)]
            yield replace(piece, line_from=lines.start, line_to=lines.stop, codes=codes)


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
    if order.lines_finished in (0, order.lines):
        return item.amount if order.lines_finished else 0
    return sum(
        len(overlap(outcome.lines, item.lines)) for outcome in order.outcomes if outcome.lot_id is not None
    )
