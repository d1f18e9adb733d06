"""The portal's pages of the sandbox and of the request log."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.pages.people import someone
from tests.shop import Shop
from voucherd.ids import State
from voucherd.money import Money
from voucherd.request_log import store
from voucherd.request_log.store import Answered


async def test_a_developer_tops_up_play_money_and_moves_the_clock(shop: Shop) -> None:
    """OP-144, OP-146: from the portal as from the API, whichever of live and sandbox it shows; never live money."""
    company = await shop.company(balance="5.00 EUR")
    await shop.product("gift-10", stock=1)
    dev = await someone(shop, "developer", company)
    order = await shop.create(company, ("gift-10", 1), state=State.SANDBOX)
    assert "5.00" in (await dev.get("/portal/sandbox")).text

    page = await dev.post("/portal/sandbox/top-up", {"amount": "20,50", "currency": "EUR"}, follow=True)
    assert "The sandbox has 25.50\u00a0EUR now." in page.text
    for amount in ("0", "-1", "x", "100000000"):
        wrong = await dev.post("/portal/sandbox/top-up", {"amount": amount, "currency": "EUR"})
        assert (wrong.status_code, 'aria-invalid="true"' in wrong.text) == (422, True), amount
    page = await dev.post("/portal/sandbox/advance", {"seconds": "259200"}, follow=True)
    assert "The clock moved ahead by three days. Open orders: 1, expired: 1." in page.text
    assert await shop.events(order["trx"]) == ["order.created", "order.expired"]
    await shop.pool.execute("UPDATE test_clock SET ahead_s = 3650 * 86400")
    far = await dev.post("/portal/sandbox/advance", {"seconds": "60"})
    assert (far.status_code, 'id="p-seconds"' in far.text) == (422, True)
    page = await dev.post("/portal/sandbox/reset", follow=True)
    assert "Reset clock" not in page.text
    assert (await dev.post("/portal/sandbox/advance", {"seconds": "-5"})).status_code == 400
    assert (await dev.post("/portal/sandbox/top-up", {"currency": "XXX"})).status_code == 400
    assert await shop.balance(company) == Money.read("5.00 EUR")
    await shop.assert_books_balance()


async def test_the_request_log_is_searched_in_the_portal(shop: Shop) -> None:
    """OP-148: by id, path, status and key; a call is shown as text, whatever it holds."""
    company = await shop.company()
    dev = await someone(shop, "developer", company)
    assert "No requests yet" in (await dev.get("/portal/requests")).text
    at, key = datetime.now(UTC), shop.ids.key(7)
    calls = [
        (at, "req_one", 7, "GET", "/api/1.03/order?reference=<b>x</b>", 200, 3, "", '{"data":[]}'),
        (at, "req_two", 7, "POST", "/api/1.03/order", 422, 5, '{"items":[]}', "<script>no</script>"),
    ]
    await store.write(shop.pool, [Answered(company.id, State.LIVE, *one) for one in calls])
    page = (await dev.get("/portal/requests")).text
    assert "reference=&lt;b&gt;x" in page
    for query, shown in (
        ("?id=req_two", ["422"]),
        ("?status=200", ["200"]),
        (f"?key={key}", ["200", "422"]),
        ("?path=/api/1.03/order", ["200", "422"]),
        ("?path=/api/1.00", []),
    ):
        text = (await dev.get(f"/portal/requests{query}")).text
        assert [word for word in ("200", "422") if f">{word}</span>" in text] == shown, query
    one = (await dev.get("/portal/requests/2")).text
    assert "&lt;script&gt;no&lt;/script&gt;" in one
    assert "req_two" in one
    for path in ("/portal/requests/9", "/portal/requests/x"):
        assert (await dev.get(path)).status_code == 404
    for query in ("?status=9999", "?key=nonsense"):
        wrong = await dev.get(f"/portal/requests{query}")
        assert (wrong.status_code, 'aria-invalid="true"' in wrong.text) == (422, True), query
    assert (await dev.get("/portal/requests?before=x")).status_code == 400
    dev.look_at(State.SANDBOX)
    assert "No requests yet" in (await dev.get("/portal/requests")).text
