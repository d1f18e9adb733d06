"""The two lock files: what serves, and what tests and tools need besides."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]


def _locked(name: str) -> dict[str, str]:
    text = (ROOT / name).read_text("utf-8")
    return dict(re.findall(r"(?m)^([a-z0-9][a-z0-9._-]*)==(\S+)", text))


def _asked(words: list[str]) -> set[str]:
    return {re.split("[>=<]", word)[0] for word in words}


def test_a_machine_that_serves_holds_no_tools_of_tests() -> None:
    """Each tool more is one more thing that can be turned against the service."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    serving, testing = _locked("requirements.lock"), _locked("requirements-dev.lock")
    tools = _asked(project["optional-dependencies"]["dev"])

    assert _asked(project["dependencies"]) <= serving.keys()
    assert tools.isdisjoint(serving)
    assert tools <= testing.keys()
    assert "pip-audit" in tools


def test_tests_run_with_the_versions_that_serve() -> None:
    """A test of other versions would prove nothing."""
    serving, testing = _locked("requirements.lock"), _locked("requirements-dev.lock")

    assert {name: testing.get(name) for name in serving} == serving
