"""What can be measured, by name."""

from collections.abc import Awaitable, Callable
from typing import Final

from bench.parts import (
    catalogue,
    fairness,
    find,
    intake,
    large,
    lifecycle,
    pages,
    queue,
    statement,
    streams,
    waiting,
    webhooks,
)
from bench.session import Session

MEASURES: Final[dict[str, Callable[[Session], Awaitable[None]]]] = {
    "lifecycle": lifecycle.confirm,
    "resolve": lifecycle.resolve,
    "find": find.measure,
    "large": large.measure,
    "fairness": fairness.measure,
    "waiting": waiting.measure,
    "import": intake.measure,
    "queue": queue.measure,
    "statement": statement.measure,
    "catalogue": catalogue.measure,
    "streams": streams.measure,
    "webhooks": webhooks.measure,
    "pages": pages.measure,
}
