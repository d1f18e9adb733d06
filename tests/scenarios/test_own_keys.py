"""A company's own keys over HTTP: made, found, changed, rotated and revoked by one of them (OP-29)."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import httpx
import msgspec
import pytest

from tests.shop import Company, Shop
from tests.wire.test_openapi import URL, assert_described, read
from voucherd import trail
from voucherd.actors import ActorKind
from voucherd.api.idempotent import IdempotentCalls
from voucherd.api.openapi import document
from voucherd.db import transaction
from voucherd.ids import State
from voucherd.keys import store as key_store
from voucherd.keys.grants import KEYS_MAX
from voucherd.keys.key_text import KeyDraft, Scope, new_key, read_networks
from voucherd.webhooks import deeds as webhook_deeds

KEY = "/api/1.03/key"
ALL = frozenset(Scope)
DESCRIBED: dict[str, Any] = read(msgspec.json.encode(document(URL, 262_144)))


async def send(shop: Shop, who: Company, method: str, path: str = "", **more: Any) -> httpx.Response:
    """A call about keys, answered as the document says."""
    answer = await shop.call(method, KEY + path, who, **more)
    template = KEY + re.sub(r"^/[^/?]+", "/{id}", path.partition("?")[0])
    assert_described(DESCRIBED, template, answer)
    return answer


async def made(shop: Shop, who: Company, **body: Any) -> dict[str, Any]:
    """A new key, with its text."""
    answer = await send(shop, who, "POST", json=body)
    assert answer.status_code == 201, answer.text
    assert answer.headers["location"] == f"{KEY}/{answer.json()['id']}"
    return dict(answer.json())


def holder(company: Company, text: str) -> Company:
    """The company, calling with this live key."""
    return Company(company.id, company.name, {State.LIVE: text})


async def test_a_key_is_made_found_changed_rotated_and_revoked(quiet_shop: Shop) -> None:
    """OP-29, OP-54: its text is shown once and stored as a hash; a rotation is told in its own transaction."""
    shop = quiet_shop
    boss = await shop.company(scopes=ALL)
    body = {
        "description": "till",
        "scopes": ["orders:read", "catalogue:read", "keys:write"],
        "allowIps": ["127.0.0.0/8", "::ffff:10.0.0.0/104"],
        "rateLimit": 50,
        "dateExpires": "2099-01-01",
        "spendOrderEur": 12.50,
        "spendDayEur": 100,
    }
    new = await made(shop, boss, **body)
    text = new.pop("key")
    assert new == {
        "id": new["id"],
        "state": "live",
        "prefix": text[:14],
        "standing": "valid",
        "isCaller": False,
        "description": "till",
        "scopes": ["catalogue:read", "keys:write", "orders:read"],
        "allowIps": ["127.0.0.0/8", "10.0.0.0/8"],
        "rateLimit": 50,
        "spendOrderEur": 12.5,
        "spendDayEur": 100,
        "dateCreated": new["dateCreated"],
        "dateLastUsed": None,
        "dateExpires": "2099-01-01T00:00:00.000Z",
        "dateRevoked": None,
        "replacedBy": None,
        "madeWith": (await send(shop, boss, "GET")).json()["data"][-1]["id"],
        "confirmsAlone": False,
        "withheldScopes": [],
    }
    till, path = holder(boss, text), f"/{new['id']}"
    assert (await send(shop, till, "GET", path)).json() == new | {"isCaller": True}
    assert "50" in (await send(shop, till, "GET", path)).headers["ratelimit-policy"]
    first = (await send(shop, boss, "GET", "?limit=1")).json()
    rest = (await send(shop, boss, "GET", f"?cursor={first['metadata']['nextCursor']}")).json()
    assert first["data"] == [new]
    assert [one["isCaller"] for one in rest["data"]] == [True]
    assert rest["metadata"]["nextCursor"] is None
    stored = await shop.pool.fetch("SELECT api_key::text FROM api_key")
    assert not any(text in row[0] or text[14:] in row[0] for row in stored)

    changes = {"description": "till 2", "spendOrderEur": None, "scopes": ["keys:write"], "allowIps": []}
    changed = (await send(shop, boss, "PATCH", path, json=changes)).json()
    assert changed == new | changes

    rotated = await send(shop, boss, "POST", path + "/rotate", json={"overlapSeconds": 3600})
    successor = rotated.json()
    assert (rotated.status_code, successor["description"], successor["scopes"]) == (
        201,
        "till 2",
        ["keys:write"],
    )
    old = (await send(shop, boss, "GET", path)).json()
    assert (old["standing"], old["replacedBy"]) == ("replaced", successor["id"])
    event = (await shop.call("GET", "/api/1.03/event?type=key.rotated", boss)).json()["data"]
    assert [one["data"] for one in event] == [
        {"id": new["id"], "replacedBy": successor["id"], "state": "live"}
    ]
    assert (await send(shop, till, "GET")).status_code == 200
    await shop.assert_refused(send(shop, boss, "POST", path + "/rotate"), 409, "this key can not be rotated")
    longer = {"dateExpires": None}
    await shop.assert_refused(
        send(shop, boss, "PATCH", path, json=longer), 409, "this key can not be changed"
    )

    heir = holder(boss, successor["key"])
    for _ in range(2):
        assert (await send(shop, boss, "DELETE", path)).status_code == 204
    assert (await send(shop, heir, "DELETE", f"/{successor['id']}")).status_code == 204
    await shop.hear()
    for gone in (till, heir):
        await shop.assert_refused(send(shop, gone, "GET"), 401, "unauthorized")
    async with shop.pool.acquire() as conn:
        deeds = (await trail.page(conn, company_id=boss.id, action="key")).rows
    assert [deed.action for deed in reversed(deeds)] == [
        *("key.add", "key.change", "key.rotate", "key.revoke", "key.revoke", "key.revoke"),
    ]
    own_id = shop.ids.key_number(rest["data"][0]["id"])
    first_deed = deeds[-1]
    assert (first_deed.actor_kind, first_deed.actor_id, first_deed.subject) == (
        *(ActorKind.KEY, own_id),
        f"key {shop.ids.key_number(new['id'])}",
    )
    assert (first_deed.detail or {})["rate_limit"] == 50
    assert (first_deed.address, first_deed.state) == ("127.0.0.1", State.LIVE)
    assert deeds[0].actor_id == shop.ids.key_number(successor["id"])
    assert text[14:] not in repr(deeds)
    listed = (await send(shop, boss, "GET")).json()["data"]
    assert [one["standing"] for one in listed] == ["revoked", "revoked", "valid"]
    await shop.assert_books_balance()


BAD: list[tuple[dict[str, Any], str]] = [
    ({"scopes": []}, "scopes: must hold at least one scope"),
    ({"scopes": ["orders:eat"]}, "scopes[0]: must be one of orders:read, "),
    ({"scopes": "orders:read"}, "scopes: must be an array"),
    ({"allowIps": ["office"]}, "allowIps[0]: must be an address or a network"),
    ({"allowIps": ["192.0.2.1/24"]}, "allowIps[0]: must be an address or a network"),
    ({"allowIps": ["fe80::1%eth0"]}, "allowIps[0]: must be an address or a network"),
    ({"allowIps": ["10.0.0.1"] * 101}, "allowIps: must hold at most 100 networks"),
    ({"rateLimit": 0}, "rateLimit: must be between 1 and 1000000"),
    ({"rateLimit": 1.5}, "rateLimit: must be a whole number"),
    ({"dateExpires": "soon"}, "dateExpires: must be an ISO 8601 date or date-time"),
    ({"dateExpires": "2020-01-01"}, "dateExpires: must lie in the future"),
    ({"spendOrderEur": 0}, "spendOrderEur: must be an amount in EUR above 0"),
    ({"spendOrderEur": "5"}, "spendOrderEur: must be a number"),
    ({"spendDayEur": 0.001}, "spendDayEur: must be an amount in EUR above 0"),
    ({"spendDayEur": 1e40}, "spendDayEur: must be an amount in EUR above 0"),
    ({"description": "x" * 201}, "description: must be at most 200 printable characters"),
    ({"description": "a\nb"}, "description: must be at most 200 printable characters"),
]


async def test_bad_input_and_strangers_change_nothing(quiet_shop: Shop) -> None:
    """OP-25, OP-29: one line names the field; another company's key, the other state's and a made-up one are 404."""
    shop = quiet_shop
    boss, other = await shop.company(scopes=ALL), await shop.company(scopes=ALL)
    weak = Company(boss.id, boss.name, await shop.keys(boss, ALL - {Scope.KEYS_WRITE}))
    own = (await send(shop, boss, "GET")).json()["data"]
    mine = next(f"/{one['id']}" for one in own if one["isCaller"])
    # When a key was used last is noted by itself, every few seconds.
    everything = "SELECT to_jsonb(k) - 'last_used_at' FROM api_key k ORDER BY id"
    before = await shop.pool.fetch(everything)
    for body, text in BAD:
        for method, path in (("POST", ""), ("PATCH", mine)):
            answer = await send(shop, boss, method, path, json=body)
            assert (answer.status_code, answer.text[: len(text)]) == (400, text), answer.text
    for query in ("?page=1", "?cursor=1", "?limit=0", f"?cursor={'key_' + '0' * 26}"):
        assert (await send(shop, boss, "GET", query)).status_code == 400
    calls: list[tuple[str, str, dict[str, Any]]] = [
        ("GET", "", {}),
        ("PATCH", "", {"json": {"description": "stolen"}}),
        ("POST", "/rotate", {}),
        ("DELETE", "", {}),
    ]
    for method, rest, more in calls:
        for who, state in ((other, State.LIVE), (boss, State.SANDBOX)):
            await shop.assert_refused(
                send(shop, who, method, mine + rest, state=state, **more), 404, "key not found"
            )
        for name in ("key_" + "0" * 26, "1", "wh_" + mine[5:]):
            await shop.assert_refused(
                send(shop, boss, method, f"/{name}{rest}", **more), 404, "key not found"
            )
        await shop.assert_refused(send(shop, weak, method, mine + rest, **more), 403, "forbidden")
    assert await shop.pool.fetch(everything) == before


async def test_a_weak_key_gets_no_stronger_one_in_any_way(quiet_shop: Shop) -> None:
    """OP-29: neither made, nor changed, nor by rotating one; and a company has so many keys and no more."""
    shop = quiet_shop
    boss = await shop.company(scopes=ALL)
    body = {"scopes": ["keys:write", "orders:read"], "rateLimit": 60, "allowIps": ["127.0.0.0/8"]}
    weak = holder(boss, (await made(shop, boss, **body))["key"])
    strong = [one for one in (await send(shop, boss, "GET")).json()["data"] if "codes:read" in one["scopes"]]
    for wish, text in (
        ({"scopes": ["codes:read"]}, "scopes: must be scopes of the calling key, which has not codes:read"),
        ({"rateLimit": 61}, "rateLimit: must be at most that of the calling key, 60"),
        ({"allowIps": []}, "allowIps: must lie within those of the calling key"),
    ):
        await shop.assert_refused(send(shop, weak, "POST", json=wish), 400, text)
        await shop.assert_refused(send(shop, weak, "PATCH", f"/{strong[0]['id']}", json=wish), 400, text)
    refused = await send(shop, weak, "POST", f"/{strong[0]['id']}/rotate")
    assert (refused.status_code, refused.text.partition(":")[0]) == (400, "scopes")
    assert (await made(shop, weak))["scopes"] == ["orders:read"]

    async with transaction(shop.pool) as tx:
        await tx.executemany(
            "INSERT INTO api_key (company_id, state, prefix, hash, scopes) VALUES ($1, 0, 'vk_live_000000', $2, '{}')",
            [(boss.id, new_key(State.LIVE).hash) for _ in range(KEYS_MAX - 3)],
        )
    full = f"a company has at most {KEYS_MAX} keys"
    await shop.assert_refused(send(shop, boss, "POST", json={}), 409, full)
    await shop.assert_refused(send(shop, boss, "POST", f"/{strong[0]['id']}/rotate"), 409, full)
    assert (await send(shop, boss, "POST", json={}, state=State.SANDBOX)).status_code == 201


async def test_a_key_that_was_revoked_a_moment_ago_makes_no_successor(quiet_shop: Shop) -> None:
    """OP-29: processes may trust what they know of a key for a second; what makes keys looks again."""
    shop = quiet_shop
    boss = await shop.company(scopes=ALL)
    assert (await send(shop, boss, "GET")).status_code == 200
    await shop.pool.execute("ALTER TABLE api_key DISABLE TRIGGER api_key_epoch")  # Nobody hears of it.
    await shop.pool.execute("UPDATE api_key SET revoked_at = now() WHERE company_id = $1", boss.id)
    await shop.pool.execute("ALTER TABLE api_key ENABLE TRIGGER api_key_epoch")
    assert (await send(shop, boss, "GET")).status_code == 200
    await shop.assert_refused(send(shop, boss, "POST", json={}), 401, "unauthorized")


async def test_a_crash_between_a_key_and_its_answer_loses_neither(
    quiet_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-28: a key or webhook and its sealed answer are one transaction; a repeat shows the same secret."""
    shop, boss = quiet_shop, await quiet_shop.company(scopes=ALL)

    async def forgets(*_: object) -> None:
        """The process dies here."""

    async def crash(path: str, key: str, body: dict[str, Any]) -> dict[str, Any]:
        headers = {"idempotency-key": key}
        with monkeypatch.context() as dying:
            dying.setattr(IdempotentCalls, "_settle", forgets)
            first = await shop.call("POST", path, boss, headers=headers, json=body)
        assert first.status_code in (200, 201), first.text
        again = [await shop.call("POST", path, boss, headers=headers, json=body) for _ in range(2)]
        assert [one.content for one in again] == [first.content] * 2
        assert all(one.headers["idempotent-replayed"] == "true" for one in again)
        return dict(first.json())

    hook = {"url": "https://hooks.shop.com/x"}
    new = await crash(KEY, "k", {"description": "once"})
    heir = await crash(f"{KEY}/{new['id']}/rotate", "r", {"overlapSeconds": 0})
    webhook = await crash("/api/1.03/webhook", "w", hook)
    fresh = await crash(f"/api/1.03/webhook/{webhook['id']}/rotate", "wr", {})
    counts = await shop.pool.fetchrow(
        "SELECT (SELECT count(*) FROM api_key WHERE description = 'once'), (SELECT count(*) FROM webhook)"
    )
    assert tuple(counts or ()) == (2, 1)
    kept = repr([tuple(row) for row in await shop.pool.fetch("SELECT * FROM idempotency")])
    for secret in (new["key"], heir["key"], webhook["secret"], fresh["secret"]):
        assert secret not in kept
    assert (await send(shop, holder(boss, heir["key"]), "GET")).status_code == 403

    # The answer is for the key that asked: another one, of the same company, makes a key of its own.
    weak = holder(boss, (await made(shop, boss, scopes=["keys:write", "orders:read"]))["key"])
    repeated = await shop.call(
        "POST", KEY, weak, headers={"idempotency-key": "k"}, json={"description": "once"}
    )
    assert (repeated.status_code, new["key"] in repeated.text) == (201, False)
    assert repeated.json()["scopes"] == ["orders:read"]
    assert "idempotent-replayed" not in repeated.headers

    # Sixteen at once make one key, and two keys that rotate each other don't wait for each other in vain.
    headers = {"idempotency-key": "many"}
    same = [
        shop.call("POST", KEY, boss, headers=headers, json={"description": "many", "scopes": ["keys:write"]})
        for _ in range(16)
    ]
    answers = await asyncio.gather(*same)
    assert {answer.status_code for answer in answers} <= {201, 409}
    [text] = {answer.json()["key"] for answer in answers if answer.status_code == 201}
    assert await shop.pool.fetchval("SELECT count(*) FROM api_key WHERE description = 'many'") == 1
    twins = [(await made(shop, boss, scopes=["keys:write"])) for _ in range(2)]
    crossed = await asyncio.gather(
        *(
            send(shop, holder(boss, one["key"]), "POST", f"/{two['id']}/rotate", json={"overlapSeconds": 60})
            for one, two in (twins, twins[::-1])
        )
    )
    # Whoever comes second has been rotated by then, expires, and hands on nothing that does not.
    assert sorted(answer.status_code for answer in crossed) == [201, 400]
    assert (await send(shop, holder(boss, text), "GET")).status_code == 200

    # Somebody else has done it, because this one took longer than its claim: its own work is undone.
    ticket_taken = "UPDATE idempotency SET answer = '\\x00' WHERE answer IS NULL"
    add = webhook_deeds.add

    async def slow(*arguments: Any) -> Any:
        done = await add(*arguments)
        await shop.pool.execute(ticket_taken)
        return done

    monkeypatch.setattr(webhook_deeds, "add", slow)
    late = await shop.call("POST", "/api/1.03/webhook", boss, headers={"idempotency-key": "late"}, json=hook)
    assert (late.status_code, late.headers["retry-after"]) == (409, "1")
    assert await shop.pool.fetchval("SELECT count(*) FROM webhook") == 1


async def test_the_rights_of_a_key_hold_in_both_families_of_addresses(quiet_shop: Shop) -> None:
    """OP-29: its list, its expiry, its limits of spending and its last use are what the API shows and keeps to."""
    shop, boss = quiet_shop, await quiet_shop.company(scopes=ALL)
    draft = KeyDraft(scopes=ALL, allow_ips=read_networks(["2001:db8::/32"]))
    async with transaction(shop.pool) as tx:
        issued = await key_store.add_key(tx, boss.id, State.LIVE, draft)
    away = holder(boss, issued.text)
    await shop.assert_refused(send(shop, away, "GET"), 403, "forbidden")
    path = f"/{shop.ids.key(issued.id)}"
    assert (await send(shop, boss, "PATCH", path, json={"allowIps": ["127.0.0.1"]})).status_code == 200
    await shop.hear()
    assert (await send(shop, away, "GET")).status_code == 200
    await shop.program.authenticator._write_last_use()
    shown = (await send(shop, boss, "GET", path)).json()
    assert shown["dateLastUsed"] is not None
    assert (await send(shop, boss, "PATCH", path, json={"dateExpires": "2099-12-31T00:00:00+02:00"})).json()[
        "dateExpires"
    ] == "2099-12-30T22:00:00.000Z"
