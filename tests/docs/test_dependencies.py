"""docs/decisions/0008-dependencies.md names every dependency, and gives each a reason."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from tests.docs import pages
from tests.docs.pages import DECISIONS, ROOT

PAGE = DECISIONS / "0008-dependencies.md"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def names(requirements: list[str]) -> list[str]:
    """The packages without their versions."""
    return [re.split(r"[^\w-]", requirement)[0] for requirement in requirements]


def test_every_runtime_dependency_has_a_row_with_a_reason() -> None:
    """The table is the list of pyproject.toml, no more and no less."""
    rows = list(pages.rows(PAGE, "runtime"))
    assert [row[0] for row in rows] == names(PROJECT["dependencies"])
    assert all(len(row) == 3 and all(row) for row in rows)


def test_every_development_dependency_is_named() -> None:
    """The paragraph below the table names each of them."""
    paragraph = re.search(r"^For development: .*?\n\n", pages.text_of(PAGE), re.MULTILINE | re.DOTALL)
    assert paragraph is not None
    told = set(re.findall(r"[\w-]+", re.sub(r"\([^)]*\)", "", paragraph[0])))
    for extra in ("dev", "fuzz"):
        assert set(names(PROJECT["optional-dependencies"][extra])) <= told


def test_what_traces_need_is_named() -> None:
    """Its paragraph names each package of the extra."""
    paragraph = re.search(r"^For traces alone, .*?\n\n", pages.text_of(PAGE), re.MULTILINE | re.DOTALL)
    assert paragraph is not None
    for name in names(PROJECT["optional-dependencies"]["traces"]):
        assert name in paragraph[0]


def test_the_index_counts_them_right() -> None:
    """The index says how many there are, in a word."""
    words = (
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
        "twenty",
        "twenty-one",
        "twenty-two",
        "twenty-three",
    )
    count = words[len(PROJECT["dependencies"]) - 16]
    assert f"| {count}, and why |" in pages.text_of(DECISIONS / "README.md")
