"""Lines that wait, tried without a database: purchases come back bought, failed, in part or late, in any order."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.domain.books import WINDOWS
from tests.domain.trade import Trade
from tests.handmade import NOW, lot, order, product, unit
from voucherd.ids import State
from voucherd.money import RATE_ONE
from voucherd.orders.model import Order
from voucherd.orders.rules.decide import Cancel, Finalise
from voucherd.orders.rules.sandbox import SandboxOutcome
from voucherd.orders.rules.states import Payment, Status
from voucherd.purchasing.attempts import AttemptPhase
from voucherd.suppliers.offers import Offer, cheapest_first
from voucherd.wallet.ledger import Wallet

COMPANIES, PRODUCTS, SUPPLIERS = (1, 2, 3), (1, 2), (7, 8)


def offer(supplier_id: int, stock: int, price_minor: int = 900) -> Offer:
    """What a supplier asks."""
    return Offer(supplier_id, supplier_id * 2, "sku", stock, price_minor, "EUR", RATE_ONE)


def trade(*orders: Order, stock: int = 0, offered: int = 100) -> Trade:
    """Company 1 with 100 EUR, and supplier 7 that has so many of product 1."""
    made = Trade(wallets={1: Wallet(1, 10_000, 0, 0)}, in_queues=True)
    made.offers[1, 1_000, 0] = [offer(7, offered)]
    made.orders = {one.id: one for one in orders}
    if stock:
        made.lots[2] = lot(2, 1, stock)
    return made


def finalise(made: Trade, order_id: int, *, resolve: bool) -> Order:
    """Confirm or Resolve an order that can be."""
    (answer,) = made.finalise(Finalise(order_id, 1, State.LIVE, resolve)).answers
    assert isinstance(answer, Order)
    return answer


# ── by example ──────────────────────────────────────────────────────────────────────────────────────────


def test_codes_go_to_the_lines_that_they_were_bought_for_in_order() -> None:
    """OP-44: two orders in one purchase; the first that asked gets the first codes, the rest waits on."""
    made = trade(order(2, (product(), unit(), 3)), order(4, (product(), unit(), 2)))
    finalise(made, 2, resolve=False)
    finalise(made, 4, resolve=False)
    made.claim(7, room=1, bulk_max=100)
    (trial,) = made.trials.values()

    made.receive(trial, 4, settled=False)
    assert [made.orders[number].lines_finished for number in (2, 4)] == [3, 1]
    made.check()
    phases = [trial.phase]
    made.receive(trial, 3, settled=False)
    phases.append(trial.phase)

    assert [made.orders[number].status for number in (2, 4)] == [Status.FINISHED] * 2
    assert phases == [AttemptPhase.ASKING, AttemptPhase.BOUGHT]
    assert [made.lots[number].left for number in trial.lots] == [0, 2]
    made.check()


@pytest.mark.parametrize("resolve", [True, False])
def test_a_code_that_comes_at_the_deadline_lies_on_the_shelf(resolve: bool) -> None:
    """OP-46: not a microsecond after the limit; the lines end with the sweep, the code stays ours."""
    made = trade(order(2, (product(), unit(), 1)))
    pending = finalise(made, 2, resolve=resolve)
    made.claim(7, room=1, bulk_max=100)
    (trial,) = made.trials.values()
    assert pending.deadline_at == NOW + (WINDOWS.resolve if resolve else WINDOWS.delivery)

    made.now = pending.deadline_at
    made.receive(trial, 1, settled=False)
    statuses = [made.orders[2].status]
    made.end_waiting()
    statuses.append(made.orders[2].status)

    assert statuses == [Status.PENDING, Status.CANCELLED]
    assert made.wallets[1].balance_minor == 10_000
    assert [made.lots[number].left for number in trial.lots] == [1]
    made.check()


def test_a_resolve_in_parts_is_paid_with_the_last_of_them_and_never_before() -> None:
    """OP-46, OP-47: all of its lines at once."""
    made = trade(order(2, (product(), unit(), 5)))
    finalise(made, 2, resolve=True)
    made.claim(7, room=8, bulk_max=2)
    first, second, third = made.trials.values()

    made.receive(second, 2, settled=False)
    made.receive(third, 1, settled=False)
    made.deliver_waiting()
    assert (made.orders[2].lines_finished, made.orders[2].held_minor) == (0, 4_750)
    made.check()
    made.receive(first, 2, settled=False)

    assert (made.orders[2].status, made.orders[2].payment_status) == (Status.FINISHED, Payment.PAID)
    assert made.wallets[1].balance_minor == 5_250
    made.check()


@pytest.mark.parametrize("resolve", [True, False])
@pytest.mark.parametrize("comes", ["all", "one", "none"])
def test_what_a_supplier_still_sends_for_a_cancelled_order_lies_on_the_shelf(
    resolve: bool, comes: str
) -> None:
    """OP-45: the money is back at once; codes that come afterwards are ours, and sell to the next buyer."""
    made = trade(order(2, (product(), unit(), 3)), order(4, (product(), unit(), 1)))
    made.offers[1, 1_000, 0].append(offer(8, 100, 950))
    finalise(made, 2, resolve=resolve)
    made.claim(7, room=1, bulk_max=3)

    (answer,) = made.cancel(Cancel(2, 1, State.LIVE)).answers
    assert isinstance(answer, Order)
    assert (answer.status, answer.lines_cancelled, made.waits) == (Status.CANCELLED, 3, {})
    assert made.wallets[1] == Wallet(1, 10_000, 0, made.wallets[1].seq)
    made.check()
    (trial,) = made.trials.values()
    count = {"all": 3, "one": 1, "none": 0}[comes]
    made.receive(trial, count, settled=True) if count else made.fail(trial)

    assert (made.orders[2], made.waits) == (answer, {}), "nothing is delivered or bought for it any more"
    assert sum(made.lots[number].left for number in trial.lots) == count
    made.check()
    if count:
        assert finalise(made, 4, resolve=False).status is Status.FINISHED
        made.check()


# ── whatever may come ───────────────────────────────────────────────────────────────────────────────────

items = st.tuples(st.sampled_from(PRODUCTS), st.integers(0, 900), st.integers(0, 90), st.integers(1, 7))
orders = st.tuples(
    st.sampled_from(COMPANIES), st.one_of(st.tuples(items), st.lists(items, min_size=2, max_size=3))
)
numbers = st.integers(0, 11)
answers = st.one_of(
    st.tuples(st.just("bought"), st.tuples(numbers, st.integers(-3, 2), st.booleans())),
    st.tuples(st.just("bought"), st.tuples(numbers, st.just(0), st.booleans())),
    st.tuples(st.just("failed"), numbers),
    st.tuples(st.just("unknown"), st.tuples(numbers, st.booleans())),
)
claims = st.tuples(
    st.just("claim"), st.tuples(st.sampled_from(SUPPLIERS), st.integers(1, 4), st.sampled_from([1, 2, 50]))
)
calls = st.tuples(st.sampled_from(["confirm", "resolve", "cancel", "cancel", "limit"]), numbers)
others = st.one_of(
    st.tuples(st.just("route"), st.none()),
    st.tuples(st.just("unserved"), st.sampled_from(PRODUCTS)),
    st.tuples(st.just("deliver"), st.none()),
    st.tuples(st.just("stock"), st.tuples(st.sampled_from(PRODUCTS), st.integers(1, 9))),
    st.tuples(
        st.just("offer"), st.tuples(st.sampled_from(PRODUCTS), st.sampled_from(SUPPLIERS), st.integers(0, 20))
    ),
    st.tuples(st.just("pass"), st.sampled_from([1, 1, 31, 259_201])),
)
# One of each in every round, in this order, so that most lives come to purchases and to what becomes of them.
rounds = st.tuples(calls, claims, st.one_of(calls, answers), answers, st.one_of(others, answers))


def play(made: Trade, word: str, what: Any) -> None:
    """One step of a life."""
    if word in {"confirm", "resolve", "cancel", "limit"}:
        one = made.orders[sorted(made.orders)[what % len(made.orders)]]
        if word in {"confirm", "resolve"}:
            made.finalise(
                Finalise(one.id, one.company_id, one.state, word == "resolve", SandboxOutcome.FINISHED)
            )
        elif word == "cancel" or one.resolving:
            made.cancel(Cancel(one.id, one.company_id, one.state))
    elif word == "claim":
        supplier_id, room, bulk_max = what
        made.claim(supplier_id, room=room, bulk_max=bulk_max)
    elif word in {"bought", "failed", "unknown"}:
        _answer(made, word, what)
    elif word == "offer":
        product_id, supplier_id, stock = what
        shelf = (product_id, 1_000, 0)
        others = [one for one in made.offers.get(shelf, []) if one.supplier_id != supplier_id]
        made.offers[shelf] = cheapest_first([*others, *([offer(supplier_id, stock)] if stock else [])])
    elif word == "unserved":
        made.end_unserved((what, 1_000, 0))
    elif word == "stock":
        number = (len(made.lots) + 1) * 2
        made.lots[number] = lot(number, *what)
    elif word == "pass":
        made.now += timedelta(seconds=what)
        made.end_waiting()
    else:
        made.route() if word == "route" else made.deliver_waiting()


def _answer(made: Trade, word: str, what: Any) -> None:
    """A supplier answers one of the purchases, whichever it is and whatever was said before."""
    if not made.trials:
        return
    at = what if isinstance(what, int) else what[0]
    trial = list(made.trials.values())[at % len(made.trials)]
    if word == "failed":
        made.fail(trial)
    elif word == "unknown":
        made.give_up(trial, rebuy=what[1])
    else:
        made.receive(trial, max(0, trial.count - trial.codes + what[1]), settled=what[2])


@settings(max_examples=250, deadline=None)
@given(
    st.lists(orders, min_size=1, max_size=5),
    st.lists(st.sampled_from([100_000, 2_000]), min_size=3, max_size=3),
    st.lists(st.booleans(), min_size=5, max_size=5),
    st.lists(rounds, min_size=1, max_size=8),
)
def test_the_books_balance_whatever_suppliers_do(
    wanted: list[Any], balances: list[int], resolves: list[bool], life: list[Any]
) -> None:
    """Invariants 1 to 4: one purchase a line, no code lost or sold twice, money conserved, after every step."""
    made = Trade(in_queues=True)
    made.wallets = {c: Wallet(c, b, 0, 0) for c, b in zip(COMPANIES, balances, strict=True)}
    for product_id in PRODUCTS:
        made.offers[product_id, 1_000, 0] = [offer(7, 6), offer(8, 9, 950)]
    for at, (company_id, cart) in enumerate(wanted, 1):
        items = [(product(p, async_delivery=p != 1), unit(price, vat), n) for p, price, vat, n in cart]
        made.orders[at * 2] = replace(order(at * 2, *items), company_id=company_id)
    begun = [("resolve" if resolves[at] else "confirm", at) for at in range(len(wanted))]
    for word, what in (*begun, *(step for round_ in life for step in round_)):
        play(made, word, what)
        made.check()
    # Whatever happened, it ends: with every purchase told and every window over nothing waits.
    for trial in list(made.trials.values()):
        made.fail(trial)
        made.check()
    made.now += WINDOWS.delivery
    made.end_waiting()
    made.check()
    assert made.waits == {}
    assert all(one.status is not Status.PENDING for one in made.orders.values())
