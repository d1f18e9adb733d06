"""The operator's first page: how the shop is doing, and what needs a decision. Whatever is concluded is pure."""

from __future__ import annotations

import calendar
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final, NamedTuple

from msgspec import Struct

from voucherd.approvals import lists
from voucherd.companies import store as company_store
from voucherd.db import Connection
from voucherd.http import Response
from voucherd.ids import State
from voucherd.money import Money
from voucherd.pages.console import checklist, health
from voucherd.pages.console.health import HealthFacts, Mark, duration
from voucherd.pages.render import figure, number, render
from voucherd.pages.visit import Visit
from voucherd.people.roles import Right
from voucherd.people.sessions import Person
from voucherd.reports import daily, shelves
from voucherd.reports.daily import DaySales, ProductSales

CHART_DAYS: Final = 30
BEST_SHOWN: Final = 5
LOW_SHOWN: Final = 5
SOON_SHOWN: Final = 5
SOON_DAYS: Final = 7
PACE_DAYS: Final = 14
"""Days whose sales say how fast a product sells."""
WATCHED_MAX: Final = 200
"""Products whose stock is looked at: those that sell most."""


class Compared(NamedTuple):
    """Sales of a time beside those of the time before it; a change in percent, None where nothing came before."""

    label: str
    codes: int
    price: Money
    margin: Money
    margin_percent: int | None
    before_label: str
    before: Money
    change: int | None


class RunningOut(NamedTuple):
    """A product that will be sold out soon, if it sells as it did."""

    slug: str
    name: str
    left: int
    days: int


class Decision(NamedTuple):
    """Something that waits for a person, and where it is decided."""

    text: str
    path: str
    mark: Mark = Mark.LOOK


class OverviewFigures(Struct, frozen=True):
    """What was sold, as pages show it."""

    compared: list[Compared]
    best: list[ProductSales]
    running_out: list[RunningOut]
    chart: list[tuple[str, int, str]]
    """Each day with its sales in euro cents, and how they are written."""
    sold: bool
    """Whether anything was sold in these days."""


async def overview(visit: Visit) -> Response:
    """How the shop is doing."""
    facts = await health.look(visit.services, visit.state)
    figures = None
    if visit.may(Right.REPORTS_VIEW):
        # Many look at it, and again and again: one look of a process is good for half a minute.
        today = datetime.now(UTC).date()
        asked = ("overview", visit.state, today, await visit.look(daily.upto))
        figures = await visit.services.reports.get(asked, lambda: visit.look(_figures, visit.state, today))
    async with visit.pool.acquire() as conn:
        decisions = await _decisions(conn, facts, visit.state, visit.someone)
    low = facts.low if visit.may(Right.COMPANIES_VIEW) else []
    return render(
        "console/overview.html",
        visit,
        checklist=await checklist.items(visit),
        figures=figures,
        decisions=decisions,
        low=low[:LOW_SHOWN],
        low_more=max(0, len(low) - LOW_SHOWN),
        health=health.health_line(health.checks(facts)),
    )


async def _figures(conn: Connection, state: State, today: date) -> OverviewFigures:
    since = min(_month_before(today.replace(day=1)), today - timedelta(days=CHART_DAYS - 1))
    days = await daily.by_day(conn, state, since)
    best = await daily.by_product(conn, state, today - timedelta(days=CHART_DAYS - 1), BEST_SHOWN)
    out: list[RunningOut] = []
    if state is State.LIVE:
        pace = await daily.by_product(conn, state, today - timedelta(days=PACE_DAYS - 1), WATCHED_MAX)
        left = await shelves.left_of(conn, [one.product_id for one in pace], state)
        out = running_out(pace, left)
    return OverviewFigures(compared(days, today), best, out, chart_of(days, today), bool(days))


def compared(days: Sequence[DaySales], today: date) -> list[Compared]:
    """Today beside yesterday, and this month beside the same days of the month before."""
    yesterday = today - timedelta(days=1)
    month = today.replace(day=1)
    before = _month_before(month)
    last = before.replace(day=min(today.day, calendar.monthrange(before.year, before.month)[1]))
    return [
        _compared("Today", "Yesterday", days, (today, today), (yesterday, yesterday)),
        _compared("This month", _span_words(before, last), days, (month, today), (before, last)),
    ]


def _compared(
    label: str,
    before_label: str,
    days: Sequence[DaySales],
    now: tuple[date, date],
    before: tuple[date, date],
) -> Compared:
    ours = [one for one in days if now[0] <= one.day <= now[1]]
    price = sum(one.price_eur_minor for one in ours)
    margin = sum(one.margin_eur_minor for one in ours)
    past = sum(one.price_eur_minor for one in days if before[0] <= one.day <= before[1])
    return Compared(
        label,
        sum(one.codes for one in ours),
        Money(price, "EUR"),
        Money(margin, "EUR"),
        round(100 * margin / price) if price else None,
        before_label,
        Money(past, "EUR"),
        round(100 * (price - past) / past) if past else None,
    )


def _month_before(month: date) -> date:
    return (month - timedelta(days=1)).replace(day=1)


def _span_words(first: date, last: date) -> str:
    return f"{first.day}–{last.day} {last:%b}" if first != last else f"{first.day} {first:%b}"


def chart_of(days: Sequence[DaySales], today: date) -> list[tuple[str, int, str]]:
    """A row for each of the last days, those without sales included."""
    sold = {one.day: one for one in days}
    rows = []
    for back in range(CHART_DAYS - 1, -1, -1):
        day = today - timedelta(days=back)
        price = sold[day].price_eur_minor if day in sold else 0
        rows.append((f"{day.day} {day:%b}", price, figure(Money(price, "EUR"))))
    return rows


def running_out(pace: Sequence[ProductSales], left: dict[int, int]) -> list[RunningOut]:
    """Products whose stock lasts for a week at most at the pace of the last two, the most pressing first."""
    found = []
    for one in pace:
        stock = left.get(one.product_id, 0)
        days = stock * PACE_DAYS // one.codes
        if days <= SOON_DAYS:
            found.append(RunningOut(one.slug, one.name, stock, days))
    return sorted(found, key=lambda one: (one.days, one.left, one.slug))[:SOON_SHOWN]


async def _decisions(conn: Connection, facts: HealthFacts, state: State, person: Person) -> list[Decision]:
    """What waits for whoever looks, as far as they may decide about it."""
    found: list[Decision] = []
    if person.may(Right.MONEY_APPROVE) and (count := await lists.waiting(conn, None, state, person.id)):
        found.append(
            Decision(_counted(count, "payment waits", "payments wait", "for your approval"), "/console/money")
        )
    if person.may(Right.ATTEMPTS_MANAGE) and (count := facts.offers.unknown):
        text = _counted(count, "purchase needs", "purchases need", "your decision")
        found.append(Decision(text, "/console/purchases?problem=unknown", Mark.ACT))
    if person.may(Right.ORDERS_ALL):
        found += waiting_orders(facts)
    if person.may(Right.SUPPLIERS_MANAGE):
        found += [
            Decision(f"Supplier {name}: {judged.text}", f"/console/suppliers/{name}", Mark.ACT)
            for name, judged in facts.suppliers.items()
            if judged.kind == "bad"
        ]
        if count := facts.offers.stale + facts.offers.none:
            text = _counted(count, "supplier price is", "supplier prices are", "out of date")
            found.append(Decision(text, "/console/suppliers"))
    if person.may(Right.COMPANIES_MANAGE) and (count := await company_store.count_unverified(conn)):
        found.append(
            Decision(_counted(count, "company is", "companies are", "not verified"), "/console/companies")
        )
    return sorted(found, key=lambda one: one.mark is not Mark.ACT)


def waiting_orders(facts: HealthFacts) -> list[Decision]:
    """Paid codes that wait longer than buyers expect."""
    word = facts.state.word
    lines = sum(count for (state, _, _), count in facts.orders.waiting.items() if state == word)
    oldest = max(
        (age for (state, _), age in facts.orders.oldest_wait_s.items() if state == word), default=0.0
    )
    if oldest < health.WAIT_LOOK_S:
        return []
    text = _counted(
        lines, "paid code waits", "paid codes wait", f"to be delivered, the oldest for {duration(oldest)}"
    )
    mark = Mark.ACT if oldest >= health.WAIT_ACT_S else Mark.LOOK
    return [Decision(text, "/console/orders?status=pending", mark)]


def _counted(count: int, one: str, many: str, rest: str) -> str:
    return f"{number(count)} {one if count == 1 else many} {rest}"
