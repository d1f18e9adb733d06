"""The pages lead somewhere, and read like one hand wrote them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs import pages
from tests.docs.pages import ALL_PAGES, DECISIONS, OUR_PAGES

RECORDS = sorted(DECISIONS.glob("0*.md"))
COLUMNS_MAX = 120


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file_and_a_heading_that_exist(page: Path) -> None:
    """Links within the project, with or without an anchor."""
    for target in pages.links(page):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        if anchor:
            assert anchor in pages.anchors(file), target


@pytest.mark.parametrize("page", OUR_PAGES, ids=lambda page: page.name)
def test_lines_of_prose_are_short_and_cut_no_name_in_two(page: Path) -> None:
    """Tables may be wide; paragraphs are wrapped."""
    long = [line for line in pages.text_of(page).splitlines() if len(line) > COLUMNS_MAX and line[0] != "|"]
    assert long == []
    broken = [line for line in pages.prose_of(page).splitlines() if line.count("`") % 2]
    assert broken == [], "a name in backticks is cut in two"


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
def test_a_decision_says_what_the_question_was_and_what_was_decided(record: Path) -> None:
    """A record has a number, a title, a context and a decision."""
    text = pages.text_of(record)
    assert text.startswith(f"# {int(record.name[:4])}. ")
    assert "\n## Context\n" in text
    assert "\n## Decision\n" in text


def test_the_index_lists_every_decision_by_its_title() -> None:
    """No record is forgotten, and no title differs."""
    index = pages.text_of(DECISIONS / "README.md")
    told = re.findall(r"^\| (\d+) \| \[(.+?)\]\((.+?)\)", index, re.MULTILINE)
    titles = [pages.text_of(record).splitlines()[0].removeprefix("# ").split(". ", 1) for record in RECORDS]
    assert told == [(number, title, r.name) for (number, title), r in zip(titles, RECORDS, strict=True)]
