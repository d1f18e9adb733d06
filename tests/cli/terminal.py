"""The real program, run as an operator runs it: a process of its own, judged by what it prints and how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.cli.forge import forge
from tests.patience import HANG_S, PATIENT, in_environment

COMMAND_S_MAX: Final = HANG_S
PROGRAM: Final = (sys.executable, "-m", "voucherd.cli")


@dataclass(frozen=True)
class Said:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on stdout."""
        assert self.code == 0, self
        return json.loads(self.out)


class Terminal:
    """A shell with a data folder and perhaps a database of its own."""

    def __init__(self, data: Path, database_url: str | None = None) -> None:
        self.data = data
        # Nothing of the developer's own settings may leak into a test.
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("VOUCHERD_")}
        self.env |= {"VOUCHERD_DATA": str(data), "COLUMNS": "80", **in_environment(PATIENT)}
        if database_url is not None:
            self.env["VOUCHERD_DATABASE_URL"] = database_url

    def run(self, *words: str, stdin: str = "", **env: str) -> Said:
        """Run one command to its end."""
        code, out, err = forge().run(words, stdin.encode(), self.env | env, wait_s_max=COMMAND_S_MAX)
        return Said(code, out.decode(), err.decode())

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a command from nothing, as a shell does; it goes on until it is told to stop, or to its end."""
        pipe = subprocess.PIPE
        return subprocess.Popen([*PROGRAM, *words], stdin=pipe, stdout=pipe, stderr=pipe, env=self.env)

    def json(self, *words: str, stdin: str = "") -> Any:
        """The document of a command that must succeed, with nothing beside it."""
        said = self.run(*words, "--json", stdin=stdin)
        assert said.code == 0, said
        assert said.err == ""
        assert said.out.count("\n") == 1
        return json.loads(said.out)

    def view(self, *words: str) -> str:
        """What a command that must succeed shows to people."""
        said = self.run(*words)
        assert said.code == 0, said
        assert said.err == ""
        return said.out


def assert_refused(said: Said, *words: str) -> None:
    """Exit 1, one clear line on stderr that has these words, and no traceback."""
    assert said.code == 1, said
    assert said.err.startswith("voucherd: ")
    assert said.err.count("\n") == 1
    assert "Traceback" not in said.err
    for word in words:
        assert word in said.err


def assert_wrong_usage(said: Said, *words: str) -> None:
    """Exit 2, the usage on stderr, nothing on stdout."""
    assert said.code == 2, said
    assert said.out == ""
    assert "Usage: voucherd" in said.err
    flat = " ".join(said.err.replace("│", " ").split())
    for word in words:
        assert word in flat, said.err
