"""Whether a module is pure: it and everything that it imports, however far down, depend on their arguments alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from tests.docs.pages import PACKAGE

OUTSIDE: Final = frozenset(
    {
        *(
            "__future__",
            "collections",
            "dataclasses",
            "datetime",
            "decimal",
            "enum",
            "functools",
            "ipaddress",
        ),
        *("itertools", "math", "operator", "re", "struct", "typing", "unicodedata", "uuid"),
        *("cryptography", "msgspec"),
    }
)
"""What a pure module may import that is not ours: no clock, no chance, no files, no network, no event loop."""
ASKS_AROUND: Final = frozenset({"now", "utcnow", "today", "uuid1", "uuid4"})
"""Calls that ask the clock, chance or the disk, in modules that have other uses, too."""
SQL: Final = re.compile(
    r"\b(SELECT|INSERT\s+INTO|UPDATE\s+\w+(\s+\w+)?\s+SET|DELETE\s+FROM|LOCK\s+TABLE|FOR\s+UPDATE|ORDER\s+BY|TRUNCATE)\b"
    r"|\bselect\b.+\bfrom\b|\binsert\s+into\b|\bdelete\s+from\b|\bupdate\s+\w+\s+set\b",
    re.DOTALL,
)


def impurities(module: str, package: Path = PACKAGE) -> list[str]:
    """What keeps the module from being pure, each with the chain of imports that leads to it."""
    return [
        f"{' > '.join(chain)}: {why}"
        for chain, file in closure(module, package)
        for why in _of(file.read_text(encoding="utf-8"), package.name)
    ]


def closure(module: str, package: Path = PACKAGE) -> Iterator[tuple[tuple[str, ...], Path]]:
    """The module's file and every file of ours that importing it runs, each with the chain that leads there."""
    seen: set[str] = set()
    waiting: list[tuple[str, ...]] = [(module,)]
    while waiting:
        chain = waiting.pop(0)
        # Importing a.b.c runs a and a.b first.
        parts = chain[-1].split(".")
        for name in (".".join(parts[: at + 1]) for at in range(len(parts))):
            file = file_of(name, package)
            if name in seen or file is None:
                continue
            seen.add(name)
            yield (*chain[:-1], name), file
            waiting += [(*chain[:-1], name, found) for found in imports(file)]


def file_of(module: str, package: Path = PACKAGE) -> Path | None:
    """The file of a module of ours."""
    first, *rest = module.split(".")
    if first != package.name:
        return None
    path = package.joinpath(*rest)
    for file in (path / "__init__.py", path.with_suffix(".py")):
        if file.exists():
            return file
    return None


def imports(file: Path) -> tuple[str, ...]:
    """Every name that a file imports, wherever in it; `from a import b` is a and a.b."""
    return _imports(file.read_text(encoding="utf-8"))


@cache
def _imports(text: str) -> tuple[str, ...]:
    found: list[str] = []
    for node in ast.walk(_tree(text)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None, "imports are absolute"
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return tuple(found)


@cache
def _of(text: str, package: str) -> tuple[str, ...]:
    """What in one file depends on more than its arguments; many files import the same ones."""
    outside = {name.partition(".")[0] for name in _imports(text)} - OUTSIDE - {package}
    return (*sorted(f"imports {name}" for name in outside), *_asked(_tree(text)))


def _asked(tree: ast.Module) -> Iterator[str]:
    prose = set(_docstrings(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncWith | ast.AsyncFor):
            yield f"line {node.lineno} waits"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in prose:
            if SQL.search(node.value):
                yield f"line {node.lineno} is SQL"
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in ASKS_AROUND:
                yield f"line {node.lineno} calls {node.func.attr}"
            elif isinstance(node.func, ast.Name) and node.func.id in ASKS_AROUND | {
                "open",
                "input",
                "__import__",
            }:
                yield f"line {node.lineno} calls {node.func.id}"


def _docstrings(tree: ast.Module) -> Iterator[ast.expr]:
    """The strings that stand alone: they explain, and nothing can run them."""
    return (node.value for node in ast.walk(tree) if isinstance(node, ast.Expr))


@cache
def _tree(text: str) -> ast.Module:
    return ast.parse(text)
