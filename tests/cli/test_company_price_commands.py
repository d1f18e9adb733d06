"""Price lists on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.terminal import Terminal, assert_refused, assert_wrong_usage


@pytest.fixture
def shop(terminal: Terminal) -> Terminal:
    """A terminal whose database knows a company, two products and a list."""
    terminal.json("company", "add", "Acme", "--country", "NL")
    common = [
        "--brand",
        "Play",
        "--type",
        "giftcard",
        "--category",
        "games",
        "--redeem-type",
        "currency",
        "--region",
        "ww",
    ]
    fixed = ["--face-value", "50 EUR", "--price", "48.10 EUR"]
    ranged = ["--face-value-range", "5-500 USD", "--fee", "1.02"]
    terminal.json("product", "add", "gift-50", "--name", "Gift 50", *common, *fixed)
    terminal.json("product", "add", "open-usd", "--name", "Open", *common, *ranged)
    terminal.json("price", "list", "add", "gold")
    return terminal


def test_a_list_is_filled_shown_and_written_to_a_file_and_back(shop: Terminal, tmp_path: Path) -> None:
    """OP-72: every kind of entry, and a file that says the same again."""
    shop.json("price", "list", "assign", "gold", "Acme")
    shop.json("price", "set", "gold", "--discount", "1%")
    shop.json("price", "set", "gold", "--brand", "play", "--discount", "1.5%")
    shop.json("price", "set", "gold", "gift-50", "--price", "47.5 eur")
    shop.json(
        "price", "set", "gold", "gift-50", "--discount", "5%", "--from", "2026-11-01", "--until", "2026-11-30"
    )
    assert shop.json("price", "set", "gold", "open-usd", "--fee", "1.01+0.05")["fee"] == "1.01+0.05"

    shown = shop.json("price", "list", "show", "gold")
    assert (shown["companies"], shown["entryCount"]) == (["Acme"], 5)
    assert [
        (e["product"], e["brand"], e["discount"], e["price"], e["fee"], e["from"], e["until"])
        for e in shown["entries"]
    ] == [
        (None, None, "1%", None, None, None, None),
        (None, "play", "1.5%", None, None, None, None),
        ("gift-50", None, None, "47.50 EUR", None, None, None),
        ("gift-50", None, "5%", None, None, "2026-11-01", "2026-11-30"),
        ("open-usd", None, None, None, "1.01+0.05", None, None),
    ]
    view = shop.view("price", "list", "show", "gold")
    assert "Companies: Acme" in view
    assert "47.50 EUR" in view

    for file in (tmp_path / "gold.csv", tmp_path / "gold.xlsx"):
        assert shop.json("price", "export", "gold", str(file))["rows"] == 5
        shop.json("price", "remove", "gold", "gift-50", "--from", "2026-11-01")
        assert shop.json("price", "import", "gold", str(file)) == {"list": "gold", "entries": 5}
        assert shop.json("price", "list", "show", "gold") == shown

    shop.json("product", "set", "gift-50", "--face-value", "60 EUR")
    assert [e["applies"] for e in shop.json("price", "list", "show", "gold")["entries"]] == [
        True, True, False, True, True,
    ]  # fmt: skip
    assert "its face value changed" in shop.view("price", "list", "show", "gold")
    assert_refused(shop.run("price", "list", "remove", "gold"), "is some company's")
    shop.json("price", "list", "unassign", "Acme")
    assert_refused(shop.run("price", "list", "unassign", "Acme"), "has no price list")
    assert shop.json("price", "list", "all") == [{"list": "gold", "companies": [], "entryCount": 5}]
    shop.json("price", "list", "remove", "gold")
    assert "No price lists" in shop.view("price", "list", "all")


def test_what_a_list_can_not_say_is_refused_and_changes_nothing(shop: Terminal) -> None:
    """OP-72: wrong usage, unknown names, and files of which a row is wrong."""
    shop.json("price", "set", "gold", "--discount", "1%")
    before = shop.json("price", "list", "show", "gold")
    set_ = ("price", "set", "gold")
    assert_wrong_usage(shop.run(*set_, "gift-50"), "give one of discount, price and fee")
    assert_wrong_usage(shop.run(*set_, "gift-50", "--discount", "1%", "--from", "soon"), "is not a day")
    assert_wrong_usage(shop.run(*set_, "open-usd", "--price", "5 USD"), "must be a fee instead")
    assert_refused(shop.run(*set_, "gift-60", "--discount", "1%"), "no product 'gift-60'")
    assert_refused(shop.run(*set_, "--brand", "none", "--discount", "1%"), "no brand 'none'")
    assert_refused(shop.run("price", "set", "tin", "--discount", "1%"), "no price list 'tin'")
    assert_refused(shop.run("price", "list", "assign", "gold", "Nobody"), "Nobody")
    assert_refused(shop.run("price", "list", "add", "gold"), "there is a price list 'gold' already")
    assert_refused(shop.run("price", "remove", "gold", "gift-50"), "says nothing of that")
    for rows, complaint in (
        ("", "the file is empty"),
        ("product,rebate\n", "the columns must be of"),
        (
            "product,discount\ngift-50,2%\ngift-60,2%\n",
            "row 3: there is no product 'gift-60'; nothing was changed",
        ),
        ("product,discount\ngift-50,two\n", "row 2: discount: must be a share"),
        ("product,discount\ngift-50,2%\ngift-50,3%\n", "row 3: says the same as row 2"),
        ("product,discount,from\ngift-50,2%,soon\n", "row 2, column from: 'soon' is not a day"),
        ("product,discount\ngift-50,2%,,x\n", "row 2: has more cells than the header"),
    ):
        assert_refused(shop.run("price", "import", "gold", "-", stdin=rows), complaint)
    assert shop.json("price", "list", "show", "gold") == before


def test_a_product_may_be_sold_at_a_loss(shop: Terminal) -> None:
    """OP-73: `product set --allow-loss`, which clients hear nothing of."""
    assert shop.json("product", "set", "gift-50", "--allow-loss")["allowLoss"] is True
    assert "below its cost" in shop.view("product", "set", "gift-50", "--allow-loss")
    assert shop.json("product", "set", "gift-50", "--no-allow-loss")["allowLoss"] is False
