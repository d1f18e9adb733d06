"""The form in which an operation is described."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from voucherd.api.errors import Op
from voucherd.api.query import Parameter


class DescribedAnswer(Struct, frozen=True):
    """A good answer of an operation."""

    status: int
    words: str
    shape: Any = None
    """The type of its JSON, where it has any; or two, for the main version and for the others."""


class Operation(Struct, frozen=True):
    """The description of an operation, in all its versions."""

    id: str
    title: str
    text: str
    answers: tuple[DescribedAnswer, ...]
    parameters: tuple[Parameter[Any], ...] = ()
    body: type[Struct] | None = None
    body_required: bool = True


class Section(Struct, frozen=True):
    """Operations that belong together."""

    name: str
    words: str
    operations: dict[Op, Operation]
