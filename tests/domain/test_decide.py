"""The decisions about orders, tried without a database: by example, and with whatever may come."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.domain.books import WINDOWS, World
from tests.handmade import DAY, NOW, lot, order, product, unit
from voucherd.ids import State
from voucherd.orders.model import Order, Outcome
from voucherd.orders.rules.decide import Cancel, Finalise
from voucherd.orders.rules.refusals import (
    CompanyNotActive,
    CompanyNotVerified,
    InsufficientBalance,
    OffersNotAvailable,
    OrderExpired,
    OrderNotFound,
    OutOfStock,
    Refusal,
    SeveralItems,
    WrongStatus,
)
from voucherd.orders.rules.ruling import CompanyStanding, Ruling
from voucherd.orders.rules.sandbox import SandboxOutcome
from voucherd.orders.rules.states import Payment, Status
from voucherd.wallet.ledger import Wallet

MICROSECOND = timedelta(microseconds=1)


def world(*orders: Order, balance_minor: int = 10_000, stock: int = 100) -> World:
    """Company 1 with that balance, and one lot of that size of product 1."""
    made = World(wallets={1: Wallet(1, balance_minor, 0, 0)})
    if stock:
        made.lots[2] = lot(2, 1, stock)
    made.orders = {one.id: one for one in orders}
    return made


def confirm(order_id: int | None, company_id: int = 1, **options: Any) -> Finalise:
    """A Confirm of a live order."""
    return Finalise(order_id, company_id, options.pop("state", State.LIVE), False, **options)


def resolve(order_id: int | None, company_id: int = 1, **options: Any) -> Finalise:
    """A Resolve of a live order."""
    return Finalise(order_id, company_id, State.LIVE, True, **options)


def nothing_happened(ruling: Ruling) -> bool:
    """Whether a ruling has only answers."""
    return not any(
        (ruling.orders, ruling.entries, ruling.cursors, ruling.outcomes, ruling.waits, ruling.events)
    )


# ── by example ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("late", "refused"), [(-MICROSECOND, False), (timedelta(0), False), (MICROSECOND, True)]
)
@pytest.mark.parametrize("command", [confirm(2), resolve(2)])
def test_an_order_expires_after_its_window_and_not_at_its_end(
    command: Finalise, late: timedelta, refused: bool
) -> None:
    """Contract 8: orders need confirmation within 24 hours; the last microsecond still counts."""
    made = world(order(2, (product(), unit(), 1)))
    made.now = NOW + DAY + late

    (answer,) = made.finalise(command).answers

    assert isinstance(answer, OrderExpired if refused else Order)
    made.check()


# Each breaks one condition more than the one before, in OP-23's order backwards; the newest refusal wins.
BREAKS: list[tuple[type[Refusal], Any]] = [
    (InsufficientBalance, lambda w: w.wallets.update({1: Wallet(1, 0, 0, 0)})),
    (OutOfStock, lambda w: w.lots.clear()),
    (OffersNotAvailable, lambda w: w.withdrawn.add(1)),
    (SeveralItems, lambda w: None),
    (OrderExpired, lambda w: setattr(w, "now", NOW + 2 * DAY)),
    (WrongStatus, lambda w: w.orders.update({2: replace(w.orders[2], status=Status.FINISHED)})),
    (CompanyNotVerified, lambda w: w.standing.update({1: CompanyStanding(True, False)})),
    (CompanyNotActive, lambda w: w.standing.update({1: CompanyStanding(False, False)})),
    (OrderNotFound, lambda w: w.orders.clear()),
]


@pytest.mark.parametrize("as_resolve", [True, False])
def test_the_first_refusal_of_the_list_wins_however_many_apply(as_resolve: bool) -> None:
    """OP-23: trx, company, status, expiry, item count (Resolve), offers, stock, balance."""
    made = world(order(2, (product(), unit(), 1)))
    command = resolve(2) if as_resolve else confirm(2)
    for expected, break_it in BREAKS:
        if expected is SeveralItems:
            two = order(2, (product(), unit(), 1), (product(2), unit(), 1))
            made.orders[2] = two
            if not as_resolve:
                continue
        break_it(made)
        ruling = made.finalise(command)
        assert type(ruling.answers[0]) is expected
        assert nothing_happened(ruling)


def test_an_order_of_another_company_or_state_or_none_is_not_found() -> None:
    """OP-02, OP-49: a trx means nothing to anyone else."""
    made = world(order(2, (product(), unit(), 1)), order(4, (product(), unit(), 1), status=Status.DELETED))

    strangers = made.finalise(confirm(2, 7), confirm(2, state=State.SANDBOX), confirm(None), confirm(4))

    assert [type(answer) for answer in strangers.answers] == [OrderNotFound] * 4
    cancels = made.cancel(Cancel(2, 7, State.LIVE), Cancel(4, 1, State.LIVE), Cancel(None, 1, State.LIVE))
    assert [type(answer) for answer in cancels.answers] == [OrderNotFound] * 3
    assert nothing_happened(strangers)
    assert nothing_happened(cancels)


def test_a_large_order_that_cannot_be_paid_takes_nothing_from_the_small_one_behind_it() -> None:
    """OP-48: commands of one batch are decided one after another, and a refusal leaves no trace."""
    large, small = order(2, (product(), unit(), 90)), order(4, (product(), unit(), 2))
    made = world(large, small, balance_minor=2_000, stock=91)

    refused, granted = made.finalise(confirm(2), confirm(4)).answers

    assert isinstance(refused, InsufficientBalance)
    assert isinstance(granted, Order)
    assert granted.outcomes == (Outcome(0, 2, 2, 0),)
    made.check()


def test_the_second_call_of_a_batch_sees_what_the_first_one_did() -> None:
    """Contract 4: only an order with status created can be confirmed, in the same batch too."""
    made = world(order(2, (product(), unit(), 1)))

    first, second, third = made.finalise(confirm(2), resolve(2), confirm(2)).answers

    assert isinstance(first, Order)
    assert isinstance(second, WrongStatus)
    assert isinstance(third, WrongStatus)
    assert made.wallets[1].balance_minor == 10_000 - 950
    made.check()


def test_an_item_is_served_from_several_lots_first_lot_first() -> None:
    """OP-43: stock is stock, whichever lot it lies in."""
    made = world(order(2, (product(), unit(), 5)), stock=2)
    made.lots[4], made.lots[6] = lot(4, 1, 2), lot(6, 1, 9)

    (answer,) = made.finalise(confirm(2)).answers

    assert isinstance(answer, Order)
    assert answer.outcomes == (Outcome(0, 2, 2, 0), Outcome(2, 4, 4, 0), Outcome(4, 5, 6, 0))
    made.check()


def test_two_items_of_one_product_share_its_shelf() -> None:
    """OP-43: what the first item takes, the second can't."""
    made = world(order(2, (product(), unit(), 2), (product(), unit(), 2)), stock=3)

    (answer,) = made.finalise(confirm(2)).answers

    assert isinstance(answer, OutOfStock)
    made.lots[4] = lot(4, 1, 1)
    (answer,) = made.finalise(confirm(2)).answers
    assert isinstance(answer, Order)
    assert answer.status is Status.FINISHED
    made.check()


def test_resolve_holds_and_delivers_nothing_until_all_of_it_is_there() -> None:
    """OP-46, OP-47: all of it within the limit, or nothing and no charge."""
    later = product(async_delivery=True)
    made = world(order(2, (later, unit(vat_minor=50), 3)), stock=2)

    (held,) = made.finalise(resolve(2)).answers
    assert isinstance(held, Order)
    assert (held.status, held.payment_status, held.held_minor) == (Status.PENDING, Payment.UNPAID, 3_000)
    assert made.wallets[1].available_minor == 7_000
    assert held.deadline_at == NOW + WINDOWS.resolve
    made.check()

    assert made.deliver_waiting().answers == []
    made.lots[4] = lot(4, 1, 1)
    (done,) = made.deliver_waiting().answers

    assert isinstance(done, Order)
    assert (done.status, done.charged_minor) == (Status.FINISHED, 3_000)
    assert made.wallets[1] == Wallet(1, 7_000, 0, 2)
    made.check()


@pytest.mark.parametrize("command", [confirm(2), resolve(2)])
def test_a_code_that_comes_at_the_deadline_comes_too_late(command: Finalise) -> None:
    """Contract 8, OP-44: once the limit or the window is over, the order is ended and not delivered."""
    made = world(order(2, (product(async_delivery=True), unit(), 3)), stock=0)
    (waiting,) = made.finalise(command).answers
    assert isinstance(waiting, Order)
    assert waiting.deadline_at is not None
    made.lots[4] = lot(4, 1, 10)

    made.now = waiting.deadline_at
    assert made.deliver_waiting().answers == []
    (ended,) = made.end_waiting().answers

    assert isinstance(ended, Order)
    assert ended.status is Status.CANCELLED
    assert made.wallets[1].available_minor == 10_000
    made.check()


def test_a_resolve_past_its_limit_is_released_and_never_charged() -> None:
    """Contract 3: after 30 seconds the order is cancelled and no charge applies; not a microsecond before."""
    made = world(order(2, (product(async_delivery=True), unit(), 3)), stock=0)
    made.finalise(resolve(2))

    made.now = NOW + WINDOWS.resolve - MICROSECOND
    assert made.end_waiting().answers == []
    made.now += MICROSECOND
    (ended,) = made.end_waiting().answers

    assert isinstance(ended, Order)
    assert (ended.status, ended.payment_status) == (Status.CANCELLED, Payment.UNPAID)
    assert made.wallets[1] == Wallet(1, 10_000, 0, 2)
    made.check()


def test_cancelling_refunds_each_undelivered_line_to_the_cent() -> None:
    """OP-45: delivered lines stay delivered and paid; the refund is the sum of the others as fixed at Create."""
    items = (
        (product(async_delivery=True), unit(333, 70), 5),
        (product(2, async_delivery=True), unit(1, 1), 7),
    )
    made = world(order(2, *items), stock=2)
    made.finalise(confirm(2))
    made.check()

    (cancelled,) = made.cancel(Cancel(2, 1, State.LIVE)).answers

    assert isinstance(cancelled, Order)
    assert cancelled.payment_status is Payment.PARTIALLY_REFUNDED
    assert cancelled.charged_minor - cancelled.refunded_minor == 2 * 403
    assert made.wallets[1].balance_minor == 10_000 - 2 * 403
    assert made.entries[-1].vat_minor == 3 * 70 + 7
    made.check()
    (again,) = made.cancel(Cancel(2, 1, State.LIVE)).answers
    assert isinstance(again, WrongStatus)


@pytest.mark.parametrize(
    ("sandbox_outcome", "expected"),
    [(SandboxOutcome.OUT_OF_STOCK, OutOfStock), (SandboxOutcome.INSUFFICIENT_BALANCE, InsufficientBalance)],
)
def test_a_sandbox_call_can_ask_to_be_refused(
    sandbox_outcome: SandboxOutcome, expected: type[Refusal]
) -> None:
    """OP-49: X-Sandbox-Outcome."""
    made = world(order(3, (product(), unit(), 1)))
    made.lots[3] = lot(3, 1, 10)

    ruling = made.finalise(confirm(3, state=State.SANDBOX, sandbox_outcome=sandbox_outcome))

    assert type(ruling.answers[0]) is expected
    assert nothing_happened(ruling)


def test_a_declined_sandbox_order_costs_nothing_and_is_cancelled_for_good() -> None:
    """Contract 3: sandbox mode, immediately cancelled."""
    made = world(order(3, (product(), unit(), 2), (product(2), unit(), 1)))
    made.lots[3], made.lots[5] = lot(3, 1, 10), lot(5, 2, 10)

    (answer,) = made.finalise(
        confirm(3, state=State.SANDBOX, sandbox_outcome=SandboxOutcome.CANCELLED)
    ).answers

    assert isinstance(answer, Order)
    assert (answer.status, answer.payment_status) == (Status.CANCELLED, Payment.UNPAID)
    assert made.wallets[1] == Wallet(1, 10_000, 0, 0)
    made.check()


def test_an_order_that_costs_nothing_needs_no_wallet() -> None:
    """OP-50: a price may round to nothing in the payment currency; then there is nothing to debit."""
    made = world(order(2, (product(async_delivery=True), unit(0), 2)), stock=1)
    made.wallets.clear()

    (answer,) = made.finalise(confirm(2)).answers
    assert isinstance(answer, Order)
    assert answer.lines_finished == 1
    (cancelled,) = made.cancel(Cancel(2, 1, State.LIVE)).answers

    assert isinstance(cancelled, Order)
    assert cancelled.status is Status.CANCELLED
    assert made.entries == []


# ── whatever may come ───────────────────────────────────────────────────────────────────────────────────

COMPANIES, PRODUCTS = (1, 2, 3), (1, 2, 3)

carts = st.lists(
    st.tuples(st.sampled_from(PRODUCTS), st.integers(1, 2_000), st.integers(0, 400), st.integers(1, 12)),
    min_size=1,
    max_size=3,
)
orders = st.tuples(st.sampled_from(COMPANIES), st.integers(0, 1), carts)
picks = st.lists(
    st.tuples(st.integers(0, 11), st.booleans(), st.sampled_from(SandboxOutcome)), min_size=1, max_size=8
)
steps = st.one_of(
    st.tuples(st.just("finalise"), picks),
    st.tuples(st.just("cancel"), picks),
    st.tuples(st.just("stock"), st.tuples(st.sampled_from(PRODUCTS), st.integers(0, 1), st.integers(1, 25))),
    st.tuples(st.just("deliver"), st.none()),
    st.tuples(st.just("pass"), st.sampled_from([1, 31, 3_600, 259_201])),
)


def build(wanted: list[Any], balances: list[int]) -> World:
    """A world with these orders; company 3 may have no wallet, product 2 may be delivered later."""
    made = World()
    made.wallets = {c: Wallet(c, b, 0, 0) for c, b in zip(COMPANIES, balances, strict=False)}
    for at, (company_id, state, cart) in enumerate(wanted):
        items = [(product(p, async_delivery=p != 1), unit(price, vat), n) for p, price, vat, n in cart]
        number = (at + 1) * 2 + state
        made.orders[number] = order(number, *items, company_id=company_id)
    return made


def play(made: World, word: str, what: Any) -> None:
    """One step of a life."""
    numbers = sorted(made.orders)
    if word == "stock":
        product_id, state, size = what
        number = (len(made.lots) + 1) * 2 + state
        made.lots[number] = lot(number, product_id, size)
    elif word == "deliver":
        made.deliver_waiting()
    elif word == "pass":
        made.now += timedelta(seconds=what)
        made.end_waiting()
    else:
        chosen = [made.orders[numbers[at % len(numbers)]] for at, _, _ in what]
        if word == "cancel":
            made.cancel(*[Cancel(o.id, o.company_id, o.state) for o in chosen])
        else:
            commands = [
                Finalise(
                    o.id,
                    o.company_id,
                    o.state,
                    as_resolve,
                    sandbox_outcome if o.state else SandboxOutcome.FINISHED,
                    1,
                )
                for o, (_, as_resolve, sandbox_outcome) in zip(chosen, what, strict=True)
            ]
            made.finalise(*commands)


@settings(max_examples=250, deadline=None)
@given(
    st.lists(orders, min_size=1, max_size=12),
    st.lists(st.integers(0, 60_000), min_size=2, max_size=3),
    st.lists(steps, min_size=1, max_size=25),
)
def test_the_books_balance_after_every_step_of_any_life(
    wanted: list[Any], balances: list[int], life: list[Any]
) -> None:
    """Contract 3: money is conserved, no code is sold twice, waits are what is open, events have no gap."""
    made = build(wanted, balances)
    for word, what in life:
        play(made, word, what)
        made.check()


@settings(max_examples=150, deadline=None)
@given(
    st.lists(orders, min_size=1, max_size=8),
    st.lists(st.integers(0, 20_000), min_size=2, max_size=3),
    st.lists(steps, max_size=8),
    picks,
)
def test_a_batch_decides_as_its_calls_would_one_by_one_and_a_refused_one_changes_nothing(
    wanted: list[Any], balances: list[int], life: list[Any], batch: list[Any]
) -> None:
    """OP-23, OP-48: batching is invisible; a refusal leaves no trace."""
    together, alone = build(wanted, balances), build(wanted, balances)
    for made in (together, alone):
        for word, what in life:
            play(made, word, what)
    play(together, "finalise", batch)
    for one in batch:
        before = dict(alone.orders), dict(alone.wallets), dict(alone.lots), dict(alone.waits)
        numbers = sorted(alone.orders)
        target = alone.orders[numbers[one[0] % len(numbers)]]
        command = Finalise(
            target.id,
            target.company_id,
            target.state,
            one[1],
            one[2] if target.state else SandboxOutcome.FINISHED,
            1,
        )
        (answer,) = alone.finalise(command).answers
        if isinstance(answer, Refusal):
            assert before == (alone.orders, alone.wallets, alone.lots, alone.waits)
    # What happened inside a batch may differ in the moment only, and here no time passes.
    assert together.orders == alone.orders
    assert together.wallets == alone.wallets
    assert together.lots == alone.lots
    assert together.waits == alone.waits
