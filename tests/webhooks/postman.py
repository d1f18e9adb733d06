"""A postman for tests: the worker's own sender, one step at a time."""

from __future__ import annotations

import json
import time
from typing import Any

from tests.shop import Company, Shop
from tests.webhooks.receiver import Got
from voucherd.db import transaction
from voucherd.ids import State
from voucherd.webhooks import endpoints, signing
from voucherd.webhooks.endpoints import Draft, Endpoint
from voucherd.worker import Worker


class Postman:
    """Fans out and sends, each as one verb."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self.worker = Worker(shop.pool, shop.sealer, shop.settings, ids=shop.ids)
        assert self.worker.sender is not None
        self.sender = self.worker.sender
        self.secrets: dict[int, str] = {}

    async def endpoint(
        self, company: Company, url: str | None, *types: str, state: State = State.LIVE, **more: Any
    ) -> Endpoint:
        """A new endpoint."""
        async with transaction(self._shop.pool) as tx:
            made, secret = await endpoints.add(
                tx, self._shop.sealer, company.id, state, Draft(url, types, **more)
            )
        self.secrets[made.id] = secret
        return made

    async def run(self) -> None:
        """Send everything that is due now, until nothing is."""
        for _ in range(1_000):
            fanned = await self.worker.run_once("fan_out")
            begun = await self.sender.round()
            await self.sender.settled()
            if not fanned and not begun:
                return
        raise AssertionError("it does not end")

    async def hurry(self) -> None:
        """Let everything that waits be due now, by the database's clock."""
        await self._shop.pool.execute("UPDATE webhook_delivery SET next_at = now() WHERE status = 0")
        await self._shop.pool.execute(
            "UPDATE webhook_queue q SET next_at = now() FROM webhook w WHERE w.id = q.webhook_id AND w.enabled"
            " AND EXISTS (SELECT FROM webhook_delivery d WHERE d.webhook_id = q.webhook_id AND d.status = 0)"
        )

    async def stop(self) -> None:
        """Go home."""
        await self.sender.stop()


def opened(secret: str, got: Got) -> dict[str, Any]:
    """The message in a request, once it is proven genuine."""
    signing.verify(
        secret,
        got.headers["webhook-id"],
        got.headers["webhook-timestamp"],
        got.headers["webhook-signature"],
        got.body,
        now_s=time.time(),
    )
    message = json.loads(got.body)
    assert list(message) == ["id", "type", "timestamp", "data"]
    assert message["id"] == got.headers["webhook-id"]
    return dict(message)
