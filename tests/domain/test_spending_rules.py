"""Limits of spending and a second person's yes, decided without a database (OP-61, OP-93)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.domain.books import World
from tests.handmade import DAY, NOW, lot, order, product, unit
from voucherd.approvals.model import Approval, ApprovalKind, ApprovalStatus, Consent
from voucherd.ids import State
from voucherd.limits.spending import SpendLimit, limits_of
from voucherd.orders.model import Order
from voucherd.orders.rules import decide
from voucherd.orders.rules.decide import Finalise
from voucherd.orders.rules.refusals import (
    ApprovalNeeded,
    ApprovalRefused,
    InsufficientBalance,
    Refusal,
    SpendLimitExceeded,
)
from voucherd.orders.rules.ruling import Facts, Ruling
from voucherd.wallet.ledger import Wallet

USD: dict[str, Any] = {"payment_currency": "USD", "payment_fx_e8": 90_000_001}
"""10.00 USD are 9.0000001 EUR: a hair more than 900 cents."""


def facts(*orders: Order, **changes: Any) -> Facts:
    """Company 1 with a lot of money and stock, and these orders; live ones of it and sandbox ones."""
    made = World(wallets={1: Wallet(1, 1_000_000, 0, 0)}, lots={2: lot(2, 1, 100), 3: lot(3, 1, 100)})
    made.orders = {one.id: one for one in orders}
    loaded = made.facts(list(made.orders))
    for name, value in changes.items():
        setattr(loaded, name, value)
    return loaded


def confirm(order_id: int, **options: Any) -> Finalise:
    """A Confirm of an order of company 1."""
    return Finalise(order_id, 1, State(order_id & 1), False, **options)


def answered(loaded: Facts, *commands: Finalise) -> Ruling:
    """The ruling on these commands."""
    return decide.finalise(loaded, commands)


def types(ruling: Ruling) -> list[type[Order | Refusal]]:
    """What kind of answer each command got."""
    return [type(answer) for answer in ruling.answers]


@pytest.mark.parametrize(("order_max", "answer"), [(900, SpendLimitExceeded), (901, Order)])
def test_an_order_counts_against_limits_with_its_euros_rounded_up(
    order_max: int, answer: type[object]
) -> None:
    """OP-61: a fraction of a cent above the limit is above the limit."""
    loaded = facts(order(2, (product(), unit(1_000), 1), **USD))

    ruling = answered(loaded, confirm(2, limits=(SpendLimit(7, order_max, None),)))

    assert types(ruling) == [answer]
    assert ruling.spent == {}, "only limits of a day are counted"


@pytest.mark.parametrize(("approve_from", "answer"), [(901, ApprovalNeeded), (902, Order), (None, Order)])
def test_an_order_needs_a_second_person_from_the_amount_on_with_its_euros_rounded_up(
    approve_from: int | None, answer: type[object]
) -> None:
    """OP-93: from an amount on, so the amount itself needs one, and so does a fraction of a cent below it."""
    loaded = facts(order(2, (product(), unit(1_000), 1), **USD))

    assert types(answered(loaded, confirm(2, approve_from_eur_minor=approve_from))) == [answer]


@pytest.mark.parametrize(("order_max", "answer"), [(949, SpendLimitExceeded), (950, Order)])
def test_an_order_may_cost_just_its_limit(order_max: int, answer: type[object]) -> None:
    """OP-61: VAT included, and whole cents are not rounded at all."""
    loaded = facts(order(2, (product(), unit(800, 150), 1)))

    assert types(answered(loaded, confirm(2, limits=(SpendLimit(0, order_max, None),)))) == [answer]


def test_a_day_is_spent_to_its_limit_and_no_further_for_each_key_and_state() -> None:
    """OP-61: what the company's key, the company as a whole and the sandbox spend is counted apart."""
    own, whole = SpendLimit(7, None, 1_900), SpendLimit(0, None, 3_000)
    orders = [order(number, (product(), unit(), 1)) for number in (2, 4, 6, 8, 3)]
    loaded = facts(*orders, spent={(1, 0, 0): 149})

    ruling = answered(
        loaded,
        confirm(2, limits=(own, whole)),
        confirm(4, limits=(own, whole)),
        confirm(6, limits=(own, whole)),
        confirm(8, limits=(whole,)),
        confirm(3, limits=(own,)),
    )

    assert types(ruling) == [Order, Order, SpendLimitExceeded, Order, Order]
    assert ruling.spent == {(1, 7, 0): 1_900, (1, 0, 0): 149 + 2_850, (1, 7, 1): 950}
    (refused,) = answered(loaded, confirm(6, limits=(whole,))).answers
    assert isinstance(refused, SpendLimitExceeded)


@pytest.mark.parametrize(("day_max", "answer"), [(949, SpendLimitExceeded), (950, Order)])
def test_a_day_begins_with_nothing_spent(day_max: int, answer: type[object]) -> None:
    """OP-61: the first order of a day may cost just the day's limit."""
    loaded = facts(order(2, (product(), unit(), 1)))
    assert types(answered(loaded, confirm(2, limits=(SpendLimit(0, None, day_max),)))) == [answer]


def test_whoever_has_no_wallet_can_not_pay_a_cent() -> None:
    """Contract 7: insufficient balance; only what is free needs no wallet."""
    loaded = facts(order(2, (product(), unit(1), 1)), wallet_of_order={})
    assert types(answered(loaded, confirm(2))) == [InsufficientBalance]


def test_a_limit_refuses_only_what_could_be_paid() -> None:
    """OP-23, OP-61, OP-93: the balance comes first, then limits, and nobody is asked to allow what is refused."""
    loaded = facts(order(2, (product(), unit(), 1)))
    command = confirm(2, limits=(SpendLimit(0, 1, None),), approve_from_eur_minor=1)

    assert types(answered(loaded, command)) == [SpendLimitExceeded]
    loaded.wallets[1] = Wallet(1, 0, 0, 0)
    assert types(answered(loaded, command)) == [InsufficientBalance]


def test_a_limit_that_limits_nothing_is_none() -> None:
    """OP-61: a company, or one of its keys, may have a limit for an order, for a day, for both, or none."""
    rows = (0, None, None), (7, 5, None), (8, None, 0)
    assert limits_of(*rows) == (SpendLimit(7, 5, None), SpendLimit(8, None, 0))


def approval(**changes: Any) -> Approval:
    """An open request of person 11 for order 2."""
    fields: dict[str, Any] = {
        "id": 5,
        "kind": ApprovalKind.ORDER,
        "company_id": 1,
        "state": State.LIVE,
        "order_id": 2,
        "amount_minor": 950,
        "currency": "EUR",
        "reference": None,
        "note": "",
        "requested_by": 11,
        "requested_at": NOW,
        "ends_at": NOW + DAY,
        "status": ApprovalStatus.OPEN,
        "decided_at": None,
        "over": False,
        "company": "Acme",
        "requester": "asker@acme.example",
        "requester_name": "",
        "decider": None,
        "decider_name": None,
    }
    return Approval(**(fields | changes))


def test_a_yes_carries_out_the_order_that_was_asked_for() -> None:
    """OP-93: to agree confirms the order, whatever the amount from which a second person is needed."""
    loaded = facts(order(2, (product(), unit(), 1)), approvals={5: approval()}, second_persons={(12, 11)})

    (answer,) = answered(loaded, confirm(2, consent=Consent(5, 12), approve_from_eur_minor=1)).answers

    assert isinstance(answer, Order)
    assert answer.charged_minor == 950


@pytest.mark.parametrize(
    ("found", "number", "by"),
    [
        (approval(), 5, 11),
        (approval(order_id=4), 5, 12),
        (approval(status=ApprovalStatus.REJECTED), 5, 12),
        (approval(over=True), 5, 12),
        (approval(), 6, 12),
        (approval(), 5, 13),
    ],
    ids=["one's own", "another order's", "decided", "over", "none", "no second person"],
)
def test_nobody_agrees_to_his_own_request_to_another_order_or_to_what_is_not_open(
    found: Approval, number: int, by: int
) -> None:
    """OP-93: both are people, never the same one, and a yes is for one order."""
    orders = [order(at, (product(), unit(), 1)) for at in (2, 4)]
    loaded = facts(*orders, approvals={5: found}, second_persons={(11, 11), (12, 11)})

    ruling = answered(loaded, confirm(2, consent=Consent(number, by)))

    assert types(ruling) == [ApprovalRefused]
    assert (ruling.orders, ruling.entries, ruling.events) == ({}, [], [])


def test_what_was_allowed_in_a_batch_is_allowed_once() -> None:
    """OP-93: the second yes of a batch finds the order confirmed."""
    loaded = facts(
        order(2, (product(), unit(), 1)), approvals={5: approval()}, second_persons={(12, 11), (13, 11)}
    )
    twice = [confirm(2, consent=Consent(5, by)) for by in (12, 13)]

    first, second = answered(loaded, *twice).answers

    assert isinstance(first, Order)
    assert isinstance(second, Refusal)
    assert loaded.orders[2] == replace(first)
