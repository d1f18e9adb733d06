"""A company that moves to another cell: its file, and the list of keys for the front door."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.cli.terminal import Terminal, assert_refused, assert_wrong_usage
from voucherd.actors import Actor, ActorKind
from voucherd.companies import deeds as company_deeds
from voucherd.companies.model import Company, CompanyDraft, Policy
from voucherd.db import Pool, open_pool, transaction
from voucherd.ids import State
from voucherd.keys import deeds, moving
from voucherd.keys import store as key_store
from voucherd.keys.key_text import TERMS, KeyWish, Scope, key_hash, read_networks
from voucherd.keys.moving import BadCompanyFile, CompanyActive, CompanyFile, KeyTaken, MovedIn
from voucherd.migrate import migrate
from voucherd.people import policy

OPERATOR = Actor(ActorKind.COMMAND, "operator")


@pytest.fixture
async def elsewhere_url(another_schema_url: str) -> str:
    """The database of another cell."""
    await migrate(another_schema_url)
    return another_schema_url


@pytest.fixture
async def elsewhere(elsewhere_url: str) -> AsyncIterator[Pool]:
    """Connections to it."""
    opened = await open_pool(elsewhere_url)
    yield opened
    await opened.close()


async def _two_keys(pool: Pool) -> tuple[Company, list[str]]:
    """A company with a key, and one that was made with it."""
    async with transaction(pool) as tx:
        company = await company_deeds.add(tx, OPERATOR, CompanyDraft("Acme", "NL", "NL123456789B13"))
        await company_deeds.limit(tx, OPERATOR, "Acme", order_eur_minor=50_000, day_eur_minor=90_000)
        await policy.set_policy(tx, OPERATOR, company, Policy(True, 25_000))
        wide = KeyWish(
            description="till",
            scopes=frozenset({Scope.KEYS_WRITE, Scope.ORDERS_READ}),
            allow_ips=read_networks(["192.0.2.0/24", "2001:db8::/32"]),
            rate_limit=90,
            spend_day_eur_minor=7_000,
            confirms_alone=True,
        )
        first, text = await deeds.add(tx, OPERATOR, company.id, State.LIVE, wide)
        maker = Actor(ActorKind.KEY, "till", first.id, company_id=company.id, state=State.LIVE)
        narrow = KeyWish(description="child", scopes=frozenset({Scope.ORDERS_READ}), confirms_alone=False)
        _, other = await deeds.add(tx, maker, company.id, State.LIVE, narrow)
        # The successor is younger than the child, which belongs to it from now on.
        _, text = await deeds.rotate(tx, OPERATOR, first.id, timedelta())
    return company, [text, other]


async def _exported(pool: Pool) -> CompanyFile:
    async with transaction(pool) as tx:
        return await moving.file_of(tx, "Acme")


async def _imported(pool: Pool, file: CompanyFile) -> MovedIn:
    async with transaction(pool) as tx:
        return await moving.move_in(tx, OPERATOR, file)


async def test_a_company_is_the_same_in_another_cell_with_its_keys_and_inactive(
    terminal: Terminal, pool: Pool, elsewhere: Pool, elsewhere_url: str, tmp_path: Path
) -> None:
    """OP-133: terms, keys and who was made with whom come along; no secret is in the file, and nobody orders yet."""
    _, texts = await _two_keys(pool)
    there = Terminal(tmp_path / "elsewhere", elsewhere_url)
    file = terminal.json("company", "export", "Acme")
    assert json.loads(terminal.view("company", "export", "Acme")) == file
    assert not any(text in json.dumps(file) for text in texts)

    done = there.json("company", "import", "-", stdin=json.dumps(file))

    assert done == {"company": "Acme", "new": True, "keys": 2, "ended": 0}
    assert_refused(terminal.run("company", "import", "-", stdin=json.dumps(file)), "'Acme' is active here")
    [moved], [company] = (one.json("company", "list") for one in (there, terminal))
    assert moved | {"id": 0} == company | {"id": 0, "active": False}
    assert there.json("company", "people", "Acme") == terminal.json("company", "people", "Acme")
    for text in texts:
        old, new = [await key_store.find_key(one, key_hash(text)) for one in (pool, elsewhere)]
        assert old is not None
        assert new is not None
        assert all(getattr(old.key, name) == getattr(new.key, name) for name in TERMS)
        assert (new.key.prefix, new.key.state) == (old.key.prefix, old.key.state)
        assert [limits[1:] for limits in new.limits_above] == [limits[1:] for limits in old.limits_above]
    assert await elsewhere.fetchval("SELECT count(*) FROM trail WHERE action = 'company.import'") == 1
    # A field of a key that is not in the file would be lost on the way.
    assert {word.lower() for word in file["keys"][0]} - {"hash", "prefix", "madewith"} == {
        name.replace("_", "") for name in TERMS
    }


async def test_a_second_import_brings_what_changed_and_ends_what_was_revoked(
    pool: Pool, elsewhere: Pool
) -> None:
    """OP-133: the keys of the file and no others, however often it is read; a revoked one never comes back."""
    company, [first, second] = await _two_keys(pool)
    before = await _exported(pool)
    assert (await _imported(elsewhere, before)).new
    assert (await _imported(elsewhere, before)).ended == 0
    found = await key_store.find_key(pool, key_hash(second))
    assert found is not None
    async with transaction(pool) as tx:
        await deeds.revoke(tx, OPERATOR, found.key.id)
        _, third = await deeds.add(tx, OPERATOR, company.id, State.SANDBOX, KeyWish(rate_limit=7))

    done = await _imported(elsewhere, await _exported(pool))

    assert (done.new, done.keys, done.ended) == (False, 2, 1)
    keys = [await key_store.find_key(elsewhere, key_hash(text)) for text in (first, second, third)]
    assert [one is not None for one in keys] == [True, False, True]
    with pytest.raises(KeyTaken, match=key_hash(second).hex()[:12]):
        await _imported(elsewhere, before)


async def test_a_company_that_sells_here_and_a_file_that_is_wrong_change_nothing(
    pool: Pool, elsewhere: Pool
) -> None:
    """OP-133: bad input is refused in words."""
    await _two_keys(pool)
    good = await _exported(pool)
    file: dict[str, Any] = json.loads(msgspec.json.encode(good))
    child = next(key for key in file["keys"] if key["madeWith"])
    parent = next(key for key in file["keys"] if not key["madeWith"])
    assert moving.read_file(json.dumps(file).encode()) == good
    for wrong, words in (
        ([], "Expected `object`"),
        (file | {"format": "voucherd company 2"}, "Invalid enum value"),
        (file | {"country": "Netherlands"}, "is not a country"),
        (file | {"more": 1}, "unknown field"),
        (file | {"keys": [child]}, "not in it"),
        (file | {"keys": [parent, parent]}, "a key twice"),
        (file | {"keys": [child | {"madeWith": child["hash"]}]}, "made with one another"),
        (file | {"keys": [parent | {"allowIps": ["here"]}]}, "does not appear to be"),
        (file | {"keys": [parent | {"rateLimit": 0}]}, "a rate limit is between"),
        (file | {"keys": [parent | {"hash": "x"}]}, "hash"),
    ):
        with pytest.raises(BadCompanyFile, match=words):
            moving.read_file(json.dumps(wrong).encode())
    with pytest.raises(BadCompanyFile):
        moving.read_file(b"\xff")

    with pytest.raises(CompanyActive):
        await _imported(pool, good)
    await _imported(elsewhere, good)
    other = msgspec.structs.replace(good, name="Other")
    with pytest.raises(KeyTaken, match="another company's"):
        await _imported(elsewhere, other)
    assert await elsewhere.fetchval("SELECT count(*) FROM company") == 1


async def test_the_list_for_the_front_door_has_hashes_of_keys_that_can_be_used(
    terminal: Terminal, pool: Pool
) -> None:
    """OP-132: no key is in it in clear; its last line tells whether it is whole."""
    texts = []
    async with transaction(pool) as tx:
        for name in ("Acme", "Left"):
            company = await company_deeds.add(tx, OPERATOR, CompanyDraft(name, "NL", active=name == "Acme"))
            keys = [await deeds.add(tx, OPERATOR, company.id, State.LIVE, KeyWish()) for _ in range(3)]
            texts.append(keys[0][1])
            await deeds.revoke(tx, OPERATOR, keys[1][0].id)
            await tx.execute("UPDATE api_key SET expires_at = now() WHERE id = $1", keys[2][0].id)

    active, inactive = [key_hash(text).hex().upper() for text in texts]
    listed = [f"{active} eu1 active", f"{inactive} eu1 inactive", "# 2 keys"]
    assert terminal.view("key", "map", "eu1").splitlines() == listed
    assert terminal.json("key", "map", "eu-1") == [
        {"hash": active, "cell": "eu-1", "active": True},
        {"hash": inactive, "cell": "eu-1", "active": False},
    ]
    assert_wrong_usage(terminal.run("key", "map", "eu 1"), "a cell's name has")
