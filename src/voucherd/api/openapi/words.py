"""What is said about an operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec import Raw, Struct

Part: TypeAlias = dict[str, Any]
Example: TypeAlias = Callable[[str, str], Raw]
"""Makes an example for a version and an address of the service."""


class Success(Struct, frozen=True):
    """A good answer of an operation; one without examples has no body."""

    status: int
    words: str
    examples: dict[str, tuple[str, Example]] = {}
    is_page: bool = False
    schema: Part | None = None
    """What the JSON is, where it is not an order or a page of them."""
    csv: Callable[[str], str] | None = None
    """An example of the same as CSV, for an address of the service, where it can be had."""
    stream: Callable[[str], str] | None = None
    """The beginning of a stream of server-sent events, where the answer is one."""


class Body(Struct, frozen=True):
    """The body of a request."""

    schema: str
    title: str
    example: Callable[[], Raw]
    required: bool = True


class Words(Struct, frozen=True):
    """What is said about an operation, in all its versions."""

    id: str
    title: str
    tag: str
    text: str
    successes: tuple[Success, ...]
    parameters: tuple[Part, ...] = ()
    body: Body | None = None
    """What it takes, where it takes a body."""
