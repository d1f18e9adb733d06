"""The lock files: what production installs, what `make setup` adds, what tests, the fuzzer and the generator need."""

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


def test_production_installs_what_it_runs_with_and_nothing_else() -> None:
    """OP-127: neither the embedded server nor what builds a wheel, in the versions that are tested."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    production, setup = _locked("requirements-production.lock"), _locked("requirements.lock")
    more = _asked(
        [word for name in ("embedded", "install") for word in project["optional-dependencies"][name]]
    )

    assert _asked(project["dependencies"]) <= production.keys()
    assert more <= setup.keys()
    assert more.isdisjoint(production)
    assert {name: setup.get(name) for name in production} == production


def test_the_fuzzer_is_installed_by_nobody_but_make_fuzz() -> None:
    """It brings a web server and more along, which neither a machine that serves nor the suite needs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    fuzzer = _asked(project["optional-dependencies"]["fuzz"])

    assert fuzzer <= _locked("requirements-fuzz.lock").keys()
    assert fuzzer.isdisjoint(_locked("requirements.lock"))
    assert fuzzer.isdisjoint(_locked("requirements-dev.lock"))
    installing = [line for line in (ROOT / "Makefile").read_text("utf-8").splitlines() if ".fuzzing" in line]
    assert [line.split(":")[0] for line in installing] == ["$(VENV)/.fuzzing", "fuzz"]


def test_the_generator_of_clients_is_installed_beside_the_program() -> None:
    """OP-149: it asks for other versions than the program, which must not get them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    generator = _asked(project["dependency-groups"]["generator"])

    assert generator <= _locked("requirements-generator.lock").keys()
    assert generator.isdisjoint(_locked("requirements-dev.lock"))
    installing = [
        line for line in (ROOT / "Makefile").read_text("utf-8").splitlines() if ".generating" in line
    ]
    assert [line.split(":")[0] for line in installing] == ["$(VENV)/.generating", "test"]


def test_tests_run_with_the_versions_that_serve() -> None:
    """A test of other versions would prove nothing."""
    serving, testing = _locked("requirements.lock"), _locked("requirements-dev.lock")
    fuzzing = _locked("requirements-fuzz.lock")

    assert {name: testing.get(name) for name in serving} == serving
    assert {name: fuzzing.get(name) for name in testing} == testing
