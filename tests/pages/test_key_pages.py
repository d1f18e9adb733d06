"""The page of API keys, and the commands: who answers for a key, what waits for an owner, and what is revoked along."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal
from tests.pages.people import Someone, someone
from tests.shop import Company, Shop
from voucherd.actors import Actor, ActorKind
from voucherd.db import transaction
from voucherd.ids import State
from voucherd.keys import deeds
from voucherd.keys.key_text import KeyWish, Scope
from voucherd.people.roles import COMPANY, Right

PAGE = "/portal/keys"
ALL = frozenset(Scope)
STRONG = {"scope": ["codes:read", "orders:write", "orders:read"]}


async def newest(shop: Shop) -> int:
    """The number of the key that was made last."""
    return int(await shop.pool.fetchval("SELECT max(id) FROM api_key"))


async def made(shop: Shop, who: Someone, fields: dict[str, list[str]]) -> str:
    """The path of a key that this person makes on the page."""
    answer = await who.post(PAGE, fields)
    assert answer.status_code == 200, answer.text
    assert "Your new key" in answer.text
    return f"{PAGE}/{shop.ids.key(await newest(shop))}"


@pytest.mark.parametrize("role", sorted(COMPANY))
async def test_each_role_makes_and_replaces_what_it_may_do_itself(shop: Shop, role: str) -> None:
    """OP-99: neither offered nor taken on the page; a refused form shows no key and changes nothing."""
    company = await shop.company()
    owner, one = await someone(shop, "owner", company), await someone(shop, role, company)
    strong = await made(shop, owner, STRONG)
    count = await newest(shop)
    form, tried = await one.get(f"{PAGE}/new"), await one.post(PAGE, STRONG)
    turned = await one.post(f"{strong}/rotate", {"overlap": "0"})
    if Right.KEYS_MANAGE not in COMPANY[role]:
        assert {form.status_code, tried.status_code, turned.status_code} == {403}
    elif role == "owner":
        assert 'value="codes:read"' in form.text
        assert (tried.status_code, turned.status_code) == (200, 200)
        return
    else:
        assert 'value="codes:read"' not in form.text
        assert 'value="orders:write"' not in form.text
        assert (tried.status_code, turned.status_code) == (422, 303)
        assert "Ask an owner" in tried.text
        assert "Ask an owner" in (await one.get(strong)).text
    for answer in (tried, turned):
        assert "vk_live_" not in answer.text
    assert await newest(shop) == count
    for path in ("keep", "alone"):
        assert (await one.post(f"{strong}/{path}", {"alone": "yes"})).status_code == 403


async def test_an_owner_keeps_the_key_of_somebody_who_left_and_lets_it_confirm_alone(shop: Shop) -> None:
    """OP-99, OP-101: what waits is shown with who made it; the owner who keeps it answers for it."""
    company = await shop.company()
    maker, owner = await someone(shop, "owner", company), await someone(shop, "owner", company)
    path = await made(shop, maker, STRONG)
    await shop.pool.execute("UPDATE company SET approve_from_eur_minor = 1500 WHERE id = $1", company.id)
    assert f"<dt>Responsible</dt><dd>{maker.email}</dd>" in (await owner.get(path)).text
    assert (await owner.post(f"/portal/team/{maker.user_id}/role", {"role": "viewer"})).status_code == 303
    assert "Waits for an owner" in (await owner.get(PAGE)).text
    shown = (await owner.get(path)).text
    assert "the key lost: Create, confirm, resolve and cancel orders, See the codes of orders." in shown
    kept = await owner.post(f"{path}/keep", follow=True)
    assert "Waits for an owner" not in kept.text
    assert f"<dt>Responsible</dt><dd>{owner.email}</dd>" in kept.text
    alone = await owner.post(f"{path}/alone", {"alone": "yes"}, follow=True)
    assert "The key confirms large orders alone." in alone.text
    bound = await owner.post(f"{path}/alone", {"alone": "no"}, follow=True)
    assert "The key confirms large orders alone." not in bound.text


@pytest.mark.parametrize(("choice", "left"), [("revoke", 0), ("keep", 1), ("", 0)])
async def test_the_page_asks_what_becomes_of_the_keys_that_were_made_with_one(
    shop: Shop, choice: str, left: int
) -> None:
    """OP-100: they go unless the form says that they stay."""
    company = await shop.company()
    owner = await someone(shop, "owner", company)
    path = await made(shop, owner, {"scope": ["keys:write", "orders:read"]})
    child = await child_of(shop, company, await newest(shop))
    assert "Keys that were made with it" in (await owner.get(path)).text
    made_with = (await owner.get(f"{PAGE}/{shop.ids.key(child)}")).text
    assert "<dt>Made with</dt><dd><code>vk_live_" in made_with
    fields = {"children": choice} if choice else {}
    assert (await owner.post(f"{path}/revoke", fields)).status_code == 303
    usable = "SELECT count(*) FROM api_key WHERE made_by = $1 AND revoked_at IS NULL"
    assert await shop.pool.fetchval(usable, owner.user_id) == left


async def child_of(shop: Shop, company: Company, number: int) -> int:
    """A key that the key of this number makes."""
    actor = Actor(ActorKind.KEY, "a key", number, company.id, State.LIVE)
    async with transaction(shop.pool) as tx:
        wish = KeyWish(scopes=frozenset({Scope.ORDERS_READ}))
        return (await deeds.add(tx, actor, company.id, State.LIVE, wish))[0].id


async def test_the_operator_does_the_same_by_commands(shop: Shop, database_url: str, tmp_path: Path) -> None:
    """OP-99 to OP-101: alone, keep, and revoke with or without the keys that were made with one."""
    terminal, company = Terminal(tmp_path, database_url), await shop.company()
    owner = await someone(shop, "owner", company)
    await someone(shop, "owner", company)
    await made(shop, owner, {"scope": [scope.value for scope in ALL]})
    number = await newest(shop)
    child, other = [await child_of(shop, company, number) for _ in range(2)]
    terminal.json("user", "set", owner.email, "--inactive")
    shown = terminal.json("key", "show", str(number))
    assert (shown["scopes"], shown["withheldScopes"]) == ([], sorted(ALL))
    assert terminal.json("key", "keep", str(number))["scopes"] == sorted(ALL)
    assert terminal.json("key", "show", str(child))["madeWith"] == number
    assert terminal.json("key", "alone", str(number), "--yes")["confirmsAlone"] is True
    async with transaction(shop.pool) as tx:
        heir, _ = await deeds.rotate(tx, Actor(ActorKind.COMMAND, "Ada"), number, timedelta(hours=1))
    assert heir.confirms_alone
    assert terminal.json("key", "show", str(child))["madeWith"] == heir.id
    terminal.json("key", "revoke", str(heir.id), "--keep-children")
    assert terminal.json("key", "show", str(child))["standing"] == "valid"
    assert terminal.json("key", "show", str(other))["madeWith"] is None
    made_alone = terminal.json("key", "add", company.name, "--state", "live", "--confirms-alone")
    assert terminal.json("key", "show", str(made_alone["id"]))["confirmsAlone"] is True
