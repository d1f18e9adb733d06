"""Money on the command line: top-ups, balances, statements, exchange rates."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal, assert_refused, assert_wrong_usage
from voucherd.db import Pool

TOP_UP = ["wallet", "top-up", "Acme", "100.50", "eur", "--state", "live", "--reference", "bank-1"]


@pytest.fixture
def acme(terminal: Terminal) -> Terminal:
    """A terminal whose database knows one company."""
    terminal.json("company", "add", "Acme", "--country", "NL")
    return terminal


async def test_a_repeated_reference_tops_up_once(acme: Terminal, pool: Pool) -> None:
    """The command line: a repeated reference tops up once."""
    first, second = acme.json(*TOP_UP), acme.json(*TOP_UP)

    assert (first["toppedUp"], first["balance"], first["currency"]) == (True, 100.50, "EUR")
    assert (second["toppedUp"], second["balance"]) == (False, 100.50)
    events = await pool.fetch(
        "SELECT company_id, state, data::text FROM event WHERE type = 'wallet.topped_up' AND state = 0"
    )
    assert len(events) == 1
    assert '"amount": 100.50' in events[0]["data"], "a number with all its digits (OP-07)"
    assert "booked before" in acme.view(*TOP_UP)


def test_a_reference_that_comes_back_with_another_amount_is_refused(acme: Terminal) -> None:
    """The command line: exits 1 when refused, and nothing changed."""
    acme.json(*TOP_UP)
    other = ["wallet", "top-up", "Acme", "7", "EUR", "--state", "live", "--reference", "bank-1"]
    assert_refused(acme.run(*other), "was used before, for 100.50 EUR")
    assert acme.json("wallet", "show", "Acme")[0]["balance"] == 100.50


def test_live_and_sandbox_money_are_two_wallets(acme: Terminal) -> None:
    """Invariant 5: sandbox and live never share a wallet."""
    acme.json(*TOP_UP)
    acme.json(*["wallet", "top-up", "Acme", "9000", "JPY", "--state", "sandbox", "--reference", "play"])

    live, first, sandbox = acme.json("wallet", "show", "Acme")
    assert (first["state"], first["currency"], first["balance"]) == ("sandbox", "EUR", 10_000), "OP-144"
    assert (live["state"], live["currency"], live["available"]) == ("live", "EUR", 100.50)
    assert (sandbox["state"], sandbox["currency"], sandbox["balance"]) == ("sandbox", "JPY", 9000)
    shown = acme.view("wallet", "show", "Acme")
    assert "100.50" in shown
    assert " 9000 " in shown


def test_amounts_are_numbers_with_their_currencys_digits(acme: Terminal) -> None:
    """OP-07: JSON numbers, with the ISO 4217 number of digits."""
    said = acme.run(
        *["wallet", "top-up", "Acme", "3", "KWD", "--state", "live", "--reference", "k", "--json"]
    )
    assert json.loads(said.out, parse_float=Decimal)["balance"] == Decimal("3.000")
    assert '"balance":3.000' in said.out


def test_a_statement_lists_the_newest_first(acme: Terminal) -> None:
    """The command line: `wallet statement COMPANY CURRENCY`."""
    for number in (1, 2, 3):
        acme.json(*f"wallet top-up Acme {number} EUR --state live --reference r{number}".split())

    lines = acme.json("wallet", "statement", "Acme", "EUR", "--limit", "2")

    assert [(line["number"], line["kind"], line["amount"], line["balance"]) for line in lines] == [
        (3, "top-up", 3, 6),
        (2, "top-up", 2, 3),
    ]
    assert [
        line["reference"] for line in acme.json("wallet", "statement", "Acme", "EUR", "--before", "2")
    ] == ["r1"]
    assert "top-up" in acme.view("wallet", "statement", "Acme", "EUR")
    assert_refused(acme.run("wallet", "statement", "Acme", "USD"), "has no live wallet in USD")


def test_rates_come_from_the_ecb_or_by_hand(terminal: Terminal, tmp_path: Path) -> None:
    """The command line: `fx import FILE` (the ECB's daily XML or CSV), `fx set USD 0.92`, `fx list`."""
    daily = tmp_path / "eurofxref.csv"
    daily.write_text("Date, USD, JPY, \n02 January 2024, 1.0956, 155.66, \n")

    assert terminal.json("fx", "import", str(daily)) == {
        "rates": 2,
        "days": 1,
        "from": "2024-01-02",
        "to": "2024-01-02",
    }
    assert terminal.json("fx", "set", "gbp", "1.17")["eur"] == 1.17
    rates = {rate["currency"]: (rate["eur"], rate["source"]) for rate in terminal.json("fx", "list")}
    assert rates == {"GBP": (1.17, "manual"), "JPY": (0.00642426, "ecb"), "USD": (0.91274188, "ecb")}
    assert "0.91274188" in terminal.view("fx", "list")


def test_rates_that_can_not_be_believed_are_refused(terminal: Terminal) -> None:
    """The command line: exits 1 when refused, with one clear line on stderr."""
    assert_refused(terminal.run("fx", "import", "-", stdin="hello\n"), "not a file of the ECB")
    assert_refused(terminal.run("fx", "set", "EUR", "1"), "is the base")
    assert_wrong_usage(terminal.run("fx", "set", "EURO", "1"), "not a currency code")
    assert terminal.json("fx", "list") == []


def test_limits_and_alerts_are_set_shown_and_taken_away(acme: Terminal) -> None:
    """OP-61, OP-54: limits are amounts in EUR; what is not given has none."""
    limited = acme.json("company", "limit", "Acme", "--order", "500 EUR", "--day", "2000 EUR")
    assert (limited["spendOrderEur"], limited["spendDayEur"]) == (500, 2000)
    assert "500.00 EUR an order, 2000.00 EUR a day" in acme.view(
        "company", "limit", "Acme", "--order", "500 EUR", "--day", "2000 EUR"
    )
    assert acme.json("company", "limit", "Acme")["spendDayEur"] is None
    key = acme.json("key", "add", "Acme", "--state", "live", "--spend-day", "10 EUR")
    assert acme.json("key", "limit", str(key["id"]), "--order", "5 EUR") == {
        "id": key["id"],
        "spendOrderEur": 5,
        "spendDayEur": None,
    }
    assert_wrong_usage(acme.run("company", "limit", "Acme", "--order", "5 USD"), "must be an amount in EUR")
    assert_refused(acme.run("key", "limit", "99"), "there is no key 99")

    acme.json(*TOP_UP)
    assert acme.json("wallet", "alert", "Acme", "EUR", "--below", "20")["below"] == 20
    assert "no alert any more" in acme.view("wallet", "alert", "Acme", "EUR", "--off")
    assert_refused(acme.run("wallet", "alert", "Acme", "EUR", "--off"), "has no alert")
    assert_wrong_usage(acme.run("wallet", "alert", "Acme", "EUR"), "give either --below or --off")


def test_margins_are_set_listed_and_removed(terminal: Terminal) -> None:
    """OP-71: in steps of 0.01%, for a pair of currencies, one direction at a time."""
    assert terminal.json("fx", "margin", "list") == []
    set_ = terminal.json("fx", "margin", "set", "eur", "usd", "1.5%")
    assert set_ == {"from": "EUR", "to": "USD", "marginPercent": 1.5}
    terminal.json("fx", "margin", "set", "EUR", "USD", "2 %")
    terminal.json("fx", "margin", "set", "USD", "EUR", "0.25%")
    assert [(m["from"], m["marginPercent"]) for m in terminal.json("fx", "margin", "list")] == [
        ("EUR", 2),
        ("USD", 0.25),
    ]
    assert "0.25%" in terminal.view("fx", "margin", "list")
    for share in ("2", "0%", "50.01%", "1.005%", "-1%"):
        assert_wrong_usage(terminal.run("fx", "margin", "set", "EUR", "USD", "--", share), "share: must be")
    assert_wrong_usage(terminal.run("fx", "margin", "set", "EUR", "EUR", "1%"), "against itself")
    terminal.json("fx", "margin", "remove", "EUR", "USD")
    assert_refused(terminal.run("fx", "margin", "remove", "EUR", "USD"), "no margin from EUR to USD")


def test_the_history_of_a_currency_is_kept(terminal: Terminal, tmp_path: Path) -> None:
    """OP-50: `fx list --history USD`, newest first; the list itself has the rate in force."""
    hist = tmp_path / "eurofxref-hist.csv"
    hist.write_text("Date,USD,JPY,\n2024-01-03,1.0919,N/A,\n2024-01-02,1.0956,155.66,\n")
    assert terminal.json("fx", "import", str(hist))["days"] == 2
    days = [rate["day"] for rate in terminal.json("fx", "list", "--history", "usd")]
    assert days == ["2024-01-03", "2024-01-02"]
    assert [rate["day"] for rate in terminal.json("fx", "list")] == ["2024-01-02", "2024-01-03"]
    assert "never had a rate" in terminal.view("fx", "list", "--history", "GBP")


def test_rates_come_from_an_address(terminal: Terminal) -> None:
    """OP-71: a wrong address is wrong usage; one that does not answer is refused, and nothing changed."""
    assert_wrong_usage(terminal.run("fx", "import"), "give a file, or --url, or the setting fx_url")
    assert_wrong_usage(terminal.run("fx", "import", "--url", "http://bank.example/"), "https://")
    assert_wrong_usage(terminal.run("fx", "import", "-", "--url", "https://bank.example/"), "not both")
    assert_refused(terminal.run("fx", "import", "--url", "http://127.0.0.1:1/rates.xml"), "no answer")
    assert_refused(terminal.run("fx", "import", VOUCHERD_FX_URL="http://127.0.0.1:1/rates.xml"), "no answer")
    assert terminal.json("fx", "list") == []
