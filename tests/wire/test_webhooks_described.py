"""What webhooks answer is what the OpenAPI document says, field by field."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from tests.shop import Company, open_shop
from tests.wire.test_openapi import URL, assert_described, read
from voucherd.api.openapi import document
from voucherd.db import Pool
from voucherd.keys.key_text import Scope

HOOK = "/api/1.03/webhook"


async def test_real_webhooks_are_as_described(pool: Pool, database_url: str, tmp_path: Path) -> None:
    """OP-54: every operation, what it gives and what it refuses; nothing is sent, because nobody works here."""
    described: dict[str, Any] = read(msgspec.json.encode(document(URL, 262_144)))
    async with open_shop(pool, database_url, tmp_path, with_worker=False) as shop:
        company = await shop.company()
        blind = Company(company.id, company.name, await shop.keys(company, frozenset({Scope.ORDERS_READ})))

        async def call(
            status: int, method: str, path: str, template: str, who: Company = company, **more: Any
        ) -> Any:
            answer = await shop.call(method, path, who, **more)
            assert answer.status_code == status, answer.text
            assert_described(described, template, answer)
            return answer.json() if answer.headers.get("content-type") == "application/json" else None

        new = {"url": "https://hooks.shop.com/x", "headers": {"x-a": "b"}, "eventTypes": ["order.finished"]}
        made = await call(201, "POST", HOOK, HOOK, json=new)
        one, of_one = f"{HOOK}/{made['id']}", HOOK + "/{id}"
        await call(200, "GET", HOOK, HOOK)
        await call(200, "GET", one, of_one)
        await call(200, "PATCH", one, of_one, json={"description": "shop"})
        await call(200, "POST", one + "/rotate", of_one + "/rotate")
        queued = await call(202, "POST", one + "/test", of_one + "/test")
        await pool.execute("UPDATE webhook_delivery SET attempts = 1")
        await pool.execute(
            "INSERT INTO webhook_attempt (webhook_id, event_id, number, sent_at, ms, url, error)"
            " SELECT webhook_id, event_id, 1, now(), 12, 'https://hooks.shop.com/x', 'no connection'"
            " FROM webhook_delivery"
        )
        log = await call(200, "GET", one + "/delivery", of_one + "/delivery")
        assert log["data"][0]["attempts"][0]["error"] == "no connection"
        recover = f"{one}/recover?since={datetime.now(UTC):%Y-%m-%d}"
        await call(202, "POST", recover, of_one + "/recover")
        replay, of_event = f"/api/1.03/event/{queued['eventId']}/replay", "/api/1.03/event/{id}/replay"
        await call(202, "POST", replay, of_event, json={"webhookId": made["id"]})
        for status, method, path, template, body in (
            (400, "POST", HOOK, HOOK, {"url": "https://127.0.0.1/"}),
            (400, "PATCH", one, of_one, {"enabled": 1}),
            (400, "POST", one + "/rotate", of_one + "/rotate", {"overlapSeconds": -1}),
            (400, "POST", replay, of_event, {"webhookId": "wh_1"}),
            (404, "PATCH", HOOK + "/wh_1", of_one, {}),
            (404, "POST", "/api/1.03/event/evt_1/replay", of_event, {}),
        ):
            await call(status, method, path, template, json=body)
        await call(403, "GET", one, of_one, blind)
        await call(204, "DELETE", one, of_one)
        for at in range(20):
            await call(201, "POST", HOOK, HOOK, json={"url": f"https://hooks.shop.com/{at}"})
        await call(409, "POST", HOOK, HOOK, json={"url": "https://hooks.shop.com/"})
