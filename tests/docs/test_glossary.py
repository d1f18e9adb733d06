"""docs/glossary.md: every package has its word, every word has its place, and no word has two."""

from __future__ import annotations

import pytest

from tests.docs import pages
from tests.docs.pages import ARCHITECTURE, DOCS, PACKAGE, README

GLOSSARY = DOCS / "glossary.md"
ROWS = list(pages.rows(GLOSSARY, "term"))
NAMED = [word for row in ROWS for word in row[2].split("`")[1::2]]


def missing(names: set[str]) -> set[str]:
    """The packages and modules at the top of the program that these names say nothing of."""
    packages = {
        f"{file.parent.relative_to(PACKAGE).as_posix()}/"
        for file in PACKAGE.rglob("__init__.py")
        if file.parent != PACKAGE
    }
    modules = {file.stem for file in PACKAGE.glob("*.py") if file.stem != "__init__"}
    return (packages - names) | (modules - {name.partition(".")[0] for name in names})


@pytest.mark.parametrize("word", sorted(set(NAMED)))
def test_every_place_exists(word: str) -> None:
    """A place is a folder, a file, or a class or function of the package."""
    if pages.is_path(word):
        assert (PACKAGE / word).exists()
    else:
        assert pages.is_code_name(word)
        pages.resolve(word)


def test_every_package_and_every_module_at_the_top_is_explained() -> None:
    """A new room needs a word; a check that knows no room would accept everything."""
    assert missing(set(NAMED)) == set()
    assert missing(set(NAMED) - {"keys/", "batcher.Batcher"}) == {"keys/", "batcher"}


def test_every_row_has_a_term_a_meaning_and_a_place_and_no_term_has_two_rows() -> None:
    """One word for one thing."""
    assert all(len(row) == 3 and all(row) and "`" in row[2] for row in ROWS)
    terms = [row[0] for row in ROWS]
    assert len(terms) > 100
    assert sorted(terms) == sorted(set(terms))


def test_the_pages_that_people_open_first_lead_to_it() -> None:
    """README and architecture link the glossary."""
    assert "docs/glossary.md" in pages.links(README)
    assert "glossary.md" in pages.links(ARCHITECTURE)
