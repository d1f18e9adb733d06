"""`voucherd report`: read by people, by spreadsheets and by programs."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

from tests.cli.terminal import Terminal, assert_wrong_usage
from tests.shop import open_shop
from voucherd.db import Pool


async def test_a_report_is_a_table_csv_or_json(
    terminal: Terminal, pool: Pool, database_url: str, tmp_path: Path
) -> None:
    """The command line: every command takes `--json`; amounts never mix currencies, and totals are told."""
    async with open_shop(pool, database_url, tmp_path / "shop", with_worker=False) as shop:
        await shop.fx("USD", 92_000_000)
        await shop.product("gift", price="9.50 EUR", stock=5)
        await shop.product("taxed", price="10 EUR", vat_category="single_purpose", stock=5)
        company = await shop.company()
        await shop.top_up(company, "100 USD")
        for currency in ("EUR", "USD"):
            order = await shop.create(company, ("gift", 2), ("taxed", 1), currency=currency)
            await shop.confirm(company, order["trx"])
        await shop.assert_books_balance()

    told = terminal.json("report", "sales", "--by", "product")
    assert told["by"] == ["product", "currency"]
    assert told["rows"][0] == {
        "product": "gift",
        "currency": "EUR",
        "codes": 2,
        "price": 19,
        "vat": 0,
        "inclVat": 19,
        "priceEur": 19,
        "vatEur": 0,
        "inclVatEur": 19,
    }
    assert [(row["currency"], row["codes"], row["inclVat"]) for row in told["totals"]] == [
        ("EUR", 3, 31.1),
        ("USD", 3, 33.81),
    ]
    assert told["total"] == {"codes": 6, "priceEur": 58.0, "vatEur": 4.2, "inclVatEur": 62.2}
    assert json.loads(terminal.run("report", "sales", "--by", "product", "--format", "json").out) == told

    written = list(
        csv.DictReader(io.StringIO(terminal.view("report", "margin", "--by", "brand", "--format", "csv")))
    )
    assert [(row["brand"], row["currency"], row["margin-eur"], row["margin-percent"]) for row in written] == [
        ("testbrand", "EUR", "2.00", "6.90"),
        ("testbrand", "USD", "2.00", "6.90"),
    ]
    shown = terminal.view("report", "vat").splitlines()
    assert shown[0].startswith("vat, 20")
    assert shown[1].split()[:4] == ["country", "VAT", "category", "rate"]
    assert [line.split()[0] for line in shown[2:]] == ["NL"] * 4 + ["total", "total", "all"]
    assert terminal.view("report", "sales", "--from", "2020-01-01", "--to", "2020-02-01").endswith(
        "Nothing.\n"
    )
    assert terminal.json("report", "stock", "--expiring", "7")["totals"][0]["value"] == 36
    assert "taxed" in terminal.view("report", "stock")

    assert_wrong_usage(terminal.run("report", "stock", "--by", "day"), "--by day", "product, brand")
    assert_wrong_usage(terminal.run("report", "sales", "--by", "moon"), "moon")
    assert_wrong_usage(terminal.run("report", "vat", "--from", "1 May"), "is not a day such as")
    backwards = terminal.run("report", "sales", "--from", "2026-02-01", "--to", "2026-01-01")
    assert_wrong_usage(backwards, "must be before --to")
