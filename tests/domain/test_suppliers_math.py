"""The arithmetic around suppliers: prices of ranges, shares, pauses, and the breaker."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.handmade import DAY, NOW
from voucherd.orders.rules.waits import (
    PAUSE_S_MAX,
    PAUSE_S_MIN,
    ROUNDS_COUNTED_MAX,
    URGENT_PAUSE_S_MAX,
    Wait,
    failed_at,
    go_on,
    pause_s,
)
from voucherd.purchasing.attempts import LOOK_UP_S_MAX, LOOK_UP_S_MIN, look_up_pause_s
from voucherd.suppliers.breaker import FAILURES_MAX, OPEN_S_MAX, OPEN_S_MIN, Health, after_call, room
from voucherd.suppliers.offers import Offer, QuoteTerms, cheapest_first, one_for_all, price_ceiling, share_out
from voucherd.suppliers.overview import NO_CALLS, Lately, judge

RATES = {"EUR": 100_000_000, "USD": 92_000_000, "JPY": 620_000}
faces = st.integers(1, 10**9)
jitters = st.floats(0, 1)
offer_lists = st.lists(
    st.builds(
        lambda supplier, stock, price, currency: Offer(
            supplier, supplier * 2, f"sku-{supplier}", stock, price, currency, RATES[currency]
        ),
        st.integers(1, 20),
        st.integers(0, 30),
        st.integers(0, 10**6),
        st.sampled_from(sorted(RATES)),
    ),
    max_size=8,
    unique_by=lambda offer: offer.supplier_id,
)


def wait(count: int = 3, *, urgent: bool = False, tried: tuple[int, ...] = (), rounds: int = 0) -> Wait:
    """Lines that are being bought."""
    return Wait(
        *(0, 1, 1_000, 1, 2, 5, 5 + count, NOW, NOW + DAY),
        urgent=urgent,
        attempt_id=UUID(int=1),
        tried=tried,
        rounds=rounds,
    )


# ── prices ──────────────────────────────────────────────────────────────────────────────────────────────


@given(faces, faces, st.integers(0, 10**9), st.integers(0, 10**9), st.data())
def test_a_range_is_priced_exactly_at_its_ends_and_on_a_straight_line_between(
    low: int, width: int, price: int, rise: int, data: st.DataObject
) -> None:
    """Never less than the true price, by less than one minor unit more, and never falling."""
    terms = QuoteTerms(low, price, low + width, price + rise)
    face, other = sorted((data.draw(st.integers(low, low + width)), data.draw(st.integers(low, low + width))))

    true = price + Fraction(rise * (face - low), width)

    assert (terms.price_at(low), terms.price_at(low + width)) == (price, price + rise)
    assert true <= terms.price_at(face) < true + 1
    assert terms.price_at(face) <= terms.price_at(other)
    assert QuoteTerms(low, price, None, None).price_at(low) == price


@given(st.integers(0, 10**12), st.integers(0, 10_000))
def test_a_price_may_rise_by_the_slack_and_by_a_minor_unit_at_least(price: int, slack_bp: int) -> None:
    """Dearer than quoted by no more than the operator allows; no slack is none."""
    ceiling = price_ceiling(price, slack_bp)

    assert ceiling >= price
    assert ceiling - price <= 1 or (ceiling - price) * 10_000 <= price * slack_bp
    assert (ceiling == price) is (slack_bp == 0)


@given(offer_lists)
def test_offers_are_compared_by_what_they_cost_in_eur(offers: list[Offer]) -> None:
    """OP-44: the best offer is the cheapest; of equal ones the one with more stock."""
    ordered = cheapest_first(offers)

    assert sorted(ordered, key=lambda one: one.supplier_id) == sorted(offers, key=lambda one: one.supplier_id)
    assert [one.cost for one in ordered] == sorted(one.cost for one in offers)
    assert ordered == cheapest_first(ordered[::-1])


@given(offer_lists, st.integers(1, 60))
def test_codes_are_shared_out_cheapest_first_as_far_as_stocks_go(offers: list[Offer], count: int) -> None:
    """OP-43: a dearer offer serves only what every cheaper one could not."""
    shares = share_out(offers, count)

    assert sum(taken for _, taken in shares) == min(count, sum(offer.stock for offer in offers))
    assert all(0 < taken <= offer.stock for offer, taken in shares)
    assert all(taken == offer.stock for offer, taken in shares[:-1])
    assert [offer for offer, _ in shares] == [offer for offer in offers if offer.stock][: len(shares)]
    whole = one_for_all(offers, count)
    assert whole == next((offer for offer in offers if offer.stock >= count), None)


# ── where a wait goes next ──────────────────────────────────────────────────────────────────────────────


@given(offer_lists, st.integers(1, 40), st.booleans(), st.sets(st.integers(1, 20), max_size=6), jitters)
def test_a_wait_goes_to_a_supplier_that_was_not_tried_or_pauses(
    offers: list[Offer], count: int, urgent: bool, tried: set[int], jitter: float
) -> None:
    """OP-44: fall over to the next best offer; with none left, pause and begin anew."""
    offers = [offer for offer in cheapest_first(offers) if offer.stock]
    before = wait(count, urgent=urgent, tried=tuple(sorted(tried)), rounds=4)

    after = go_on(before, offers, NOW, jitter)

    untried = [offer for offer in offers if offer.supplier_id not in tried]
    enough = [offer.supplier_id for offer in untried if offer.stock >= count]
    assert after.attempt_id is None
    assert (after.order_id, after.line_from, after.line_to) == (2, 5, 5 + count)
    if enough:
        assert (after.supplier_id, after.ask_at, after.tried, after.rounds) == (
            enough[0],
            None,
            before.tried,
            4,
        )
    elif untried and not urgent:
        assert (after.supplier_id, after.ask_at) == (untried[0].supplier_id, None)
    else:
        assert (after.supplier_id, after.tried, after.rounds) == (None, (), 5)
        assert after.ask_at is not None
        assert (after.ask_at - NOW).total_seconds() == pytest.approx(
            pause_s(5, jitter, urgent=urgent), abs=1e-5
        )


def test_every_supplier_is_tried_once_in_a_round() -> None:
    """OP-44: a wait that fails everywhere asks each supplier once, pauses, and asks again."""
    offers = [Offer(one, one * 2, "s", 10, one, "EUR", RATES["EUR"]) for one in (1, 2, 3)]
    at, asked = wait(), []
    for _ in range(8):
        at = go_on(at, offers, NOW, 0.5)
        asked.append(at.supplier_id)
        if at.supplier_id is not None:
            at = failed_at(at, at.supplier_id)

    assert asked == [1, 2, 3, None, 1, 2, 3, None]
    assert failed_at(replace(at, tried=(2, 1)), 2).tried == (1, 2)


@given(st.integers(1, ROUNDS_COUNTED_MAX), jitters, st.booleans())
def test_pauses_double_up_to_a_cap_and_half_of_each_is_chance(
    rounds: int, jitter: float, urgent: bool
) -> None:
    """OP-44: tried again with growing pauses; a Resolve, which has half a minute, soon."""
    cap = URGENT_PAUSE_S_MAX if urgent else PAUSE_S_MAX
    pause = pause_s(rounds, jitter, urgent=urgent)

    assert PAUSE_S_MIN / 2 <= pause <= cap
    assert pause_s(rounds, 0, urgent=urgent) * 2 == pause_s(rounds, 1, urgent=urgent)
    assert pause_s(rounds + 1, jitter, urgent=urgent) == min(pause * 2, cap * (0.5 + jitter / 2))


@given(st.integers(0, ROUNDS_COUNTED_MAX))
def test_rounds_are_counted_up_to_a_maximum(rounds: int) -> None:
    """The count only makes pauses grow; the column is an integer, and 72 hours are many rounds."""
    assert go_on(wait(rounds=rounds), [], NOW, 0.0).rounds == min(rounds + 1, ROUNDS_COUNTED_MAX)


@given(st.integers(0, 2_000), jitters)
def test_look_ups_are_soon_at_first_and_never_rarer_than_the_cap(look_ups: int, jitter: float) -> None:
    """We ask what became of a purchase, a little later each time."""
    pause = look_up_pause_s(look_ups, jitter)

    assert LOOK_UP_S_MIN * 0.75 <= pause <= LOOK_UP_S_MAX
    assert look_up_pause_s(look_ups + 1, jitter) >= pause
    assert look_up_pause_s(0, 1) == LOOK_UP_S_MIN
    assert look_up_pause_s(1_000, 1) == LOOK_UP_S_MAX


# ── the breaker ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_breaker_opens_at_the_fifth_failure_in_a_row_and_closes_on_a_success() -> None:
    """A circuit breaker per supplier; half-open, one call tries."""
    health = Health()
    for _ in range(FAILURES_MAX - 1):
        health = after_call(health, NOW, failed=True)
        assert (health.word(NOW), room(health, NOW, calling=0, calling_max=8)) == ("closed", 8)
    assert after_call(health, NOW, failed=False) == Health()

    health = after_call(health, NOW, failed=True)
    ends = NOW + timedelta(seconds=OPEN_S_MIN)
    assert (health.word(NOW), room(health, NOW, calling=0, calling_max=8)) == ("open", 0)
    assert health.open_until == ends
    assert health.word(ends - timedelta(microseconds=1)) == "open"
    assert (health.word(ends), room(health, ends, calling=0, calling_max=8)) == ("half-open", 1)
    assert room(health, ends, calling=1, calling_max=8) == 0
    assert after_call(health, ends, failed=False) == Health()


@settings(max_examples=200)
@given(st.lists(st.booleans(), max_size=60), st.integers(0, 12), st.integers(1, 10))
def test_a_breaker_is_open_longer_each_time_up_to_a_cap(calls: list[bool], calling: int, most: int) -> None:
    """Failures in a row count, and nothing else; there is never more room than the limit leaves."""
    health, now, in_a_row, last_s = Health(), NOW, 0, 0.0
    for failed in calls:
        health = after_call(health, now, failed=failed)
        in_a_row = in_a_row + 1 if failed else 0
        assert health.failures == in_a_row
        assert (health.open_until is not None) is (in_a_row >= FAILURES_MAX)
        assert 0 <= room(health, now, calling=calling, calling_max=most) <= max(0, most - calling)
        if health.open_until is None:
            last_s = 0.0
            continue
        open_s = (health.open_until - now).total_seconds()
        assert open_s == min(max(OPEN_S_MIN, last_s * 2), OPEN_S_MAX)
        last_s, now = open_s, health.open_until


@given(st.integers(FAILURES_MAX, 10_000))
def test_a_breaker_survives_any_number_of_failures(failures: int) -> None:
    """A supplier that is down for a month is tried every five minutes, without an overflow."""
    after = after_call(Health(failures), NOW, failed=True)

    assert after.open_until is not None
    assert OPEN_S_MIN <= (after.open_until - NOW).total_seconds() <= OPEN_S_MAX


def calls(ended: int, failed: int) -> Lately:
    """The calls of an hour, so many of which brought nothing."""
    return replace(NO_CALLS, hour_ended=ended, hour_failed=failed)


@pytest.mark.parametrize(
    ("lately", "breaker", "kind", "text"),
    [
        (calls(12, 12), "closed", "bad", "Failing: 12 of 12 calls in the last hour"),
        (calls(1, 1), "closed", "bad", "Failing: 1 of 1 call in the last hour"),
        (calls(9, 5), "closed", "bad", "Fails often: 5 of 9 calls in the last hour"),
        (calls(8, 2), "closed", "warn", "Fails now and then: 2 of 8 calls in the last hour"),
        (calls(9, 2), "closed", "good", "Good"),
        (NO_CALLS, "closed", "good", "Good"),
        (NO_CALLS, "half-open", "warn", "Being tried again after failures"),
        (NO_CALLS, "open", "bad", "Failing, left alone for a while"),
    ],
)
def test_a_supplier_is_judged_by_its_calls_of_the_last_hour(
    lately: Lately, breaker: str, kind: str, text: str
) -> None:
    """OP-157: whoever fails every call is not good, whatever its breaker says."""
    found = judge(lately, breaker, active=True)
    assert (found.kind, found.text) == (kind, text)
    assert judge(lately, breaker, active=False).text == "Paused"
    if kind == "good":
        assert judge(lately, breaker, active=True, quote_error="HTTP 500").kind == "warn"
