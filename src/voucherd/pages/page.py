"""What a page is: its path, who handles it, and for whom it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from voucherd.http import Response
from voucherd.pages.visit import Visit
from voucherd.people.roles import Right

BODY_BYTES_MAX: Final = 64 * 1024
SLOW_TIMES: Final = 4

Handler: TypeAlias = Callable[[Visit], Awaitable[Response]]


class Audience(Enum):
    """For whom a page is."""

    PUBLIC = "everybody"
    LINK = "whoever has the link"
    """Nobody is asked who he is and no cookie is set; a form of such a page brings a word of its own along."""
    SIGNED_IN = "whoever signed in"
    COMPANY = "a company's people"
    OPERATOR = "the operator's people"


class Page(NamedTuple):
    """One page. A page that changes something is a POST."""

    method: str
    path: str
    handler: Handler
    audience: Audience
    right: Right | None = None
    body_bytes_max: int = BODY_BYTES_MAX
    slow: bool = False
    """Whether it may take `SLOW_TIMES` as long as others: it reads a file, makes one, or waits for somebody else."""
    asks: str = ""
    """The question of a deed that can't be undone: it stands on a page of its own until the form says `sure`."""
    sure: str = ""
    """What the button of that page says."""
    asks_if: tuple[str, str] | None = None
    """A field and its value, if only that way of the deed asks."""
