"""The Python client and what a sandbox teaches: play money, a clock that can be moved, events on demand, the log."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from tests.patience import until
from tests.python_client.roads import PLAYED, Road, async_client_of
from tests.shop import Shop
from tests.wire.test_sockets import Street
from voucherd.api.routes import ROUTES
from voucherd.ids import State
from voucherd_client import CartItem, errors
from voucherd_client.shapes.sandbox import LoggedRequest

pytestmark = pytest.mark.skipif(
    not {(route.method, route.path) for route in ROUTES} >= PLAYED,
    reason="this service has no such sandbox yet",
)


async def test_a_sandbox_is_filled_moved_and_looked_into(shop: Shop, street: Street) -> None:
    """Contract 8: what takes a day in production is seen at once, and what was called is found again."""
    company = await shop.company(balance=None)
    road = Road()
    async with async_client_of(street, company, State.SANDBOX, road) as client:
        before = await client.sandbox.top_up(100, currency="EUR")
        after = await client.sandbox.top_up(Decimal("0.50"))
        assert after.total_amount - before.total_amount == Decimal("0.50")
        triggered = await client.sandbox.trigger("order.finished", product_slug="gift")
        assert triggered.trx is not None
        assert len((await client.orders.find(triggered.trx)).codes) == 1
        order = await client.orders.create([CartItem("gift")], payment_currency="EUR")
        moved = await client.sandbox.advance(timedelta(hours=25))
        assert moved.expired_orders == 1
        assert (await client.sandbox.clock()).ahead_seconds >= 25 * 3600
        assert (await client.sandbox.reset()).ahead_seconds == 0

        async def logged() -> LoggedRequest | None:
            path = f"/api/1.03/order/{triggered.trx}"
            found = [one async for one in client.requests.find_all(path=path, http_status=200, limit=1)]
            return found[0] if found else None

        seen = await until(logged)
        assert seen is not None
        detail = await client.requests.find(seen.request_id)
        assert (detail.method, detail.path) == ("GET", seen.path)
        assert detail.response_body is not None
        ordered = {("POST", "order"), ("GET", "order/{trx}")}
        assert road.operations == PLAYED | ordered
        with pytest.raises(errors.OrderExpired):
            await client.orders.confirm(order.trx)
    async with async_client_of(street, company) as live:
        with pytest.raises(errors.SandboxOnly):
            await live.sandbox.top_up(1)
        with pytest.raises(errors.RequestNotFound):
            await live.requests.find("req_1")
    await shop.assert_books_balance()
