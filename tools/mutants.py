"""The small changes that `make mutate` makes to a module, one at a time: each is a bug that a test should notice.

Changed are comparisons, arithmetic, `and`, `or` and `not`, numbers, truth values, what is returned, and whether a
statement is there at all. Left alone is what no caller can observe or what only a programmer's error reaches:
annotations, decorators, the keywords of classes, assertions, and the words of refusals.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

CONTEXT_CHARACTERS: Final = 40
"""How much around a change is shown, so that it can be told from others of its function."""

_COMPARISONS: Final[dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_CALLS: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}
_SKIPPED_FIELDS: Final = {"annotation", "returns", "decorator_list"}


@dataclass(frozen=True)
class Place:
    """Where a change is made: the statement, the function that it is in, and the lines that reach it."""

    function: str
    statement: ast.stmt
    in_function: bool

    @property
    def lines(self) -> range:
        """The lines of the statement; of one with a body, those of its head."""
        body = getattr(self.statement, "body", None)
        last = body[0].lineno - 1 if body else self.statement.end_lineno or self.statement.lineno
        return range(self.statement.lineno, max(last, self.statement.lineno) + 1)


@dataclass(frozen=True)
class Mutant:
    """One change: this part of the tree becomes that."""

    place: Place
    owner: ast.AST
    field: str
    index: int | None
    new: Any
    line: int

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Let the tree be changed for a while."""
        old = self._swap(self.new)
        try:
            yield
        finally:
            self._swap(old)

    def _swap(self, new: Any) -> Any:
        if self.index is None:
            old = getattr(self.owner, self.field)
            setattr(self.owner, self.field, new)
            return old
        parts = getattr(self.owner, self.field)
        old, parts[self.index] = parts[self.index], new
        return old

    def words(self) -> tuple[str, str]:
        """The code before and after, as far as they differ, with a little of what is around."""
        was = _head(self.place.statement)
        with self.applied():
            gone = self.new if isinstance(self.new, ast.Pass) else None
            now = "pass" if gone else _head(self.place.statement)
        if gone:
            return _cut(was, 0, len(was)), now
        start = next((at for at, (a, b) in enumerate(zip(was, now, strict=False)) if a != b), len(was))
        same = 0
        while same < min(len(was), len(now)) - start and was[-1 - same] == now[-1 - same]:
            same += 1
        return _cut(was, start, len(was) - same), _cut(now, start, len(now) - same)


def _head(statement: ast.stmt) -> str:
    """The statement in one line, without its body."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        return f"def {statement.name}({ast.unparse(statement.args)})"
    return ast.unparse(statement).partition("\n")[0]


def _cut(text: str, start: int, end: int) -> str:
    first, last = max(0, start - CONTEXT_CHARACTERS), end + CONTEXT_CHARACTERS
    return ("…" if first else "") + text[first:last] + ("…" if last < len(text) else "")


def mutants_of(tree: ast.Module, leave_out: frozenset[str] = frozenset()) -> list[Mutant]:
    """Every change that can be made to the module, but for the functions that are left out."""
    return list(_in_body(tree, "", False, leave_out))


def read(path: Path) -> ast.Module:
    """The module as a tree."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def _in_body(owner: ast.AST, name: str, in_function: bool, leave_out: frozenset[str]) -> Iterator[Mutant]:
    """The changes of the statements in a body, and of those within them."""
    for field in ("body", "orelse", "finalbody"):
        for at, statement in enumerate(getattr(owner, field, ())):
            if not isinstance(statement, ast.stmt) or _is_left_alone(statement):
                continue
            place = Place(name, statement, in_function)
            if _can_go(statement):
                yield Mutant(place, owner, field, at, ast.Pass(), statement.lineno)
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = f"{name}.{statement.name}".lstrip(".")
                if inner in leave_out:
                    continue
                if isinstance(statement, ast.ClassDef):
                    yield from _in_body(statement, inner, in_function, leave_out)
                else:
                    yield from _in_expression(statement.args, Place(inner, statement, in_function))
                    yield from _in_body(statement, inner, True, leave_out)
                continue
            yield from _of_statement(statement, place)
            yield from _in_body(statement, name, in_function, leave_out)
            for handler in getattr(statement, "handlers", ()):
                yield from _in_body(handler, name, in_function, leave_out)


def _is_left_alone(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return True  # A docstring.
    if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__slots__":
        return True
    if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING":
        return True
    return isinstance(statement, ast.Assert | ast.Import | ast.ImportFrom)


def _can_go(statement: ast.stmt) -> bool:
    """Whether the code would still run without it, and do something else."""
    if isinstance(statement, ast.Assign):
        return isinstance(statement.targets[0], ast.Attribute | ast.Subscript)
    return isinstance(statement, ast.Expr | ast.AugAssign | ast.Raise | ast.Delete | ast.Continue | ast.Break)


def _of_statement(statement: ast.stmt, place: Place) -> Iterator[Mutant]:
    """The changes of one statement, without those of its body."""
    if isinstance(statement, ast.Raise):
        return  # What is refused is tried by taking the refusal away; its words are the reader's.
    if isinstance(statement, ast.Return) and ast.unparse(statement) not in ("return", "return None"):
        yield Mutant(place, statement, "value", None, ast.Constant(None), statement.lineno)
    if isinstance(statement, ast.AugAssign) and type(statement.op) in _ARITHMETIC:
        yield Mutant(place, statement, "op", None, _ARITHMETIC[type(statement.op)](), statement.lineno)
    yield from _in_expression(statement, place)


def _in_expression(owner: ast.AST, place: Place) -> Iterator[Mutant]:
    """The changes of the expressions below a node, statements apart."""
    for field, value in ast.iter_fields(owner):
        if field in _SKIPPED_FIELDS:
            continue
        parts = value if isinstance(value, list) else [value]
        for at, part in enumerate(parts):
            if not isinstance(part, ast.AST) or isinstance(part, ast.stmt | ast.excepthandler):
                continue
            if isinstance(part, ast.keyword) and part.arg == "strict":
                continue  # An assertion: the lengths are equal.
            index = at if isinstance(value, list) else None
            for new in _changes(part):
                line = getattr(part, "lineno", place.statement.lineno)
                yield Mutant(place, owner, field, index, ast.copy_location(new, part), line)
            if field in ("test", "ifs") and not isinstance(part, ast.Compare | ast.UnaryOp):
                negated = ast.copy_location(ast.UnaryOp(ast.Not(), part), part)  # type: ignore[arg-type]
                yield Mutant(place, owner, field, index, negated, part.lineno)  # type: ignore[attr-defined]
            yield from _in_expression(part, place)


def _changes(part: ast.AST) -> Iterator[ast.AST]:
    """What may stand in the place of an expression."""
    match part:
        case ast.Constant(value=bool() as truth):
            yield ast.Constant(not truth)
        case ast.Constant(value=int() | float() as number):
            yield ast.Constant(number + 1)
            yield ast.Constant(number - 1)
        case ast.Compare():
            for at, old in enumerate(part.ops):
                for new in _COMPARISONS[type(old)]:
                    ops = [*part.ops[:at], new(), *part.ops[at + 1 :]]
                    yield ast.Compare(part.left, ops, part.comparators)
        case ast.BoolOp():
            yield ast.BoolOp(ast.And() if isinstance(part.op, ast.Or) else ast.Or(), part.values)
            for at in range(len(part.values)):
                rest = part.values[:at] + part.values[at + 1 :]
                yield rest[0] if len(rest) == 1 else ast.BoolOp(part.op, rest)
        case ast.BinOp() if type(part.op) in _ARITHMETIC:
            yield ast.BinOp(part.left, _ARITHMETIC[type(part.op)](), part.right)
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield part.operand
        case ast.Call(func=ast.Name(id=name)) if name in _CALLS:
            yield ast.Call(
                ast.copy_location(ast.Name(_CALLS[name], ast.Load()), part), part.args, part.keywords
            )
