"""Where the lines of a finalised order wait, and from when on they are served: decided without a database."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from tests.domain.books import WINDOWS, World
from tests.handmade import NOW, lot, order, product, unit
from voucherd.ids import State
from voucherd.money import RATE_ONE
from voucherd.orders.model import Order, Outcome
from voucherd.orders.rules.decide import Cancel, Finalise
from voucherd.orders.rules.refusals import OutOfStock
from voucherd.orders.rules.sandbox import SandboxOutcome
from voucherd.orders.rules.states import Payment, Status
from voucherd.orders.rules.waits import Wait
from voucherd.suppliers.offers import Offer
from voucherd.wallet.ledger import Wallet

LATER = product(async_delivery=True)
SHELF = (1, 1_000, State.LIVE)
SECOND = timedelta(seconds=1)


def offer(supplier_id: int, stock: int) -> Offer:
    """A supplier that has so many codes."""
    return Offer(supplier_id, supplier_id * 10, "SKU", stock, 800, "EUR", RATE_ONE)


def finalise(order_id: int, *, resolve: bool = False, **options: Any) -> Finalise:
    """A Confirm or a Resolve of company 1."""
    return Finalise(order_id, 1, State(order_id & 1), resolve, **options)


def world(*orders: Order, stock: int = 0, queue: bool = False, offers: list[Offer] | None = None) -> World:
    """Company 1, so much on the shelf, perhaps others who wait for it, and what suppliers have."""
    made = World(wallets={1: Wallet(1, 1_000_000, 0, 0)}, in_queues=queue)
    if stock:
        made.lots[2] = lot(2, 1, stock)
    if offers is not None:
        made.offers[SHELF] = offers
    if queue:
        made.waits[90, 0] = Wait(0, 1, 1_000, 9, 90, 0, 1, NOW, NOW + WINDOWS.delivery)
    made.orders = {one.id: one for one in orders}
    return made


def places(made: World, *commands: Finalise) -> list[tuple[int, int, int | None, datetime | None]]:
    """The lines that wait after the commands: from, to, the supplier, and when one is looked for."""
    waits = made.finalise(*commands).waits
    return [(one.line_from, one.line_to, one.supplier_id, one.ask_at) for one in waits]


@pytest.mark.parametrize(
    ("stock", "ask_at", "supplier_id"), [(3, NOW + SECOND, None), (4, NOW + SECOND, None), (2, None, 7)]
)
def test_an_order_that_joins_a_queue_at_a_full_shelf_gives_the_shelf_a_second(
    stock: int, ask_at: datetime | None, supplier_id: int | None
) -> None:
    """OP-48: it only waits for its turn, as long as the shelf has all that it wants; else a supplier is asked."""
    made = world(order(2, (LATER, unit(), 3)), stock=stock, queue=True, offers=[offer(7, 50)])

    assert places(made, finalise(2)) == [(0, 3, supplier_id, ask_at)]
    assert made.lots[2].cursor == 0, "whoever waits already comes first"


def test_an_order_in_a_queue_for_what_nobody_else_sells_looks_for_no_supplier() -> None:
    """OP-48: it waits for the shelf alone."""
    made = world(order(2, (LATER, unit(), 3)), stock=3, queue=True)
    assert places(made, finalise(2)) == [(0, 3, None, None)]


def test_what_can_not_wait_is_served_from_the_shelf_past_the_queue() -> None:
    """OP-43: it would be refused otherwise, although the code is there."""
    made = world(order(2, (product(), unit(), 3)), stock=3, queue=True)

    (answer,) = made.finalise(finalise(2)).answers

    assert isinstance(answer, Order)
    assert answer.status is Status.FINISHED


def test_confirm_shares_out_among_suppliers_what_the_shelf_does_not_have() -> None:
    """OP-43: the shelf first, then suppliers as far as their stocks go, and the rest pauses before it is looked for."""
    offers = [offer(7, 2), offer(8, 1)]
    made = world(order(2, (LATER, unit(), 6)), stock=1, offers=offers)

    assert places(made, finalise(2)) == [(1, 3, 7, None), (3, 4, 8, None), (4, 6, None, NOW)]
    made = world(order(2, (LATER, unit(), 4)), stock=1, offers=offers)
    assert places(made, finalise(2)) == [(1, 3, 7, None), (3, 4, 8, None)]


@pytest.mark.parametrize(("later", "queue"), [(True, False), (False, True)])
def test_a_shelf_that_gave_what_it_has_is_not_waited_for(later: bool, queue: bool) -> None:
    """OP-43: its codes are taken by this very order, or may not be waited for; the rest is bought."""
    goods = product(async_delivery=later)
    made = world(order(2, (goods, unit(), 6)), stock=4, queue=queue, offers=[offer(7, 2)])

    assert places(made, finalise(2)) == [(4, 6, 7, None)]


def test_a_later_item_waits_for_its_own_lines_at_the_shelf() -> None:
    """OP-48: three are wanted and three are there, whatever stands before them in the order."""
    made = world(
        order(2, (product(2), unit(), 2), (LATER, unit(), 3)), stock=3, queue=True, offers=[offer(7, 9)]
    )
    made.lots[4] = lot(4, 2, 2)

    assert places(made, finalise(2)) == [(2, 5, None, NOW + SECOND)]


@pytest.mark.parametrize("resolve", [True, False])
def test_what_can_not_wait_is_bought_or_refused_as_a_whole(resolve: bool) -> None:
    """OP-43: refused if nobody has the codes, and sold if suppliers have them."""
    command = finalise(2, resolve=resolve)
    for stock, sold in ((2, True), (1, False)):
        made = world(order(2, (product(), unit(), 2)), offers=[offer(7, stock)])
        (answer,) = made.finalise(command).answers
        assert isinstance(answer, Order if sold else OutOfStock)
    made = world(order(2, (product(), unit(), 2)))
    (answer,) = made.finalise(command).answers
    assert isinstance(answer, OutOfStock)


@pytest.mark.parametrize(
    ("offers", "place"),
    [
        ([offer(7, 2), offer(8, 3)], (0, 3, 8, None)),
        ([offer(7, 2)], (0, 3, None, NOW)),
        ([], (0, 3, None, NOW)),
        (None, (0, 3, None, None)),
    ],
)
def test_resolve_asks_one_supplier_for_all_of_it(
    offers: list[Offer] | None, place: tuple[int, int, int | None, datetime | None]
) -> None:
    """OP-46, OP-47: all or nothing, so what the shelf has of it is left there."""
    made = world(order(2, (LATER, unit(), 3)), stock=1, offers=offers)

    assert places(made, finalise(2, resolve=True)) == [place]
    assert made.lots[2].cursor == 0


@pytest.mark.parametrize(
    ("sandbox_outcome", "resolve", "not_before"),
    [
        (SandboxOutcome.PENDING, False, NOW + 10 * SECOND),
        (SandboxOutcome.PENDING, True, NOW + timedelta(days=1)),
        (SandboxOutcome.SLOW, False, NOW + 4 * SECOND),
        (SandboxOutcome.SLOW, True, NOW + 4 * SECOND),
    ],
)
def test_a_sandbox_order_that_asked_to_wait_waits_as_long_as_it_should(
    sandbox_outcome: SandboxOutcome, resolve: bool, not_before: datetime
) -> None:
    """OP-49: pending ends after ten seconds, but a pending Resolve lasts until its limit; slow as long as told."""
    made = world(order(3, (product(), unit(), 2), (product(2), unit(), 1)))
    made.lots = {3: lot(3, 1, 9), 5: lot(5, 2, 9)}
    made.offers[1, 1_000, State.SANDBOX] = []
    if resolve:
        made.orders[3] = order(3, (product(), unit(), 2))

    waits = made.finalise(finalise(3, resolve=resolve, sandbox_outcome=sandbox_outcome, slow_s=4)).waits

    assert {(wait.not_before, wait.state) for wait in waits} == {(not_before, State.SANDBOX)}
    assert [(w.line_from, w.line_to, w.ask_at) for w in waits] == [(0, 2, not_before), (2, 3, None)][
        : len(waits)
    ]
    assert len(waits) == (1 if resolve else 2)
    assert made.orders[3].status is Status.PENDING
    deadline = NOW + (WINDOWS.resolve if resolve else WINDOWS.delivery)
    assert {wait.deadline_at for wait in waits} == {deadline}
    assert (not_before > deadline) == (sandbox_outcome is SandboxOutcome.PENDING and resolve)


def test_a_sandbox_order_that_is_slow_without_a_time_is_served_at_once_by_the_worker() -> None:
    """OP-49: slow as long as told, and no longer."""
    made = world(order(3, (product(), unit(), 1)))
    made.lots = {3: lot(3, 1, 9)}
    assert [
        wait.not_before for wait in made.finalise(finalise(3, sandbox_outcome=SandboxOutcome.SLOW)).waits
    ] == [NOW]


def test_a_wait_says_whose_it_is_and_what_it_waits_for() -> None:
    """OP-48: turns are taken by company, and a Resolve is urgent."""
    made = world(order(2, (LATER, unit(), 1), (product(2, async_delivery=True), unit(face_minor=500), 2)))
    made.orders[4] = order(4, (LATER, unit(), 1))

    waits = made.finalise(finalise(2), finalise(4, resolve=True)).waits

    window, limit = NOW + WINDOWS.delivery, NOW + WINDOWS.resolve
    assert waits == [
        Wait(0, 1, 1_000, 1, 2, 0, 1, NOW, window),
        Wait(0, 2, 500, 1, 2, 1, 3, NOW, window),
        Wait(0, 1, 1_000, 1, 4, 0, 1, NOW, limit, urgent=True),
    ]


def test_an_order_that_is_served_at_once_has_no_deadline() -> None:
    """Contract 3: nothing of it waits."""
    made = world(order(2, (product(), unit(100, 21), 2)), stock=2)

    (answer,) = made.finalise(finalise(2)).answers

    assert isinstance(answer, Order)
    assert (answer.deadline_at, answer.resolving, answer.held_minor, answer.charged_minor) == (
        None,
        False,
        0,
        242,
    )
    assert (answer.status, answer.payment_status) == (Status.FINISHED, Payment.PAID)
    (entry,) = made.entries
    assert (entry.amount_minor, entry.vat_minor, entry.order_id) == (-242, -42, 2)
    assert (answer.version, answer.updated_at) == (2, made.now)


def test_a_declined_order_has_all_of_its_lines_cancelled() -> None:
    """OP-49: cancelled at once, free of charge."""
    made = world(order(3, (product(), unit(), 2), (product(2), unit(), 1)))
    made.lots = {3: lot(3, 1, 9), 5: lot(5, 2, 9)}

    ruling = made.finalise(finalise(3, sandbox_outcome=SandboxOutcome.CANCELLED))

    (answer,) = ruling.answers
    assert isinstance(answer, Order)
    assert (answer.lines_cancelled, answer.lines_finished) == (3, 0)
    assert ruling.outcomes == [(3, Outcome(0, 3, None, None))]
    assert [event.type for event in ruling.events] == ["order.cancelled"]
    assert (ruling.entries, ruling.cursors, ruling.waits) == ([], {}, [])


def test_an_unconfirmed_order_is_deleted_by_cancel() -> None:
    """Contract 3: cancel, not confirmed: deleted, and nothing was charged."""
    made = world(order(2, (product(), unit(), 2)))

    ruling = made.cancel(Cancel(2, 1, State.LIVE))

    (answer,) = ruling.answers
    assert isinstance(answer, Order)
    assert answer.status is Status.DELETED
    assert [event.type for event in ruling.events] == ["order.deleted"]
    assert (ruling.entries, ruling.waits_over, ruling.outcomes) == ([], [], [])
    assert replace(answer, version=1, status=Status.CREATED) == order(2, (product(), unit(), 2))
