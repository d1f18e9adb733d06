"""The words of pages and letters: plain, usual, and one for one thing."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

import voucherd
from tests.handmade import product
from voucherd.pages.console.margins import differences

SOURCE: Final = Path(voucherd.__file__).parent
GONE: Final = {
    "How it is going": "Overview",
    "that nobody knows": "needs your decision",
    "Calls in a Confirm batch": "Calls in a batch",
    "are late by": "Webhook delay",
    "Cancel what is open": "Cancel remaining codes",
    "Look again": "Refresh",
    "do not belong together": "Wrong e-mail or password",
    "stands in the way": "a mark at the line",
    "can't turn up any more": "Settling time",
    "does not foresee": "Supplier error",
    "It says nothing yet": "No prices yet",
    "Ask for this PIN": "Set PIN",
    "tried, not taken": "Checked, not imported",
    "from where on a balance is low": "Warn me below",
    '"works"': "Active",
    "is on its way to": "Invitation sent to",
    '"Standing"': "Status",
    ">Find<": "Search",
    "Nothing to draw": "Nothing to show yet",
}
"""What pages used to say, and what they say instead."""


def texts() -> dict[str, str]:
    """Templates, and the strings of the program, by file."""
    found = {
        str(file.relative_to(SOURCE)): file.read_text("utf-8")
        for file in (SOURCE / "pages" / "templates").rglob("*.html")
    }
    for file in [*SOURCE.rglob("*.py")]:
        tree = ast.parse(file.read_text("utf-8"))
        docstrings = {
            node.body[0].value
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        said = [
            f'"{node.value}"'
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings
        ]
        found[str(file.relative_to(SOURCE))] = "\n".join(said)
    return found


TEXTS: Final = texts()


@pytest.mark.parametrize("words", GONE)
def test_no_page_says_what_nobody_would(words: str) -> None:
    """OP-176: plain words that people of this trade use."""
    assert [name for name, text in TEXTS.items() if words in text] == [], f"say: {GONE[words]}"


def test_no_page_shows_a_name_of_the_program() -> None:
    """OP-176: what people read has no underscores in it, but for what they type into programs of their own."""
    shown = re.compile(r">[^<>{}]*\b[a-z]+_[a-z_]+\b[^<>{}]*<")
    for name, text in TEXTS.items():
        if not name.endswith(".html") or "/docs/" in name:
            continue
        bare = re.sub(r"<(code|pre)\b.*?</\1>", "", text, flags=re.S)
        bare = re.sub(r"\{%.*?%\}|\{#.*?#\}|\{\{.*?\}\}", "", bare, flags=re.S)
        assert shown.findall(bare) == [], name


def test_changes_of_a_product_are_told_in_words() -> None:
    """OP-176: types, regions and VAT as the page of the product says them, not as the program does."""
    older = product()
    newer = replace(
        older, product_type="topup", redeem_type="product", region="nl", vat_category="exempt", incentive=True
    )
    told = differences(older, newer)
    assert {after for _, _, after in told} == {"Top-up", "A product", "Netherlands", "None: exempt", "yes"}
    assert not any("_" in word for row in told for word in row)
