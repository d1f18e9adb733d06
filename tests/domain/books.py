"""A world without a database: it stores rulings as the store would, and refuses what the schema would refuse."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from uuid import UUID

from msgspec.structs import replace

from tests.handmade import NOW
from voucherd.orders.model import Order
from voucherd.orders.rules import decide, waiting
from voucherd.orders.rules.decide import Cancel, Finalise
from voucherd.orders.rules.ruling import CompanyStanding, Facts, Ruling, Windows, item_at
from voucherd.orders.rules.states import Payment, Status
from voucherd.orders.rules.waits import Wait
from voucherd.suppliers.offers import Offer
from voucherd.vault.model import Lot, Shelf
from voucherd.wallet.ledger import LedgerEntry, Wallet

WINDOWS = Windows(delivery=timedelta(hours=72), resolve=timedelta(seconds=30))


@dataclass
class World:
    """Everything that the decisions are about."""

    now: datetime = NOW
    orders: dict[int, Order] = field(default_factory=dict)
    standing: dict[int, CompanyStanding] = field(default_factory=dict)
    withdrawn: set[int] = field(default_factory=set)
    wallets: dict[int, Wallet] = field(default_factory=dict)
    """By company: one wallet each, with the company's own number."""
    lots: dict[int, Lot] = field(default_factory=dict)
    waits: dict[tuple[int, int], Wait] = field(default_factory=dict)
    offers: dict[Shelf, list[Offer]] = field(default_factory=dict)
    """What suppliers can serve now, cheapest first; a shelf that nobody else sells is not in here."""
    in_queues: bool = False
    """Whether new orders stand behind those who wait already."""
    entries: list[LedgerEntry] = field(default_factory=list)
    events: dict[int, list[int]] = field(default_factory=lambda: defaultdict(lambda: [1]))

    def facts(self, order_ids: Sequence[int | None]) -> Facts:
        """What the store would load for these orders."""
        orders = {number: self.orders[number] for number in order_ids if number in self.orders}
        shelves: dict[Shelf, list[Lot]] = {
            (*item.shelf, one.state): [] for one in orders.values() for item in one.items
        }
        for one in self.lots.values():
            if one.left:
                shelves.setdefault((one.product_id, one.face_minor, one.state), []).append(one)
        wallet_of_order = {o.id: o.company_id for o in orders.values() if o.company_id in self.wallets}
        return Facts(
            self.now,
            WINDOWS,
            orders,
            {
                o.company_id: self.standing.get(o.company_id, CompanyStanding(True, True))
                for o in orders.values()
            },
            set(self.withdrawn),
            wallet_of_order,
            {wallet_id: self.wallets[wallet_id] for wallet_id in wallet_of_order.values()},
            shelves,
            {
                w.shelf
                for w in self.waits.values()
                if self.in_queues and w.attempt_id is None and w.state == 0
            },
            dict(self.offers),
            {
                number: [w for (owner, _), w in sorted(self.waits.items()) if owner == number]
                for number in orders
            },
        )

    def finalise(self, *commands: Finalise) -> Ruling:
        """Confirm or resolve, in one batch."""
        return self.store(decide.finalise(self.facts([c.order_id for c in commands]), commands))

    def cancel(self, *commands: Cancel) -> Ruling:
        """Cancel, in one batch."""
        return self.store(decide.cancel(self.facts([c.order_id for c in commands]), commands))

    def deliver_waiting(self) -> Ruling:
        """Serve what waits."""
        waits = [wait for _, wait in sorted(self.waits.items())]
        return self.store(waiting.deliver_waiting(self.facts([w.order_id for w in waits]), waits))

    def end_waiting(self) -> Ruling:
        """End what is out of time."""
        late = sorted({w.order_id for w in self.waits.values() if w.deadline_at <= self.now})
        return self.store(waiting.end_waiting(self.facts(late), late))

    def store(self, ruling: Ruling) -> Ruling:
        for lot_id, cursor in ruling.cursors.items():
            assert self.lots[lot_id].cursor <= cursor <= self.lots[lot_id].size
            self.lots[lot_id] = replace(self.lots[lot_id], cursor=cursor)
        for entry in ruling.entries:
            before = self.wallets[entry.wallet_id]
            assert entry.seq == before.seq + 1
            assert entry.balance_after_minor == before.balance_minor + entry.amount_minor
            assert entry.held_after_minor == before.held_minor + entry.hold_minor
            assert 0 <= entry.held_after_minor <= entry.balance_after_minor
            self.wallets[entry.wallet_id] = Wallet(
                entry.wallet_id, entry.balance_after_minor, entry.held_after_minor, entry.seq
            )
            self.entries.append(entry)
        for over in ruling.waits_over:
            del self.waits[over]
        for wait in ruling.waits:
            self.begin(wait)
        for wait in ruling.waits_moved:
            place = self.waits[wait.order_id, wait.line_from]
            assert place.line_to == wait.line_to
            assert wait.attempt_id is None, "only a claim gives a wait to a purchase"
            if place.attempt_id is not None:
                self.refuse_leaving(place.attempt_id)
            self.waits[wait.order_id, wait.line_from] = wait
        for event in ruling.events:
            self.events[event.order_id].append(event.seq)
        self.orders |= ruling.orders
        return ruling

    def begin(self, wait: Wait) -> None:
        """Let lines wait that don't wait yet, in one place."""
        assert sum(at is not None for at in (wait.supplier_id, wait.attempt_id, wait.ask_at)) <= 1
        for other in self.waits.values():
            if other.order_id == wait.order_id:
                assert other.line_to <= wait.line_from or wait.line_to <= other.line_from
        self.waits[wait.order_id, wait.line_from] = wait

    def refuse_leaving(self, attempt_id: UUID) -> None:
        """A wait leaves a purchase only when that is over; in a world without purchases there is none to leave."""
        raise AssertionError(f"there is no purchase {attempt_id}")

    def check(self) -> None:
        """Every invariant of the books."""
        for wallet in self.wallets.values():
            held = sum(o.held_minor for o in self.orders.values() if o.company_id == wallet.id)
            assert wallet.held_minor == held
        sold: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for order in self.orders.values():
            self._check_order(order)
            for outcome in order.outcomes:
                if outcome.lot_id is not None and outcome.seq_from is not None:
                    sold[outcome.lot_id].append((outcome.seq_from, outcome.seq_from + outcome.count))
        for lot_id, ranges in sold.items():
            _assert_disjoint(ranges)
            assert max(end for _, end in ranges) <= self.lots[lot_id].cursor
            # No code is skipped either: what left the shelf is on a line.
            assert sum(end - start for start, end in ranges) == self.lots[lot_id].cursor

    def _check_payment(self, order: Order) -> None:
        """A pending order has paid for all that it has or may get, or holds the money for all of it."""
        if order.payment_status is Payment.UNPAID:
            assert order.resolving
            assert (order.charged_minor, order.refunded_minor, order.held_minor) == (0, 0, order.total_minor)
            assert (order.lines_finished, order.lines_cancelled) == (0, 0)
            return
        dropped = sum(
            item_at(order, one.line_from).unit_charge_minor * one.count
            for one in order.outcomes
            if one.lot_id is None
        )
        assert (order.charged_minor, order.refunded_minor, order.held_minor) == (
            order.total_minor,
            dropped,
            0,
        )
        cut = order.lines_cancelled > 0
        assert order.payment_status is (Payment.PARTIALLY_REFUNDED if cut else Payment.PAID)

    def _check_order(self, order: Order) -> None:
        _assert_disjoint([(o.line_from, o.line_to) for o in order.outcomes])
        finished = sum(o.count for o in order.outcomes if o.lot_id is not None)
        cancelled = sum(o.count for o in order.outcomes if o.lot_id is None)
        assert (order.lines_finished, order.lines_cancelled) == (finished, cancelled)
        moved = sum(e.amount_minor for e in self.entries if e.order_id == order.id)
        assert moved == order.refunded_minor - order.charged_minor
        vat = -sum(e.vat_minor for e in self.entries if e.order_id == order.id)
        delivered, delivered_vat = _worth(order)
        assert self.events[order.id] == list(range(1, order.version + 1))
        waits = [w for w in self.waits.values() if w.order_id == order.id]
        if order.status is Status.PENDING:
            assert _joined(order, waits) == [(start, end) for _, start, end in order.open_ranges()]
            assert order.lines_finished + order.lines_cancelled < order.lines
            assert {w.urgent for w in waits} == {order.resolving}
            self._check_payment(order)
            return
        assert waits == []
        assert order.held_minor == 0
        assert (order.charged_minor - order.refunded_minor, vat) == (delivered, delivered_vat)
        if order.status is Status.FINISHED:
            assert finished == order.lines
            assert order.payment_status is Payment.PAID
        elif order.status is Status.CANCELLED:
            assert finished + cancelled == order.lines
            assert cancelled > 0
            assert not (order.resolving and finished)
        else:
            assert order.outcomes == ()


def _joined(order: Order, waits: Sequence[Wait]) -> list[tuple[int, int]]:
    """The ranges of lines that wait, those of one item that touch made one; none lies in two items."""
    ends = {item.end_line for item in order.items}
    joined: list[tuple[int, int]] = []
    for wait in sorted(waits, key=lambda one: one.line_from):
        item = item_at(order, wait.line_from)
        assert wait.line_to <= item.end_line
        assert wait.shelf == (*item.shelf, order.state)
        if joined and joined[-1][1] == wait.line_from and wait.line_from not in ends:
            joined[-1] = (joined[-1][0], wait.line_to)
        else:
            joined.append((wait.line_from, wait.line_to))
    return joined


def _worth(order: Order) -> tuple[int, int]:
    """What the delivered lines cost, and the VAT in it."""
    total = vat = 0
    for item in order.items:
        for outcome in order.outcomes:
            if outcome.lot_id is not None:
                count = min(outcome.line_to, item.end_line) - max(outcome.line_from, item.first_line)
                total += max(0, count) * item.unit_charge_minor
                vat += max(0, count) * item.unit.pay_vat_minor
    return total, vat


def _assert_disjoint(ranges: list[tuple[int, int]]) -> None:
    ranges.sort()
    for (_, end), (start, _) in pairwise(ranges):
        assert end <= start
