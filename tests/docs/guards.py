"""Which tests guard which open point: the tests that cite its id in their docstrings.

`python -m tests.docs.guards` counts them, `… OP-48` lists those of one id, `… --write` fills the last column of
docs/open-points.md.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from tests.docs import pages
from tests.docs.pages import OPEN_POINTS, ROOT

TESTS: Final = ROOT / "tests"
NONE_YET: Final = "none yet"
FILES_SHOWN_MAX: Final = 3
ID: Final = re.compile(r"OP-\d+")
_ROW: Final = re.compile(r"^(\| (OP-\d+) \|.*\|)([^|]*)\|$")


@cache
def citations() -> dict[str, dict[Path, list[str]]]:
    """The tests that cite each id in their docstrings, by id and file."""
    found: dict[str, dict[Path, list[str]]] = {}
    for file in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                for point in set(ID.findall(ast.get_docstring(node) or "")):
                    found.setdefault(point, {}).setdefault(file, []).append(node.name)
    return found


def column(points: dict[Path, list[str]], before: str) -> str:
    """The last cell of a row: what is still to come, if anything, and the files with the most tests first."""
    later = before.partition(";")[0].strip() if before.strip().startswith("later") else ""
    files = sorted(points, key=lambda file: (-len(points[file]), str(file)))[:FILES_SHOWN_MAX]
    names = ", ".join(f"`{file.relative_to(TESTS).as_posix()}`" for file in files)
    return "; ".join(filter(None, (later, names))) or NONE_YET


def rewritten(page: str, found: dict[str, dict[Path, list[str]]]) -> str:
    """The page with its last column written anew."""
    lines = []
    for line in page.splitlines():
        row = _ROW.match(line)
        lines.append(f"{row[1]} {column(found.get(row[2], {}), row[3])} |" if row else line)
    return "\n".join(lines) + "\n"


def _main(words: Sequence[str]) -> None:
    found = citations()
    if words == ["--write"]:
        OPEN_POINTS.write_text(rewritten(pages.text_of(OPEN_POINTS), found), encoding="utf-8")
        return
    for point, files in sorted(found.items()):
        if point in words:
            for file, names in files.items():
                sys.stdout.writelines(f"{file.relative_to(ROOT)}::{name}\n" for name in names)
        elif not words:
            sys.stdout.write(f"{point} {sum(map(len, files.values())):3d} tests in {len(files)} files\n")


if __name__ == "__main__":
    _main(sys.argv[1:])
