"""`voucherd trail`: every change that a command makes is written down, and no secret with it."""

from __future__ import annotations

import asyncio
import os
import pwd
import socket
from pathlib import Path

from tests.cli.terminal import Terminal, assert_refused, assert_wrong_usage
from voucherd.db import open_pool
from voucherd.keys.key_text import SCOPES_DEFAULT
from voucherd.trail.chain import TrailSealing
from voucherd.trail.heads import FILE, HeadPublisher
from voucherd.vault.master_key import load_or_create_master
from voucherd.vault.seal import Sealer

SECRET = "whsec_" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo="


async def _seal(url: str, data: Path) -> None:
    """Seal what there is and publish the head, as a worker of this data folder does."""
    pool = await open_pool(url)
    await TrailSealing(pool, Sealer(load_or_create_master(data / "master.key")).trail_key).round()
    await HeadPublisher(pool, data).publish()
    await pool.close()


async def _cut(url: str) -> None:
    """Remove the newest block with its rows, as somebody with all rights on the database can."""
    pool = await open_pool(url)
    for table in ("trail", "trail_seal"):
        await pool.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
    await pool.execute("DELETE FROM trail WHERE id >= (SELECT max(first_id) FROM trail_seal)")
    await pool.execute("DELETE FROM trail_seal WHERE block = (SELECT max(block) FROM trail_seal)")
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
        ("wallet.top-up", "company Acme", "Acme", "sandbox"),
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
        "expires_at": None, "spend_order_eur_minor": None, "spend_day_eur_minor": None, "confirms_alone": False,
    }  # fmt: skip
    assert rows[3]["detail"] == {
        "host": "acme.com", "types": [], "description": "", "enabled": True, "headers": ["x-auth"],
        "format": "standard",
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
    asyncio.run(_seal(database_url, terminal.data))
    (head,) = terminal.json("trail", "head")
    noted = f"{head['book']}:{head['block']}:{head['hash']}"
    assert terminal.json("audit")["heads"] == [noted]
    assert terminal.json("trail", "head", "--noted", noted) == [head]
    forged = noted[:-1] + ("0" if noted[-1] != "0" else "1")
    assert_refused(terminal.run("trail", "head", "--noted", forged), "no block 1 with that hash")
    assert_wrong_usage(terminal.run("trail", "head", "--noted", "x"), "is not a head")


def test_the_audit_misses_blocks_that_were_cut_off(terminal: Terminal, database_url: str) -> None:
    """OP-105: it compares with the head that the worker wrote beside the database, and with heads noted elsewhere."""
    terminal.json("company", "add", "Acme", "--country", "NL")
    for number in (1, 2):
        terminal.json("webhook", "add", "Acme", f"https://acme.com/{number}")
        asyncio.run(_seal(database_url, terminal.data))
    own, noted = terminal.data / FILE, terminal.data / "noted elsewhere"
    (head,) = terminal.json("audit")["noted"]
    assert own.read_text().startswith(f"{head} 20")
    assert head.startswith("trail:2:")
    own.rename(noted)
    for given in (str(noted), head):
        assert terminal.json("audit", "--head", given)["noted"] == [head]
    assert_wrong_usage(terminal.run("audit", "--head", "trail:2"), "is not a head")

    asyncio.run(_cut(database_url))
    assert terminal.json("audit")["ok"], "nothing in the database tells"
    for given in (str(noted), head):
        missed = terminal.run("audit", "--head", given)
        assert (missed.code, "the chain was cut or" in " ".join(missed.out.split())) == (1, True), missed
    noted.rename(own)
    assert_refused(terminal.run("audit"), "1 invariant is broken")
    own.write_text("nonsense")
    assert_refused(terminal.run("audit"), "'nonsense' is not a head of the trail")
