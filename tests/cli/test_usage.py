"""What every command has in common: its options, its exit codes, one line instead of a traceback."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from tests.cli.terminal import PROGRAM, Said, Terminal, assert_refused, assert_wrong_usage
from voucherd.cli import NOUNS, PARTS, program
from voucherd.db import Pool

SHARED = {"--json", "--database-url", "--data"}


def _commands() -> Iterator[tuple[str, set[str]]]:
    """Every command of the program and the options it takes."""
    for word in [*PARTS, *NOUNS]:
        loaded = typer.main.get_command(program(word)).commands[word]  # type: ignore[attr-defined]
        yield from _below(word, loaded)


def _below(name: str, command: Any) -> Iterator[tuple[str, set[str]]]:
    """The command itself, or all that are below it."""
    for word, one in getattr(command, "commands", {}).items():
        yield from _below(f"{name} {word}", one)
    if not hasattr(command, "commands"):
        yield name, {option for param in command.params for option in param.opts}


def test_every_command_takes_the_three_options() -> None:
    """The command line: every command takes `--json` and finds the database the same way."""
    lacking = {name: SHARED - options for name, options in _commands() if not options >= SHARED}
    assert lacking == {}


def test_every_promised_command_is_there() -> None:
    """The command line: the table of commands."""
    promised = (
        "demo|serve|setup-link|worker|migrate|audit|backup|restore|company add|company set|company list"
        "|key add|key list|key rotate|key show|key limit"
        "|key revoke|wallet top-up|wallet show|wallet statement|product add|product set|product list"
        "|stock import|stock list|fx import|fx set|fx list|order list|order show|order cancel|user add"
        "|user reset-password|supplier add|supplier set|supplier offer|supplier withdraw|supplier list|supplier show"
        "|supplier test|supplier reconcile|attempt list|attempt show|attempt retry|attempt settle"
        "|attempt quarantine"
    )
    assert set(promised.split("|")) <= {name for name, _ in _commands()}


def test_help_answers_at_once(terminal: Terminal) -> None:
    """The command line: only the command that was asked for is loaded, and none of what takes long to load."""
    words = [PROGRAM[0], "-X", "importtime", *PROGRAM[1:], "--help"]
    done = subprocess.run(words, capture_output=True, text=True, env=terminal.env, check=True)
    assert all(f" {name} " in done.stdout for name in [*PARTS, *NOUNS])
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "|" in line}
    assert {"typer", "rich"} <= loaded
    assert not {"asyncpg", "uvicorn", "jinja2", "httpx", "cryptography", "argon2", "openpyxl"} & loaded
    ours = {name for name in loaded if name.startswith("voucherd.")}
    assert not [name for name in ours if not name.startswith("voucherd.cli")]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["company", "add", "Acme"], "Missing option '--country'"),
        (["company", "add", "Acme", "--country", "Netherlands"], "is not a country"),
        (["company", "set", "Acme"], "nothing to change"),
        (["key", "add", "Acme", "--state", "real"], "is not one of"),
        (["key", "add", "Acme", "--state", "live", "--scope", "orders:eat"], "the scopes are"),
        (["key", "add", "Acme", "--state", "live", "--expires", "tomorrow"], "is not a date"),
        (["key", "rotate", "1", "--overlap", "soon"], "is not a duration"),
        (["key", "rotate", "one", "--overlap", "1h"], "a valid integer"),
        (
            ["wallet", "top-up", "Acme", "ten", "EUR", "--state", "live", "--reference", "r"],
            "amount: must be",
        ),
        (["wallet", "top-up", "Acme", "1.001", "EUR", "--state", "live", "--reference", "r"], "digits"),
        (["wallet", "top-up", "Acme", "0", "EUR", "--state", "live", "--reference", "r"], "more than 0"),
        (["wallet", "top-up", "Acme", "1", "XXX", "--state", "live", "--reference", "r"], "not a currency"),
        (["fx", "set", "USD", "plenty"], "is not a rate"),
        (
            ["stock", "import", "p", "/nowhere.csv", "--supplier", "s", "--purchase-price", "1 EUR"],
            "No such file",
        ),
        (["order", "list", "--status", "lost"], "is not one of"),
        (["demo", "--port", "70000"], "less than or equal to 65535"),
    ],
)
def test_wrong_usage_exits_2_and_says_how_it_goes(words: list[str], complaint: str) -> None:
    """The command line: exits 2 on wrong usage."""
    # In this process: none of these comes as far as the database, and seventeen starts would take long.
    done = CliRunner().invoke(program(words[0]), words, prog_name="voucherd")
    assert_wrong_usage(Said(done.exit_code, done.stdout, done.stderr), complaint)


def test_wrong_usage_ends_the_process_with_2(bare_terminal: Terminal) -> None:
    """The command line: exits 2 on wrong usage, before anything is touched."""
    assert_wrong_usage(bare_terminal.run("company", "add", "Acme"), "Missing option '--country'")
    assert not bare_terminal.data.exists()


def test_a_database_that_is_away_is_one_line(bare_terminal: Terminal) -> None:
    """The command line: exits 1 when refused, with one clear line on stderr."""
    away = "postgresql://someone:hunter2@127.0.0.1:1/none"
    said = bare_terminal.run("company", "list", "--database-url", away)
    assert_refused(said)
    assert "hunter2" not in said.err


def test_a_wrong_setting_is_one_line(terminal: Terminal) -> None:
    """The command line: exits 1 when refused, with one clear line on stderr."""
    assert_refused(terminal.run("company", "list", VOUCHERD_PORT="none"), "VOUCHERD_PORT")


def test_a_setting_that_does_not_exist_is_pointed_out(terminal: Terminal) -> None:
    """Settings: what looks like a setting and is none is said once, and stops nothing."""
    said = terminal.run("company", "list", "--json", VOUCHERD_PROT="8080")
    assert said.document == []
    assert said.err == "voucherd: warning: VOUCHERD_PROT: no such setting (did you mean VOUCHERD_PORT?)\n"


def test_an_operators_own_database_is_migrated_only_when_asked(
    another_schema_url: str, terminal: Terminal
) -> None:
    """The command line: `migrate` is a part of its own in production."""
    terminal.env["VOUCHERD_DATABASE_URL"] = another_schema_url

    assert_refused(terminal.run("company", "list"), "run `voucherd migrate`")
    ran = terminal.json("migrate")["ran"]
    assert ran[0] == "0001_companies_keys"
    assert terminal.view("migrate") == "Nothing to do: the schema is this program's.\n"
    assert terminal.json("company", "list") == []


@pytest.mark.parametrize(
    "words",
    ["serve --port 0", "worker", "company list", "order list", "audit", "audit --since-last", "migrate"],
)
async def test_a_database_newer_than_the_program_is_worked_on_by_no_command(
    terminal: Terminal, pool: Pool, words: str
) -> None:
    """OP-115: a program does not know what a later one wrote, so it refuses to begin, in one line."""
    await pool.execute("INSERT INTO schema_migration (version, name, checksum) VALUES (9999, 'later', '')")

    said = await asyncio.to_thread(terminal.run, *words.split())

    assert_refused(said, "the database is newer than this program: it has 9999_later, which is unknown here")


def test_the_embedded_database_migrates_itself(bare_terminal: Terminal) -> None:
    """The command line: without a database of your own, the embedded one in the data folder is used."""
    bare_terminal.json("company", "add", "Acme", "--country", "NL")
    assert [company["name"] for company in bare_terminal.json("company", "list")] == ["Acme"]


def test_version_says_the_version(terminal: Terminal) -> None:
    """The command line: one program, which knows its version."""
    assert terminal.view("version") == f"voucherd {terminal.json('version')['version']}\n"
