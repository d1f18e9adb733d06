"""What a key may hand on is never more than it has itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from voucherd.keys.grants import KEYS_MAX, BeyondOwn, changed_draft, new_draft, require_within
from voucherd.keys.key_text import KeyDraft, KeyWish, Scope, read_networks

END = datetime(2027, 1, 1, tzinfo=UTC)
OWN = KeyDraft(
    "the office",
    frozenset({Scope.KEYS_WRITE, Scope.ORDERS_READ, Scope.ORDERS_WRITE}),
    read_networks(["192.0.2.0/24", "2001:db8::/32"]),
    900,
    END,
    50_000,
    200_000,
)
FREE = KeyDraft(scopes=frozenset(Scope), rate_limit=1_000_000)
BEYOND: list[tuple[dict[str, Any], str]] = [
    ({"scopes": frozenset({Scope.ORDERS_READ, Scope.CODES_READ})}, "scopes"),
    ({"allow_ips": ()}, "allowIps"),
    ({"allow_ips": read_networks(["192.0.2.0/23"])}, "allowIps"),
    ({"allow_ips": read_networks(["192.0.2.7", "198.51.100.1"])}, "allowIps"),
    ({"allow_ips": read_networks(["::/0"])}, "allowIps"),
    ({"rate_limit": 901}, "rateLimit"),
    ({"expires_at": None}, "dateExpires"),
    ({"expires_at": END + timedelta(microseconds=1)}, "dateExpires"),
    ({"spend_order_eur_minor": None}, "spendOrderEur"),
    ({"spend_order_eur_minor": 50_001}, "spendOrderEur"),
    ({"spend_day_eur_minor": None}, "spendDayEur"),
    ({"spend_day_eur_minor": 200_001}, "spendDayEur"),
]


@pytest.mark.parametrize(("more", "field"), BEYOND)
def test_nothing_beyond_its_own_is_handed_on_in_any_way(more: KeyWish, field: str) -> None:
    """OP-29: neither to a new key, nor to another by a change, nor by rotating one that has it."""
    for attempt in (
        lambda: new_draft(OWN, more),
        lambda: changed_draft(OWN, KeyDraft(), more),
        lambda: require_within(OWN, replace(OWN, **more)),
    ):
        with pytest.raises(BeyondOwn) as refused:
            attempt()
        assert refused.value.field == field
        assert str(refused.value) == f"{field}: {refused.value.rule}"
    plain: dict[str, Any] = {"scopes": FREE.scopes - {Scope.KEYS_WRITE}, "rate_limit": 600}
    assert new_draft(FREE, more) == replace(replace(FREE, **plain), **more)


def test_what_is_not_said_is_as_with_the_key_that_says_it() -> None:
    """OP-29: but for the description, and the scope to make keys, which is given only when it is asked for."""
    plain = new_draft(OWN, KeyWish())
    assert plain == replace(OWN, description="", scopes=OWN.scopes - {Scope.KEYS_WRITE}, rate_limit=600)
    asked = KeyWish(
        scopes=frozenset({Scope.KEYS_WRITE}), rate_limit=900, allow_ips=read_networks(["192.0.2.9"])
    )
    assert new_draft(OWN, asked).scopes == {Scope.KEYS_WRITE}
    mapped = KeyWish(allow_ips=read_networks(["::ffff:192.0.2.0/121"]))
    assert [str(one) for one in new_draft(OWN, mapped).allow_ips] == ["192.0.2.0/25"]


def test_a_company_has_at_most_a_hundred_keys_in_each_state() -> None:
    """OP-29: the number that the contract names."""
    assert KEYS_MAX == 100


def test_an_operator_makes_any_key() -> None:
    """OP-29: only a key is bound by what it has itself."""
    assert new_draft(None, KeyWish(rate_limit=901)) == KeyDraft(rate_limit=901)


def test_a_change_leaves_alone_what_it_does_not_name() -> None:
    """OP-29: a key that may do more than the caller keeps that, and gets nothing more."""
    strong = replace(FREE, description="strong")
    assert changed_draft(OWN, strong, KeyWish(description="till")) == replace(FREE, description="till")
    lower = changed_draft(OWN, strong, KeyWish(rate_limit=5, expires_at=END))
    assert (lower.rate_limit, lower.expires_at, lower.scopes) == (5, END, strong.scopes)
