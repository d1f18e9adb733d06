"""The first page that the operator's people see: how the service is doing."""

from __future__ import annotations

from typing import Final, NamedTuple

from voucherd.http import Response
from voucherd.pages.console import health
from voucherd.pages.render import render
from voucherd.pages.visit import Visit
from voucherd.people.roles import Right

_PLACES: Final = ("buying", "queued", "pausing", "shelf")


class Queue(NamedTuple):
    """What waits for one company, and since when."""

    company: str
    lines: int
    places: dict[str, int]
    oldest: str


async def overview(visit: Visit) -> Response:
    """Where things stand."""
    facts = await health.look(visit.services, visit.state, visit.someone)
    groups = health.checks(facts)
    every = [check for _, checks in groups for check in checks]
    return render(
        "console/overview.html",
        visit,
        groups_of_checks=groups,
        worst=health.worst(every),
        acts=[check.name for check in every if check.mark is health.Mark.ACT],
        looks=[check.name for check in every if check.mark is health.Mark.LOOK],
        queues=_queues(facts),
        low=facts.low if visit.may(Right.COMPANIES_VIEW) else [],
        workers=facts.workers,
    )


def _queues(facts: health.HealthFacts) -> list[Queue]:
    """Companies whose lines wait, those with the most first."""
    places: dict[str, dict[str, int]] = {}
    for (state, company, place), lines in facts.orders.waiting.items():
        if state == facts.state.word:
            places.setdefault(company, dict.fromkeys(_PLACES, 0))[place] += lines
    oldest = {
        who: age for (state, who), age in facts.orders.oldest_wait_s.items() if state == facts.state.word
    }
    found = [
        Queue(company, sum(counts.values()), counts, health.duration(oldest.get(company, 0.0)))
        for company, counts in places.items()
    ]
    return sorted(found, key=lambda one: (-one.lines, one.company))
