"""The units of deploy/systemd: systemd accepts them, and finds little to reproach them with."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import typer.main

from tests.anywhere.installed import ROOT, clean_environment
from tests.anywhere.programs import needed
from tests.patience import HANG_S
from voucherd.cli import program
from voucherd.embedded import binaries

UNITS: Final = ROOT / "deploy" / "systemd"
SERVICES: Final = sorted(UNITS.glob("*.service"))
EXPOSURE_MAX: Final = 1.5
"""Of 10; systemd calls anything below 5 OK. Talking to the network alone costs 0.8."""


@pytest.fixture
def unit_folder(tmp_path: Path) -> Path:
    """The units as systemd would find them, with programs that are on this machine."""
    folder = tmp_path / "units"
    shutil.copytree(UNITS, folder)
    for service in folder.glob("*.service"):
        text = service.read_text("utf-8")
        service.write_text(re.sub(r"(?m)^ExecStart=/opt/voucherd/\S+", "ExecStart=/bin/true", text))
    (folder / "voucherd-api@.service").rename(folder / "voucherd-api@8081.service")
    return folder


def _analyze(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    # The colon behind the folder adds the system's own units, which ours name.
    env = clean_environment() | {"SYSTEMD_UNIT_PATH": f"{folder}:", "SYSTEMD_LOG_LEVEL": "warning"}
    command = [needed("systemd-analyze"), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False, env=env)


def test_systemd_accepts_every_unit(unit_folder: Path) -> None:
    """OP-127: no unknown directive, no name that leads nowhere."""
    files = [str(file) for kind in ("*.service", "*.timer") for file in sorted(unit_folder.glob(kind))]
    assert len(files) == 7
    checked = _analyze(unit_folder, "verify", "--man=no", "--recursive-errors=no", *files)
    ours = [line for line in checked.stderr.splitlines() if "voucherd" in line]
    assert (checked.returncode, ours) == (0, [])


def test_a_wrong_unit_would_be_noticed(unit_folder: Path) -> None:
    """The check itself: it must not accept everything."""
    wrong = unit_folder / "voucherd-worker.service"
    wrong.write_text(wrong.read_text().replace("ExecStart=", "ExecStarts="))
    assert _analyze(unit_folder, "verify", "--man=no", str(wrong)).returncode != 0


@pytest.mark.parametrize("name", [file.name.replace("@.", "@8081.") for file in SERVICES])
def test_a_unit_has_as_little_of_the_machine_as_it_needs(unit_folder: Path, name: str) -> None:
    """OP-127: one file of rules holds for all units, and the exposure that systemd computes is bounded."""
    threshold = str(int(EXPOSURE_MAX * 10))
    judged = _analyze(
        unit_folder,
        *("security", "--offline=true", f"--threshold={threshold}", "--no-pager", "--json=short"),
        str(unit_folder / name),
    )
    assert judged.returncode == 0, judged.stdout + judged.stderr
    findings: list[dict[str, Any]] = json.loads(judged.stdout)
    # If the rules were not found the list would be long, whatever the sum.
    assert len([finding for finding in findings if not finding["set"]]) <= 12, findings


@pytest.mark.parametrize("file", SERVICES, ids=lambda file: file.name)
def test_a_unit_starts_a_command_that_exists(file: Path) -> None:
    """OP-127: the words of ExecStart are walked through the program's own parser."""
    [line] = re.findall(r"(?m)^ExecStart=(.+)$", file.read_text("utf-8"))
    path, *words = shlex.split(line)
    if path.endswith("backup.sh"):
        assert (UNITS / "backup.sh").exists()
        return
    command: Any = typer.main.get_command(program(words[0])).commands[words[0]]  # type: ignore[attr-defined]
    known = {name for option in command.params for name in option.opts}
    assert {word for word in words if word.startswith("--")} <= known


def test_the_nightly_dump_is_whole_and_the_oldest_goes(database_url: str, tmp_path: Path) -> None:
    """OP-127: the dump can be read back, only its owner may read it, and so many are kept as the unit says."""
    for day in range(1, 4):
        (tmp_path / f"voucherd-2026010{day}T033000Z.dump").touch()
    (tmp_path / "notes.txt").touch()
    env = clean_environment() | {
        "PATH": f"{binaries()}:{os.defpath}",
        # libpq has another name for a schema.
        "DATABASE_URL": database_url.replace("search_path=", "options=-csearch_path%3D"),
    }
    subprocess.run([UNITS / "backup.sh", tmp_path, "2"], env=env, timeout=HANG_S, check=True)
    kept = sorted(file.name for file in tmp_path.iterdir() if file.suffix == ".dump")
    assert kept[0] == "voucherd-20260103T033000Z.dump"
    assert len(kept) == 2
    assert (tmp_path / "notes.txt").exists()
    assert (tmp_path / kept[1]).stat().st_mode & 0o077 == 0
    listed = subprocess.run(
        [binaries() / "pg_restore", "--list", tmp_path / kept[1]], capture_output=True, text=True, check=True
    )
    assert "TABLE DATA" in listed.stdout

    broken = subprocess.run(
        [UNITS / "backup.sh", tmp_path, "2"],
        env=env | {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing"},
        capture_output=True,
        timeout=HANG_S,
        check=False,
    )
    assert broken.returncode != 0
    assert sorted(file.name for file in tmp_path.iterdir() if file.suffix == ".dump") == kept
    assert not list(tmp_path.glob("*.part"))
