"""The runner behind `make mutate`, tried on a module with a test that overlooks one bug."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tools.mutants import mutants_of, read
from tools.mutate import CONFIG as LIST
from tools.mutate import judge, read_targets

ROOT = Path(__file__).parents[2]
MODULE = '''
BONUS = 5

def fee(amount: int, *, member: bool = False) -> int:
    """A fee of two for large amounts, a bonus for members."""
    if amount > 10 and not member:
        return 2
    return -BONUS if member else 0
'''
TEST = """
from sample import fee

def test_fee() -> None:
    assert fee(12) == 2
    assert fee(3) == fee(10) == 0
    assert fee(3, member=True) == fee(12, member=True) == -5
"""
CONFIG = """
source = "code"
score_min = {score_min}
tests = ["test_sample.py"]
[[module]]
path = "code/sample.py"
"""
SURVIVOR = """
[[module.survivor]]
in = "fee"
was = "{was}"
now = "{now}"
why = "{why}"
"""


WAS, NOW = "if amount > 10 and (not member):", "if amount > 11 and (not member):"


def write(folder: Path, survivors: str = "", score_min: float = 90) -> dict[str, Any]:
    """The configuration of a folder that holds the module and its test."""
    (folder / "code").mkdir(exist_ok=True)
    (folder / "code" / "sample.py").write_text(MODULE)
    (folder / "test_sample.py").write_text(TEST)
    (folder / "pytest.ini").write_text("[pytest]\npythonpath = code\n")
    config = CONFIG.format(score_min=score_min) + survivors
    (folder / "mutate.toml").write_text(config)
    return tomllib.loads(config)


def test_a_bug_that_no_test_notices_is_found_and_fails_the_run(tmp_path: Path) -> None:
    """What is not listed is printed as it is to be listed, and nothing else survives."""
    write(tmp_path)

    found = subprocess.run(
        [sys.executable, "-m", "tools.mutate", "--config", "mutate.toml"],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{ROOT}:{tmp_path / 'code'}"},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )

    assert found.returncode == 1, found.stdout + found.stderr
    assert found.stdout.count("it is not listed") == 1
    printed = tomllib.loads(found.stdout[found.stdout.index("[[") : found.stdout.index("why =")])
    assert printed["module"]["survivor"] == [{"in": "fee", "was": WAS, "now": NOW}]


@pytest.mark.parametrize(
    ("was", "why", "score_min", "end"),
    [
        (WAS, "It tries 12.", 90, 0),
        (WAS, "It tries 12.", 99, 1),
        (WAS, "", 90, 1),
        ("if gone:", "Why.", 90, 1),
    ],
    ids=["listed", "score", "no reason", "stale"],
)
def test_the_list_of_survivors_is_exact_and_the_score_is_reached(
    was: str, why: str, score_min: float, end: int, tmp_path: Path
) -> None:
    """A run passes only if every survivor is listed with a reason, and every one that is listed can be made."""
    config = write(tmp_path, SURVIVOR.format(was=was, now=NOW, why=why), score_min)
    (target,) = read_targets(config, tmp_path, [])
    survivor = next(one for one in target.mutants if one.words() == (WAS, NOW))
    target.survived = [survivor]
    target.ends["noticed"] = len(target.mutants) - 1

    assert judge([target], config["score_min"]) == end


@pytest.mark.parametrize(
    ("code", "bugs"),
    [
        ("x = a < b", {"x = a <= b", "x = a >= b"}),
        ("x = a or b", {"x = a and b", "x = a", "x = b"}),
        ("x = not a", {"x = a"}),
        ("x = -(a // 2)", {"x = a // 2", "x = -(a * 2)", "x = -(a // 3)", "x = -(a // 1)"}),
        ("x = max(a, b)", {"x = min(a, b)"}),
        ("x: int = True", {"x: int = False"}),
        ("if a:\n    pass", {"if not a:"}),
        ("a.b = c", {"pass"}),
        ("raise ValueError(f'{a + 1}')", {"pass"}),
        ("assert a == 1", set()),
        ("'''Words.'''", set()),
    ],
)
def test_every_kind_of_bug_is_made_and_words_are_left_alone(
    code: str, bugs: set[str], tmp_path: Path
) -> None:
    """Comparisons, arithmetic, logic, numbers and statements; no annotation, assertion or text."""
    path = tmp_path / "sample.py"
    path.write_text(code)
    assert {mutant.words()[1] for mutant in mutants_of(read(path))} == bugs


def test_the_list_names_modules_tests_and_changes_that_are_there() -> None:
    """Decision 28: a test left out under an old name takes part, and lets a run take hours."""
    config = tomllib.loads((ROOT / LIST).read_text(encoding="utf-8"))
    for name in (*config["tests"], *config["tests_left_out"]):
        file, _, test = name.partition("::")
        assert f"def {test}" in (ROOT / file).read_text(encoding="utf-8"), name
    for target in read_targets(config, ROOT, []):
        possible = {(mutant.place.function, *mutant.words()) for mutant in target.mutants}
        listed = {(one["in"], one["was"], one["now"]) for one in target.survivors}
        assert listed <= possible, target.name
