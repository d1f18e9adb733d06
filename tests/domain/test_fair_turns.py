"""Who is bought for next: whatever the backlog, purchases are within bounds, cut right and shared fairly."""

from __future__ import annotations

from collections import Counter, defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.handmade import DAY, NOW
from voucherd.orders.rules.waits import Wait
from voucherd.purchasing.turns import TURN_LINES_MAX, CompanyTurn, PlannedPurchase, purchases
from voucherd.vault.model import Shelf

SHELVES: list[Shelf] = [(1, 1_000, 0), (2, 1_000, 0), (1, 2_500, 0)]


def wait(
    order_id: int,
    first: int,
    count: int,
    *,
    company: int = 1,
    shelf: Shelf = SHELVES[0],
    urgent: bool = False,
) -> Wait:
    """A range of an order's lines that is to be bought from supplier 7."""
    product_id, face_minor, state = shelf
    return Wait(
        state,
        product_id,
        face_minor,
        company,
        order_id,
        first,
        first + count,
        NOW,
        NOW + DAY,
        urgent=urgent,
        supplier_id=7,
    )


@st.composite
def backlogs(draw: st.DrawFn) -> list[Wait]:
    """Waits of several companies, some of one order and with lines that touch, in the order of their turns."""
    waits: list[Wait] = []
    sizes = st.one_of(st.integers(1, 12), st.sampled_from([TURN_LINES_MAX, TURN_LINES_MAX + 1, 350, 1_000]))
    for order_id in range(2, 2 + 2 * draw(st.integers(1, 12)), 2):
        first, urgent = 0, draw(st.integers(0, 5)) == 0
        for _ in range(draw(st.integers(1, 3))):
            first += draw(st.sampled_from([0, 0, 3]))
            count = draw(sizes)
            shelf = draw(st.sampled_from(SHELVES))
            waits.append(wait(order_id, first, count, company=order_id % 7, shelf=shelf, urgent=urgent))
            first += count
    return draw(st.permutations(waits))


stocks = st.fixed_dictionaries({shelf: st.integers(0, 2_000) for shelf in SHELVES})


@settings(max_examples=150, deadline=None)
@given(backlogs(), stocks, st.integers(0, 6), st.sampled_from([1, 3, 100, 150, 10_000]))
def test_purchases_keep_to_every_bound_and_cut_waits_from_the_front(
    waits: list[Wait], stock: dict[Shelf, int], room: int, bulk_max: int
) -> None:
    """Invariant 4: no line is bought twice; no more than there is room, stock and a purchase's size for."""
    made = purchases(waits, stock, room=room, bulk_max=bulk_max).purchases

    assert len(made) <= room
    bought: Counter[Shelf] = Counter()
    taken: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for purchase in made:
        assert 0 < purchase.count <= bulk_max
        assert purchase.count == sum(piece.count for piece in purchase.pieces)
        assert {(piece.shelf, piece.urgent) for piece in purchase.pieces} == {
            (purchase.shelf, purchase.urgent)
        }
        if purchase.urgent:
            assert len({piece.order_id for piece in purchase.pieces}) == 1, (
                "a Resolve is bought for by itself"
            )
        bought[purchase.shelf] += purchase.count
        for piece in purchase.pieces:
            (source,) = [one for one in waits if _holds(one, piece)]
            assert (piece.supplier_id, piece.company_id) == (7, source.company_id)
            taken[source.order_id, source.line_from].append((piece.line_from, piece.line_to))
    assert all(count <= stock[shelf] for shelf, count in bought.items())
    for (_, at), pieces in taken.items():
        ends = [at] + [line_to for _, line_to in sorted(pieces)]
        starts = [line_from for line_from, _ in sorted(pieces)]
        assert starts == ends[:-1], "cut from the front, without a gap and without an overlap"


def _holds(wait: Wait, piece: Wait) -> bool:
    return (
        wait.order_id == piece.order_id
        and wait.line_from <= piece.line_from
        and piece.line_to <= wait.line_to
    )


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.lists(st.integers(1, 400), min_size=1, max_size=8), min_size=1, max_size=12),
    st.integers(1, 4),
    st.sampled_from([7, 50, 100, 250, 1_000]),
)
def test_nobody_is_more_than_one_share_ahead_of_who_still_waits(
    orders: list[list[int]], room: int, bulk_max: int
) -> None:
    """OP-48: companies are treated alike, whether they wait with one large order or with many."""
    waits = [
        (nth, company, wait(20 * company + 2 * nth, 0, count, company=company))
        for company, counts in enumerate(orders, 1)
        for nth, count in enumerate(counts)
    ]
    # As claims give them: every company's first before anyone's second.
    in_turn = [one for _, _, one in sorted(waits, key=lambda place: place[:2])]

    got = _lines(purchases(in_turn, {SHELVES[0]: 10**6}, room=room, bulk_max=bulk_max).purchases)

    assert sum(got.values()) == min(room * bulk_max, sum(map(sum, orders))), "there was room for more"
    for company, counts in enumerate(orders, 1):
        if got[company] < sum(counts):
            assert max(got.values()) <= got[company] + TURN_LINES_MAX


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 2_000), min_size=2, max_size=12),
    st.integers(1, 4),
    st.integers(1, 700),
)
def test_companies_with_enough_to_do_are_served_alike_over_many_rounds(
    backlogs: list[int], room: int, bulk_max: int
) -> None:
    """OP-48: Jain's index over companies that all still wait stays near 1, however long each one's queue is."""
    left = {company: 1_000_000 + backlog for company, backlog in enumerate(backlogs, 1)}
    served: Counter[int] = Counter()
    turn = CompanyTurn()
    for _ in range(60):
        companies = sorted(left, key=lambda company: (company < turn.company_id, company))
        waits = [wait(2 * company, served[company], left[company], company=company) for company in companies]
        made = purchases(waits, {SHELVES[0]: 10**9}, room=room, bulk_max=bulk_max, turn=turn)
        got = _lines(made.purchases)
        served += got
        for company, count in got.items():
            left[company] -= count
        # As claims do: the next round begins where the last one ended.
        turn = made.next_turns[False]

    shares = [served[company] for company in left]
    jain = sum(shares) ** 2 / (len(shares) * sum(share * share for share in shares))
    assert jain > 0.97, shares


def test_resolves_are_bought_for_one_by_one_and_whole() -> None:
    """OP-47: a Resolve never shares a purchase, and is cut only where one purchase can't hold it."""
    waits = [wait(2, 0, 250, urgent=True), wait(4, 0, 2, urgent=True), wait(6, 0, 2)]

    made = purchases(waits, {SHELVES[0]: 1_000}, room=8, bulk_max=100).purchases

    assert [(one.urgent, [(p.order_id, p.line_from, p.line_to) for p in one.pieces]) for one in made] == [
        (True, [(2, 0, 100)]),
        (True, [(4, 0, 2)]),
        (False, [(6, 0, 2)]),
        (True, [(2, 100, 200)]),
        (True, [(2, 200, 250)]),
    ]


def test_waits_that_touch_stay_apart() -> None:
    """Contract 2: two items of one product have lines that touch, and each line belongs to its own item."""
    made = purchases(
        [wait(2, 0, 150), wait(2, 150, 30)], {SHELVES[0]: 1_000}, room=1, bulk_max=1_000
    ).purchases

    assert [(piece.line_from, piece.line_to) for piece in made[0].pieces] == [(0, 150), (150, 180)]


def _lines(made: list[PlannedPurchase]) -> Counter[int]:
    """How many lines each company got."""
    got: Counter[int] = Counter()
    for purchase in made:
        for piece in purchase.pieces:
            got[piece.company_id] += piece.count
    return got
