"""One page of style: everything that pages are made of, by its name."""

from __future__ import annotations

from typing import Final

from voucherd import clock
from voucherd.http import Response
from voucherd.pages.render import render
from voucherd.pages.visit import Visit

COLOURS: Final = (
    ("ground", "behind everything"),
    ("raised", "cards, tables, fields"),
    ("sunken", "badges, hovered rows"),
    ("line", "borders between things"),
    ("edge", "borders of controls"),
    ("ink", "words"),
    ("dim", "words of less weight"),
    ("accent", "links, the first button, what is chosen"),
    ("good", "done, delivered"),
    ("warn", "waits, asks for a look"),
    ("bad", "failed, can't be undone"),
    ("note", "worth knowing"),
)
SIZES: Final = (
    ("xl", "Titles of pages, 24 px"),
    ("l", "Titles of sections, 18 px"),
    ("m", "Text, 15 px"),
    ("s", "Hints and heads of tables, 13 px"),
)
SPACES: Final = ((1, "4"), (2, "8"), (3, "12"), (4, "16"), (5, "24"), (6, "40"))
_SALES: Final = (12, 18, 9, 0, 24, 31, 27, 14, 22, 35, 28, 8, 16, 29)


async def style(visit: Visit) -> Response:
    """The parts of pages, for whoever makes or changes one."""
    now = clock.now()
    return render(
        "console/style.html",
        visit,
        colours=COLOURS,
        sizes=SIZES,
        spaces=SPACES,
        points=[(f"{day} May", count, str(count)) for day, count in enumerate(_SALES, 1)],
        happened=[
            (now, "Created", "2 codes, 18.90 EUR", "web shop, production", ""),
            (now, "Paid", "from the balance", "web shop, production", "good"),
            (now, "Bought", "at Example Supplier", "", "warn"),
            (now, "Delivered", "2 of 2 codes", "", "good"),
        ],
        now=now,
    )
