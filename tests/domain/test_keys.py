"""API keys: their form, what they may do, and where from (OP-29)."""

from __future__ import annotations

import hashlib
import math
import re
from datetime import datetime, timedelta
from ipaddress import ip_network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.docs.pages import ROOT
from tests.handmade import NOW
from voucherd.companies.model import Company
from voucherd.ids import State
from voucherd.keys.callers import Caller, Forbidden
from voucherd.keys.key_text import (
    _ALPHABET,
    CHECK_CHARACTERS,
    RANDOM_CHARACTERS,
    SCOPES_DEFAULT,
    KeyDraft,
    Scope,
    bearer_key,
    new_key,
    permits,
    plain_terms,
    read_networks,
    read_scopes,
    told,
    well_formed,
)
from voucherd.keys.model import STANDINGS, IssuedKey, Key, KeyNotFound, KeyNotUsable
from voucherd.limits.rate_limits import RateWindow

MICROSECOND = timedelta(microseconds=1)
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
        ({"rate_limit": 1_000_001}, "between 1 and 1000000"),
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
        ("::ffff:192.0.2.0/120", "192.0.2.200", True),
        ("::ffff:192.0.2.0/120", "192.0.3.9", False),
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


@pytest.mark.parametrize(
    "draft",
    [
        {"description": "x" * 200},
        {"allow_ips": read_networks(["10.0.0.1"]) * 100},
        {"rate_limit": 1},
        {"rate_limit": 1_000_000},
        {"expires_at": NOW},
    ],
)
def test_a_draft_may_go_to_the_edge_of_every_rule(draft: dict[str, object]) -> None:
    """OP-27, OP-29: the bounds themselves are allowed."""
    made = KeyDraft(**draft)  # type: ignore[arg-type]
    assert {name: getattr(made, name) for name in draft} == draft


def test_a_key_has_600_requests_a_minute_and_the_length_of_its_form() -> None:
    """OP-27, OP-29: 600 unless somebody says otherwise; 32 random characters and a checksum of 6."""
    assert KeyDraft().rate_limit == 600
    head, body = "vk_live_", "0" * 32
    assert [
        well_formed(head + body[cut:] + check) for cut, check in ((0, "4XSnlA"), (0, ""), (1, "4XSnlA"))
    ] == [
        True,
        False,
        False,
    ]


def stored(**changes: Any) -> Key:
    """A key as it is stored."""
    fields: dict[str, Any] = {
        "id": 1,
        "company_id": 1,
        "state": State.LIVE,
        "prefix": "vk_live_abcdef",
        "description": "till 4",
        "scopes": frozenset({Scope.ORDERS_READ}),
        "allow_ips": read_networks(["192.0.2.0/24"]),
        "rate_limit": 5,
        "expires_at": None,
        "revoked_at": None,
        "replaced_by": None,
        "created_at": NOW,
        "last_used_at": None,
        "spend_order_eur_minor": 100,
        "spend_day_eur_minor": 200,
    }
    return Key(**(fields | changes))


@pytest.mark.parametrize(
    ("changes", "standing"),
    [
        ({}, "valid"),
        ({"expires_at": NOW + MICROSECOND}, "valid"),
        ({"expires_at": NOW}, "expired"),
        ({"replaced_by": 2}, "replaced"),
        ({"replaced_by": 2, "expires_at": NOW}, "expired"),
        ({"revoked_at": NOW, "expires_at": NOW, "replaced_by": 2}, "revoked"),
    ],
)
def test_a_key_is_valid_until_it_expires_is_revoked_or_replaced(
    changes: dict[str, Any], standing: str
) -> None:
    """OP-29: the end itself is outside; what can't be used at all is said before what was replaced."""
    assert stored(**changes).standing(NOW) == standing
    assert standing in STANDINGS


def test_a_key_that_replaces_another_may_do_the_same() -> None:
    """OP-29: rotation changes the key and nothing else."""
    expected = KeyDraft(
        "till 4", frozenset({Scope.ORDERS_READ}), read_networks(["192.0.2.0/24"]), 5, None, 100, 200
    )
    assert stored().draft == expected


@pytest.mark.parametrize("refusal", [KeyNotFound(7), KeyNotUsable(7)])
def test_a_refusal_names_the_key_that_it_is_about(refusal: KeyNotFound | KeyNotUsable) -> None:
    """OP-29: by its number, which gives nothing away."""
    assert refusal.key_id == 7
    assert "key 7" in str(refusal)


def test_a_new_key_is_shown_without_its_text_and_its_hash() -> None:
    """OP-29: it is shown once, and neither gets into a log by the way."""
    key = new_key(State.LIVE)
    assert repr(key) == f"NewKey(prefix={key.prefix!r})"
    assert repr(IssuedKey(7, key.prefix, key.text)) == f"IssuedKey(id=7, prefix={key.prefix!r})"


def test_a_key_may_be_used_from_anywhere_or_from_its_networks_alone() -> None:
    """OP-29: an empty list of networks has all addresses."""
    bound = KeyDraft(allow_ips=read_networks(["192.0.2.0/24"]))
    assert (KeyDraft().anywhere, bound.anywhere) == (True, False)
    assert KeyDraft().permits("198.51.100.1") is bound.permits("192.0.2.9") is True
    assert bound.permits("198.51.100.1") is False


def test_the_terms_of_a_key_are_told_plainly() -> None:
    """OP-29: to columns in the order of the fields, to the trail by their names."""
    networks = read_networks(["192.0.2.0/24"])
    scopes = frozenset({Scope.ORDERS_WRITE, Scope.CODES_READ})
    in_order = sorted(scopes)
    assert plain_terms(KeyDraft("till", scopes, networks, 5)) == [
        "till",
        in_order,
        networks,
        5,
        None,
        None,
        None,
        False,
    ]
    assert told({"scopes": scopes, "allow_ips": networks, "rate_limit": 5}) == {
        "scopes": in_order,
        "allow_ips": ["192.0.2.0/24"],
        "rate_limit": 5,
    }


def test_the_threat_model_says_how_many_random_bits_a_key_has() -> None:
    """OP-29: the number in the page is worked out from the key itself."""
    bits = math.floor(RANDOM_CHARACTERS * math.log2(len(_ALPHABET)))
    page = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
    assert re.findall(r"(\d+)(?: random bits|-bit keys)", page) == [str(bits)]
    key = new_key(State.LIVE).text
    assert len(key) == len("vk_live_") + RANDOM_CHARACTERS + CHECK_CHARACTERS
