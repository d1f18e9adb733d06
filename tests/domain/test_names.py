"""One word for one thing: no two classes of the program bear the same name."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import voucherd

PACKAGE = Path(voucherd.__file__).parent
WIRE = ("api/wire/", "api/requests.py", "api/key_requests.py", "api/webhook_requests.py")
"""Shapes of the wire bear the names of the things that they show, because the OpenAPI document says them."""


def classes() -> dict[str, list[str]]:
    """The files of each class by its name, without the wire's."""
    found = defaultdict(list)
    for file in sorted(PACKAGE.rglob("*.py")):
        path = file.relative_to(PACKAGE).as_posix()
        if path.startswith(WIRE):
            continue
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                found[node.name].append(path)
    return found


def test_a_class_has_a_name_of_its_own() -> None:
    """docs/glossary.md: if two classes want the same name, one of them is misnamed."""
    found = classes()
    assert len(found) > 300
    assert {name: files for name, files in found.items() if len(files) > 1} == {}
