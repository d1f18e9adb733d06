"""Every time that codes are shown is a row, and it is there before the codes are (OP-94)."""

from __future__ import annotations

import asyncio

import httpx
from structlog.testing import capture_logs

from tests.shop import Company, Shop
from voucherd import trail
from voucherd.actors import ActorKind
from voucherd.ids import State
from voucherd.keys.key_text import SCOPES_DEFAULT, Scope
from voucherd.trail.chain import TrailSealing

READERS = 40


async def reveals(shop: Shop, after: int = 0) -> list[tuple[str, int, int]]:
    """What was shown since then: how, from which line on, how many."""
    words = ["confirm", "resolve", "find", "find_all", "lines", "file", "portal", "redemption", "cancel"]
    rows = await shop.pool.fetch(
        "SELECT via, line_from, lines FROM reveal WHERE id > $1 ORDER BY id, order_id", after
    )
    return [(words[row["via"]], row["line_from"], row["lines"]) for row in rows]


async def last(shop: Shop) -> int:
    """The newest row."""
    return int(await shop.pool.fetchval("SELECT coalesce(max(id), 0) FROM reveal"))


async def test_each_way_to_see_codes_leaves_one_row(shop: Shop) -> None:
    """OP-94: one row for an order and an answer: how many lines, by which key, from where, in which way."""
    await shop.product("gift")
    await shop.stock("gift", 400)
    company = await shop.company(balance="9000.00 EUR")
    blind = Company(company.id, company.name, await shop.keys(company, SCOPES_DEFAULT - {Scope.CODES_READ}))
    order = await shop.create(company, ("gift", 3))
    large = await shop.create(company, ("gift", 150))
    await shop.find(company, order["trx"])
    await shop.confirm(blind, (await shop.create(blind, ("gift", 1)))["trx"])
    assert await reveals(shop) == [], "nothing is delivered, or the key may not see it"

    key = {"idempotency-key": "once"}
    path = f"/api/1.03/order/confirm/{order['trx']}"
    first = await shop.call("PATCH", path, company, headers=key)
    again = await shop.call("PATCH", path, company, headers=key)
    assert first.content == again.content
    await shop.find(company, order["trx"])
    await shop.find(blind, order["trx"])
    await shop.resolve(company, large["trx"])
    assert await reveals(shop) == [("confirm", 0, 3), ("confirm", 0, 3), ("find", 0, 3), ("resolve", 0, 150)]

    mark = await last(shop)
    await shop.call("GET", f"/api/1.03/order/{large['trx']}/line", company, params={"limit": 100})
    cursor = (await shop.call("GET", f"/api/1.03/order/{large['trx']}/line", company)).json()["metadata"][
        "nextCursor"
    ]
    await shop.call("GET", f"/api/1.03/order/{large['trx']}/line", company, params={"cursor": cursor})
    await shop.call("GET", f"/api/1.03/order/{large['trx']}/codes.csv", company)
    assert await reveals(shop, mark) == [
        ("lines", 0, 100),
        ("lines", 0, 100),
        ("lines", 100, 50),
        ("file", 0, 150),
    ]
    mark = await last(shop)
    await shop.call("GET", "/api/1.03/order", company)
    assert sorted(await reveals(shop, mark)) == [("find_all", 0, 1), ("find_all", 0, 3), ("find_all", 0, 150)]

    rows = await shop.pool.fetch(
        "SELECT DISTINCT company_id, actor_kind, actor_id, host(address) AS address FROM reveal"
    )
    (row,) = rows
    keys = await shop.pool.fetch(
        "SELECT id FROM api_key WHERE company_id = $1 AND state = 0 ORDER BY id", company.id
    )
    assert (row["company_id"], row["actor_kind"], row["actor_id"]) == (
        company.id,
        ActorKind.KEY,
        keys[0]["id"],
    )
    assert row["address"] == "127.0.0.1"
    await TrailSealing(shop.pool, shop.sealer.trail_key).round()
    await shop.assert_books_balance()


async def test_readers_that_come_together_share_a_write_and_each_has_a_row(shop: Shop) -> None:
    """OP-94: a row for each of them; nobody is shown a code before his row is there."""
    await shop.product("gift")
    await shop.stock("gift", 2)
    company = await shop.company(balance="100.00 EUR")
    trx = (await shop.create(company, ("gift", 2)))["trx"]
    await shop.confirm(company, trx)
    before = await shop.pool.fetchval("SELECT count(DISTINCT xmin::text) FROM reveal")

    await asyncio.gather(*(shop.find(company, trx) for _ in range(READERS)))

    rows, writes = await shop.pool.fetchrow("SELECT count(*), count(DISTINCT xmin::text) FROM reveal") or (
        0,
        0,
    )
    assert rows == 1 + READERS
    assert writes - before < READERS
    await shop.assert_books_balance()


async def test_no_code_leaves_without_its_row(shop: Shop) -> None:
    """OP-94: where the row can't be written nothing is shown, and a Confirm has not happened."""
    await shop.product("gift")
    await shop.stock("gift", 4)
    company = await shop.company(balance="100.00 EUR")
    shown = (await shop.create(company, ("gift", 1)))["trx"]
    fresh = (await shop.create(company, ("gift", 1)))["trx"]
    code = (await shop.confirm(company, shown))["items"][0]["orderLines"][0]["voucherCode"]
    balance = await shop.balance(company)
    await shop.pool.execute("ALTER TABLE reveal ADD CONSTRAINT broken CHECK (false) NOT VALID")

    with capture_logs():
        answers = await _looks(shop, company, shown, fresh)
    assert [answer.status_code for answer in answers] == [500] * 5
    assert not any(code in answer.text for answer in answers)
    assert await shop.balance(company) == balance

    await shop.pool.execute("ALTER TABLE reveal DROP CONSTRAINT broken")
    await shop.confirm(company, fresh)
    await shop.assert_books_balance()


async def test_what_a_key_changes_is_in_the_trail(shop: Shop) -> None:
    """OP-94: webhooks and keys that a company changes over the API; by which key, from where, with no secret in it."""
    company = await shop.company(scopes=frozenset(Scope))
    made = await shop.call("POST", "/api/1.03/webhook", company, json={"url": "https://acme.com/in"})
    path = f"/api/1.03/webhook/{made.json()['id']}"
    assert (await shop.call("POST", "/api/1.03/webhook", company, json={"url": "nowhere"})).status_code == 400
    rotated = await shop.call("POST", f"{path}/rotate", company, json={})
    removed = await shop.call("DELETE", path, company)
    assert [made.status_code, rotated.status_code, removed.status_code] == [201, 200, 204]

    async with shop.pool.acquire() as conn:
        whole = (await trail.page(conn, company_id=company.id)).rows
    rows = [row for row in whole if row.action != "wallet.top-up"]
    subject = f"webhook {shop.ids.webhook_number(made.json()['id'])}"
    assert [(row.action, row.subject) for row in reversed(rows)] == [
        ("webhook.add", subject),
        ("webhook.rotate", subject),
        ("webhook.remove", subject),
    ]
    assert {(row.actor_kind, row.state, row.address) for row in rows} == {
        (ActorKind.KEY, State.LIVE, "127.0.0.1")
    }
    assert rows[-1].request_id == made.headers["x-request-id"]
    assert made.json()["secret"] not in str(rows)
    await shop.assert_books_balance()


async def _looks(shop: Shop, company: Company, shown: str, fresh: str) -> list[httpx.Response]:
    return [
        await shop.call("GET", f"/api/1.03/order/{shown}", company),
        await shop.call("GET", "/api/1.03/order", company),
        await shop.call("GET", f"/api/1.03/order/{shown}/line", company),
        await shop.finalise("confirm", company, fresh),
        await shop.finalise("resolve", company, fresh),
    ]
