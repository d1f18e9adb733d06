"""Reading the documentation: its names, tables, links and commands, so that tests can hold them against the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = ROOT / "src" / "voucherd"
DOCS: Final = ROOT / "docs"
DECISIONS: Final = DOCS / "decisions"

README: Final = ROOT / "README.md"
ARCHITECTURE: Final = DOCS / "architecture.md"
CONTRACT: Final = DOCS / "contract.md"
OPEN_POINTS: Final = DOCS / "open-points.md"
OPERATORS_GUIDE: Final = DOCS / "operators-guide.md"
SUPPLIERS: Final = DOCS / "suppliers.md"

PYTHON_CLIENT: Final = ROOT / "clients" / "python" / "README.md"
ALL_PAGES: Final = (
    *(README, ROOT / "SECURITY.md", *sorted(DOCS.rglob("*.md")), ROOT / "bench" / "README.md"),
    PYTHON_CLIENT,
)
CLIENTS_PAGES: Final = (DOCS / "api-guide.md", DOCS / "webhooks.md", PYTHON_CLIENT)
"""Pages that speak of the API alone: their names are paths and events, not files and functions of ours."""
OUR_PAGES: Final = tuple(page for page in ALL_PAGES if page not in CLIENTS_PAGES)

_FENCED: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_QUOTED: Final = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_LINK: Final = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_DOTTED: Final = re.compile(r"[a-z_]+(\.\w+)+")
_PATH: Final = re.compile(r"[\w.-]+(/[\w.-]+)*/?")
_PATH_ENDS: Final = (".py", ".sql", ".md", ".toml", ".html", ".csv", "/")
GENERATED: Final = frozenset({"bench/RESULTS.md"})
"""Files that a command makes; a fresh clone may lack them."""


def text_of(page: Path) -> str:
    """The page as written."""
    return page.read_text(encoding="utf-8")


def prose_of(page: Path) -> str:
    """The page without its fenced blocks."""
    return _FENCED.sub("", text_of(page))


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of a page in this language."""
    return [body for kind, body in _FENCED.findall(text_of(page)) if kind == language]


def quoted(page: Path) -> list[str]:
    """Everything in backticks outside fenced blocks."""
    return _QUOTED.findall(prose_of(page))


def links(page: Path) -> list[str]:
    """The targets of a page's links that stay within the project."""
    return [target for target in _LINK.findall(prose_of(page)) if "://" not in target]


def rows(page: Path, first_head: str) -> Iterator[list[str]]:
    """The rows of every table whose first heading is this, cell by cell."""
    inside = False
    for line in prose_of(page).splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if not line.startswith("|"):
            inside = False
        elif cells[0] == first_head:
            inside = True
        elif inside and not set(line) <= set("|-: "):
            yield cells


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts make them."""
    heads = re.findall(r"^#+ (.+)$", prose_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def is_path(word: str) -> bool:
    """Whether the word is meant as a file or folder of the project."""
    return _PATH.fullmatch(word) is not None and word.endswith(_PATH_ENDS)


def path_exists(word: str) -> bool:
    """Whether there is such a file or folder in the project, its package or its tests."""
    return word in GENERATED or any((place / word).exists() for place in (ROOT, PACKAGE, ROOT / "tests"))


def is_code_name(word: str) -> bool:
    """Whether the word is meant as a name of the package: its first part is one of the package's own modules."""
    if not _DOTTED.fullmatch(word):
        return False
    first = word.removeprefix("voucherd.").partition(".")[0]
    return (PACKAGE / f"{first}.py").exists() or (PACKAGE / first / "__init__.py").exists()


def resolve(word: str) -> Any:
    """What a dotted name of the package stands for; a LookupError if it is nothing."""
    found: Any = import_module("voucherd")
    path = "voucherd"
    for part in word.removeprefix("voucherd.").split("."):
        path = f"{path}.{part}"
        if hasattr(found, part):
            found = getattr(found, part)
            continue
        try:
            found = import_module(path)
        except ImportError:
            raise LookupError(word) from None
    return found
