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
from tests.room import roomy_folder
from voucherd.embedded import place, processes, running, stop_now


@pytest.fixture
def base(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that everybody may pass through; at the end nothing that was started in it is left."""
    folder = Path(tempfile.mkdtemp(prefix="vt-", dir=roomy_folder())).resolve()
    folder.chmod(0o755)
    monkeypatch.setattr(place, "SYSTEM_ROOT", folder / "system")
    yield folder
    Neighbour.dismiss_all()
    left = [pid for pid, _, command in processes.everything() if f" -D {folder}/" in command]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)
    assert left == []


@pytest.fixture
def data(base: Path) -> Iterator[Path]:
    """A data folder that does not exist yet; a server that the test has orphaned is stopped."""
    yield base / "data"
    Neighbour.dismiss_all()
    stop_now(base / "data")


@pytest.fixture(scope="session")
def template() -> Iterator[Path]:
    """A data folder with a stopped database in it, to be copied."""
    with tempfile.TemporaryDirectory(prefix="vt-", dir=roomy_folder()) as folder:
        Path(folder).chmod(0o755)
        with running(Path(folder) / "data", exclusive=True):
            pass
        yield Path(folder) / "data"


@pytest.fixture
def made(template: Path, data: Path) -> Path:
    """The same data folder after its first start, which is not what this test is about."""
    subprocess.run(["/bin/cp", "-a", template, data], check=True)
    return data
