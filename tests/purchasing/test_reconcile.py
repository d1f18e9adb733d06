"""A supplier's statement against our books: every way in which the two can differ is found, and nothing else."""

from __future__ import annotations

import csv
import html
import io
import json
from pathlib import Path

import httpx
import pytest

from tests.cli.terminal import Terminal, assert_refused
from tests.pages.people import someone
from tests.purchasing.conftest import Market
from tests.purchasing.fake import sold_out, unclear


@pytest.fixture
def terminal(market: Market, database_url: str, tmp_path: Path) -> Terminal:
    """The operator's terminal, with the shop's own master key."""
    return Terminal(tmp_path, database_url)


async def test_every_difference_is_listed_and_what_agrees_is_not(
    market: Market, terminal: Terminal, tmp_path: Path
) -> None:
    """The command line: `supplier reconcile` reads only, and exits 1 when anything differs."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR", async_delivery=True)
    company = await shop.company(balance="900.00 EUR")
    fake = await market.supplier("one", "gift", looks_up=False)
    for count, deed in ((3, None), (2, None), (1, None), (1, None), (4, None), (5, sold_out), (6, unclear)):
        fake.deeds += [] if deed is None else [deed]
        order = await shop.create(company, ("gift", count))
        await shop.confirm(company, order["trx"])
        await market.dispatcher.dispatch()
        await market.dispatcher.dispatch()
        await market.dispatcher.settled()
        await shop.pool.execute("DELETE FROM refused_offer")
    found = await shop.pool.fetch("SELECT id::text, count, status FROM attempt ORDER BY placed_at")
    ids = {row["count"]: row["id"] for row in found}
    assert sorted((row["count"], row["status"]) for row in found) == [
        *((1, 3), (1, 3), (2, 3), (3, 3), (4, 3)),
        *((5, 4), (6, 2)),
    ]
    twice = [row["id"] for row in found if row["count"] == 1]
    today = f"{await shop.pool.fetchval('SELECT now()'):%Y-%m-%d}"
    good = [f"{ids[3]},,3,27.00,EUR,{today}", f",F2,2,18.00,EUR,{today}"]
    good += [
        f"{twice[0]},,1,9.00,EUR,{today}",
        f"{twice[0]},,1,-9.00,EUR,{today}",
        f"{twice[0]},,1,9.00,EUR,{today}",
    ]
    good += [f"{twice[1]},,1,9.00,EUR,{today}", f"{ids[4]},,4,36.00,EUR,{today}"]
    file = tmp_path / "statement.csv"
    before = await shop.snapshot()

    def compare(*lines: str) -> dict[str, object]:
        file.write_text("reference,id,count,amount,currency,date\n" + "\n".join(lines) + "\n")
        said = terminal.run("supplier", "reconcile", "one", str(file), "--json")
        told = dict(json.loads(said.out))
        assert said.code == (1 if told["differences"] else 0), said
        return told

    same = compare(*good)
    assert (same["charges"], same["purchases"], same["differences"]) == (7, 5, {})
    assert same["totals"] == [{"currency": "EUR", "theirs": 99, "ours": 99}]

    told = compare(
        f"{ids[3]},,2,18.00,EUR,{today}",  # One code less.
        f",F2,2,19.00,EUR,{today}",  # Dearer.
        *[f"{twice[0]},,1,9.00,EUR,{today}"] * 2,
        f"{twice[1]},,1,9.00,USD,{today}",
        f"{ids[5]},,5,45.00,EUR,{today}",
        f"{ids[6]},,6,54.00,EUR,{today}",
        f"{'0' * 32},Z-1,1,9.00,EUR,{today}",
    )
    listed = [(one["difference"], one["row"], one["status"]) for one in told["findings"]]  # type: ignore[attr-defined]
    assert listed == [
        ("amount", 2, "bought"),
        ("count", 2, "bought"),
        ("amount", 3, "bought"),
        ("repeated", 4, "bought"),
        ("currency", 6, "bought"),
        ("not-bought", 7, "failed"),
        ("not-bought", 8, "unknown"),
        ("not-ours", 9, None),
        ("not-charged", None, "bought"),
    ]
    shown = terminal.run("supplier", "reconcile", "one", str(file))
    assert_refused(shown, "9 differences with one")
    assert "they charge it more than once" in shown.out
    # What lies outside the period that was asked for is no difference.
    elsewhere = terminal.run(
        "supplier", "reconcile", "one", str(file), "--to", "2020-01-01", "--from", "2019-01-01"
    )
    assert "8 outside the period" in elsewhere.out
    assert elsewhere.code == 0
    file.write_text("reference,amount,currency,date\nx,nine,EUR,today\n")
    assert_refused(
        terminal.run("supplier", "reconcile", "one", str(file)), "row 2, column amount: 'nine' is not"
    )
    assert await shop.snapshot() == before
    await shop.assert_books_balance()


async def test_a_statement_is_compared_in_the_browser(market: Market) -> None:
    """OP-158: the same as the command, as a page and as a file; nothing is changed, and nothing of it is kept."""
    shop, admin = market.shop, await someone(market.shop, "admin")
    await shop.product("gift", price="9.50 EUR", async_delivery=True)
    company = await shop.company(balance="900.00 EUR")
    await market.supplier("one", "gift", looks_up=False)
    for count in (3, 2):
        order = await shop.create(company, ("gift", count))
        await shop.confirm(company, order["trx"])
        await market.dispatcher.dispatch()
        await market.dispatcher.dispatch()
        await market.dispatcher.settled()
    ids = {row[0]: row[1] for row in await shop.pool.fetch("SELECT count, id::text FROM attempt")}
    today = f"{await shop.pool.fetchval('SELECT now()'):%Y-%m-%d}"
    path = "/console/suppliers/one/statement"
    good = f"{ids[3]},3,27.00,{today}\n{ids[2]},2,18.00,{today}\n"
    wrong = f"{ids[3]},3,28.00,{today}\nZ-<1>,1,9.00,{today}\n"
    before = await shop.snapshot()

    async def compared(rows: str, head: str = "reference,count,amount,date", **fields: str) -> httpx.Response:
        files = {"file": ("may.csv", f"{head}\n{rows}".encode(), "text/csv")}
        return await admin.post(path, {"all-in": "EUR", **fields}, files=files)

    assert "Compare its statement" in (await admin.get("/console/suppliers/one")).text
    assert (await admin.get(path)).status_code == 200
    assert "Nothing differs." in (await compared(good)).text
    assert "Nothing differs." in (await compared(good, "reference,count,net,date", amount="Net")).text
    page = (await compared(wrong)).text
    for said in (
        "another amount",
        "they charge it, we know no such purchase",
        "we bought it, they don’t charge it",
    ):
        assert f'<td data-label="Difference">{said.capitalize()}</td>' in page, said
    assert f'href="/console/purchases/{ids[3]}"' in page
    assert "Z-&lt;1&gt;" in page
    file = await compared(wrong, **{"as": "csv"})
    rows = list(csv.DictReader(io.StringIO(file.text)))
    assert sorted((row["difference"], row["their amount"], row["our amount"]) for row in rows) == [
        ("amount", "28.00", "27.00"),
        ("not-charged", "", "18.00"),
        ("not-ours", "9.00", ""),
    ]
    for problem, answer in {
        "Choose a file.": await admin.post(path, {}),
        "No column for date: say which is the date column": await compared("", "reference,amount"),
        "The file charges nothing.": await compared(""),
        "Row 2, column amount": await compared(f"{ids[3]},3,much,{today}\n"),
        "The last day is before the first.": await compared(
            good, **{"from": "2026-05-02", "to": "2026-05-01"}
        ),
        "Choose one.": await compared(good, **{"all-in": "XXX"}),
        "There is no column": await compared(good, amount="Net"),
    }.items():
        assert answer.status_code == 422, problem
        assert problem in html.unescape(answer.text), problem
    assert await shop.snapshot() == before
    await shop.assert_books_balance()
