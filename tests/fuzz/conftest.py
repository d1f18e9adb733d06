"""What the fuzzers share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fuzz.world import World


@pytest.fixture(scope="session")
def world() -> Iterator[World]:
    """The program without a database."""
    opened = World()
    yield opened
    opened.close()
