"""Who makes a key answers for it: what people hand on, what becomes of it when they go, and keys that made keys."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from tests.shop import Company, Shop
from voucherd.actors import SYSTEM, Actor, ActorKind
from voucherd.companies import store as company_store
from voucherd.companies.model import Policy
from voucherd.db import transaction
from voucherd.ids import State
from voucherd.keys import deeds
from voucherd.keys import store as key_store
from voucherd.keys.callers import Forbidden
from voucherd.keys.deeds import OwnersOnly
from voucherd.keys.grants import RIGHT_FOR, BeyondOwn
from voucherd.keys.key_text import SCOPES_DEFAULT, KeyDraft, KeyWish, Scope
from voucherd.keys.model import Key
from voucherd.people import deeds as people_deeds
from voucherd.people import members, policy, user_store
from voucherd.people.roles import COMPANY, Right
from voucherd.people.users import UserDraft

ALL = frozenset(Scope)
KEY = "/api/1.03/key"
ADMIN = Actor(ActorKind.COMMAND, "Ada")


async def person(shop: Shop, company: Company, role: str, name: str = "") -> Actor:
    """Somebody of the company in this role."""
    draft = UserDraft(f"{name or role}@c{company.id}.example", company.id, role)
    async with transaction(shop.pool) as tx:
        user = await user_store.add_user(tx, draft, "x")
    return Actor(ActorKind.PERSON, user.email, user.id, company.id, State.LIVE)


async def do(shop: Shop, deed: Any, *arguments: Any, **more: Any) -> Any:
    """A deed in a transaction of its own."""
    async with transaction(shop.pool) as tx:
        return await deed(tx, *arguments, **more)


async def made(shop: Shop, actor: Actor, company: Company, **wish: Any) -> tuple[Key, Company]:
    """A key that this person or key makes, and the company that calls with it."""
    key, text = await do(shop, deeds.add, actor, company.id, State.LIVE, wish)
    return key, Company(company.id, company.name, {State.LIVE: text})


async def found(shop: Shop, key: Key) -> Key:
    """The key as it is now."""
    async with shop.pool.acquire() as conn:
        return await key_store.find_by_id(conn, key.id)


def calling(key: Key) -> Actor:
    """The key as an actor."""
    return Actor(ActorKind.KEY, f"key {key.id}", key.id, key.company_id, key.state)


async def change_person(shop: Shop, actor: Actor, **change: Any) -> None:
    """The operator gives a person another role, or lets it in (no more)."""
    assert actor.id is not None
    one = await members.member(shop.pool, actor.id, actor.company_id)
    if "role" in change:
        await do(shop, people_deeds.set_role, ADMIN, one, change["role"])
    else:
        deed = people_deeds.activate if change["active"] else people_deeds.deactivate
        await do(shop, deed, ADMIN, one)


@pytest.mark.parametrize("role", sorted(COMPANY))
async def test_nobody_makes_changes_or_rotates_a_key_that_reaches_further(
    quiet_shop: Shop, role: str
) -> None:
    """OP-99: for every role and every scope: within the role it is made, beyond it nothing is, and no text is shown."""
    shop, company = quiet_shop, await quiet_shop.company()
    one = await person(shop, company, role)
    if Right.KEYS_MANAGE not in COMPANY[role]:
        with pytest.raises(Forbidden):
            await made(shop, one, company)
        return
    for scope, right in RIGHT_FOR.items():
        strong, _ = await made(shop, ADMIN, company, scopes=frozenset({scope, Scope.ORDERS_READ}))
        tries: list[tuple[Any, tuple[Any, ...]]] = [
            (deeds.add, (company.id, State.LIVE, KeyWish(scopes=frozenset({scope})))),
            (deeds.change, (strong.id, KeyWish(description="mine"))),
            (deeds.rotate, (strong.id, timedelta())),
        ]
        for deed, arguments in tries:
            if right in COMPANY[role]:
                await do(shop, deed, one, *arguments)
                continue
            before = await shop.pool.fetch("SELECT to_jsonb(k) FROM api_key k ORDER BY id")
            with pytest.raises(BeyondOwn) as refused:
                await do(shop, deed, one, *arguments)
            assert refused.value.field == "scopes"
            assert await shop.pool.fetch("SELECT to_jsonb(k) FROM api_key k ORDER BY id") == before
    plain, _ = await made(shop, one, company)
    assert plain.scopes == {s for s, r in RIGHT_FOR.items() if r in COMPANY[role]} - {Scope.KEYS_WRITE}


async def test_keys_lose_what_the_person_who_made_them_loses(quiet_shop: Shop) -> None:
    """OP-99: at once, with the keys that were made with them; an owner keeps them, and answers for them then."""
    shop, company = quiet_shop, await quiet_shop.company()
    maker, owner = await person(shop, company, "owner", "maker"), await person(shop, company, "owner")
    developer = await person(shop, company, "developer")
    parent, calls = await made(shop, maker, company, scopes=ALL)
    child, calls_too = await made(shop, calling(parent), company, scopes=ALL - {Scope.KEYS_WRITE})
    other, _ = await made(shop, owner, company, scopes=ALL)
    assert (child.parent_id, child.made_by, other.made_by) == (parent.id, maker.id, owner.id)
    await shop.product("gift-10", stock=5)
    trx = (await shop.create(calls, ("gift-10", 1)))["trx"]
    assert (await shop.create(calls_too, ("gift-10", 1)))["trx"]

    await change_person(shop, maker, role="developer")
    await shop.hear()
    for who in (calls, calls_too):
        refused = await shop.finalise("confirm", who, trx)
        assert (refused.status_code, refused.text) == (403, "forbidden")
        assert (await shop.find(who, trx))["orderStatus"] == "created"
    lost = {Scope.ORDERS_WRITE, Scope.CODES_READ}
    assert (await found(shop, parent)).withheld == (await found(shop, child)).withheld == lost
    assert not (await found(shop, other)).waits

    await change_person(shop, maker, active=False)
    await shop.hear()
    for who in (calls, calls_too):
        assert (await shop.call("GET", f"/api/1.03/order/{trx}", who)).status_code == 403
    assert (await found(shop, parent)).scopes == frozenset()
    for nobody in (developer, maker):
        with pytest.raises(Forbidden):
            await do(shop, deeds.keep, nobody, parent.id)

    await do(shop, deeds.keep, owner, parent.id)
    await shop.hear()
    assert (await found(shop, parent)).made_by == (await found(shop, child)).made_by == owner.id
    assert (await found(shop, parent)).scopes == ALL
    assert (await shop.confirm(calls_too, trx))["orderStatus"] == "finished"
    await shop.assert_books_balance()


async def test_a_person_who_is_let_in_again_has_the_keys_back_and_a_key_alone_keeps_none(
    quiet_shop: Shop,
) -> None:
    """OP-99: nothing is taken for good; and neither a developer nor a key keeps what waits for an owner."""
    shop, company = quiet_shop, await quiet_shop.company()
    maker, developer = await person(shop, company, "owner"), await person(shop, company, "developer")
    await person(shop, company, "owner", "second")
    key, _ = await made(shop, maker, company, scopes=ALL)
    strong, _ = await made(shop, ADMIN, company, scopes=ALL)
    await change_person(shop, maker, active=False)
    assert (await found(shop, key)).waits
    for actor in (developer, calling(strong)):
        with pytest.raises(OwnersOnly):
            await do(shop, deeds.keep, actor, key.id)
    await change_person(shop, maker, active=True)
    assert (await found(shop, key)).scopes == ALL
    await change_person(shop, maker, active=False)
    await do(shop, deeds.keep, ADMIN, key.id)
    assert ((await found(shop, key)).made_by, (await found(shop, key)).scopes) == (None, ALL)


async def test_who_has_seen_a_rotated_key_answers_for_it(quiet_shop: Shop) -> None:
    """OP-99, OP-100: a successor goes with the person, and with the key, that was shown it."""
    shop, company = quiet_shop, await quiet_shop.company()
    owner, developer = await person(shop, company, "owner"), await person(shop, company, "developer")
    readable = frozenset({Scope.ORDERS_READ})
    key, _ = await made(shop, owner, company, scopes=readable)
    heir, _ = await do(shop, deeds.rotate, developer, key.id, timedelta())
    assert (heir.made_by, heir.parent_id) == (developer.id, None)
    await change_person(shop, developer, active=False)
    assert (await found(shop, heir)).scopes == frozenset()

    rotator, _ = await made(shop, owner, company, scopes=readable | {Scope.KEYS_WRITE})
    other, _ = await made(shop, owner, company, scopes=readable)
    heir, _ = await do(shop, deeds.rotate, calling(rotator), other.id, timedelta())
    assert heir.parent_id == rotator.id
    await do(shop, deeds.revoke, owner, rotator.id)
    assert (await found(shop, heir)).revoked_at is not None


async def asks_for_two(shop: Shop, company: Company, eur_minor: int | None) -> None:
    """The company wants a second person from this amount on."""
    async with transaction(shop.pool) as tx:
        stored = await company_store.find_company(tx, company.name)
        by_command = replace(SYSTEM, kind=ActorKind.COMMAND)
        await policy.set_policy(tx, by_command, stored, Policy(approve_from_eur_minor=eur_minor))
    await shop.hear()


@pytest.mark.parametrize("operation", ["confirm", "resolve"])
async def test_the_rule_about_a_second_person_binds_keys(quiet_shop: Shop, operation: str) -> None:
    """OP-101: refused from the amount on, in its own words, unless an owner or the operator lets the key."""
    shop, company = quiet_shop, await quiet_shop.company()
    owner, developer = await person(shop, company, "owner"), await person(shop, company, "developer")
    await shop.product("gift-10", price="10.00 EUR", stock=20)
    key, calls = await made(shop, owner, company, scopes=SCOPES_DEFAULT)
    await asks_for_two(shop, company, 3000)
    trx = (await shop.create(calls, ("gift-10", 3)))["trx"]
    small = (await shop.create(calls, ("gift-10", 2)))["trx"]
    assert (await shop.finalise(operation, calls, small)).status_code == 200
    await shop.assert_refused(shop.finalise(operation, calls, trx), 402, "approval needed")
    problem = await shop.call(
        *("PATCH", f"/api/1.03/order/{operation}/{trx}", calls),
        headers={"accept": "application/problem+json"},
    )
    assert problem.json()["code"] == "approval_needed"

    for nobody in (developer, calling((await made(shop, ADMIN, company, scopes=ALL))[0])):
        with pytest.raises(OwnersOnly):
            await do(shop, deeds.change, nobody, key.id, KeyWish(confirms_alone=True))
        with pytest.raises(OwnersOnly):
            await made(shop, nobody, company, confirms_alone=True)
    changed = await do(shop, deeds.change, owner, key.id, KeyWish(confirms_alone=True))
    assert changed.confirms_alone
    with pytest.raises(BeyondOwn):
        await do(shop, deeds.rotate, developer, key.id, timedelta())
    await shop.hear()
    assert (await shop.finalise(operation, calls, trx)).status_code == 200
    # An owner who becomes a buyer may still place orders, but not alone; neither may the key.
    await person(shop, company, "owner", "second")
    await change_person(shop, owner, role="buyer")
    await shop.hear()
    assert (await found(shop, key)).withheld_alone
    another = (await shop.create(calls, ("gift-10", 3)))["trx"]
    await shop.assert_refused(shop.finalise(operation, calls, another), 402, "approval needed")
    await asks_for_two(shop, company, None)
    assert (await shop.finalise(operation, calls, another)).status_code == 200
    await shop.assert_books_balance()


async def test_children_go_with_their_parent_unless_they_are_kept(quiet_shop: Shop) -> None:
    """OP-100: revoked, narrowed or ended with it, at every depth; kept ones belong to the parent's own parent."""
    shop, company = quiet_shop, await quiet_shop.company(scopes=ALL)
    _, top = await made(shop, ADMIN, company, scopes=ALL)

    async def sub(who: Company, **body: Any) -> tuple[str, Company]:
        answer = await shop.call("POST", KEY, who, json={"scopes": sorted(ALL)} | body)
        assert answer.status_code == 201, answer.text
        return answer.json()["id"], Company(company.id, company.name, {State.LIVE: answer.json()["key"]})

    async def look(name: str) -> dict[str, Any]:
        return dict((await shop.call("GET", f"{KEY}/{name}", top)).json())

    async def family() -> list[tuple[str, Company]]:
        parent = await sub(top)
        child = await sub(parent[1])
        return [parent, child, await sub(child[1])]

    parent, child, grandchild = await family()
    assert (await look(grandchild[0]))["madeWith"] == child[0]
    narrower = {"scopes": ["keys:write", "orders:read"], "dateExpires": "2099-01-01"}
    assert (await shop.call("PATCH", f"{KEY}/{parent[0]}", top, json=narrower)).status_code == 200
    for name, _ in (parent, child, grandchild):
        now = await look(name)
        assert (now["scopes"], now["dateExpires"]) == (narrower["scopes"], "2099-01-01T00:00:00.000Z")
    assert (await shop.call("DELETE", f"{KEY}/{parent[0]}", top)).status_code == 204
    await shop.hear()
    for name, calls in (parent, child, grandchild):
        assert (await look(name))["standing"] == "revoked"
        assert (await shop.call("GET", KEY, calls)).status_code == 401

    parent, child, grandchild = await family()
    assert (await shop.call("DELETE", f"{KEY}/{child[0]}?children=keep", top)).status_code == 204
    assert (await look(grandchild[0]))["madeWith"] == parent[0]
    assert (await look(grandchild[0]))["standing"] == "valid"
    heir = (await shop.call("POST", f"{KEY}/{parent[0]}/rotate", top)).json()
    assert (await look(grandchild[0]))["madeWith"] == heir["id"]
    bad = await shop.call("DELETE", f"{KEY}/{heir['id']}?children=perhaps", top)
    assert (bad.status_code, bad.text) == (400, "children: must be revoke or keep")


async def test_a_weak_key_touches_neither_a_stronger_one_nor_those_that_it_was_made_with(
    quiet_shop: Shop,
) -> None:
    """OP-100: not even to lift a cap, to change a word, or to revoke it."""
    shop, company = quiet_shop, await quiet_shop.company()
    parent, _ = await made(shop, ADMIN, company, scopes=ALL, spend_day_eur_minor=100)
    twin, _ = await made(shop, calling(parent), company, scopes=ALL)
    strong, _ = await made(shop, ADMIN, company, scopes=ALL)
    for target, field in ((strong, "spendDayEur"), (parent, "id")):
        tries: list[tuple[Any, tuple[Any, ...]]] = [
            (deeds.change, (KeyWish(description="mine"),)),
            (deeds.change, (KeyWish(spend_day_eur_minor=100),)),
            (deeds.rotate, (timedelta(),)),
            (deeds.revoke, ()),
        ]
        for deed, arguments in tries:
            with pytest.raises(BeyondOwn) as refused:
                await do(shop, deed, calling(twin), target.id, *arguments)
            assert refused.value.field == field
    await do(shop, deeds.revoke, calling(twin), twin.id)
    assert (await found(shop, twin)).revoked_at is not None


async def test_a_day_is_spent_once_whatever_keys_are_made_of_one(quiet_shop: Shop) -> None:
    """OP-100: a rotation goes on where the old key was, also during the overlap; children spend their parent's day."""
    shop, company = quiet_shop, await quiet_shop.company()
    await shop.product("gift-10", price="10.00 EUR", stock=50)
    key, calls = await made(shop, ADMIN, company, scopes=ALL, spend_day_eur_minor=5000)

    async def buy(who: Company, count: int) -> int:
        await shop.hear()
        trx = (await shop.create(who, ("gift-10", count)))["trx"]
        return (await shop.finalise("confirm", who, trx)).status_code

    assert await buy(calls, 2) == 200
    heir, text = await do(shop, deeds.rotate, SYSTEM, key.id, timedelta(hours=1))
    after = Company(company.id, company.name, {State.LIVE: text})
    assert await buy(after, 4) == 402
    assert await buy(after, 1) == 200
    assert await buy(calls, 3) == 402
    _, child = await made(shop, calling(heir), company)
    assert await buy(child, 3) == 402
    assert await buy(child, 2) == 200
    for who in (calls, after, child):
        assert await buy(who, 1) == 402
    await shop.assert_books_balance()


async def test_the_database_keeps_lineages_within_a_company(quiet_shop: Shop) -> None:
    """OP-99: neither people nor keys of another company, nor of the other state, stand behind a key."""
    shop = quiet_shop
    ours, theirs = await shop.company(), await shop.company()
    stranger = await person(shop, theirs, "owner")
    foreign, _ = await made(shop, ADMIN, theirs)
    for more in ({"made_by": stranger.id}, {"parent_id": foreign.id}):
        with pytest.raises(Exception, match="of its"):
            await do(shop, key_store.add_key, ours.id, State.LIVE, KeyDraft(), **more)
