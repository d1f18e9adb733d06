"""docs/contract.md says what the program does, and every citation leads to a section, a point or a decision."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.docs import pages
from tests.docs.guards import TESTS
from tests.docs.pages import CONTRACT, DECISIONS, DOCS, OPEN_POINTS, PACKAGE, README, ROOT
from voucherd.api.errors import REFUSALS, Op
from voucherd.api.openapi import document
from voucherd.api.routes import ROUTES
from voucherd.api.wire import shapes
from voucherd.orders.rules.states import Status

TEXT = pages.text_of(CONTRACT)
SECTIONS = re.split(r"^## (?=\d\. )", TEXT, flags=re.MULTILINE)[1:]
CITED = re.compile(r"\bContract ((?:\d+(?:, | and | to )?)+)")
DECIDED = re.compile(r"\b[Dd]ecision ((?:\d+(?:, | and | to )?)+)")
INVARIANT = re.compile(r"\b[Ii]nvariants? ((?:\d+(?:, | and | to )?)+)")
ELSEWHERE = re.compile(
    r"\bspec \d|(?<!\[)\bsection \d|\bthe (design|specification)\b|^\s*\"\"\"(the )?design\b", re.I | re.M
)
"""How comments cite what is not in the repository."""


def written() -> Iterator[Path]:
    """Every file in which people write sentences."""
    for folder, ends in ((PACKAGE, "py sql html"), (TESTS, "py"), (ROOT / "bench", "py md"), (DOCS, "md")):
        for end in ends.split():
            yield from sorted(folder.rglob(f"*.{end}"))
    yield from (README, ROOT / "Makefile", ROOT / "pyproject.toml")


FILES = {file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8") for file in written()}


def numbers(pattern: re.Pattern[str]) -> dict[int, str]:
    """The numbers that are cited so, each with a file that does."""
    return {
        int(number): name
        for name, text in FILES.items()
        for cited in pattern.findall(text)
        for number in re.findall(r"\d+", cited)
    }


def cells(section: int, title: str) -> list[list[str]]:
    """The rows of the first table below a heading of a section, without backticks."""
    part = SECTIONS[section - 1].split(f"### {title}\n", 1)[1].split("\n### ")[0]
    table = re.search(r"^\|.+?\n\|[-|]+\n((?:\|.*\n)+)", part, re.MULTILINE)
    assert table is not None
    return [[cell.strip(" `") for cell in line.strip("|\n ").split(" | ")] for line in table[1].splitlines()]


def test_the_contract_has_nine_sections() -> None:
    """The numbers are cited, so they are for good."""
    assert [section[0] for section in SECTIONS] == list("123456789")


def test_every_citation_leads_somewhere() -> None:
    """Sections of the contract, decisions and invariants exist under the numbers by which they are cited."""
    decisions = {int(record.name[:4]) for record in DECISIONS.glob("0*.md")}
    invariants = {int(row[0]) for row in pages.rows(DECISIONS / "0027-invariants.md", "no.")}
    for pattern, known in ((CITED, set(range(1, 10))), (DECIDED, decisions), (INVARIANT, invariants)):
        cited = numbers(pattern)
        assert len(cited) > 4
        assert {number: name for number, name in cited.items() if number not in known} == {}


def test_every_open_point_that_is_cited_has_a_row() -> None:
    """In every file, those of the benchmark and the front page included."""
    points = {row[0] for row in pages.rows(OPEN_POINTS, "id")}
    cited = {point: name for name, text in FILES.items() for point in re.findall(r"\bOP-\d+\b", text)}
    assert {point: name for point, name in cited.items() if point not in points} == {}


def test_the_points_that_the_contract_links_to_are_linked() -> None:
    """A short link without its address is two brackets on the page."""
    short = set(re.findall(r"\[(OP-\d+)\](?!:)", TEXT))
    assert short == set(re.findall(r"^\[(OP-\d+)\]: open-points\.md#on-the-wire$", TEXT, re.MULTILINE))
    assert len(short) > 40


def test_the_sections_that_open_points_name_link_back() -> None:
    """A point that belongs to a section of the contract is named there."""
    for point, section, *_ in pages.rows(OPEN_POINTS, "id"):
        if section != "–":
            assert point in SECTIONS[int(section) - 1], point


def test_nothing_cites_what_is_not_in_the_repository() -> None:
    """A stranger has the contract, the open points and the decisions, and nothing else."""
    found = {name: [match[0] for match in ELSEWHERE.finditer(text)] for name, text in FILES.items()}
    own = Path(__file__).relative_to(ROOT).as_posix()
    assert {name: cited for name, cited in found.items() if cited and name != own} == {}


@pytest.mark.parametrize(
    ("title", "shape", "ours"),
    [
        ("Order", shapes.ExtendedOrder, {"dateExpires", "paymentCurrency"}),
        ("Item", shapes.ExtendedItem, set[str]()),
        ("Product", shapes.Product, set[str]()),
        ("Order line, short", shapes.ShortLine, set[str]()),
        ("Order line, extended", shapes.ExtendedLine, set[str]()),
    ],
)
def test_the_tables_of_fields_are_the_shapes_on_the_wire(
    title: str, shape: type[msgspec.Struct], ours: set[str]
) -> None:
    """Contract 2: every field, none invented but those of OP-13."""
    told = [row[0] for row in cells(2, title)]
    assert len(told) == len(set(told))
    assert set(told) | ours == {field.encode_name for field in msgspec.structs.fields(shape)}


def test_the_types_of_fields_are_those_of_the_openapi_document() -> None:
    """Contract 2: string, integer, decimal, boolean and array, as clients are told."""
    kinds = {
        "string": "string",
        "date-time": "string",
        "integer": "integer",
        "boolean": "boolean",
        "decimal": "number",
    }
    schemas = document("http://127.0.0.1", 1)["components"]["schemas"]
    for title, shape in (
        ("Order line, extended", "FinishedLine"),
        ("Order line, short", "ShortLineWithCode"),
    ):
        for field, kind, *_ in cells(2, title):
            schema = schemas[shape]["properties"][field]
            told = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
            assert kinds[re.split(r"[ :(]", kind)[0]] in told, field


def test_the_description_of_a_product_has_the_keys_that_are_listed() -> None:
    """Contract 2: the JSON text of an extended line."""
    part = SECTIONS[1].split("`product` of an extended line", 1)[1]
    told = set(re.findall(r"`(\w+)`", part))
    fields = {
        field.encode_name
        for shape in (shapes.ProductDescription, shapes.Offer)
        for field in msgspec.structs.fields(shape)
    }
    assert told == fields


def test_the_statuses_are_those_of_the_program() -> None:
    """Contract 3: five of an order, three of a line."""
    assert [row[0] for row in cells(3, "The status of an order")] == [
        status.name.lower() for status in Status
    ]
    line = SECTIONS[2].split("### The status of a line\n", 1)[1]
    assert set(re.findall(r"`(\w+)`", line)) == {"finished", "pending", "cancelled"}


def test_the_paths_are_those_that_are_served() -> None:
    """Contract 4, 9: Create, Confirm, Resolve and Cancel, each in its versions."""
    told = set(re.findall(r"`(POST|PATCH) /api/([\w.]+)/([^`]+)`", SECTIONS[3]))
    named = {Op.CREATE, Op.CONFIRM, Op.RESOLVE, Op.CANCEL}
    assert told == {(r.method, v, r.path) for r in ROUTES if r.op in named for v in r.versions}
    versions = {row[0].strip("`"): row[1].split(", ") for row in pages.rows(CONTRACT, "version")}
    assert {(op.lower(), version) for version, ops in versions.items() for op in ops} == {
        (r.op.value, v) for r in ROUTES if r.op in named for v in r.versions
    }


@pytest.mark.parametrize("op", [Op.CREATE, Op.CONFIRM, Op.RESOLVE, Op.CANCEL])
def test_the_messages_are_said_word_for_word(op: Op) -> None:
    """Contract 7: capitals included; where a status is stated it is the one that is sent."""
    said = {text: status for (one, _), (status, text) in REFUSALS.items() if one is op}
    for row in cells(7, op.value.capitalize()):
        message = row[2] if len(row) == 4 else row[0]
        message = message.replace("<offer_names>", "{names}").replace("<product_name>", "{name}")
        assert message in said
        assert len(row) != 4 or int(row[0]) == said[message]
