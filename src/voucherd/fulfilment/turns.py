"""Who is bought for next: waits in fair turns become purchases. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from voucherd.fulfilment.waits import Wait
from voucherd.vault.shelf import Shelf

TURN_LINES_MAX: Final = 100
"""Lines that a wait gets in one turn: its company's share of a purchase, not its whole backlog."""
PASSES_MAX: Final = 1_000


class Purchase(Struct):
    """Lines of one product and face value that are bought together."""

    shelf: Shelf
    urgent: bool
    pieces: list[Wait] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many codes."""
        return sum(piece.count for piece in self.pieces)


def purchases(
    waits: Sequence[Wait], stocks: Mapping[Shelf, int], *, room: int, bulk_max: int
) -> list[Purchase]:
    """At most `room` purchases of at most `bulk_max` codes each, filled in turns, as far as the stocks go.

    The waits come in the order of their turns. In each pass every wait gets a share before any gets a second one.
    A Resolve is bought for by itself.
    """
    made: list[Purchase] = []
    left = list(waits)
    stock = dict(stocks)
    for _ in range(PASSES_MAX):
        rest: list[Wait] = []
        for wait in left:
            taken = _take(made, wait, room, min(bulk_max, stock[wait.shelf]), bulk_max)
            stock[wait.shelf] -= taken
            if 0 < taken < wait.count:
                rest.append(replace(wait, line_from=wait.line_from + taken))
        if not rest:
            break
        left = rest
    for purchase in made:
        purchase.pieces = _joined(purchase.pieces)
    return made


def _take(made: list[Purchase], wait: Wait, room: int, lines_max: int, bulk_max: int) -> int:
    """Put the front of a wait into a purchase; how many lines that were."""
    if lines_max == 0:
        return 0
    purchase = None if wait.urgent else _with_space(made, wait, bulk_max)
    if purchase is None:
        if len(made) >= room:
            return 0
        purchase = Purchase(wait.shelf, wait.urgent)
        made.append(purchase)
    share = lines_max if wait.urgent else min(TURN_LINES_MAX, lines_max, bulk_max - purchase.count)
    taken = min(wait.count, share)
    purchase.pieces.append(replace(wait, line_to=wait.line_from + taken))
    return taken


def _with_space(made: Sequence[Purchase], wait: Wait, bulk_max: int) -> Purchase | None:
    return next(
        (one for one in made if one.shelf == wait.shelf and not one.urgent and one.count < bulk_max), None
    )


def _joined(pieces: Sequence[Wait]) -> list[Wait]:
    """The pieces, with those of one order that follow one another, and are alike, made one."""
    joined: list[Wait] = []
    for piece in sorted(pieces, key=lambda one: (one.order_id, one.line_from)):
        last = joined[-1] if joined else None
        if (
            last is not None
            and replace(piece, line_from=last.line_from) == replace(last, line_to=piece.line_to)
            and (last.line_to == piece.line_from)
        ):
            joined[-1] = replace(last, line_to=piece.line_to)
        else:
            joined.append(piece)
    return joined
