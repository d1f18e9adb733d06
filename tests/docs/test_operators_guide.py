"""docs/operators-guide.md: settings, commands, metrics, health paths and checks are those of the program."""

from __future__ import annotations

import re
import shlex
from dataclasses import fields
from typing import Any, cast

import pytest
import typer.main

from tests.docs import pages
from tests.docs.pages import OPERATORS_GUIDE, README
from voucherd.api.system import SystemEndpoints
from voucherd.audit import CHECKS
from voucherd.cli import program
from voucherd.db import Pool
from voucherd.metrics.of_process import ProcessParts
from voucherd.metrics.page import Metrics
from voucherd.pages import addresses
from voucherd.pages.routes import PAGES
from voucherd.settings import PREFIX, Settings

COMMANDS = [
    line
    for block in pages.blocks(OPERATORS_GUIDE, "sh")
    for line in block.replace("\\\n", " ").splitlines()
    if line.startswith("voucherd ")
]
QUOTED_COMMANDS = [
    word for page in (OPERATORS_GUIDE, README) for word in pages.quoted(page) if word.startswith("voucherd ")
]


def shown(value: object) -> str:
    """A default as the table writes it."""
    if value is None or value == ():
        return "–"
    return f"`{value:.12g}`" if isinstance(value, float) else f"`{value}`"


def test_the_table_of_settings_is_the_settings_with_their_defaults() -> None:
    """Every setting, in the program's order, and no other."""
    told = [(row[0].strip("`"), row[1]) for row in pages.rows(OPERATORS_GUIDE, "variable")]
    defaults = Settings()
    names = [field.name for field in fields(Settings) if field.name != "warnings"]
    assert told == [(PREFIX + name.upper(), shown(getattr(defaults, name))) for name in names]


@pytest.mark.parametrize("line", [*COMMANDS, *QUOTED_COMMANDS])
def test_every_command_that_is_shown_exists_with_its_options(line: str) -> None:
    """Commands are walked through the program's own parser; flags that it does not know fail."""
    _, *words = shlex.split(line)
    command: Any = typer.main.get_command(program(words[0]))
    while words and hasattr(command, "commands") and words[0] in command.commands:
        command = command.commands[words.pop(0)]
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
    assert {word for word in words if word.startswith("--")} <= known
    if line in COMMANDS:
        assert not hasattr(command, "commands"), "a command is missing"


async def test_the_metrics_are_those_that_are_exported() -> None:
    """Every metric has a row, and every row is a metric, in the order of the page."""
    page = (await Metrics(ProcessParts()).page()).decode()
    names = re.findall(r"^# TYPE (\w+) ", page, re.MULTILINE)
    told = [row[0].strip("`") for row in pages.rows(OPERATORS_GUIDE, "metric")]
    assert sorted(told) == sorted(names)


def test_the_health_paths_are_answered() -> None:
    """The paths of the table are those of the program that are not documentation."""
    pages_served = SystemEndpoints(cast(Pool, None), cast(Metrics, None))
    told = [row[0].strip("`") for row in pages.rows(OPERATORS_GUIDE, "path")]
    assert told == list(pages_served._answers)


def test_a_proxy_is_told_of_every_path_that_is_served() -> None:
    """The first segment of every route, page and file is in the table; health and metrics are kept inside."""
    pages_served = SystemEndpoints(cast(Pool, None), cast(Metrics, None))
    paths = [*(page.path for page in PAGES), *pages_served._still, "/api/"]
    passed_on = {
        path.split("/")[1]
        for row in pages.rows(OPERATORS_GUIDE, "begins with")
        for path in re.findall(r"`([^`]+)`", row[0])
    }
    assert passed_on == {path.split("/")[1] for path in [*paths, addresses.SANDBOX]}
    inside = re.search(
        r"^Keep (.+) inside: they ask for no key\.$", pages.text_of(OPERATORS_GUIDE), re.MULTILINE
    )
    assert inside is not None
    assert re.findall(r"`([^`]+)`", inside[1]) == list(pages_served._answers)


def test_the_audit_checks_what_the_table_says() -> None:
    """Every check of the audit, in the order in which they run."""
    told = [row[0].strip("`") for row in pages.rows(OPERATORS_GUIDE, "check")]
    assert told == [check.name for check in CHECKS]
