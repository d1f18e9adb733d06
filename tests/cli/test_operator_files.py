"""Products, prices and stock as files: out, changed in a spreadsheet, and in again."""

from __future__ import annotations

import io
import json
from datetime import datetime
from pathlib import Path

import openpyxl

from tests.cli.terminal import Terminal, assert_refused, assert_wrong_usage
from tests.workbooks import workbook
from voucherd.db import Pool

CATALOGUE = """slug;name;brand;type;category;redeem-type;region;face-value;face-value-range;price;fee;active
gift-50;Gift 50;Gifty;giftcard;gifts;currency;ww;50 EUR;;48.10 EUR;;
gift-any;Any;Gifty;giftcard;gifts;currency;ww;;5-500 EUR;;1.02+0.10;no
"""


async def told(pool: Pool) -> list[dict[str, object]]:
    """The events of products, oldest first."""
    rows = await pool.fetch("SELECT data::text FROM event WHERE type = 'product.updated' ORDER BY id")
    return [json.loads(row["data"]) for row in rows]


async def test_a_catalogue_goes_out_is_changed_and_comes_in_again(
    terminal: Terminal, pool: Pool, tmp_path: Path
) -> None:
    """OP-54: `product.updated` tells of each product that changes, and of no other."""
    planned = terminal.json("product", "import", "-", "--dry-run", stdin=CATALOGUE)
    assert (planned["dryRun"], planned["added"], planned["changed"], planned["unchanged"]) == (True, 2, 0, 0)
    assert await pool.fetchval("SELECT count(*) FROM product") == 0
    terminal.json("product", "import", "-", stdin=CATALOGUE)
    new = [{"slug": "gift-50", "active": True}, {"slug": "gift-any", "active": False}]
    assert await told(pool) == new

    sheet = tmp_path / "products.xlsx"
    assert terminal.json("product", "export", str(sheet)) == {
        "file": str(sheet),
        "format": "xlsx",
        "rows": 2,
    }
    assert terminal.json("product", "import", str(sheet))["unchanged"] == 2
    assert terminal.run("product", "export", "-").out.splitlines()[1:] == [
        "gift-50,Gift 50,Gifty,giftcard,gifts,currency,ww,50.00,EUR,,48.10,EUR,,multi_purpose,no,no,,,,yes",
        "gift-any,Any,Gifty,giftcard,gifts,currency,ww,,EUR,5.00-500.00 EUR,,,1.02+0.10,multi_purpose,no,no,,,,no",
    ]

    prices = tmp_path / "prices.xlsx"
    terminal.json("product", "export", str(prices), "--prices")
    book = openpyxl.load_workbook(prices)
    cells = book.active
    assert cells is not None
    assert [cell.value for cell in cells[1]] == ["slug", "price", "price-currency", "fee"]
    cells["B2"].value = 47.9
    book.save(prices)
    shown = terminal.run("product", "import", str(prices), "--dry-run").out
    row = next(line.split() for line in shown.splitlines() if "gift-50" in line)
    assert row == ["2", "gift-50", "price", "48.10", "47.90"]
    assert "0 added, 1 changed, 1 unchanged. Nothing was changed." in shown
    changed = terminal.json("product", "import", str(prices))
    assert changed["changes"] == [
        {
            "row": 2,
            "slug": "gift-50",
            "action": "change",
            "fields": [{"column": "price", "from": "48.10", "to": "47.90"}],
        }
    ]
    assert await told(pool) == [*new, {"slug": "gift-50", "active": True}]
    assert await pool.fetchval("SELECT count(*) FROM product_version") == 3


async def test_a_file_with_an_error_changes_nothing(terminal: Terminal, pool: Pool, tmp_path: Path) -> None:
    """Invariant 6: a refused call changed nothing; errors name the row and the column."""
    terminal.json("product", "import", "-", stdin=CATALOGUE)
    wrong = "slug,price,active\ngift-50,40 EUR,no\ngift-any,,perhaps\nunknown,1 EUR,\n"
    refused = terminal.run("product", "import", "-", stdin=wrong)
    assert_refused(refused, "8 cells are wrong; nothing was changed")
    assert "row 3, column active: must be yes or no" in refused.out
    assert "row 4, column name: is needed for a new product" in refused.out
    document = json.loads(terminal.run("product", "import", "-", "--json", stdin=wrong).out)
    assert document["errors"][0] == {"row": 3, "column": "active", "rule": "must be yes or no"}
    assert (document["changed"], document["errorCount"], len(await told(pool))) == (0, 8, 2)
    assert_refused(terminal.run("product", "import", "-", stdin="slug,x\n"), "row 1, column 'x'")

    kept = tmp_path / "kept.csv"
    kept.write_text("mine")
    assert_wrong_usage(terminal.run("product", "export", "-", "--format", "xlsx"), "stdout takes CSV alone")
    assert_wrong_usage(terminal.run("product", "export", "-", "--json"), "stdout takes CSV alone")
    assert_refused(terminal.run("product", "export", str(tmp_path / "no" / "folder.csv")), "No such file")
    assert terminal.json("product", "export", str(kept))["rows"] == 2
    assert kept.read_text().startswith("slug,")


def test_stock_comes_from_a_workbook_and_goes_out_without_codes(terminal: Terminal, tmp_path: Path) -> None:
    """The command line: `stock import` takes XLSX by the same rules; `stock export` never shows a code."""
    terminal.json("product", "import", "-", stdin=CATALOGUE)
    bought = ["--supplier", "wholesale", "--purchase-price", "46.90 EUR"]
    file = tmp_path / "codes.xlsx"
    header = ["code", "serial", "expires"]
    until = datetime(2099, 12, 31)  # noqa: DTZ001 - As a spreadsheet has it.
    file.write_bytes(workbook(header, ["0012", "S1", until], [1234567890123456, "S2"], ["=1+1"], ["C", 7]))
    refused = terminal.run("stock", "import", "gift-50", str(file), *bought, "--json")
    assert_refused(refused, "3 lines are bad; nothing was taken")
    number = "is a number, so digits may be lost: make the column text, fill it anew"
    assert json.loads(refused.out)["bad"] == [
        {"line": 3, "reason": f"code: {number}"},
        {"line": 4, "reason": "code: is a formula"},
        {"line": 5, "reason": f"serial: {number}"},
    ]
    file.write_bytes(workbook(header, ["0012", "S1", until], [], ["B", None, "2099-12-31"]))
    assert terminal.json("stock", "import", "gift-50", str(file), *bought)["taken"] == 2
    again = terminal.json("stock", "import", "gift-50", "-", *bought, stdin="0012\n")
    assert (again["taken"], again["alreadyThere"]) == (0, 1), "The zeros are still there."

    lots = terminal.run("stock", "export", "-").out.splitlines()
    assert lots[0].startswith("lot,product,state,face-value,face-currency,supplier,size,left,purchase-price")
    assert ",gift-50,live,50.00,EUR,wholesale,2,2,46.90,EUR,93.80,2099-12-31T23:59:59Z," in lots[1]
    sheet = tmp_path / "stock.xlsx"
    assert terminal.json("stock", "export", str(sheet))["rows"] == 1
    rows = list(openpyxl.load_workbook(io.BytesIO(sheet.read_bytes())).active.values)
    assert rows[1][1:3] == ("gift-50", "live")
    assert not any("0012" in str(cell) for row in rows[1:] for cell in row[1:])
