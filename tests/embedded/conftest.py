"""A data folder that cleans up after itself."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.embedded.witness import Neighbour

from voucherd.embedded import place, processes, running, stop_now


@pytest.fixture
def base(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that everybody may pass through; the system folder is a subfolder of it."""
    folder = Path(tempfile.mkdtemp(prefix="vt-", dir="/tmp")).resolve()
    folder.chmod(0o755)
    monkeypatch.setattr(place, "SYSTEM_ROOT", folder / "system")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def data(base: Path) -> Iterator[Path]:
    """A data folder that does not exist yet; at the end nothing of its server is left running."""
    folder = base / "data"
    yield folder
    Neighbour.dismiss_all()
    stop_now(folder)
    settled = place.find(folder)
    left = processes.orphans(settled) if settled is not None else []
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []


@pytest.fixture(scope="session")
def template() -> Iterator[Path]:
    """A data folder with a stopped database in it, to be copied."""
    with tempfile.TemporaryDirectory(prefix="vt-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        with running(Path(folder) / "data", exclusive=True):
            pass
        yield Path(folder) / "data"


@pytest.fixture
def made(template: Path, data: Path) -> Path:
    """The same data folder after its first start, which is not what this test is about."""
    subprocess.run(["/bin/cp", "-a", template, data], check=True)
    return data
