"""docs/architecture.md says only what the code says too."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.docs import pages, purity
from tests.docs.pages import ARCHITECTURE, OUR_PAGES, PACKAGE, ROOT
from tests.patience import usual_limits
from voucherd.cli import NOUNS, PARTS
from voucherd.orders.rules.states import MOVES, Status
from voucherd.worker import ROUNDS

CODE = "\n".join(
    file.read_text(encoding="utf-8").lower()
    for kind in ("*.py", "*.sql")
    for file in sorted(PACKAGE.rglob(kind), key=str)
)
"""All of it, small."""
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def has_code(module: str) -> bool:
    """Whether there is such a module."""
    path = PACKAGE / module.removeprefix("voucherd.")
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def is_in_the_code(word: str) -> bool:
    """Whether the code has this as a word of its own, in large letters or small; each is looked for in all of it."""
    at = CODE.find(word.lower())
    while at >= 0:
        around = CODE[at - 1 : at] + CODE[at + len(word) : at + len(word) + 1]
        if not re.search(r"\w", around):
            return True
        at = CODE.find(word.lower(), at + 1)
    return False


def is_command(word: str) -> bool:
    """Whether the word is a command that exists."""
    program, _, rest = word.partition(" ")
    first = rest.partition(" ")[0]
    return (program == "make" and f"\n{first}:" in MAKEFILE) or (
        program == "voucherd" and first in {*NOUNS, *PARTS}
    )


def is_route(word: str) -> bool:
    """Whether the word is an operation of the API."""
    found = re.fullmatch(r"(GET|POST|PATCH) /api/([\w.]+)/(.+)", word)
    if found is None:
        return False
    method, version, path = found.groups()
    routes = pages.resolve("api.routes.ROUTES")
    return any(r.method == method and r.path == path and version in r.versions for r in routes)


@pytest.mark.parametrize("word", sorted(set(pages.quoted(ARCHITECTURE))))
def test_everything_in_backticks_exists(word: str) -> None:
    """A name is a file, a function, a command, a route, or at least a word of the code or the schema."""
    if pages.is_path(word):
        assert pages.path_exists(word)
    elif pages.is_code_name(word):
        pages.resolve(word)
    elif not is_command(word) and not is_route(word):
        assert is_in_the_code(word), f"{word!r} is nowhere"


@pytest.mark.parametrize("page", OUR_PAGES, ids=lambda page: page.name)
def test_no_page_names_a_file_or_function_that_is_gone(page: Path) -> None:
    """The other pages may quote anything, but what looks like a file or a name of ours has to be one."""
    for word in pages.quoted(page):
        if pages.is_path(word) and "/" in word.rstrip("/"):
            assert pages.path_exists(word), word
        elif pages.is_code_name(word) and not pages.is_path(word):
            pages.resolve(word)


def test_a_name_that_is_gone_would_be_noticed() -> None:
    """The check itself: it must not accept everything."""
    assert pages.is_code_name("orders.decide.finalised")
    with pytest.raises(LookupError):
        pages.resolve("orders.decide.finalised")
    assert pages.is_path("orders/decided.py")
    assert not pages.path_exists("orders/decided.py")
    assert is_in_the_code("Batcher")
    assert not is_in_the_code("atche")
    assert not is_in_the_code("batcherer")


def test_the_state_diagram_is_the_one_that_the_table_of_states_draws() -> None:
    """Contract 3: every move and every end; the picture can't drift from `orders.rules.states.MOVES`."""
    lines = ["stateDiagram-v2", "    [*] --> created: create"]
    lines += [
        f"    {a.name.lower()} --> {b.name.lower()}: {event.name.lower()}" for (a, event), b in MOVES.items()
    ]
    ends = [status for status in Status if not any(start is status for start, _ in MOVES)]
    lines += [f"    {status.name.lower()} --> [*]" for status in ends]
    assert ends == [Status.FINISHED, Status.CANCELLED, Status.DELETED]
    assert "\n".join(lines) + "\n" in pages.blocks(ARCHITECTURE, "mermaid")


def test_the_layers_are_those_that_the_import_linter_holds() -> None:
    """The list is pyproject.toml's, line by line, without the parts that have no code yet."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    layers = [" | ".join(filter(has_code, re.findall(r"[\w.]+", layer))) for layer in contract["layers"]]
    assert pages.blocks(ARCHITECTURE, "text") == ["\n".join(filter(None, layers)) + "\n"]


def test_the_numbers_are_those_of_the_code() -> None:
    """The table of bounds: every name has the value that the page says."""
    told = {row[0].strip("`"): row[1] for row in pages.rows(ARCHITECTURE, "name")}
    assert len(told) > 10
    with usual_limits():
        assert {name: str(pages.resolve(name)) for name in told} == told


def test_the_rounds_of_the_worker_have_the_pauses_that_the_page_says() -> None:
    """The page's table is the worker's, row by row."""
    told = {row[0].strip("`"): row[1] for row in pages.rows(ARCHITECTURE, "round")}
    assert told == {round_.name: f"{round_.every_s:g} s" for round_ in ROUNDS}


def test_the_steps_of_a_confirm_and_of_a_purchase_are_numbered_without_a_gap() -> None:
    """Each life is a list, and each step names one function that exists."""
    steps = list(pages.rows(ARCHITECTURE, "step"))
    numbers = [int(row[0]) for row in steps]
    confirm = numbers.index(1, 1)
    assert numbers == [*range(1, confirm + 1), *range(1, len(steps) - confirm + 1)]
    assert all(callable(pages.resolve(row[1].strip("`"))) for row in steps)


def test_the_table_of_parts_has_every_folder_and_module_of_the_package() -> None:
    """A stranger finds each room of `src/voucherd` there, and none that is not."""
    told = {
        word.rstrip("/") for row in pages.rows(ARCHITECTURE, "folder") for word in row[0].split("`")[1::2]
    }
    assert told == {
        place.name for place in PACKAGE.iterdir() if place.name[0] != "_" and place.name != "py.typed"
    }


def test_every_question_is_answered_by_files_that_exist_and_the_sql_is_where_the_page_says() -> None:
    """The table of places: a rule, its SQL and its words, each a file of the package."""
    rows = list(pages.rows(ARCHITECTURE, "question"))
    assert len(rows) >= 20
    for question, *places in rows:
        rule, sql, words = ([PACKAGE / name for name in place.split("`")[1::2]] for place in places)
        assert all(files and all(file.is_file() for file in files) for files in (rule, sql, words)), question
        for file in sql:
            assert purity.SQL.search(file.read_text(encoding="utf-8")), f"{question} {file.name} has no SQL"


def test_the_files_that_are_called_pure_wait_for_nothing_and_ask_nobody() -> None:
    """No coroutine, no clock, no chance, no SQL and no driver in them or in anything that they import."""
    found = re.search(r"files that are pure: (.+?)\. They", pages.prose_of(ARCHITECTURE), re.DOTALL)
    assert found is not None
    names = re.findall(r"`([^`]+)`", found[1])
    assert len(names) >= 5
    for name in names:
        module = "voucherd." + name.removesuffix(".py").replace("/", ".")
        assert purity.impurities(module) == [], name
