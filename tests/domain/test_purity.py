"""The rules are pure with everything that they import, however far down: style.md's load, decide, store."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import PACKAGE
from tests.docs.purity import closure, impurities

RULES = sorted(f"voucherd.orders.rules.{file.stem}" for file in (PACKAGE / "orders/rules").glob("[!_]*.py"))
PURE = [
    *RULES,
    "voucherd.orders.model",
    "voucherd.catalogue.pricing",
    "voucherd.wallet.ledger",
    "voucherd.money",
]


@pytest.mark.parametrize("module", PURE)
def test_a_rule_and_all_that_it_imports_know_no_clock_no_chance_and_no_database(module: str) -> None:
    """Not by themselves, and not through anything that they import."""
    assert impurities(module) == []


def test_the_rules_of_orders_are_all_of_them() -> None:
    """A file that is moved away would not be looked at any more."""
    names = {name.rpartition(".")[2] for name in RULES}
    assert names == {"cart", "decide", "refusals", "ruling", "sandbox", "states", "waiting", "waits"}


def test_the_closure_of_a_decision_goes_all_the_way_down() -> None:
    """The check itself: it sees money, which is three imports away, and the packages on the way."""
    found = {chain[-1] for chain, _ in closure("voucherd.orders.rules.decide")}
    assert {"voucherd.money", "voucherd.vault.model", "voucherd.vault", "voucherd.actors"} <= found


def test_importing_the_rules_loads_no_driver_and_no_module_with_sql() -> None:
    """What the text of the files says is what happens when they run."""
    script = f"import sys, {', '.join(PURE)}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = {
        name for name in done.stdout.split() if name == "asyncpg" or name.partition(".")[0] == "voucherd"
    }
    seen = {chain[-1] for module in PURE for chain, _ in closure(module)}
    assert loaded == seen


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('_READ = "SELECT id FROM orders"', "line 1 is SQL"),
        ('_READ = f"UPDATE orders SET version = {1}"', "line 1 is SQL"),
        ('_READ = "select id from orders"', "line 1 is SQL"),
        ("import time", "imports time"),
        ("from os import environ", "imports os"),
        ("import asyncpg", "imports asyncpg"),
        ("from datetime import datetime; NOW = datetime.now()", "line 1 calls now"),
        ("async def load(): ...", "line 1 waits"),
        ("def late(): import secrets", "imports secrets"),
    ],
)
@pytest.mark.parametrize("place", ["deep/model.py", "deep/__init__.py"])
def test_what_is_impure_is_found_three_imports_away(tmp_path: Path, line: str, why: str, place: str) -> None:
    """In a module that only another one's import leads to, or in the package around it."""
    package = tmp_path / "house"
    (package / "deep").mkdir(parents=True)
    for name in ("__init__.py", "deep/__init__.py", "deep/model.py"):
        (package / name).write_text('"""SELECT is a word of this docstring."""\n', encoding="utf-8")
    (package / "rule.py").write_text("from house.middle import price\n", encoding="utf-8")
    (package / "middle.py").write_text("from house.deep.model import price\n", encoding="utf-8")
    assert impurities("house.rule", package) == []
    (package / place).write_text(f"{line}\n", encoding="utf-8")
    (found,) = impurities("house.rule", package)
    assert found.endswith(why)
