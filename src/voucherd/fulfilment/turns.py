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
    count: int = 0
    """How many codes."""
    parts: dict[tuple[int, int], Wait] = field(default_factory=dict)
    """By the order and the end of the wait that a part was cut from."""

    @property
    def pieces(self) -> list[Wait]:
        """What is bought of each wait, in the order of lines."""
        return sorted(self.parts.values(), key=lambda one: (one.order_id, one.line_from))


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
    # A wait is cut from the front, so its next share follows its last one. Waits stay apart even where their lines
    # touch: one may end where an item of the order ends.
    key = (wait.order_id, wait.line_to)
    begun = purchase.parts.get(key, wait)
    purchase.parts[key] = replace(begun, line_to=wait.line_from + taken)
    purchase.count += taken
    return taken


def _with_space(made: Sequence[Purchase], wait: Wait, bulk_max: int) -> Purchase | None:
    return next(
        (one for one in made if one.shelf == wait.shelf and not one.urgent and one.count < bulk_max), None
    )
