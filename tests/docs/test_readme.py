"""README.md shows what the program really prints and answers."""

from __future__ import annotations

import json
import textwrap

import msgspec

from bench.figures import report
from bench.pgbench import Yardstick
from bench.plan import PARTS
from bench.readme import SHOWN, renewed
from tests.docs import pages
from tests.docs.pages import DOCS, README, ROOT
from voucherd.api.wire.shapes import ShortItem, ShortLine, ShortOrder
from voucherd.cli.demo import _greeting
from voucherd.cli.demo_shop.goods import goods
from voucherd.cli.demo_shop.handout import DemoPerson, Handout
from voucherd.settings import Settings

ANSWER = json.loads(pages.blocks(README, "json")[0])


def test_the_first_order_is_the_one_that_the_demo_prints() -> None:
    """Word for word, but for the key and the port."""
    nobody = DemoPerson("nobody@example.com", "")
    given = Handout("Demo Trading", "vk_live_…", "vk_test_…", nobody, nobody, [goods()[0].draft.slug])
    printed = _greeting(given, "http://127.0.0.1:8080", Settings())
    curl = textwrap.dedent(printed[printed.index("  KEY=") :])
    assert pages.blocks(README, "sh")[1] == curl


def test_the_answer_that_is_shown_has_the_fields_and_the_price_of_the_real_one() -> None:
    """The excerpt leaves fields out and invents none; the price is the catalogue's."""
    (item,) = ANSWER["items"]
    for shape, shown in ((ShortOrder, ANSWER), (ShortItem, item), (ShortLine, item["orderLines"][0])):
        assert set(shown) <= {field.encode_name for field in msgspec.structs.fields(shape)}
    assert item["productSlug"] == goods()[0].draft.slug
    assert item["amount"] == item["linesCompleted"] == len(item["orderLines"])


def test_the_first_order_of_the_guide_is_one_that_the_demo_takes() -> None:
    """Its example works as printed beside `make demo`: the product is for sale there, at a price of its own."""
    body = next(block for block in pages.blocks(DOCS / "api-guide.md", "sh") if "-d '" in block)
    cart = json.loads(body.partition("-d '")[2].rpartition("'")[0])
    (item,) = cart["items"]
    assert item["productSlug"] in {one.draft.slug for one in goods() if one.active}
    assert "faceValue" not in item


def test_the_two_commands_exist() -> None:
    """`make demo` and `make test`."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    words = [line.split()[1] for line in pages.blocks(README, "sh")[0].splitlines()]
    assert words == ["demo", "test"]
    assert all(f"\n{word}:" in makefile for word in words)


def test_the_tour_passes_only_places_that_exist() -> None:
    """Every file and folder of the tour is there, from the root, the package, the tests or the row's own folder."""
    for row in pages.rows(README, "where"):
        folder, *more = [word for cell in row for word in cell.split("`")[1::2]]
        assert (ROOT / folder).exists(), folder
        for word in more:
            places = (ROOT, pages.PACKAGE, ROOT / folder)
            assert any((place / word).exists() for place in places), word


def test_the_parts_of_the_benchmark_are_listed() -> None:
    """Every part that can be measured has a row, and no other."""
    rows = pages.rows(ROOT / "bench" / "README.md", "part")
    assert {row[0].strip("`") for row in rows} == set(PARTS)


def test_the_results_say_how_they_were_measured_as_a_run_would() -> None:
    """The head of the file is the one that `make bench` writes."""
    head = report([], Yardstick(1.0, 1.0, 1.0), "PostgreSQL", 0).partition("\n\n| what")[0]
    words = head[head.index("How it was measured") :]
    assert words in pages.text_of(ROOT / "bench" / "RESULTS.md")


def test_the_figures_of_speed_are_those_of_the_last_whole_run() -> None:
    """The README's table is what `make bench` takes from its results, row by row, and nobody typed it."""
    readme = pages.text_of(README)
    results = pages.text_of(ROOT / "bench" / "RESULTS.md")
    assert renewed(readme, results) == readme
    assert len(list(pages.rows(README, "what"))) == len(SHOWN)
