"""The timeline of an order: one pure function over everything that is known of its life."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from markupsafe import Markup
from msgspec import structs

from tests.handmade import NOW, order, product, unit
from voucherd.actors import ActorKind
from voucherd.ids import State
from voucherd.money import Money
from voucherd.orders.model import Outcome, Viewed
from voucherd.orders.register import Happened
from voucherd.orders.rules.states import Status
from voucherd.pages.console.purchase_words import reason_words
from voucherd.pages.console.timeline import OrderHistory, timeline
from voucherd.purchasing.attempts import AttemptPhase
from voucherd.purchasing.records import Record
from voucherd.trail import TrailRow
from voucherd.vault.model import Via
from voucherd.vault.reveals import RevealRow
from voucherd.wallet.ledger import EntryKind
from voucherd.wallet.store import Movement


def at(minutes: float) -> datetime:
    """So many minutes after Create."""
    return NOW + timedelta(minutes=minutes)


def moved(minutes: float, kind: EntryKind, minor: int, hold: int = 0) -> Movement:
    """An entry of the order's."""
    return Movement(at(minutes), kind, Money(minor, "EUR"), Money(hold, "EUR"), Money(0, "EUR"))


def deed(minutes: float, action: str, who: str = "ann@buyer.example") -> TrailRow:
    """Something that a person did to the order."""
    return TrailRow(
        1, at(minutes), ActorKind.PERSON, 5, who, action, "order TRX", 1, State.LIVE, None, None, None
    )


def shown(number: int, minutes: float, via: Via, kind: ActorKind = ActorKind.KEY, who: int = 3) -> RevealRow:
    """Codes that left."""
    return RevealRow(number, at(minutes), 1, 0, 2, via, kind, who, "192.0.2.7")


def bought(phase: AttemptPhase, reason: str | None = None) -> Record:
    """A purchase for the order."""
    facts: dict[str, Any] = dict.fromkeys(Record.__struct_fields__, 0)
    facts |= {"id": UUID(int=1), "supplier": "Acme", "phase": phase, "count": 2, "codes": 2, "reason": reason}
    facts |= {"placed_at": at(2), "ended_at": at(3), "settled_by": None, "cost_currency": None}
    return Record(**facts)


def test_the_life_of_an_order_is_told_from_its_creation_to_its_return() -> None:
    """OP-162: created, paid, bought where, delivered, opened, cancelled, refunded, returned, each by whom."""
    outcomes = (Outcome(0, 2, 8, 0, at(3)), Outcome(2, 5, None, None, at(9)))
    views = (Viewed(0, at(5), at(6), at(20)),)
    found = order(
        2, (product(), unit(), 5), status=Status.CANCELLED, created_at=at(0), outcomes=outcomes, views=views
    )
    rows = timeline(
        OrderHistory(
            found,
            events=[Happened(2, at(9), "order.cancelled", 3), Happened(1, at(1), "order.pending", 2)],
            deeds=[deed(1, "order.confirm"), deed(9, "order.cancel", "op@shop.example")],
            # Entries of the wallet are a moment later than all else of their transaction.
            movements=[moved(1.001, EntryKind.ORDER, -4_750), moved(9.001, EntryKind.REFUND, 2_850)],
            purchases=[bought(AttemptPhase.BOUGHT)],
            reveals=[shown(1, 4, Via.FILE), shown(2, 5, Via.FILE), shown(3, 6, Via.REDEMPTION)],
            names={(ActorKind.KEY, 3): "vk_live_ab…"},
        )
    )
    assert [(row.title, str(row.text), row.by) for row in rows] == [
        ("Order created", "5 × Gift 1", "API"),
        ("Paid", "47.50 EUR", "ann@buyer.example"),
        ("Ordered from Acme", "2 codes, purchase 00000000", "System"),
        ("Bought from Acme", "2 of 2 codes", "Acme"),
        ("Delivered", "2 codes, 2 of 5 so far", "System"),
        ("Codes shown", "2 codes as a file, 2 times", "API key vk_live_ab…, 192.0.2.7"),
        ("Opened", "Code 1", "Recipient"),
        ("Refunded", "28.50 EUR", "op@shop.example"),
        ("Cancelled", "3 codes", "op@shop.example"),
        ("Returned", "Code 1", ""),
    ]
    assert [row.at for row in rows] == sorted(row.at for row in rows)


def test_what_a_key_confirmed_was_paid_by_that_key() -> None:
    """OP-162: the codes of the answer left in the same transaction."""
    paid = OrderHistory(
        order(2, (product(), unit(), 2), created_at=at(0)),
        movements=[moved(1, EntryKind.ORDER, -1_900)],
        reveals=[shown(1, 1, Via.CONFIRM)],
    )
    assert next(row.by for row in timeline(paid) if row.title == "Paid") == "API key"


def test_people_who_have_told_a_name_are_called_by_it() -> None:
    """OP-173: who confirmed, and who decided about a purchase; what a key did is no person's."""
    ann, bob = (
        Markup('<span title="ann@buyer.example">Ann</span>'),
        Markup('<span title="b@shop.example">Bob</span>'),
    )
    bought_by_hand = structs.replace(bought(AttemptPhase.BOUGHT), settled_by="b@shop.example")
    found = OrderHistory(
        order(2, (product(), unit(), 2), created_at=at(0)),
        deeds=[deed(1, "order.confirm")],
        movements=[moved(1, EntryKind.ORDER, -1_900)],
        purchases=[bought_by_hand],
        reveals=[shown(1, 4, Via.PORTAL, ActorKind.PERSON, 5), shown(2, 5, Via.FILE, ActorKind.KEY, 5)],
        names={(ActorKind.PERSON, 5): ann},
        settlers={"b@shop.example": bob},
    )
    by = {(row.title, str(row.by)) for row in timeline(found)}
    assert ("Paid", ann) in by
    assert ("Bought from Acme", bob) in by
    assert ("Codes shown", f"{ann}, 192.0.2.7") in by
    assert ("Codes shown", "API key, 192.0.2.7") in by


@pytest.mark.parametrize(
    ("phase", "title", "kind"),
    [
        (AttemptPhase.FAILED, "Not bought from Acme", "warn"),
        (AttemptPhase.UNKNOWN, "Purchase at Acme needs a decision", "bad"),
    ],
)
def test_a_purchase_that_brought_nothing_says_why(phase: AttemptPhase, title: str, kind: str) -> None:
    """OP-162: in words, with a link for those who may follow it."""
    history = OrderHistory(
        order(2, (product(), unit(), 2), created_at=at(0)),
        purchases=[bought(phase, "out_of_stock: HTTP 409")],
        links=True,
    )
    rows = timeline(history)
    assert (rows[2].title, rows[2].text, rows[2].kind) == (title, "Out of stock at the supplier", kind)
    assert 'href="/console/purchases/' in str(rows[1].text)


def test_an_order_that_nobody_paid_expires_or_is_withdrawn() -> None:
    """OP-40: both are told by their events; nothing else happened."""
    found = order(2, (product(), unit(), 2), created_at=at(0))
    events = [Happened(2, at(9), "order.deleted", 3), Happened(1, at(5), "order.expired", 2)]
    rows = timeline(OrderHistory(found, events=events, deeds=[deed(9, "order.cancel")]))
    assert [(row.title, row.by) for row in rows] == [
        ("Order created", "API"),
        ("Expired", "System"),
        ("Withdrawn", "ann@buyer.example"),
    ]


def test_many_opened_links_are_two_rows() -> None:
    """OP-162: the first and the last of them."""
    views = tuple(Viewed(line, at(line + 1), None) for line in range(40))
    found = order(2, (product(), unit(), 40), created_at=at(0), views=views)
    opened = [str(row.text) for row in timeline(OrderHistory(found)) if row.title == "Opened"]
    assert opened == ["Code 1, the first of 40", "Code 40, the last of 40"]


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (None, ""),
        ("out_of_stock: HTTP 409", "Out of stock at the supplier"),
        ("funds", "Our balance at the supplier is too low"),
        ("rejected: wrong SKU", "The supplier refused it (wrong SKU)"),
        ("HTTP 500, which the description does not foresee", "Supplier error (HTTP 500)"),
        ("Supplier error: HTTP 500, which is not in the description", "Supplier error (HTTP 500)"),
        ("lost during the call: host/12", "The connection was lost during the call"),
        ("still not known after 30 look-ups", "Still unknown after 30 checks"),
        ("settled by hand: they said so", "Decided by hand: they said so"),
        ("never bought", "The supplier knows nothing of it"),
        ("3 codes came, 4 were asked for", "3 codes came, 4 were asked for"),
        ("the answer is not JSON", "The answer is not JSON"),
    ],
)
def test_a_reason_is_a_sentence(reason: str | None, words: str) -> None:
    """OP-91: no word of the program reaches a page."""
    assert reason_words(reason) == words
