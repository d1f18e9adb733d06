"""The frame of the set-up: its steps, how far it is, and where to go on."""

from __future__ import annotations

from typing import Any, Final

from voucherd.http import Response
from voucherd.pages.render import render
from voucherd.pages.visit import Visit, see_other
from voucherd.setup import checklist

PATH: Final = "/console/set-up"
STEPS: Final = {
    "begin": "Your shop",
    "second-factor": "Second factor",
    "currencies": "Currencies",
    "product": "Product",
    "codes": "Codes",
    "company": "Company",
    "balance": "Balance",
    "sale": "First sale",
}
_ORDER: Final = tuple(STEPS)
_NEEDS: Final = {
    "second_factor": "second-factor",
    "rates": "currencies",
    "product": "product",
    "codes": "codes",
    "company": "company",
    "balance": "balance",
    "sale": "sale",
}
"""The step that does what the checklist asks for."""


async def done(visit: Visit) -> dict[str, bool]:
    """What is done already."""
    running = visit.services.running
    return await visit.look(checklist.look, visit.someone.id, running.stored, visit.services.settings.fx_url)


async def resume(visit: Visit) -> Response:
    """Go to the first step that is left to do; to the overview when none is."""
    found = await done(visit)
    return see_other(next((f"{PATH}/{step}" for what, step in _NEEDS.items() if not found[what]), "/console"))


def draw(visit: Visit, step: str, **facts: Any) -> Response:
    """The page of one step. The navigation is left out: there is one way, and one way around."""
    at = _ORDER.index(step)
    names, following = list(STEPS.values()), path_after(step)
    template = f"setup/{step.replace('-', '_')}.html"
    return render(template, visit, groups=[], names=names, at=at + 1, following=following, **facts)


def go_on(visit: Visit, step: str, said: str, kind: str = "good") -> Response:
    """Go to the step after this one, which says so."""
    return visit.go(path_after(step), said, kind)


def path_after(step: str) -> str:
    """The page of the next step; the overview after the last."""
    at = _ORDER.index(step) + 1
    return f"{PATH}/{_ORDER[at]}" if at < len(_ORDER) else "/console"
