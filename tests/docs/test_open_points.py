"""docs/open-points.md lists every open point that is cited, and names tests that really guard it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.docs import pages
from tests.docs.guards import ID, NONE_YET, TESTS, citations, column
from tests.docs.pages import DOCS, OPEN_POINTS, PACKAGE, ROOT

ROWS = {row[0]: row for row in pages.rows(OPEN_POINTS, "id")}
NUMBERS = (
    *range(1, 15),
    *range(20, 30),
    *range(40, 62),
    *range(70, 74),
    80,
    *range(90, 114),
    *range(115, 138),
    *range(139, 164),
    *range(165, 169),
    *range(170, 175),
    *range(175, 178),
)
IDS = [f"OP-{number:02d}" for number in NUMBERS]

GOLDEN = ROOT / "tests" / "wire" / "golden"
CONTRACT_ORDER_FIELDS = {
    *("trx", "priceCurrency", "priceAmount", "priceVat", "priceInclVat", "priceFx", "dateCreated"),
    *(
        "paymentStatus",
        "type",
        "reference",
        "state",
        "orderStatus",
        "isBalancePayment",
        "downloaded",
        "items",
    ),
}


def test_every_open_point_has_one_row_in_order() -> None:
    """The ids are for good: none is missing, doubled or given to something else."""
    assert [row[0] for row in pages.rows(OPEN_POINTS, "id")] == IDS
    assert all(len(row) == 4 for row in ROWS.values())


def test_every_id_that_is_cited_anywhere_is_in_the_table() -> None:
    """Code, tests and docs cite no open point that nobody decided."""
    files = [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.sql"), *TESTS.rglob("*.py"), *DOCS.rglob("*.md")]
    cited = {point for file in files for point in ID.findall(file.read_text(encoding="utf-8"))}
    assert cited <= set(IDS)


@pytest.mark.parametrize("point", IDS)
def test_a_row_names_tests_that_exist_and_cite_it(point: str) -> None:
    """A row without a test says so: that something comes later, or that a test is still missing."""
    cell = ROWS[point][-1]
    named = re.findall(r"`([^`]+)`", cell)
    for name in named:
        assert TESTS / name in citations().get(point, {}), (
            f"{name} has no test that cites {point}; `python -m tests.docs.guards --write` names those that do"
        )
    assert named or cell.startswith("later: ") or cell == NONE_YET


def test_what_is_built_is_guarded_and_what_is_not_is_marked() -> None:
    """No point that is built is without a test; what comes later is said in so many words."""
    later = {point for point, row in ROWS.items() if row[-1].startswith("later: ")}
    assert later == set()
    unguarded = [point for point in IDS if point not in later and point not in citations()]
    assert unguarded == []


def test_the_column_keeps_what_is_still_to_come() -> None:
    """The script that writes the column changes the names of tests only."""
    files = {
        TESTS / "domain" / "test_batcher.py": ["test_a", "test_b"],
        TESTS / "wire" / "test_x.py": ["test_c"],
    }
    assert column(files, " later: webhooks; `old.py` ") == (
        "later: webhooks; `domain/test_batcher.py`, `wire/test_x.py`"
    )
    assert column({}, "") == NONE_YET
    assert ROOT in TESTS.parents


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.json")), ids=lambda file: file.stem)
def test_an_order_has_the_contracts_fields_and_dateexpires_while_it_is_created(file: Path) -> None:
    """OP-13: `paymentCurrency` beside the contract's fields, and one more on created orders, in every version."""
    order = json.loads(file.read_bytes())
    more = {"dateExpires"} if order["orderStatus"] == "created" else set()
    assert set(order) == CONTRACT_ORDER_FIELDS | {"paymentCurrency"} | more
    assert order["paymentCurrency"] == order["priceCurrency"]
