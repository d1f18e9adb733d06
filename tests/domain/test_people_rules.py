"""One-time passwords, recovery codes and allowances: the rules, without a database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voucherd.limits import allowances
from voucherd.limits.allowances import DEVICE, HERE, NETWORK, Devices, Tally
from voucherd.networks import UNKNOWN, network_of
from voucherd.people import second_factors, totp
from voucherd.people.passkeys import site_of

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
RFC_SECRET = b"12345678901234567890"


@pytest.mark.parametrize(
    ("at_s", "wanted"),
    [
        (59, "94287082"),
        (1111111109, "07081804"),
        (1111111111, "14050471"),
        (1234567890, "89005924"),
        (2000000000, "69279037"),
        (20000000000, "65353130"),
    ],
)
def test_codes_are_those_of_the_standard(at_s: int, wanted: str) -> None:
    """OP-92: RFC 6238, appendix B; six digits are the last six of its eight."""
    assert totp.code(RFC_SECRET, at_s // totp.STEP_S) == wanted[-6:]


def test_a_code_is_good_one_step_around_now_and_no_further() -> None:
    """OP-92: a telephone's clock may be off by half a minute, not by more."""
    now_s = 1_700_000_010
    step = now_s // totp.STEP_S
    found = {
        off: totp.matching_step(RFC_SECRET, totp.code(RFC_SECRET, step + off), now_s) for off in range(-3, 4)
    }
    assert found == {-3: None, -2: None, -1: step - 1, 0: step, 1: step + 1, 2: None, 3: None}
    spaced = totp.code(RFC_SECRET, step)
    assert totp.matching_step(RFC_SECRET, f" {spaced[:3]} {spaced[3:]} ", now_s) == step


@given(st.text(max_size=12))
def test_anything_that_is_no_code_is_none(text: str) -> None:
    """OP-92: bad input is refused and breaks nothing."""
    digits = "".join(text.split())
    now_s = 1_700_000_010
    near = {totp.code(RFC_SECRET, now_s // totp.STEP_S + off) for off in (-1, 0, 1)}
    assert (totp.matching_step(RFC_SECRET, text, now_s) is None) == (digits not in near)
    assert second_factors.code_hash(1, text) is None


def test_recovery_codes_are_hard_to_guess_and_easy_to_type() -> None:
    """OP-92: ten codes, 79 bits each; capitals and missing hyphens don't matter, whose they are does."""
    codes = second_factors.new_codes()
    assert len(set(codes)) == second_factors.CODES == 10
    code = codes[0]
    typed = f" {code.upper().replace('-', ' ')} "
    assert (
        second_factors.code_hash(1, typed)
        == second_factors.code_hash(1, code)
        != second_factors.code_hash(2, code)
    )


def test_pauses_grow_and_end() -> None:
    """OP-92: the first tries are free, then each pause is twice the one before, up to a quarter of an hour."""
    pauses = [allowances.pause_s(HERE, failures) for failures in range(20)]
    assert pauses[:10] == [0, 0, 0, 0, 0, 2, 4, 8, 16, 32]
    assert pauses[-1] == allowances.pause_s(HERE, 10_000) == 900
    assert allowances.pause_s(NETWORK, 29) == 0


def test_who_guesses_for_a_day_gets_few_tries() -> None:
    """OP-92: whoever tries whenever it is allowed gets some hundred tries a day at one account from one place."""
    tally, now, tries = Tally(0, NOW, NOW), NOW, 0
    while now < NOW + timedelta(days=1):
        now = max(now, tally.until)
        assert allowances.wait_s(tally, now) == 0
        tally = allowances.one_more(tally, HERE, now)
        tries += 1
    assert tries < 120
    rested = allowances.one_more(tally, HERE, tally.until + timedelta(hours=2))
    assert rested.failures == 1


def test_places_are_addresses_and_households() -> None:
    """OP-92: one IPv4 address is a place, and so is what one household has in IPv6, however it is written."""
    assert network_of("198.51.100.7") == network_of("::ffff:198.51.100.7") == "198.51.100.7"
    assert network_of("2001:db8:1:2::9") == network_of("2001:db8:1:ff::1")
    assert network_of("2001:db8:1:100::9") != network_of("2001:db8:1:2::9")
    assert network_of("nonsense") == UNKNOWN
    keys = {
        allowances.key_of(HERE, "a", "b"),
        allowances.key_of(DEVICE, "a", "b"),
        allowances.key_of(HERE, "ab"),
    }
    assert len(keys) == 3


@given(st.text(max_size=90))
def test_a_device_is_known_by_its_own_cookie_only(cookie: str) -> None:
    """OP-92: nobody makes such a cookie up, and it is good for the account that it was made for."""
    devices = Devices(b"k" * 32)
    made = devices.issue("ann@acme.example")
    assert devices.known(made, "ann@acme.example") == made.partition(".")[0]
    assert devices.known(made, "bob@acme.example") is None
    assert Devices(b"l" * 32).known(made, "ann@acme.example") is None
    assert devices.known(cookie, "ann@acme.example") is None
    assert devices.known(None, "ann@acme.example") is None


def test_passkeys_need_a_name_and_tls_or_this_machine() -> None:
    """OP-92: browsers make none for a bare IP address, nor without TLS."""
    site = site_of("https://shop.example.com:8443")
    assert site is not None
    assert (site.host, site.origin) == ("shop.example.com", "https://shop.example.com:8443")
    assert site_of("http://localhost:8080") is not None
    assert (
        site_of("http://127.0.0.1:8080")
        is site_of("https://[::1]")
        is site_of("http://shop.example.com")
        is None
    )
