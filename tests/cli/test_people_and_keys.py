"""Companies, keys and people on the command line: secrets are shown once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.cli.terminal import Terminal, assert_refused, assert_wrong_usage
from voucherd.db import Pool
from voucherd.keys import store as key_store
from voucherd.keys.key_text import key_hash, well_formed
from voucherd.people import user_store
from voucherd.people.users import verified


def test_a_company_is_added_changed_and_listed(terminal: Terminal) -> None:
    """The command line: `company add`, `company set`, `company list`."""
    added = terminal.json("company", "add", "Acme [red]", "--country", "nl", "--vat-number", "NL001230013B01")
    assert added == {
        "id": 1,
        "name": "Acme [red]",
        "country": "NL",
        "vatNumber": "NL001230013B01",
        "active": True,
        "verified": False,
        "exposeCosts": True,
        "spendOrderEur": None,
        "spendDayEur": None,
    }
    shown = terminal.view("company", "add", "Sleeper", "--country", "DE", "--verified", "--inactive")
    assert "Sleeper" in shown

    changed = terminal.json("company", "set", "Acme [red]", "--verified", "--inactive", "--no-expose-costs")
    assert (changed["verified"], changed["active"], changed["exposeCosts"]) == (True, False, False)
    assert [company["name"] for company in terminal.json("company", "list")] == ["Acme [red]", "Sleeper"]
    renamed = terminal.json("company", "set", "Sleeper", "--rename", "Waker", "--vat-number", "123456106")
    assert (renamed["name"], renamed["vatNumber"], renamed["active"]) == ("Waker", "DE123456106", False)
    # What looks like markup is a name like any other.
    assert "Acme [red]" in terminal.view("company", "list")


def test_a_company_that_is_there_or_is_not_is_refused(terminal: Terminal) -> None:
    """The command line: exits 1 when refused, with one clear line on stderr."""
    terminal.json("company", "add", "Acme", "--country", "NL")
    assert_refused(terminal.run("company", "add", "Acme", "--country", "NL"), "already")
    assert_refused(
        terminal.run("company", "set", "Nobody", "--verified"), "there is no company named 'Nobody'"
    )
    assert_refused(terminal.run("key", "list", "Nobody"), "there is no company")


def test_a_wrong_vat_number_is_refused(terminal: Terminal) -> None:
    """OP-155: when a company is added, and when it changes; nothing is stored."""
    words = ("company", "add", "Acme", "--country", "NL", "--vat-number")
    assert_wrong_usage(terminal.run(*words, "NL123456789B01"), "not a VAT number of Netherlands")
    assert terminal.json("company", "list") == []
    terminal.json("company", "add", "Acme", "--country", "NL")
    terminal.json("company", "add", "Other", "--country", "US", "--vat-number", "12-345 678")
    wrong = terminal.run("company", "set", "Acme", "--vat-number", "DE123456106")
    assert_wrong_usage(wrong, "of another country")
    assert_wrong_usage(terminal.run("company", "set", "Acme", "--country", "XX"), "not a country")
    assert_refused(terminal.run("company", "set", "Acme", "--rename", "Other"), "already")
    assert [one["vatNumber"] for one in terminal.json("company", "list")] == [None, "12-345 678"]


async def test_a_key_is_printed_once_and_stored_as_a_hash(terminal: Terminal, pool: Pool) -> None:
    """The command line: `key add` prints the key, once; `--json` gives `{"id", "key"}`."""
    terminal.json("company", "add", "Acme", "--country", "NL")

    made = terminal.json(
        "key", "add", "Acme", "--state", "live", "--description", "till", "--rate-limit", "90"
    )

    assert made.keys() == {"id", "key"}
    assert well_formed(made["key"])
    assert made["key"].startswith("vk_live_")
    found = await key_store.find_key(pool, key_hash(made["key"]))
    assert found is not None
    assert (found.key.id, found.key.rate_limit) == (made["id"], 90)
    assert made["key"] not in terminal.view("key", "list", "Acme")
    assert made["key"] not in terminal.run("key", "list", "Acme", "--json").out


def test_a_key_is_shown_to_people_once(terminal: Terminal) -> None:
    """The command line: nothing prints a secret twice."""
    terminal.json("company", "add", "Acme", "--country", "NL")
    shown = terminal.view("key", "add", "Acme", "--state", "sandbox")
    assert shown.count("vk_test_") == 1
    assert "not shown again" in shown


async def test_a_key_keeps_what_it_was_allowed(terminal: Terminal, pool: Pool) -> None:
    """OP-29: each key has a description, scopes, an optional IP allow-list, an optional expiry."""
    terminal.json("company", "add", "Acme", "--country", "NL")
    narrow = [
        "key",
        "add",
        "Acme",
        "--state",
        "sandbox",
        "--scope",
        "orders:read",
        "--scope",
        "codes:read",
        "--expires",
        "2099-12-31",
    ]
    terminal.json(*narrow, "--allow-ip", "10.0.0.0/8", "--allow-ip", "2001:db8::/32")

    [key] = terminal.json("key", "list", "Acme")
    assert (key["state"], key["standing"]) == ("sandbox", "valid")
    assert key["scopes"] == ["codes:read", "orders:read"]
    assert key["allowIps"] == ["10.0.0.0/8", "2001:db8::/32"]
    assert key["expiresAt"] == "2099-12-31T23:59:59Z"
    assert "vk_test_" in terminal.view("key", "list", "Acme")
    terminal.json("key", "limit", str(key["id"]), "--order", "12.50 EUR")
    await pool.execute("UPDATE api_key SET last_used_at = '2026-01-31 09:30Z'")
    shown = terminal.json("key", "show", str(key["id"]))
    assert (shown["company"], shown["spendOrderEur"], shown["spendDayEur"]) == ("Acme", 12.5, None)
    assert shown == {"company": "Acme"} | terminal.json("key", "list", "Acme")[0]
    seen = terminal.view("key", "show", str(key["id"]))
    assert all(
        word in seen for word in ("12.50 EUR an order", "2026-01-31 09:30", "2099-12-31", "10.0.0.0/8")
    )
    assert_refused(terminal.run("key", "show", "999"), "there is no key 999")
    assert_refused(
        terminal.run("key", "add", "Acme", "--state", "live", "--expires", "2001-01-01"), "expired already"
    )
    assert await pool.fetchval("SELECT count(*) FROM api_key") == 1


async def test_a_rotated_key_stays_valid_for_the_overlap(terminal: Terminal, pool: Pool) -> None:
    """The command line: `key rotate ID --overlap 24h`; OP-54: the event `key.rotated`."""
    terminal.json("company", "add", "Acme", "--country", "NL")
    old = terminal.json("key", "add", "Acme", "--state", "live")

    new = terminal.json("key", "rotate", str(old["id"]), "--overlap", "24h")

    assert new["key"] != old["key"]
    row = await pool.fetchrow("SELECT replaced_by, expires_at FROM api_key WHERE id = $1", old["id"])
    assert row is not None
    assert row["replaced_by"] == new["id"]
    assert timedelta(hours=23) < row["expires_at"] - datetime.now(UTC) <= timedelta(hours=24)
    event = await pool.fetchrow("SELECT company_id, state, data::text FROM event WHERE type = 'key.rotated'")
    assert event is not None
    assert tuple(event) == (1, 0, f'{{"id": {old["id"]}, "replacedBy": {new["id"]}}}')
    assert "vk_live_" not in event["data"]
    assert f"replaced by {new['id']}" in terminal.view("key", "list", "Acme")
    assert_refused(terminal.run("key", "rotate", str(old["id"]), "--overlap", "1h"), "replaced already")
    assert_wrong_usage(terminal.run("key", "rotate", str(new["id"]), "--overlap", "91d"), "at most 90 days")


def test_a_revoked_key_is_over(terminal: Terminal) -> None:
    """The command line: `key revoke ID`."""
    terminal.json("company", "add", "Acme", "--country", "NL")
    made = terminal.json("key", "add", "Acme", "--state", "live")

    assert terminal.json("key", "revoke", str(made["id"])) == {"id": made["id"], "revoked": True}
    assert terminal.view("key", "revoke", str(made["id"])) == f"Key {made['id']} is revoked.\n"
    assert terminal.json("key", "list", "Acme")[0]["standing"] == "revoked"
    assert_refused(terminal.run("key", "revoke", "999"), "there is no key 999")


async def test_a_person_gets_a_password_that_is_shown_once(terminal: Terminal, pool: Pool) -> None:
    """The command line: `user add`, `user reset-password`; passwords are stored as argon2id only."""
    terminal.json("company", "add", "Acme", "--country", "NL")

    first = terminal.json("user", "add", "Ann@Acme.example", "--company", "Acme", "--role", "buyer")
    assert (first["email"], first["company"], first["role"]) == ("ann@acme.example", "Acme", "buyer")
    login = await user_store.find_login(pool, "ann@acme.example")
    assert login is not None
    assert (login.password_hash or "").startswith("$argon2id$")
    assert await verified(login, first["password"]) == login.user

    second = terminal.json("user", "reset-password", "ann@acme.example")
    login = await user_store.find_login(pool, "ann@acme.example")
    assert await verified(login, first["password"]) is None
    assert await verified(login, second["password"]) is not None


def test_the_operators_own_people_have_no_company(terminal: Terminal) -> None:
    """The command line: `user add EMAIL --company C --role R`."""
    shown = terminal.view("user", "add", "boss@shop.example", "--role", "admin")
    assert "the operator" in shown
    assert "not shown again" in shown
    assert_refused(terminal.run("user", "add", "boss@shop.example", "--role", "admin"), "already")
    assert_refused(terminal.run("user", "reset-password", "who@shop.example"), "there is no user")
    assert_wrong_usage(terminal.run("user", "add", "x@shop.example", "--role", "buyer"), "is not a role")
    assert_wrong_usage(terminal.run("user", "add", "nonsense", "--role", "admin"), "is not an e-mail address")


async def test_people_are_listed_changed_and_freed_of_lost_second_factors(
    terminal: Terminal, pool: Pool
) -> None:
    """OP-92: `user list`, `user set`, `user reset-second-factor`; the last owner stays. `company people`."""
    terminal.json("company", "add", "Acme", "--country", "NL")
    ann = terminal.json("user", "add", "ann@acme.example", "--company", "Acme", "--role", "owner")
    terminal.json("user", "add", "bob@acme.example", "--company", "Acme", "--role", "buyer")
    terminal.json("user", "add", "boss@shop.example", "--role", "admin")

    assert_refused(terminal.run("user", "set", "ann@acme.example", "--role", "viewer"), "is the last owner")
    assert_refused(terminal.run("user", "set", "boss@shop.example", "--inactive"), "is the last admin")
    assert terminal.json("user", "set", "bob@acme.example", "--role", "owner")["role"] == "owner"
    left = terminal.json("user", "set", "ann@acme.example", "--inactive")
    assert (left["active"], left["company"]) == (False, "Acme")
    assert await user_store.find_login(pool, "ann@acme.example") is None
    assert_wrong_usage(terminal.run("user", "set", "bob@acme.example", "--role", "admin"), "is not a role")

    await pool.execute("INSERT INTO totp (user_id, secret, confirmed_at) VALUES ($1, 'x', now())", ann["id"])
    assert [one["secondFactor"] for one in terminal.json("user", "list", "--company", "Acme")] == [
        True,
        False,
    ]
    assert terminal.json("user", "reset-second-factor", "ann@acme.example")["secondFactor"] is False
    assert [one["email"] for one in terminal.json("user", "list")] == [
        "boss@shop.example",
        "ann@acme.example",
        "bob@acme.example",
    ]
    assert "boss@shop.example" in terminal.view("user", "list", "--operator")

    asked = terminal.json("company", "people", "Acme", "--second-factor", "--approve-from", "250.00 EUR")
    assert asked == {"name": "Acme", "secondFactor": True, "approveFromEur": 250}
    assert "from 250.00 EUR on" in terminal.view("company", "people", "Acme")
    assert terminal.json("company", "people", "Acme", "--no-approval")["approveFromEur"] is None
