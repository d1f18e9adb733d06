"""What the source says about deeds: which functions change a table, who calls them, which leave a row in the trail."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import voucherd

PACKAGE = Path(voucherd.__file__).parent
TABLES = frozenset(
    name
    for file in sorted((PACKAGE / "migrations").glob("*.sql"))
    for name in re.findall(
        r"CREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?(\w+)", file.read_text(encoding="utf-8")
    )
)
CHANGE = re.compile(r"\b(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM)\s+(?:ONLY\s+)?([a-z_]+)")
WAYS_IN = ("api.", "cli.", "pages.")
OUTSIDE = "(module)"
"""Stands for the body of a module: a table of handlers, say, names functions there."""


def modules() -> dict[str, ast.Module]:
    """Every module of the program, by its dotted name without the package's own."""
    return dict(_parsed())


@cache
def _parsed() -> dict[str, ast.Module]:
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(file.read_text(encoding="utf-8"))
    return found


class Code:
    """The functions of some modules, as `module:function` or `module:Class.method`."""

    def __init__(self, trees: dict[str, ast.Module]) -> None:
        self.changes: dict[str, set[str]] = {}
        """The tables that a function changes by its own statements."""
        self.callers: dict[str, set[str]] = defaultdict(set)
        self._nodes: dict[str, ast.AST] = {}
        self._methods: dict[str, set[str]] = defaultdict(set)
        self._aliases = {module: _aliases(module, trees) for module in trees}
        for module, tree in trees.items():
            for name, node in _functions(tree):
                self._nodes[f"{module}:{name}"] = node
                if "." in name:
                    self._methods[name.rpartition(".")[2]].add(f"{module}:{name}")
        self.calls = {name: set(self._named(name, node, trees)) for name, node in self._nodes.items()}
        for module, tree in trees.items():
            outside = f"{module}:{OUTSIDE}"
            self.calls[outside] = set(self._named(outside, _body(tree), trees))
        for name, called in self.calls.items():
            for one in called - {name}:
                self.callers[one].add(name)
        for name, node in self._nodes.items():
            tables = set(_changed(node, _constants(trees[name.partition(":")[0]])))
            if tables:
                self.changes[name] = tables
        nouns = {name: called for name, called in self.calls.items() if not name.startswith(WAYS_IN)}
        notes, deeds = {"trail:record", "trail:record_all"}, set[str]()
        while found := {name for name, called in nouns.items() if called & notes} - deeds:
            deeds |= found
            notes |= {name for name in found if name.rpartition(":")[2].startswith(("_", "record"))}
        self.deeds = deeds
        """What writes its row itself, or by a function of its noun that records; a page or a command is none."""

    def unseen(self, excepted: tuple[str, ...]) -> set[str]:
        """The functions that change a table and can be reached without a deed; excepted are names that begin so."""
        reached: set[str] = set()
        ahead = [name for name in self.calls if not self.callers[name]]
        while ahead:
            name = ahead.pop()
            if name not in reached and name not in self.deeds and not name.startswith(excepted):
                reached.add(name)
                ahead.extend(self.calls[name])
        return reached & set(self.changes)

    def _named(self, name: str, node: ast.AST, trees: dict[str, ast.Module]) -> Iterator[str]:
        """The functions that are named in a piece of code, whether it calls them or hands them on."""
        module, _, function = name.partition(":")
        aliases = self._aliases[module] | _aliases(module, trees, node)
        for part in _walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                target = aliases.get(part.id, f"{module}:{part.id}")
                if target in self._nodes:
                    yield target
            elif isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Load):
                yield from self._attribute(part, aliases, module, function)

    def _attribute(
        self, part: ast.Attribute, aliases: dict[str, str], module: str, function: str
    ) -> Iterator[str]:
        owner = part.value
        if isinstance(owner, ast.Name) and owner.id in aliases and ":" not in aliases[owner.id]:
            target = f"{aliases[owner.id]}:{part.attr}"
            if target in self._nodes:
                yield target
        elif isinstance(owner, ast.Name) and owner.id == "self":
            target = f"{module}:{function.partition('.')[0]}.{part.attr}"
            if target in self._nodes:
                yield target
        else:
            # Nothing tells what the object is: it may be any that has such a method.
            yield from self._methods.get(part.attr, ())


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for part in node.body:
                if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield f"{node.name}.{part.name}", part


def _body(tree: ast.Module) -> ast.Module:
    """What runs when the module is loaded."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom
    return ast.Module([node for node in tree.body if not isinstance(node, kinds)], [])


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """All of it but its annotations, which name types alone."""
    for field, value in ast.iter_fields(node):
        if field in {"annotation", "returns"}:
            continue
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, ast.AST):
                yield part
                yield from _walk(part)


def _aliases(module: str, trees: dict[str, ast.Module], node: ast.AST | None = None) -> dict[str, str]:
    """What the names that a module (or a function) imports stand for: a module, or `module:function`."""
    found = {}
    parts = trees[module].body if node is None else list(ast.walk(node))
    for part in parts:
        if not isinstance(part, ast.ImportFrom) or not (part.module or "").startswith("voucherd"):
            continue
        home = (part.module or "").removeprefix("voucherd").lstrip(".")
        for one in part.names:
            inner = f"{home}.{one.name}".lstrip(".")
            found[one.asname or one.name] = inner if inner in trees else f"{home}:{one.name}"
    return found


def _constants(tree: ast.Module) -> dict[str, ast.AST]:
    """The texts that a module gives names to."""
    found: dict[str, ast.AST] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            found[node.target.id] = node.value
    return found


def _changed(node: ast.AST, constants: dict[str, ast.AST]) -> Iterator[str]:
    """The tables that the statements in a piece of code change."""
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield from (table for table in CHANGE.findall(part.value) if table in TABLES)
        elif isinstance(part, ast.Name) and part.id in constants:
            rest = {name: value for name, value in constants.items() if name != part.id}
            yield from _changed(constants[part.id], rest)
