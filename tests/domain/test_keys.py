"""API keys: their form, what they may do, and where from (OP-29)."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voucherd.companies.model import Company
from voucherd.ids import State
from voucherd.keys.callers import Caller, Forbidden
from voucherd.keys.key_text import (
    SCOPES_DEFAULT,
    KeyDraft,
    Scope,
    bearer_key,
    new_key,
    permits,
    read_networks,
    read_scopes,
    well_formed,
)
from voucherd.limits.rate_limits import RateWindow

COMPANY = Company(1, "Acme", "NL", None, active=True, verified=True, expose_costs=True)


def caller() -> Caller:
    """A caller with a key as keys are."""
    return Caller(
        key_id=1,
        company_id=1,
        state=State.LIVE,
        scopes=SCOPES_DEFAULT,
        company=COMPANY,
        rate_limit=600,
        window=RateWindow(1),
    )


@pytest.mark.parametrize(("state", "head"), [(State.LIVE, "vk_live_"), (State.SANDBOX, "vk_test_")])
def test_a_key_says_its_state_and_hides_the_rest(state: State, head: str) -> None:
    """OP-29: `vk_live_…` and `vk_test_…`; stored as a hash, listed by a prefix that does not give it away."""
    key = new_key(state)

    assert re.fullmatch(head + "[0-9A-Za-z]{38}", key.text)
    assert well_formed(key.text)
    assert key.hash == hashlib.sha256(key.text.encode()).digest()
    assert key.text.startswith(key.prefix)
    assert len(key.prefix) == len(head) + 6
    assert key.text not in repr(key)


def test_keys_never_repeat() -> None:
    """More than 160 random bits each."""
    assert len({new_key(State.LIVE).text for _ in range(1000)}) == 1000


@given(st.data())
def test_a_typo_is_refused_without_a_look_up(data: st.DataObject) -> None:
    """OP-29: the checksum catches every single wrong character and every swap of two neighbours."""
    text = new_key(State.LIVE).text
    at = data.draw(st.integers(0, len(text) - 2))
    other = data.draw(st.characters(codec="ascii").filter(lambda character: character != text[at]))

    assert not well_formed(text[:at] + other + text[at + 1 :])
    if text[at] != text[at + 1]:
        assert not well_formed(text[:at] + text[at + 1] + text[at] + text[at + 2 :])


@pytest.mark.parametrize("text", ["", "vk_live_", "vk_live_" + "0" * 38, "sk_live_" + "a" * 38, "é" * 46])
def test_a_made_up_key_is_refused_without_a_look_up(text: str) -> None:
    """Nobody can make the database work by sending noise."""
    assert not well_formed(text)


def test_a_test_key_does_not_pass_as_a_live_one() -> None:
    """The head is part of the checksum."""
    assert not well_formed(new_key(State.SANDBOX).text.replace("test", "live"))


def test_the_header_is_bearer_in_any_case_and_one_key() -> None:
    """RFC 9110: a scheme's case does not count; the rest must be exactly a key."""
    text = new_key(State.LIVE).text
    key = text.encode()

    assert bearer_key(b"Bearer " + key) == bearer_key(b"bEARER " + key) == text
    for wrong in (
        key,
        b"Basic " + key,
        b"Bearer",
        b"Bearer ",
        b"Bearer  " + key,
        b"Bearer " + key + b" ",
        b"Bearer \xff",
    ):
        assert bearer_key(wrong) is None


def test_a_key_may_do_everything_but_make_keys_unless_told_otherwise() -> None:
    """A leaked key must not be able to outlive its revocation."""
    assert frozenset(Scope) - SCOPES_DEFAULT == {Scope.KEYS_WRITE}
    assert KeyDraft().scopes == SCOPES_DEFAULT


def test_a_scope_that_a_key_lacks_is_forbidden() -> None:
    """OP-24: a scope the key lacks: 403."""
    someone = caller()

    someone.require(Scope.ORDERS_WRITE)
    with pytest.raises(Forbidden):
        someone.require(Scope.KEYS_WRITE)


def test_unknown_scopes_are_refused_by_name() -> None:
    """The operator sees which one, and which there are."""
    assert read_scopes(["orders:read", "wallet:read"]) == {Scope.ORDERS_READ, Scope.WALLET_READ}
    with pytest.raises(ValueError, match=r"'orders:eat' is not a valid Scope; the scopes are orders:read, "):
        read_scopes(["orders:eat"])


@pytest.mark.parametrize(
    ("draft", "rule"),
    [
        ({"description": "x" * 201}, "at most 200 characters"),
        ({"scopes": frozenset()}, "at least one scope"),
        ({"allow_ips": read_networks(["10.0.0.1"]) * 101}, "at most 100 allowed networks"),
        ({"rate_limit": 0}, "between 1 and 1000000"),
        ({"expires_at": datetime(2026, 1, 1)}, "needs a time zone"),  # noqa: DTZ001 - That is the point.
    ],
)
def test_a_draft_refuses_what_the_database_would_refuse(draft: dict[str, object], rule: str) -> None:
    """One clear line instead of a database's error."""
    with pytest.raises(ValueError, match=rule):
        KeyDraft(**draft)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("listed", "client", "allowed"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("192.0.2.0/24", "192.0.2.255", True),
        ("192.0.2.0/24", "192.0.3.0", False),
        ("192.0.2.0/24", "::ffff:192.0.2.9", True),
        ("::ffff:192.0.2.0/120", "192.0.2.9", True),
        ("2001:db8::/32", "2001:db8:1::1", True),
        ("2001:db8::/32", "2001:db9::1", False),
        ("2001:db8::/32", "192.0.2.1", False),
        ("0.0.0.0/0", "2001:db8::1", False),
        ("::/0", "2001:db8::1", True),
        ("fe80::/10", "fe80::1%eth0", True),
        ("192.0.2.0/24", "", False),
        ("192.0.2.0/24", "unix:", False),
    ],
)
def test_an_address_is_on_the_list_or_not(listed: str, client: str, allowed: bool) -> None:
    """OP-29: IPv4 and IPv6, CIDR; an IPv4 client is one however the socket shows it."""
    assert permits(read_networks([listed]), client) is allowed


def test_any_network_of_a_list_will_do() -> None:
    """OP-29: a list."""
    networks = read_networks(["192.0.2.0/24", "2001:db8::/32"])

    assert networks == (ip_network("192.0.2.0/24"), ip_network("2001:db8::/32"))
    assert permits(networks, "192.0.2.1")
    assert permits(networks, "2001:db8::1")
