"""`voucherd trail`: every change that a command makes is written down, and no secret with it."""

from __future__ import annotations

import asyncio
import os
import pwd
import socket

from tests.cli.terminal import Terminal, assert_refused, assert_wrong_usage
from voucherd.db import open_pool
from voucherd.keys.key_text import SCOPES_DEFAULT
from voucherd.trail.chain import TrailSealing

SECRET = "whsec_" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo="


async def _seal(url: str) -> None:
    pool = await open_pool(url)
    await TrailSealing(pool).round()
    await pool.close()


async def _webhook(url: str) -> int:
    pool = await open_pool(url)
    number: int = await pool.fetchval("SELECT id FROM webhook")
    await pool.close()
    return number


def test_what_commands_change_is_in_the_trail(terminal: Terminal, database_url: str) -> None:
    """OP-94: who, what, to what, whose; what only looks or is refused leaves no row, and no secret is told."""
    terminal.json("company", "add", "Acme", "--country", "NL")
    key = terminal.json("key", "add", "Acme", "--state", "sandbox", "--description", "of the web shop")
    terminal.json("key", "list", "Acme")
    terminal.json(
        "webhook", "add", "Acme", "https://acme.com/in", "--secret", SECRET, "--header", "X-Auth: sesame"
    )
    user = terminal.json("user", "add", "ann@acme.example", "--company", "Acme", "--role", "buyer")
    terminal.json("wallet", "top-up", "Acme", "10.00", "EUR", "--state", "live", "--reference", "bank 1")
    assert_refused(terminal.run("key", "revoke", "999"), "no key 999")
    terminal.json("key", "revoke", str(key["id"]))

    rows = terminal.json("trail", "list")
    number = asyncio.run(_webhook(database_url))

    assert [(row["action"], row["subject"], row["company"], row["state"]) for row in reversed(rows)] == [
        ("company.add", "company Acme", "Acme", None),
        ("key.add", f"key {key['id']}", "Acme", "sandbox"),
        ("webhook.add", f"webhook {number}", "Acme", "live"),
        ("user.add", "user ann@acme.example", "Acme", None),
        ("wallet.top-up", "company Acme", "Acme", "live"),
        ("key.revoke", f"key {key['id']}", "Acme", "sandbox"),
    ]
    who = f"{pwd.getpwuid(os.getuid()).pw_name}@{socket.gethostname()}"
    assert {(row["actorKind"], row["actorId"], row["actor"]) for row in rows} == {
        ("command", os.getuid(), who)
    }
    assert rows[4]["detail"] == {
        "description": "of the web shop", "scopes": sorted(SCOPES_DEFAULT), "allow_ips": [], "rate_limit": 600,
        "expires_at": None, "spend_order_eur_minor": None, "spend_day_eur_minor": None,
    }  # fmt: skip
    assert rows[3]["detail"] == {
        "host": "acme.com", "types": [], "description": "", "enabled": True, "headers": ["x-auth"],
    }  # fmt: skip
    for secret in (SECRET[6:], key["key"], user["password"], "sesame"):
        assert secret not in str(rows)

    revoked = terminal.view(
        "trail", "list", "--action", "key.revoke", "--company", "Acme", "--actor", who, "--limit", "1"
    )
    assert f"key {key['id']}" in revoked
    assert "webhook" not in revoked
    assert terminal.json("trail", "list", "--since", "2999-01-01") == []
    _heads(terminal, database_url)


def _heads(terminal: Terminal, database_url: str) -> None:
    """The heads: none at first, then one that the audit prints, too, and that can be asked about later."""
    assert terminal.json("trail", "head") == []
    asyncio.run(_seal(database_url))
    (head,) = terminal.json("trail", "head")
    noted = f"{head['book']}:{head['block']}:{head['hash']}"
    assert terminal.json("audit")["heads"] == [noted]
    assert terminal.json("trail", "head", "--noted", noted) == [head]
    forged = noted[:-1] + ("0" if noted[-1] != "0" else "1")
    assert_refused(terminal.run("trail", "head", "--noted", forged), "no block 1 with that hash")
    assert_wrong_usage(terminal.run("trail", "head", "--noted", "x"), "is not a head")
