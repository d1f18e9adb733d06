"""Deliveries: every event to every endpoint that wants it, at least once, whatever receivers and senders do."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from tests.patience import HANG_S, until
from tests.shop import Shop
from tests.webhooks.postman import Postman, opened
from tests.webhooks.receiver import OK, Got, Receiver, receiving
from voucherd.actors import SYSTEM
from voucherd.db import transaction
from voucherd.ids import State
from voucherd.webhooks import claims, deeds, endpoints, fanout, history, retries
from voucherd.webhooks import metrics as webhook_metrics
from voucherd.webhooks.endpoints import Changes
from voucherd.webhooks.post import PostOutcome
from voucherd.worker import Worker

FAILURE = b"HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\nsick"
GONE = b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n"


RECORDED = """
    SELECT (SELECT count(*) FROM webhook_delivery WHERE status = 1) = 400
       AND NOT EXISTS (SELECT FROM webhook_queue WHERE next_at IS NOT NULL OR leased)
"""


async def test_every_endpoint_gets_what_it_wants_signed_and_nobody_elses(
    shop: Shop, postman: Postman, receiver: Receiver
) -> None:
    """OP-54: chosen types or all; live and sandbox apart; companies apart; what is for everybody goes to everybody."""
    one, other = await shop.company(), await shop.company()
    everything = await postman.endpoint(one, receiver.url("/all"), headers={"x-tenant": "7"})
    some = await postman.endpoint(one, receiver.url("/some"), "order.finished")
    sandbox = await postman.endpoint(one, receiver.url("/sandbox"), state=State.SANDBOX)
    foreign = await postman.endpoint(other, receiver.url("/other"))
    await postman.endpoint(one, receiver.url("/disabled"), enabled=False)
    await shop.product("gift-10", stock=5)
    async with transaction(shop.pool) as tx:
        await tx.execute(
            "INSERT INTO event (at, type, data) VALUES (now(), 'product.updated', '{\"slug\": \"gift-10\"}')"
        )
        await tx.execute("INSERT INTO event (at, type, data) VALUES (now(), 'attempt.settled', '{}')")
    trx = (await shop.create(one, ("gift-10", 2)))["trx"]
    await shop.confirm(one, trx)
    play = (await shop.create(one, ("gift-10", 1), state=State.SANDBOX))["trx"]

    await postman.run()
    await postman.run()

    def told(path: str, number: int) -> list[tuple[str, str | None]]:
        found = [opened(postman.secrets[number], got) for got in receiver.got if got.path == path]
        return [(message["type"], message["data"].get("trx")) for message in found]

    assert told("/some", some.id) == [("order.finished", trx)]
    assert sorted(told("/all", everything.id)) == sorted(
        [("product.updated", None), *((kind, trx) for kind in await shop.events(trx))]
    )
    assert sorted(told("/sandbox", sandbox.id)) == [("order.created", play), ("product.updated", None)]
    assert told("/other", foreign.id) == [("product.updated", None)]
    assert told("/disabled", 0) == []
    assert [got.headers.get("x-tenant") for got in receiver.got if got.path == "/all"] == ["7"] * len(
        told("/all", everything.id)
    )
    assert b"CODE-" not in b"".join(got.body for got in receiver.got)
    await shop.assert_books_balance()


async def test_what_fails_is_tried_again_with_the_same_id_and_body_until_it_is_delivered(
    shop: Shop, postman: Postman, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-54: 5 seconds, then 5 minutes …; the id and the body never change; the log tells each attempt."""
    pause_s, told_s = retries.pause_s, list[float | None]()

    def noted(tries: int, sandbox_outcome: float) -> float:
        told_s.append(pause_s(tries, sandbox_outcome))
        return 3_600.0  # None is over before the test says so.

    monkeypatch.setattr(retries, "pause_s", noted)
    company = await shop.company()
    endpoint = await postman.endpoint(company, receiver.url())
    answers = iter([FAILURE, b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", OK])
    receiver.answer = lambda _: next(answers)
    await shop.product("gift-10", stock=1)
    await shop.create(company, ("gift-10", 1))
    waits = []
    for _ in range(3):
        await postman.run()
        waits += await shop.pool.fetch(
            "SELECT next_at - now() AS due, status, attempts FROM webhook_delivery"
        )
        await postman.hurry()
    await postman.run()

    assert len(receiver.got) == 3
    assert len({(got.headers["webhook-id"], got.body) for got in receiver.got}) == 1
    for got in receiver.got:
        opened(postman.secrets[endpoint.id], got)
    first_s, second_s = told_s
    assert first_s is not None
    assert second_s is not None
    assert 4 < first_s <= 5.5
    assert 299 < second_s <= 330
    assert all(timedelta(0) < one["due"] <= timedelta(hours=1) for one in waits[:2])
    assert tuple(waits[2]) == (None, 1, 3)
    async with shop.pool.acquire() as conn:
        (logged,), onward = await history.deliveries(conn, endpoint.id, size=1)
    assert (logged.status, logged.type, onward) == ("delivered", "order.created", None)
    assert [(one.number, one.http, one.error, one.body) for one in logged.attempts] == [
        *((1, 500, None, "sick"), (2, 302, None, ""), (3, 204, None, ""))
    ]


async def test_after_ten_attempts_a_delivery_has_failed_and_can_be_replayed(
    shop: Shop, postman: Postman, receiver: Receiver
) -> None:
    """OP-54: three days and no longer; a replay begins anew, and a recovery brings back what failed or was missed."""
    company = await shop.company()
    endpoint = await postman.endpoint(company, receiver.url(), "order.created")
    receiver.answer = lambda _: FAILURE
    await shop.product("gift-10", stock=9)
    await shop.create(company, ("gift-10", 1))
    for _ in range(12):
        await postman.run()
        await postman.hurry()
    assert len(receiver.got) == 1 + len(retries.PAUSES_S)
    assert await shop.pool.fetchval("SELECT status FROM webhook_delivery") == claims.FAILED

    async with transaction(shop.pool) as tx:
        await endpoints.change(tx, shop.sealer, endpoint, Changes(enabled=False))
    await shop.create(company, ("gift-10", 1))
    await postman.run()
    async with transaction(shop.pool) as tx:
        disabled = await endpoints.find_any(tx, endpoint.id)
        await endpoints.change(tx, shop.sealer, disabled, Changes(enabled=True))
    receiver.answer = lambda _: OK
    receiver.got.clear()
    since = endpoint.created_at - timedelta(hours=1)
    assert await deeds.recover(shop.pool, SYSTEM, endpoint.id, since) == history.Recovered(2, None)
    assert await deeds.recover(shop.pool, SYSTEM, endpoint.id, since) == history.Recovered(0, None)
    await postman.run()
    assert len({got.headers["webhook-id"] for got in receiver.got}) == 2
    assert (await deeds.recover(shop.pool, SYSTEM, endpoint.id, since)).queued == 0


async def test_an_endpoint_that_is_gone_or_fails_for_five_days_is_disabled_and_people_are_told(
    shop: Shop, postman: Postman, receiver: Receiver
) -> None:
    """OP-54: 410 at once, failures after five days without one success; an event and a mail tell of it."""
    company = await shop.company()
    gone = await postman.endpoint(company, receiver.url("/gone"))
    dead = await postman.endpoint(company, receiver.url("/dead"))
    witness = await postman.endpoint(company, receiver.url("/witness"), "webhook.disabled")
    await shop.pool.execute(
        "INSERT INTO app_user (email, company_id, role, password_hash)"
        " VALUES ('dev@shop.example', $1, 'developer', 'x')",
        company.id,
    )
    answers = {"/gone": GONE, "/dead": FAILURE}
    receiver.answer = lambda got: answers.get(got.path, OK)
    await shop.product("gift-10", stock=9)
    await shop.create(company, ("gift-10", 1))
    await postman.run()
    assert await _standing(shop, gone.id) == (False, "gone")
    assert await _standing(shop, dead.id) == (True, None)
    await shop.pool.execute(
        "UPDATE webhook_queue SET failing_since = now() - interval '6 days' WHERE webhook_id = $1", dead.id
    )
    await postman.hurry()
    await postman.run()
    assert await _standing(shop, dead.id) == (False, "failing")
    sent = len(receiver.got)
    await shop.create(company, ("gift-10", 1))
    await postman.hurry()
    await postman.run()
    assert [got.path for got in receiver.got[sent:]] == []
    told = [
        opened(postman.secrets[witness.id], got)["data"] for got in receiver.got if got.path == "/witness"
    ]
    assert told == [
        {"url": one.url, "reason": reason, "state": "live", "webhookId": shop.ids.webhook(one.id)}
        for one, reason in ((gone, "gone"), (dead, "failing"))
    ]
    async with shop.pool.acquire() as conn:
        assert await webhook_metrics.take(conn) == webhook_metrics.WebhookFigures(0.0, 0, 2)
    assert await postman.worker.run_once("send_mail") == 2
    mails = [file.read_text() for file in sorted(shop.settings.mail_folder.iterdir())]
    assert ["To: dev@shop.example" in mail and receiver.url("/dead") in mail for mail in mails] == [
        False,
        True,
    ]
    assert await postman.worker.run_once("send_mail") == 0


async def _standing(shop: Shop, number: int) -> tuple[bool, str | None]:
    row = await shop.pool.fetchrow("SELECT enabled, disabled_reason FROM webhook WHERE id = $1", number)
    assert row is not None
    return row["enabled"], row["disabled_reason"]


async def test_a_receiver_that_hangs_delays_nobody_else(shop: Shop, receiver: Receiver) -> None:
    """OP-54: with twenty dead endpoints beside it, a quick one gets each event within two seconds."""
    company, other = await shop.company(), await shop.company()
    hired = Postman(shop)
    worker = hired.worker

    over = asyncio.Event()

    async def hang(_: Got) -> bytes:
        await over.wait()
        return OK

    async with receiving(hang) as hanging:
        for at in range(20):
            await hired.endpoint(company, hanging.url(f"/{at}"))
        quick = await hired.endpoint(other, receiver.url(), "order.created")
        await shop.product("gift-10", stock=99)
        assert worker.sender is not None
        # Whoever waits for one that hangs waits for longer than a test may.
        for lane in worker.sender.lanes:
            lane.post._timeout_s = 2 * HANG_S
        worker.start()
        try:
            for at in range(10):
                await shop.create(company, ("gift-10", 1))
                trx = (await shop.create(other, ("gift-10", 1)))["trx"]
                await receiver.until(at + 1)
                assert opened(hired.secrets[quick.id], receiver.got[-1])["data"]["trx"] == trx
        finally:
            over.set()
            await worker.stop()


async def test_what_a_dead_sender_held_is_sent_by_the_next_one(
    shop: Shop, postman: Postman, receiver: Receiver
) -> None:
    """OP-54: at least once. Its lease runs out; what it sent without writing it down is sent once more."""
    company = await shop.company()
    endpoint = await postman.endpoint(company, receiver.url())
    await shop.product("gift-10", stock=9)
    await shop.create(company, ("gift-10", 1))
    await postman.worker.run_once("fan_out")
    (lost,) = await claims.claim(shop.pool, shop.sealer, slow=False, endpoints_max=9)
    assert len(lost.deliveries) == 1
    await postman.run()
    assert receiver.got == [], "somebody holds it"
    await shop.create(company, ("gift-10", 1))
    await postman.run()
    assert receiver.got == [], "new events do not break a lease"
    await claims.renew(shop.pool, [lost])
    await shop.pool.execute("UPDATE webhook_queue SET next_at = now()")
    await postman.run()
    assert len(receiver.got) == 2
    # He was only slow: what he says now is written down and takes nothing back.
    sent = claims.Sent(lost.deliveries[0], "u", endpoint.created_at, PostOutcome(5, error="late"))
    await claims.record(shop.pool, [claims.SendReport(lost, [sent])])
    rows = await shop.pool.fetch("SELECT status, attempts FROM webhook_delivery ORDER BY event_id")
    assert [tuple(row) for row in rows] == [(1, 2), (1, 1)]
    queue = await shop.pool.fetchrow("SELECT next_at, leased, failures FROM webhook_queue")
    assert tuple(queue or ()) == (None, False, 0)


async def test_several_senders_share_the_work_and_send_each_event_once(
    shop: Shop, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-54: claims take turns and never meet; while nobody dies there is one request for each event and endpoint."""
    # A sender that is merely slow must not be taken for a dead one.
    monkeypatch.setattr(claims, "LEASE", timedelta(seconds=2 * HANG_S))
    company = await shop.company()
    hired = [Postman(shop) for _ in range(3)]
    for at in range(10):
        await hired[0].endpoint(company, receiver.url(f"/{at}"), "order.created")
    await shop.product("gift-10", stock=9)
    for worker in (one.worker for one in hired):
        worker.start()
    try:
        await asyncio.gather(*(shop.create(company, ("gift-10", 1)) for _ in range(40)))
        await receiver.until(400)
        await until(lambda: shop.pool.fetchval(RECORDED))
    finally:
        await asyncio.gather(*(one.worker.stop() for one in hired))
    requests = [(got.path, got.headers["webhook-id"]) for got in receiver.got]
    assert len(requests) == len(set(requests)) == 400
    assert await shop.pool.fetchval("SELECT count(*) FROM webhook_delivery WHERE status = 1") == 400
    assert (
        await shop.pool.fetchval("SELECT count(*) FROM webhook_queue WHERE next_at IS NOT NULL OR leased")
        == 0
    )
    await shop.assert_books_balance()


async def test_both_secrets_sign_during_a_rotation(shop: Shop, postman: Postman, receiver: Receiver) -> None:
    """OP-54: during the chosen overlap either secret verifies; afterwards, or without one, the new one alone."""
    company = await shop.company()
    endpoint = await postman.endpoint(company, receiver.url())
    old = postman.secrets[endpoint.id]
    async with transaction(shop.pool) as tx:
        new = await endpoints.rotate(tx, shop.sealer, endpoint, timedelta(hours=1), None)
        await history.ping(tx, endpoint)
    await postman.run()
    for secret in (old, new):
        assert opened(secret, receiver.got[0])["type"] == "ping"
    assert receiver.got[0].headers["webhook-signature"].count("v1,") == 2
    await shop.pool.execute("UPDATE webhook SET old_until = now()")
    async with transaction(shop.pool) as tx:
        await history.ping(tx, endpoint)
    await postman.run()
    assert receiver.got[1].headers["webhook-signature"].count("v1,") == 1
    opened(new, receiver.got[1])


async def test_events_for_everybody_are_fanned_out_in_bounded_steps(
    shop: Shop, postman: Postman, receiver: Receiver, monkeypatch: object
) -> None:
    """OP-54: an import of many products with many endpoints is many small steps, and none is lost between them."""
    company = await shop.company()
    for at in range(4):
        await postman.endpoint(company, receiver.url(f"/{at}"), "product.updated")
    monkeypatch.setattr(fanout, "ROWS_MAX", 8)  # type: ignore[attr-defined]
    await shop.pool.execute(
        "INSERT INTO event (at, type, data) SELECT now(), 'product.updated', '{}' FROM generate_series(1, 7)"
    )
    steps = []
    while await postman.worker.run_once("fan_out"):
        steps.append(await shop.pool.fetchval("SELECT count(*) FROM webhook_delivery"))
    assert steps == [8, 16, 24, 28]
    await postman.run()
    assert len({(got.path, got.headers["webhook-id"]) for got in receiver.got}) == 28


async def test_deliveries_are_kept_for_thirty_days(shop: Shop, postman: Postman, receiver: Receiver) -> None:
    """OP-54: the log is swept; what is younger stays."""
    company = await shop.company()
    endpoint = await postman.endpoint(company, receiver.url())
    for _ in range(2):
        async with transaction(shop.pool) as tx:
            await history.ping(tx, endpoint)
    await postman.run()
    await shop.pool.execute(
        "UPDATE webhook_delivery SET created_at = now() - interval '31 days'"
        " WHERE event_id = (SELECT min(event_id) FROM webhook_delivery)"
    )
    assert await postman.worker.run_once("remove_deliveries") == 1
    assert await shop.pool.fetchval("SELECT count(*) FROM webhook_attempt") == 1


async def test_a_worker_without_identifiers_sends_nothing(shop: Shop) -> None:
    """OP-54: what clients know of an order is sealed with the key, so without it there is nothing to tell."""
    assert Worker(shop.pool, shop.sealer, shop.settings).sender is None
