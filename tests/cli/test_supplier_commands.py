"""Suppliers on the command line: added, told what they sell, tried out; their keys are seen by nobody."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import termios
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.cli.terminal import PROGRAM, Said, Terminal, assert_refused, assert_wrong_usage
from tests.patience import HANG_S, wait_until
from tests.suppliers.warehouse import DESCRIPTION, warehouse
from voucherd.cli import program
from voucherd.cli.words import span
from voucherd.db import Pool
from voucherd.suppliers.store import supplier
from voucherd.vault.master_key import load_or_create_master
from voucherd.vault.seal import Sealer

CATALOGUE = """slug,name,brand,type,category,redeem-type,region,face-value,face-value-range,price,fee
gift-10,Gift 10,Gifty,giftcard,gifts,currency,ww,10 EUR,,9.50 EUR,
gift-any,Any,Gifty,giftcard,gifts,currency,ww,,5-500 EUR,,1.02
"""
BLIND = """
base_url = "https://blind.example"
[quote]
path = "/products/{sku}"
fields = { price = "price", price_currency = "currency" }
[buy]
method = "POST"
path = "/orders/{reference}"
fields = { codes = "codes" }
"""
VOUCHERD = ["--kind", "voucherd", "--url", "https://other.example", "--currency", "eur"]


async def test_a_supplier_is_added_told_what_it_sells_and_changed(terminal: Terminal, pool: Pool) -> None:
    """The command line: `supplier add`, `offer`, `withdraw`, `set`, `list`, `show`."""
    terminal.json("product", "import", "-", stdin=CATALOGUE)
    added = terminal.json(
        *("supplier", "add", "play", "--kind", "sandbox", "--config", 'price="9.00"', "--currency", "eur"),
        *("--timeout", "5", "--price-slack", "0.5%", "--settle", "0"),
    )
    assert (added["state"], added["timeoutS"], added["priceSlackPercent"]) == ("sandbox", 5, 0.5)
    assert added["config"] == {"price": "9.00", "currency": "EUR"}
    assert_refused(terminal.run("supplier", "add", "play", "--kind", "sandbox"), "is a supplier play already")

    whole = terminal.json("supplier", "offer", "play", "gift-any")
    assert (whole["faceValue"], whole["faceValueTo"], whole["sku"]) == (5, 500, "gift-any")
    overlapping = terminal.run("supplier", "offer", "play", "gift-any", "--face", "25 EUR")
    assert_refused(overlapping, "gift-any of 5.00 EUR to 500.00 EUR already", "withdraw that first")
    assert terminal.json("supplier", "withdraw", "play", "gift-any")["withdrawn"] == 1
    assert_refused(terminal.run("supplier", "withdraw", "play", "gift-any"), "is not down for gift-any")
    terminal.json("supplier", "offer", "play", "gift-any", "--face", "25 EUR", "--sku", "ANY25")
    assert_refused(
        terminal.run("supplier", "offer", "play", "gift-10", "--face", "25 EUR"), "it has 10.00 EUR"
    )

    await pool.execute("UPDATE supplier_health SET failures = 9, open_until = now() + interval '1 hour'")
    failing = terminal.run("supplier", "list").out
    assert "open until" in failing
    assert "1 none" in failing
    changed = terminal.json("supplier", "set", "play", "--config", "outcome=slow", "--inactive")
    assert (changed["active"], changed["breaker"]) == (False, "closed")
    assert changed["config"] == {"price": "9.00", "currency": "EUR", "outcome": "slow"}
    shown = terminal.json("supplier", "show", "play")
    offers = [(one["sku"], one["standing"], one["faceValueTo"]) for one in shown["offers"]]
    assert offers == [("gift-any", "withdrawn", 500), ("ANY25", "not quoted yet", None)]
    assert_refused(terminal.run("supplier", "show", "nobody"), "there is no supplier 'nobody'")


async def test_a_supplier_is_tried_out_and_nothing_is_bought(
    terminal: Terminal, pool: Pool, tmp_path: Path
) -> None:
    """The command line: `supplier test` says line by line what it found, and exits 1 if anything failed."""
    terminal.json("product", "import", "-", stdin=CATALOGUE)
    described, key_file = tmp_path / "wholesale.toml", tmp_path / "key"
    async with warehouse(tmp_path) as wholesale:
        key_file.write_text(f"{wholesale.key}\n")
        described.write_text(DESCRIPTION.read_text().replace("http://127.0.0.1:1", wholesale.url))
        await wholesale.stock("W10", price="9.10", stock=7)
        words = ["supplier", "add", "eu", "--kind", "http", "--file", str(described)]
        added = terminal.run(*words, "--key-file", str(key_file), "--json")
        assert added.document["hasKey"]
        terminal.json("supplier", "offer", "eu", "gift-10", "--sku", "W10")

        tried = terminal.json("supplier", "test", "eu")
        assert [(one["what"], one["result"], one["text"]) for one in tried["findings"]] == [
            ("opens", "ok", "http, live"),
            ("price of gift-10", "ok", "9.10 EUR, 7 in stock"),
            ("look-up", "ok", "of a purchase that never was: not found, as it should be"),
        ]
        assert await wholesale.sales() == {}
        await wholesale.stock("W10", price="9.10", currency="USD")
        terminal.json("supplier", "offer", "eu", "gift-any", "--face", "25 EUR", "--sku", "NONE")
        wrong = terminal.run("supplier", "test", "eu")
        assert_refused(wrong, "2 things failed at eu; nothing was bought")
        assert "no exchange rate for USD" in wrong.out
        assert "it does not sell NONE" in wrong.out
    gone = terminal.run("supplier", "test", "eu", "--json")
    assert gone.code == 1
    assert [one["result"] for one in json.loads(gone.out)["findings"]] == ["ok", "failed", "failed"]

    sealer = Sealer(load_or_create_master(terminal.data / "master.key"))
    async with pool.acquire() as conn:
        row = await supplier(conn, "eu")
    assert row.spec(sealer).secret == wholesale.key
    said = added.out + wrong.out + wrong.err + gone.out + gone.err + str(terminal.json("supplier", "list"))
    assert wholesale.key not in said


async def test_a_supplier_that_cant_be_asked_needs_its_risk_declared(
    terminal: Terminal, pool: Pool, tmp_path: Path
) -> None:
    """Without `look_up` a lost answer is settled by hand, or bought again at the operator's word."""
    described = tmp_path / "blind.toml"
    described.write_text(BLIND)
    words = ["supplier", "add", "blind", "--kind", "http", "--file", str(described), "--key", "-"]
    assert_refused(terminal.run(*words, stdin="k1"), "has no look_up", "--on-unknown wait")
    assert await pool.fetchval("SELECT count(*) FROM supplier") == 0
    added = terminal.json(*words, "--on-unknown", "rebuy", stdin="k1\n")
    assert (added["looksUp"], added["onUnknown"]) == (False, "rebuy")
    assert_refused(terminal.run("supplier", "set", "blind", "--config", "bulk_max=0"), "bulk_max: must be")


def test_a_key_is_asked_for_without_being_shown(terminal: Terminal) -> None:
    """The command line: nothing prints a secret; a key is typed unseen, or comes from a file or stdin."""
    terminal.json("company", "list")
    assert_refused(terminal.run("supplier", "add", "other", *VOUCHERD), "it needs a key: give --key-file")
    ours, theirs = pty.openpty()
    words = [*PROGRAM, "supplier", "add", "other", *VOUCHERD]
    process = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=terminal.env)
    seen = b""
    while b"not shown" not in seen:
        seen += os.read(ours, 4096)
    # Echo goes off just after the question.
    wait_until(lambda: not termios.tcgetattr(ours)[3] & termios.ECHO)
    os.write(ours, b"vk_live_typed\n")
    assert process.wait(HANG_S) == 0
    os.close(theirs)
    with suppress(OSError):  # Linux ends a terminal whose other side is closed with an error.
        while piece := os.read(ours, 4096):
            seen += piece
    os.close(ours)
    assert b"vk_live_typed" not in seen
    assert b"stored, sealed" in seen


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["supplier", "add", "Two Words", "--kind", "sandbox"], "name: must be lower-case"),
        (["supplier", "add", "x", "--kind", "sandbox", "--state", "live"], "for sandbox orders only"),
        (["supplier", "add", "x", "--kind", "sandbox", "--url", "https://a.example"], "has no address"),
        (["supplier", "add", "x", "--kind", "sandbox", "--key", "-"], "this supplier takes none"),
        (["supplier", "add", "x", "--kind", "http"], "needs a description"),
        (["supplier", "add", "x", *VOUCHERD, "--key", "vk_live_1"], "--key takes - alone"),
        (["supplier", "add", "x", "--kind", "sandbox", "--price-slack", "1"], "is not a part such as 1%"),
        (["supplier", "add", "x", "--kind", "sandbox", "--config", "slow"], "is not KEY=VALUE"),
    ],
)
def test_a_supplier_that_is_described_wrongly_exits_2(words: list[str], complaint: str) -> None:
    """The command line: exits 2 on wrong usage, before anything is touched."""
    done = CliRunner().invoke(program("supplier"), words, prog_name="voucherd")
    assert_wrong_usage(Said(done.exit_code, done.stdout, done.stderr), complaint)
    assert "vk_live_1" not in done.output


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (59, "59s"), (61, "1m 1s"), (7200, "2h"), (90000, "1d 1h")]
)
def test_a_length_of_time_is_short(seconds: int, text: str) -> None:
    """The command line: ages are for people."""
    assert span(timedelta(seconds=seconds)) == text
