"""Pages speak the reader's language, and write times in the reader's zone."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from tests.pages.people import HTML, someone
from tests.shop import Shop

DUTCH = {"accept-language": "nl-NL,nl;q=0.9,en;q=0.5"}
LATE = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)


async def test_times_are_written_in_the_readers_zone_and_the_zone_is_named(shop: Shop) -> None:
    """OP-172: the person's own choice, else the browser's zone, else UTC; machines still read UTC."""
    company = await shop.company()
    await shop.product("gift-10", stock=1)
    owner = await someone(shop, "owner", company)
    order = await shop.create(company, ("gift-10", 1))
    await shop.pool.execute("UPDATE orders SET created_at = $1 WHERE company_id = $2", LATE, company.id)

    async def shown(zone: str = "") -> str:
        cookies = f"voucherd={owner.token}; zone={zone}" if zone else f"voucherd={owner.token}"
        headers = {**HTML, "cookie": cookies}
        page = (await shop.client.get(f"/portal/orders/{order['trx']}", headers=headers)).text
        assert 'datetime="2026-03-01T23:30:00Z"' in page
        return page

    for zone, moment, named in (
        ("", "1 Mar 2026, 23:30", "UTC"),
        ("Europe/Amsterdam", "2 Mar 2026, 00:30", "Europe/Amsterdam"),
        ("America/New_York", "1 Mar 2026, 18:30", "America/New York"),
        ("../../etc/passwd", "1 Mar 2026, 23:30", "UTC"),
        ("<script>", "1 Mar 2026, 23:30", "UTC"),
    ):
        page = await shown(zone)
        assert moment in page, zone
        assert page.count(f"Times are in {named}.") == 1, zone
    await shop.pool.execute("UPDATE app_user SET time_zone = 'Asia/Tokyo' WHERE id = $1", owner.user_id)
    assert "2 Mar 2026, 08:30" in await shown("Europe/Amsterdam")


async def test_a_filter_means_days_where_the_reader_is(shop: Shop) -> None:
    """OP-172: an order of half past eleven in UTC was made on the next day in Amsterdam."""
    company = await shop.company()
    await shop.product("gift-10", stock=1)
    owner, clerk = await someone(shop, "owner", company), await someone(shop, "support")
    order = await shop.create(company, ("gift-10", 1))
    await shop.pool.execute("UPDATE orders SET created_at = $1 WHERE company_id = $2", LATE, company.id)
    for zone, day in (("UTC", "2026-03-01"), ("Europe/Amsterdam", "2026-03-02")):
        await shop.pool.execute("UPDATE app_user SET time_zone = $1", zone)
        for one in ("2026-03-01", "2026-03-02"):
            for person, path in ((owner, "/portal/orders"), (clerk, "/console/orders")):
                page = (await person.get(f"{path}?from={one}&to={one}")).text
                assert (order["trx"] in page) is (one == day), (zone, one, path)


async def test_a_page_speaks_the_language_of_its_reader(shop: Shop) -> None:
    """OP-171: the person's own choice, else the browser's language, else English; the console speaks English."""
    owner, admin = await someone(shop, "owner", await shop.company()), await someone(shop, "admin")

    async def language(path: str, cookie: str = "", **headers: str) -> str:
        sent = {**HTML, **headers, "cookie": cookie}
        page = await shop.client.get(path, headers=sent)
        return str(re.findall('<html lang="([^"]*)"', page.text)[0])

    assert await language("/sign-in") == "en"
    assert await language("/sign-in", **DUTCH) == "nl"
    assert await language("/no/such/page", **DUTCH) == "nl"
    mine, theirs = f"voucherd={owner.token}", f"voucherd={admin.token}"
    assert await language("/portal", mine, **DUTCH) == "nl"
    assert await language("/console", theirs, **DUTCH) == "en"
    assert await language("/sandbox/console", theirs, **DUTCH) == "en"
    await shop.pool.execute("UPDATE app_user SET language = 'fr'")
    assert await language("/portal", mine, **DUTCH) == "fr"
    assert await language("/account", theirs, **DUTCH) == "fr"
    assert await language("/console", theirs, **DUTCH) == "en"
