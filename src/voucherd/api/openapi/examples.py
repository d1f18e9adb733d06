"""Examples of requests, answers and refusals, for each operation in each version.

They are kept in a file, which a test compares with what the service makes of a sample order and of bad input.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import asdict

ADDRESSES_KEPT_MAX: Final = 4
EXAMPLE_URL: Final = "https://vouchers.example.com"
"""Stands in the examples where the service was not told its own address."""


class Example(Struct):
    """A body in words, and as it is sent."""

    summary: str
    value: Raw


class TextExample(Struct):
    """The same of a body that is not JSON."""

    summary: str
    value: str


class Refused(Struct):
    """An input that breaks a rule: when, and the words of the refusal."""

    when: str
    text: str
    field: str


class Examples(Struct, omit_defaults=True):
    """The examples of one operation in one version."""

    answers: dict[str, Example] = {}
    texts: dict[str, dict[str, TextExample]] = {}
    """Answers that are not JSON, by type of content."""
    body: Example | UnsetType = UNSET
    refused: Refused | UnsetType = UNSET


def listed(some: Mapping[str, Example | TextExample]) -> dict[str, dict[str, Any]]:
    """The examples as a part of the document."""
    return {name: asdict(one) for name, one in some.items()}


@lru_cache(maxsize=ADDRESSES_KEPT_MAX)
def examples(public_url: str = EXAMPLE_URL) -> dict[str, Examples]:
    """The examples by the id of the operation, with the service's own address."""
    kept = (files(__package__) / "examples.json").read_bytes()
    address = msgspec.json.encode(public_url)[1:-1]
    return msgspec.json.decode(kept.replace(EXAMPLE_URL.encode(), address), type=dict[str, Examples])
