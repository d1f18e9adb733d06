"""A terminal for each test, on a schema of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal


@pytest.fixture
def terminal(database_url: str, tmp_path: Path) -> Terminal:
    """A terminal on a migrated database."""
    return Terminal(tmp_path / "data", database_url)


@pytest.fixture
def bare_terminal() -> Iterator[Terminal]:
    """A terminal with an empty data folder and no database but the embedded one."""
    with tempfile.TemporaryDirectory(prefix="voucherd-cli-") as folder:
        # The embedded server may run as another account, which must be able to pass through here.
        Path(folder).chmod(0o711)
        yield Terminal(Path(folder) / "data")
