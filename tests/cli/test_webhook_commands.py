"""`voucherd webhook`: an operator's view of endpoints and deliveries, and a receiver for developers."""

from __future__ import annotations

import json
import re
import signal
import time
from typing import Any

import httpx

from tests.cli.terminal import Terminal, assert_refused, assert_wrong_usage
from tests.patience import HANG_S
from voucherd.db import Pool
from voucherd.webhooks import signing

URL = "https://hooks.shop.com/x"


async def test_endpoints_are_made_shown_changed_and_removed(terminal: Terminal, pool: Pool) -> None:
    """OP-54, OP-137: the secret is printed once; what is not given stays; an address out of reach is refused."""
    terminal.json("company", "add", "Acme", "--country", "NL")
    made = terminal.json(
        "webhook",
        "add",
        "Acme",
        URL,
        "--event",
        "order.finished",
        "--header",
        "X-Tenant: 7",
        "--description",
        "shop",
    )
    assert re.fullmatch(r"whsec_.{44}", made["secret"])
    shown = terminal.json("webhook", "show", made["id"])
    assert (shown["company"], shown["url"], shown["headerNames"]) == ("Acme", URL, ["x-tenant"])
    assert terminal.json("webhook", "list", "Acme") == [shown]
    changed = terminal.json("webhook", "set", made["id"], "--all-events", "--disabled")
    assert (changed["eventTypes"], changed["enabled"], changed["description"]) == ([], False, "shop")
    assert (shown["format"], changed["format"]) == ("standard", "standard")
    assert terminal.json("webhook", "set", made["id"], "--format", "classic")["format"] == "classic"
    assert terminal.json("webhook", "set", made["id"], "--description", "shop")["format"] == "classic"
    assert_wrong_usage(terminal.run("webhook", "set", made["id"], "--format", "modern"), "modern")
    rotated = terminal.json("webhook", "rotate", made["id"], "--overlap", "1h")
    assert rotated["secret"] != made["secret"]
    view = terminal.view("webhook", "list") + terminal.view("webhook", "show", made["id"])
    assert "disabled" in view
    assert "whsec_" not in view
    assert_refused(
        terminal.run("webhook", "test", made["id"]), "only an endpoint with an address that is enabled"
    )
    assert_wrong_usage(
        terminal.run("webhook", "add", "Acme", "https://10.0.0.1/"), "must not lead to an address"
    )
    assert_wrong_usage(terminal.run("webhook", "add", "Acme", URL, "--event", "x"), "is no type of event")
    assert_wrong_usage(
        terminal.run("webhook", "add", "Acme", URL, "--header", "Host: x"), "must not hold host"
    )
    assert_wrong_usage(terminal.run("webhook", "add", "Acme"), "--per-order")
    assert_refused(terminal.run("webhook", "show", "wh_1"), "there is no endpoint wh_1")
    assert_refused(terminal.run("webhook", "replay", "evt_1"), "there is no event evt_1")
    terminal.json("webhook", "remove", made["id"])
    assert await pool.fetchval("SELECT count(*) FROM webhook") == 0


async def test_what_was_sent_is_listed_and_sent_again(terminal: Terminal, pool: Pool) -> None:
    """OP-54: deliveries of one endpoint or of all; test, replay and recover queue without sending themselves."""
    terminal.json("company", "add", "Acme", "--country", "NL")
    made = terminal.json("webhook", "add", "Acme", URL)
    queued = terminal.json("webhook", "test", made["id"])
    await pool.execute("UPDATE webhook_delivery SET status = 2, next_at = NULL, attempts = 1")
    await pool.execute(
        "INSERT INTO webhook_attempt (webhook_id, event_id, number, sent_at, ms, url, error)"
        " SELECT webhook_id, event_id, 1, now(), 12, $1, 'no connection' FROM webhook_delivery",
        URL,
    )
    [delivery] = terminal.json("webhook", "deliveries")
    assert terminal.json("webhook", "deliveries", made["id"], "--status", "failed") == [delivery]
    assert (delivery["eventId"], delivery["status"]) == (queued["eventId"], "failed")
    assert delivery["message"]["type"] == "ping"
    assert "no connection" in terminal.view("webhook", "deliveries")
    assert terminal.json("webhook", "replay", queued["eventId"]) == {"queued": 1}
    assert await pool.fetchval("SELECT status FROM webhook_delivery") == 0
    recovered = terminal.json("webhook", "recover", made["id"], "--since", "2026-01-01")
    assert recovered == {"queued": 0, "dateNext": None}
    assert "0 events" in terminal.view("webhook", "recover", made["id"], "--since", "2026-01-01")


async def test_a_developer_can_listen_on_his_own_machine(terminal: Terminal, pool: Pool) -> None:
    """OP-54: what arrives is printed with its verdict; the endpoint that was made for it goes with it."""
    terminal.json("company", "add", "Acme", "--country", "NL")
    secret = signing.new_secret()
    listening = terminal.start(
        "webhook", "listen", "--port", "0", "--secret", secret, "--company", "Acme", "--json"
    )
    assert listening.stdout is not None
    url = json.loads(listening.stdout.readline())["listening"]
    assert await pool.fetchval("SELECT url FROM webhook WHERE state = 1") == url
    body = b'{"type":"ping","data":{}}'
    now_s = int(time.time())
    headers = {"webhook-id": "evt_1", "webhook-timestamp": str(now_s)}
    async with httpx.AsyncClient(timeout=HANG_S) as client:
        for signature in (signing.sign([secret], "evt_1", now_s, body), "v1,bm90IGl0"):
            answer = await client.post(url, content=body, headers=headers | {"webhook-signature": signature})
            assert answer.status_code == 204
        assert (await client.get(url)).status_code == 400
    told: list[dict[str, Any]] = [json.loads(listening.stdout.readline()) for _ in range(2)]
    assert [(one["id"], one["verdict"]) for one in told] == [("evt_1", "verified"), ("evt_1", "NOT GENUINE")]
    listening.send_signal(signal.SIGTERM)
    _, complaints = listening.communicate(timeout=HANG_S)
    assert complaints == b""
    assert await pool.fetchval("SELECT count(*) FROM webhook") == 0
