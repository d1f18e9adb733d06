"""Products and stock on the command line. Codes go in; none comes out."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.terminal import COMMAND_S_MAX, PROGRAM, Said, Terminal, assert_refused, assert_wrong_usage
from tests.patience import until
from voucherd.db import Pool

COMMON = [
    "--brand",
    "Gifty",
    "--type",
    "giftcard",
    "--category",
    "gifts",
    "--redeem-type",
    "currency",
    "--region",
    "ww",
]
FIXED = [
    "product",
    "add",
    "gift-50",
    "--name",
    "Gift 50",
    *COMMON,
    "--face-value",
    "50 EUR",
    "--price",
    "48.10 EUR",
]
RANGE = [
    "product",
    "add",
    "any",
    "--name",
    "Any",
    *COMMON,
    "--face-value-range",
    "5-500 EUR",
    "--fee",
    "1.02+0.10",
]
BOUGHT = ["--supplier", "wholesale", "--purchase-price", "46.90 EUR"]


async def test_a_product_is_added_changed_and_listed(terminal: Terminal, pool: Pool) -> None:
    """The command line: `product add`, `product set`, `product list`; OP-54: `product.updated` tells of each."""
    added = terminal.json(*FIXED)
    assert (added["slug"], added["faceValue"], added["price"], added["priceCurrency"]) == (
        "gift-50",
        50,
        48.10,
        "EUR",
    )
    assert (added["vatCategory"], added["asyncDelivery"], added["active"]) == ("multi_purpose", False, True)
    assert "5.00–500.00 EUR" in terminal.view(*RANGE, "--async-delivery", "--vat-category", "exempt")

    changed = terminal.json("product", "set", "gift-50", "--price", "47 EUR", "--inactive")
    assert (changed["price"], changed["active"]) == (47, False)
    terminal.json("product", "set", "gift-50", "--price", "47 EUR")  # Nothing new, nothing told.

    listed = {product["slug"]: product for product in terminal.json("product", "list")}
    assert listed["any"]["feeVariable"] == 1.02
    assert (listed["any"]["faceValueMin"], listed["any"]["faceValueMax"]) == (5, 500)
    assert [product["slug"] for product in terminal.json("product", "list", "--active")] == ["any"]
    assert "×1.02 + 0.10" in terminal.view("product", "list")
    told = await pool.fetch("SELECT data::text FROM event WHERE type = 'product.updated' ORDER BY id")
    assert [json.loads(row["data"]) for row in told] == [
        {"slug": "gift-50", "active": True},
        {"slug": "any", "active": True},
        {"slug": "gift-50", "active": False},
    ]


def test_a_product_has_texts_for_people_and_loses_them_again(terminal: Terminal) -> None:
    """The command line: `--redeem-instructions`, `--terms`, `--image-url`; what is not named stays as it is."""
    texts = [
        "--redeem-instructions",
        "Scratch.\nType.",
        "--terms",
        "No refunds.",
        "--image-url",
        "https://a.b/c",
    ]
    added = terminal.json(*FIXED, *texts)
    assert (added["redeemInstructions"], added["terms"], added["imageUrl"]) == (
        "Scratch.\nType.",
        "No refunds.",
        "https://a.b/c",
    )
    changed = terminal.json("product", "set", "gift-50", "--terms", "", "--name", "Gift")
    assert (changed["redeemInstructions"], changed["terms"]) == ("Scratch.\nType.", None)
    assert "Scratch. Type." in terminal.view("product", "set", "gift-50", "--price", "47 EUR")
    for option, value, words in (
        ("--image-url", "http://a.b/c", "image-url: must be an address that starts with https://"),
        ("--image-url", "https://", "image-url: must be an address"),
        ("--terms", "x" * 20_001, "terms: must be at most 20000 characters"),
        ("--redeem-instructions", "bell \x07", "redeem-instructions: must have no control characters"),
    ):
        assert_refused(terminal.run("product", "set", "gift-50", option, value), words)


def test_a_product_that_can_not_be_is_refused(terminal: Terminal) -> None:
    """The command line: exits 1 when refused, 2 on wrong usage."""
    terminal.json(*FIXED)
    assert_refused(terminal.run(*FIXED), "there is a product gift-50 already")
    assert_refused(terminal.run("product", "set", "gone", "--active"), "there is no product")
    assert_refused(
        terminal.run("product", "set", "gift-50", "--face-value-range", "5-50 EUR"), "must be a fee"
    )
    assert_wrong_usage(terminal.run("product", "set", "gift-50"), "nothing to change")
    assert_wrong_usage(terminal.run(*FIXED, "--fee", "1.02"), "a price or a fee, not both")
    assert_wrong_usage(terminal.run(*FIXED[:-1], "cheap"), "must be an amount and a currency")


async def test_stock_comes_from_a_file_or_from_stdin(terminal: Terminal, pool: Pool, tmp_path: Path) -> None:
    """The command line: `stock import` says how many were taken and how many were there already."""
    terminal.json(*FIXED)
    file = tmp_path / "codes.csv"
    file.write_text("code,serial,expires\nAAAA-1111,S1,2099-12-31\nBBBB-2222,S2,\n")

    first = terminal.json("stock", "import", "gift-50", str(file), *BOUGHT)
    assert (first["taken"], first["alreadyThere"], first["badCount"], len(first["lots"])) == (2, 0, 0, 2)
    again = terminal.run("stock", "import", "gift-50", "-", *BOUGHT, stdin="BBBB-2222\nCCCC-3333\n")
    assert again.code == 0
    assert "1 codes at" in again.out
    assert await pool.fetchval("SELECT count(*) FROM code") == 3

    lots = terminal.json("stock", "list")
    assert [(lot["left"], lot["valueLeft"], lot["expiresAt"]) for lot in lots][-1] == (
        1,
        46.90,
        "2099-12-31T23:59:59Z",
    )
    assert "46.90 EUR" in terminal.view("stock", "list", "gift-50")
    everything = first | {"again": again.out + again.err, "lots": str(lots)}
    for secret in ("AAAA-1111", "BBBB-2222", "CCCC-3333"):
        assert secret not in str(everything)


async def test_a_file_with_bad_lines_is_taken_whole_or_not_at_all(terminal: Terminal, pool: Pool) -> None:
    """The command line: which lines were bad; all or nothing unless `--skip-bad`."""
    terminal.json(*FIXED)
    lines = "AAAA-1111,S1,2099-12-31\nBBBB-2222,S2,2001-01-01\n,S3\n"

    refused = terminal.run("stock", "import", "gift-50", "-", *BOUGHT, stdin=lines)
    assert_refused(refused, "2 lines are bad; nothing was taken")
    assert "expires: already past" in refused.out
    told = terminal.run("stock", "import", "gift-50", "-", *BOUGHT, "--json", stdin=lines)
    assert told.code == 1
    assert json.loads(told.out) == {
        "taken": 0,
        "alreadyThere": 0,
        "badCount": 2,
        "bad": [{"line": 2, "reason": "expires: already past"}, {"line": 3, "reason": "code: missing"}],
    }
    assert await pool.fetchval("SELECT count(*) FROM code") == 0

    taken = terminal.json("stock", "import", "gift-50", "-", *BOUGHT, "--skip-bad", stdin=lines)
    assert (taken["taken"], taken["badCount"]) == (1, 2)


def test_a_variable_product_needs_the_face_value_of_its_codes(terminal: Terminal) -> None:
    """OP-51: the codes of a variable product have a face value each."""
    terminal.json(*RANGE)
    words = ["stock", "import", "any", "-", *BOUGHT]

    assert_refused(terminal.run(*words, stdin="A1\n"), "give --face-value")
    assert_refused(
        terminal.run(*words, "--face-value", "501 EUR", stdin="A1\n"), "has no face value of 501.00 EUR"
    )
    terminal.json(*words, "--face-value", "25 EUR", stdin="A1\n")
    assert terminal.json("stock", "list", "any")[0]["faceValue"] == 25


def test_stock_that_can_not_be_placed_is_refused(terminal: Terminal) -> None:
    """The command line: exits 1 when refused, with one clear line on stderr."""
    terminal.json(*FIXED)
    assert_refused(terminal.run("stock", "import", "gone", "-", *BOUGHT, stdin="A1\n"), "there is no product")
    dollars = ["--supplier", "s", "--purchase-price", "46 USD"]
    assert_refused(
        terminal.run("stock", "import", "gift-50", "-", *dollars, stdin="A1\n"), "no exchange rate for USD"
    )
    assert_refused(terminal.run("stock", "list", "gone"), "there is no product")


def test_a_lost_master_key_is_not_replaced(terminal: Terminal) -> None:
    """The vault: a new key beside codes that another one sealed would only hide that the right one is lost."""
    terminal.json(*FIXED)
    terminal.json("stock", "import", "gift-50", "-", *BOUGHT, stdin="A1\n")
    key = terminal.data / "master.key"
    assert key.stat().st_mode & 0o777 == 0o600
    key.unlink()

    assert_refused(
        terminal.run("stock", "import", "gift-50", "-", *BOUGHT, stdin="A2\n"), "there is no master key"
    )
    assert not key.exists()


def test_long_work_shows_a_bar_on_a_terminal_only(terminal: Terminal, tmp_path: Path) -> None:
    """The command line: long work shows a progress bar on a terminal; with `--json` stdout stays one document."""
    terminal.json(*FIXED)
    file = tmp_path / "codes.csv"
    file.write_text("".join(f"CODE-{number:06d}\n" for number in range(20_000)))
    screen, stderr = pty.openpty()
    words = ["stock", "import", "gift-50", str(file), *BOUGHT, "--json"]
    with os.fdopen(screen, "rb", buffering=0) as seen:
        done = subprocess.run(
            [*PROGRAM, *words],
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=terminal.env,
            timeout=COMMAND_S_MAX,
            check=True,
        )
        os.close(stderr)
        drawn = b""
        try:
            while piece := seen.read(65536):
                drawn += piece
        except OSError:
            pass  # Linux ends a terminal whose other side is closed with an error.

    assert json.loads(done.stdout)["taken"] == 20_000
    assert b"codes, " in drawn
    assert b"CODE-" not in drawn


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_an_import_that_is_interrupted_takes_nothing(
    terminal: Terminal, pool: Pool, number: signal.Signals
) -> None:
    """The command line: all or nothing; Ctrl-C in the middle of a file is nothing."""
    terminal.json(*FIXED)
    words = ["stock", "import", "gift-50", "-", *BOUGHT]
    with terminal.start(*words) as importing:
        assert importing.stdin is not None
        importing.stdin.write("".join(f"CODE-{line:06d}\n" for line in range(15_000)).encode())
        importing.stdin.flush()
        await until(
            lambda: pool.fetchval(
                """
                SELECT EXISTS (SELECT FROM pg_locks w JOIN pg_locks mine USING (pid)
                               WHERE w.locktype = 'advisory' AND mine.relation = 'code'::regclass)
                """
            )
        )
        importing.send_signal(number)
        assert importing.wait(COMMAND_S_MAX) == 128 + number
        assert importing.stderr is not None
        assert importing.stderr.read() == b""
    assert await pool.fetchval("SELECT count(*) FROM code") == 0


async def test_a_command_whose_session_is_ended_says_so_and_stores_nothing(
    terminal: Terminal, pool: Pool
) -> None:
    """The command line: one clear line, whoever ends the session: the server, when the command stood still, say."""
    terminal.json(*FIXED)
    with terminal.start("stock", "import", "gift-50", "-", *BOUGHT) as importing:
        assert importing.stdin is not None
        importing.stdin.write("".join(f"CODE-{line:06d}\n" for line in range(15_000)).encode())
        importing.stdin.flush()
        ended = """
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity JOIN pg_locks USING (pid)
            WHERE state = 'idle in transaction' AND relation = 'code'::regclass LIMIT 1
            """
        await until(lambda: pool.fetchval(ended))
        _, said = importing.communicate(timeout=COMMAND_S_MAX)
    refused = Said(importing.returncode, "", said.decode())
    assert_refused(refused, "the connection to the database was lost, so look what was done")
    assert await pool.fetchval("SELECT count(*) FROM code") == 0


def test_a_brand_gets_a_logo_and_loses_it(terminal: Terminal, tmp_path: Path) -> None:
    """The command line: `brand set-logo SLUG FILE`; what is no small picture is one clear line."""
    terminal.json(*FIXED)
    picture, drawing = tmp_path / "logo.png", tmp_path / "logo.svg"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR" + (9).to_bytes(4) * 2 + bytes(5))
    drawing.write_text("<svg/>")
    (brand,) = terminal.json("brand", "list")
    assert brand["logo"] is None
    assert_refused(terminal.run("brand", "set-logo", brand["slug"], str(drawing)), "PNG, JPEG or WebP")
    assert_refused(terminal.run("brand", "set-logo", "nobody", str(picture)), "there is no brand 'nobody'")
    assert terminal.json("brand", "set-logo", brand["slug"], str(picture))["logo"].endswith(".png")
    assert "yes" in terminal.view("brand", "list")
    assert "has no logo any more" in terminal.view("brand", "remove-logo", brand["slug"])
    assert terminal.json("brand", "list")[0]["logo"] is None
