"""A page for each code of an error, made from the table of problems: what `type` of a problem leads to (OP-143)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct, field

from voucherd.api.openapi import problems
from voucherd.api.openapi.problems import DescribedProblem
from voucherd.api.openapi.reference import prose
from voucherd.api.operations import OPERATIONS
from voucherd.api.routes import ROUTES
from voucherd.api.system import STILL_PAGES_KEPT_MAX, docs_template
from voucherd.http import HTML, Response, Still
from voucherd.pages.assets import static_paths


class MetProblem(Struct):
    """One way to meet a code, and the operations that it is met at; none if any call can meet it."""

    problem: DescribedProblem
    operations: list[str] = field(default_factory=list)

    @property
    def when(self) -> Any:
        """What has happened, for the page."""
        return prose(self.problem.when, inline=True)


def by_code(body_bytes_max: int) -> dict[str, list[MetProblem]]:
    """Every code that a client can meet, and the ways to meet it."""
    found: dict[str, dict[tuple[int, str, str], MetProblem]] = {}

    def note(problem: DescribedProblem, operation: str | None = None) -> None:
        met = found.setdefault(problem.code, {}).setdefault(
            (problem.status, problem.text, problem.when), MetProblem(problem)
        )
        if operation is not None and operation not in met.operations:
            met.operations.append(operation)

    for route in ROUTES:
        own = problems.of_operation(route.op, body_bytes_max)
        for problem in (*own, *(problems.REPEATED if route.writes else ())):
            note(problem, OPERATIONS[route.op].title)
    for problem in (*problems.ANYWHERE, *problems.OFF_THE_MAP, *problems.OF_HTTP):
        note(problem)
    return {code: list(ways.values()) for code, ways in sorted(found.items())}


@lru_cache(maxsize=STILL_PAGES_KEPT_MAX)
def error_pages(body_bytes_max: int) -> Mapping[str, Still]:
    """The pages by code; the list of all is under the empty one."""
    codes = by_code(body_bytes_max)
    pages = {"": docs_template("errors.html").render(static=static_paths(), codes=codes)}
    for code, met in codes.items():
        pages[code] = docs_template("error.html").render(
            static=static_paths(), code=code, met=met, sample=problems.shown(met[0].problem)
        )
    return {code: Still(Response(200, page.encode(), HTML)) for code, page in pages.items()}
