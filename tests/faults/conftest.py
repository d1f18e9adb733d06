"""Faults are told in the log; hundreds of tracebacks drawn for nobody would be most of these tests' time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Log into a list that nobody reads."""
    with capture_logs():
        yield
