"""A company that moves to another cell: its file, and the list of keys for the front door."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import Terminal, assert_refused, assert_wrong_usage
from voucherd.actors import Actor, ActorKind
from voucherd.db import Pool, open_pool, transaction
from voucherd.ids import State
from voucherd.keys import deeds
from voucherd.keys import store as key_store
from voucherd.keys.key_text import TERMS, KeyWish, Scope, key_hash
from voucherd.migrate import migrate


@pytest.fixture
async def elsewhere(another_schema_url: str, tmp_path: Path) -> Terminal:
    """A terminal in another cell."""
    await migrate(another_schema_url)
    return Terminal(tmp_path / "elsewhere", another_schema_url)


@pytest.fixture
async def pool_elsewhere(elsewhere: Terminal, another_schema_url: str) -> AsyncIterator[Pool]:
    """Its database."""
    opened = await open_pool(another_schema_url)
    yield opened
    await opened.close()


async def _two_keys(terminal: Terminal, pool: Pool) -> tuple[str, str]:
    """A company with a key, and one that was made with it."""
    added = ("company", "add", "Acme", "--country", "NL", "--vat-number", "NL123456789B01", "--verified")
    company = terminal.json(*added)
    terminal.json("company", "limit", "Acme", "--order", "500 EUR", "--day", "900 EUR")
    terminal.json("company", "people", "Acme", "--second-factor", "--approve-from", "250 EUR")
    first = terminal.json(
        *("key", "add", "Acme", "--state", "live", "--scope", "keys:write", "--scope", "orders:read"),
        *("--allow-ip", "192.0.2.0/24", "--allow-ip", "2001:db8::/32", "--expires", "2099-12-31"),
        *("--rate-limit", "90", "--spend-day", "70 EUR", "--confirms-alone", "--description", "till"),
    )
    actor = Actor(ActorKind.KEY, "key of Acme", first["id"], company_id=company["id"], state=State.LIVE)
    wish = KeyWish(scopes=frozenset({Scope.ORDERS_READ}), description="child")
    async with transaction(pool) as tx:
        _, second = await deeds.add(tx, actor, company["id"], State.LIVE, wish)
    return first["key"], second


def _import(terminal: Terminal, file: Any) -> Any:
    return terminal.run("company", "import", "-", stdin=json.dumps(file))


async def test_a_company_is_the_same_in_another_cell_with_its_keys_and_inactive(
    terminal: Terminal, elsewhere: Terminal, pool: Pool, pool_elsewhere: Pool
) -> None:
    """OP-133: terms, keys and who was made with whom come along; no secret is in the file, and nobody orders yet."""
    texts = await _two_keys(terminal, pool)
    # A successor is younger than the children that it takes over.
    file = terminal.json("company", "export", "Acme")
    assert json.loads(terminal.view("company", "export", "Acme")) == file
    assert not any(text in json.dumps(file) for text in texts)

    done = elsewhere.json("company", "import", "-", stdin=json.dumps(file))

    assert done == {"company": "Acme", "new": True, "keys": 2, "ended": 0}
    [there], [here] = (one.json("company", "list") for one in (elsewhere, terminal))
    assert there | {"id": 0} == here | {"id": 0, "active": False}
    assert elsewhere.json("company", "people", "Acme") == terminal.json("company", "people", "Acme")
    for text in texts:
        old, new = [await key_store.find_key(one, key_hash(text)) for one in (pool, pool_elsewhere)]
        assert old is not None
        assert new is not None
        assert all(getattr(old.key, name) == getattr(new.key, name) for name in TERMS)
        assert (new.key.prefix, new.key.state) == (old.key.prefix, old.key.state)
        assert [limits[1:] for limits in new.limits_above] == [limits[1:] for limits in old.limits_above]
    actions = [row["action"] for row in elsewhere.json("trail", "list")]
    assert "company.import" in actions
    # A field of a key that is not in the file would be lost on the way.
    assert {word.lower() for word in file["keys"][0]} - {"hash", "prefix", "madewith"} == {
        name.replace("_", "") for name in TERMS
    }


async def test_a_second_import_brings_what_changed_and_ends_what_was_revoked(
    terminal: Terminal, elsewhere: Terminal, pool: Pool, pool_elsewhere: Pool
) -> None:
    """OP-133: the keys of the file and no others, however often it is read; a revoked one never comes back."""
    first, second = await _two_keys(terminal, pool)
    before = terminal.json("company", "export", "Acme")
    assert _import(elsewhere, before).code == 0
    assert elsewhere.json("company", "import", "-", stdin=json.dumps(before))["ended"] == 0
    [child] = [key["id"] for key in terminal.json("key", "list", "Acme") if key["description"] == "child"]
    terminal.json("key", "revoke", str(child))
    third = terminal.json("key", "add", "Acme", "--state", "sandbox")["key"]

    after = terminal.json("company", "export", "Acme")
    done = elsewhere.json("company", "import", "-", stdin=json.dumps(after))

    assert done == {"company": "Acme", "new": False, "keys": 2, "ended": 1}
    found = [await key_store.find_key(pool_elsewhere, key_hash(text)) for text in (first, second, third)]
    assert [one is not None for one in found] == [True, False, True]
    assert_refused(_import(elsewhere, before), key_hash(second).hex()[:12], "is revoked here")


async def test_a_company_that_sells_here_and_a_file_that_is_wrong_change_nothing(
    terminal: Terminal, elsewhere: Terminal, pool: Pool, pool_elsewhere: Pool
) -> None:
    """OP-133: bad input is refused in one line."""
    await _two_keys(terminal, pool)
    file = terminal.json("company", "export", "Acme")
    child = next(key for key in file["keys"] if key["madeWith"])
    parent = next(key for key in file["keys"] if not key["madeWith"])
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
        (file | {"keys": [parent | {"hash": "x"}]}, "keys[0].hash"),
    ):
        assert_refused(_import(elsewhere, wrong), words)
    assert await pool_elsewhere.fetchval("SELECT count(*) FROM company") == 0

    assert_refused(_import(terminal, file), "'Acme' is active here")
    elsewhere.json("company", "add", "Other", "--country", "NL", "--inactive")
    assert _import(elsewhere, file).code == 0
    assert_refused(_import(elsewhere, file | {"name": "Other"}), "another company's")
    assert_refused(terminal.run("company", "export", "Nobody"), "there is no company")


async def test_the_list_for_the_front_door_has_hashes_of_keys_that_can_be_used(
    terminal: Terminal, pool: Pool
) -> None:
    """OP-132: no key is in it in clear; its last line tells whether it is whole."""
    terminal.json("company", "add", "Acme", "--country", "NL")
    terminal.json("company", "add", "Left", "--country", "NL", "--inactive")
    live, over, left = [
        terminal.json("key", "add", name, "--state", "live") for name in ("Acme", "Acme", "Left")
    ]
    terminal.json("key", "revoke", str(over["id"]))
    expired = terminal.json("key", "add", "Acme", "--state", "live", "--expires", "2099-12-31")
    await pool.execute("UPDATE api_key SET expires_at = now() WHERE id = $1", expired["id"])

    hashes = [key_hash(one["key"]).hex().upper() for one in (live, left)]
    assert terminal.view("key", "map", "eu1").splitlines() == [
        *(f"{hashes[0]} eu1 active", f"{hashes[1]} eu1 inactive"),
        "# 2 keys",
    ]
    assert terminal.json("key", "map", "eu-1") == [
        {"hash": hashes[0], "cell": "eu-1", "active": True},
        {"hash": hashes[1], "cell": "eu-1", "active": False},
    ]
    for name in ("", "eu 1", "EU1", "-eu", "a" * 64):
        assert_wrong_usage(terminal.run("key", "map", "--", name), "a cell's name has")
