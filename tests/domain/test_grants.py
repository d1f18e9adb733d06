"""What a key may hand on is never more than it has itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from voucherd.keys.grants import (
    KEYS_MAX,
    OWNER,
    RIGHT_FOR,
    BeyondOwn,
    bounded,
    changed_draft,
    new_draft,
    reach_of,
    require_within,
)
from voucherd.keys.key_text import KeyDraft, KeyWish, Scope, read_networks
from voucherd.people.roles import COMPANY, COMPANY_RIGHTS

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
FREE = KeyDraft(scopes=frozenset(Scope), rate_limit=1_000_000, confirms_alone=True)
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
    ({"confirms_alone": True}, "confirmsAlone"),
]


@pytest.mark.parametrize(("more", "field"), BEYOND)
def test_nothing_beyond_its_own_is_handed_on_in_any_way(more: KeyWish, field: str) -> None:
    """OP-29: neither to a new key, nor to another by a change, nor by rotating one that has it."""
    for attempt in (
        lambda: new_draft(OWN, more),
        lambda: changed_draft(OWN, OWN, more),
        lambda: require_within(OWN, replace(OWN, **more)),
    ):
        with pytest.raises(BeyondOwn) as refused:
            attempt()
        assert refused.value.field == field
        assert str(refused.value) == f"{field}: {refused.value.rule}"
    plain: dict[str, Any] = {
        "scopes": FREE.scopes - {Scope.KEYS_WRITE},
        "rate_limit": 600,
        "confirms_alone": False,
    }
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
    """OP-29: what is not named stays, with a caller that reaches as far and with the operator."""
    weak = replace(OWN, description="weak", rate_limit=7)
    for own in (OWN, None):
        assert changed_draft(own, weak, KeyWish(description="till")) == replace(weak, description="till")
        lower = changed_draft(own, weak, KeyWish(rate_limit=5, expires_at=END))
        assert (lower.rate_limit, lower.expires_at, lower.scopes) == (5, END, weak.scopes)


@pytest.mark.parametrize(("more", "field"), BEYOND)
@pytest.mark.parametrize("wish", [KeyWish(description="till"), KeyWish(rate_limit=5), KeyWish()])
def test_a_key_that_reaches_further_is_not_touched_at_all(more: KeyWish, field: str, wish: KeyWish) -> None:
    """OP-100: the target of a change lies within the caller, even where the change itself is a small one."""
    with pytest.raises(BeyondOwn) as refused:
        changed_draft(OWN, replace(OWN, **more), wish)
    assert refused.value.field == field


def test_every_scope_needs_a_right_of_a_company_and_an_owner_has_them_all() -> None:
    """OP-99: the one map from scopes to rights has a row for every scope, so a new one can't be forgotten."""
    assert RIGHT_FOR.keys() == set(Scope)
    assert set(RIGHT_FOR.values()) <= COMPANY_RIGHTS
    assert reach_of(OWNER).scopes == set(Scope)
    assert reach_of("").scopes == reach_of("no such role").scopes == frozenset()


@pytest.mark.parametrize("role", COMPANY)
def test_a_key_reaches_no_further_than_the_role_of_the_person_who_answers_for_it(role: str) -> None:
    """OP-99: for every role, every scope whose right it lacks is lost, and no other; only owners confirm alone."""
    left = bounded(FREE, role)
    assert left.scopes == {scope for scope, right in RIGHT_FOR.items() if right in COMPANY[role]}
    assert left.confirms_alone == (role == OWNER)
    assert bounded(FREE, None) == FREE


def test_a_key_with_nothing_to_hand_on_but_keys_has_to_name_the_scopes() -> None:
    """OP-29: a key that makes keys and does nothing else is refused in words, not with an error of ours."""
    with pytest.raises(BeyondOwn, match="scopes: must be sent"):
        new_draft(KeyDraft(scopes=frozenset({Scope.KEYS_WRITE})), KeyWish())


def test_a_developer_has_neither_codes_nor_orders_to_hand_on() -> None:
    """OP-99: the role that makes keys and may neither see codes nor place orders."""
    developer = reach_of("developer")
    assert Scope.KEYS_WRITE in developer.scopes
    for scope in (Scope.CODES_READ, Scope.ORDERS_WRITE):
        with pytest.raises(BeyondOwn):
            new_draft(developer, KeyWish(scopes=frozenset({scope})))
    assert new_draft(developer, KeyWish()).scopes == developer.scopes - {Scope.KEYS_WRITE}
