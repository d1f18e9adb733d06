"""The console's reports: the same figures as the command, with a chart, a table and a file."""

from __future__ import annotations

import asyncio

import pytest

from tests.pages.people import someone
from tests.shop import Shop
from voucherd.pages.console.reports import bars
from voucherd.reports.cache import AGE_S_MAX, KEPT_MAX, ReportCache


async def test_reports_show_what_was_sold(shop: Shop) -> None:
    """OP-91: sums, a chart with words, the file; another state, a wrong period and a wrong name."""
    company = await shop.company(balance="5000.00 EUR")
    await shop.product("gift", price="1000.00 EUR", stock=5)
    order = await shop.create(company, ("gift", 2))
    await shop.confirm(company, order["trx"])
    finance = await someone(shop, "finance")
    page = await finance.get("/console/reports")
    assert page.text.count("2\u202f000.00") >= 3
    assert "<desc" in page.text
    assert "Sales, in EUR before VAT" in page.text
    by = await finance.get("/console/reports/margin?by=product&from=2020-01-01&to=2022-12-31")
    assert "Nothing was sold in that time" in by.text
    for path in ("margin?by=product", "margin?by=company", "vat?by=month", "stock?by=brand", "sales?by=day"):
        assert (await finance.get(f"/console/reports/{path}")).status_code == 200, path
    assert "Gift</th>" in (await finance.get("/console/reports/margin?by=product")).text
    file = await finance.get("/console/reports/sales/csv?by=company")
    head, row = file.text.splitlines()
    assert head.startswith("company,currency,codes,price,vat")
    assert row.startswith(f"{company.name},EUR,2,2000.00,")
    assert file.headers["content-disposition"].startswith('attachment; filename="sales-')
    for wrong in ("from=2026-02-30", "from=2026-02-02&to=2026-02-01", "from=2000-01-01", "to=9999-12-31"):
        assert (await finance.get(f"/console/reports/sales?{wrong}")).status_code == 422, wrong
        assert (await finance.get(f"/console/reports/sales/csv?{wrong}")).status_code == 400, wrong
    assert (await finance.get("/console/reports/profit")).status_code == 404
    await shop.assert_books_balance()


async def test_pages_of_reports_say_names_and_files_say_slugs(shop: Shop) -> None:
    """OP-176: products, brands, countries and VAT in words; two products of one name are told apart."""
    company = await shop.company(balance="500.00 EUR")
    for slug, name in (("play-nl", "Play"), ("play-de", "Play"), ("tunes", "Tunes & more")):
        await shop.product(slug, name=name, stock=3)
        await shop.confirm(company, (await shop.create(company, (slug, 1)))["trx"])
    finance = await someone(shop, "finance")
    for report in ("sales", "margin", "stock"):
        page = (await finance.get(f"/console/reports/{report}?by=product")).text
        for name in ("Tunes &amp; more", "Play (play-nl)", "Play (play-de)"):
            assert f'<th scope="row">{name}</th>' in page, (report, name)
        assert ">tunes<" not in page, report
        assert "tunes:" not in page, report
        file = (await finance.get(f"/console/reports/{report}/csv?by=product")).text
        assert [row.split(",")[0] for row in file.splitlines()[1:]] == ["play-de", "play-nl", "tunes"], report
    vat = (await finance.get("/console/reports/vat")).text
    assert "On the fee only" in vat
    assert "Netherlands" in vat
    assert "multi_purpose" not in vat
    assert "multi_purpose" in (await finance.get("/console/reports/vat/csv")).text


async def test_what_is_kept_is_found_once_and_not_for_long() -> None:
    """OP-91: many who ask at once wait for one; half a minute later it is found anew; a failure is not kept."""
    now, found = [0.0], []
    kept = ReportCache(lambda: now[0])

    async def find() -> int:
        await asyncio.sleep(0)
        if now[0] == 99.0:
            raise TimeoutError
        found.append(now[0])
        return len(found)

    assert await asyncio.gather(*(kept.get("a", find) for _ in range(5))) == [1] * 5
    now[0] = AGE_S_MAX
    assert await kept.get("a", find) == 2
    now[0] = 99.0
    with pytest.raises(TimeoutError):
        await kept.get("a", find)
    now[0] = 100.0
    assert await kept.get("a", find) == 3
    for at in range(2 * KEPT_MAX):
        await kept.get(at, find)
    assert len(kept._found) == KEPT_MAX


def test_bars_stand_on_their_scale() -> None:
    """OP-91: the scale ends at a number that is easy to read, and holds what is below nothing, too."""
    chart = bars([("a", 150, "1.50"), ("b", 0, "0"), ("c", -50, "−0.50")])
    assert (chart.highest, chart.lowest, chart.zero) == (200, -50, 80.0)
    assert [(bar.y, bar.height) for bar in chart.bars] == [(20.0, 60.0), (80.0, 0.0), (80.0, 20.0)]
    assert [bar.below for bar in chart.bars] == [False, False, True]
    assert bars([]).empty
    assert bars([("a", 0, "0")]).empty
    assert [bars([("a", n, "")]).highest for n in (1, 11, 21, 51, 100, 101)] == [1, 20, 50, 100, 100, 200]
