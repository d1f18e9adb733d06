"""The operator's first page: how the service is doing, and what each fact asks for. The judgement is pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct

from voucherd import backups, clock, heartbeat
from voucherd.approvals import lists
from voucherd.backups import Backup
from voucherd.db import Connection, tenants_locked
from voucherd.events import feed as events
from voucherd.heartbeat import SeenProcess
from voucherd.http import Response
from voucherd.ids import State
from voucherd.migrate import pending
from voucherd.pages.render import number, render
from voucherd.pages.visit import Visit
from voucherd.people.roles import Right
from voucherd.people.sessions import Person
from voucherd.purchasing import metrics as fulfilment
from voucherd.services import Services
from voucherd.suppliers import overview as suppliers
from voucherd.wallet import low_balance
from voucherd.wallet.low_balance import Low
from voucherd.webhooks import metrics as webhooks

WAIT_LOOK_S: Final = 60.0
WAIT_ACT_S: Final = 900.0
"""Paid lines that wait longer than a buyer expects, and longer than a supplier may pause."""
WEBHOOK_LOOK_S: Final = 30.0
WEBHOOK_ACT_S: Final = 300.0
GATE_LOOK: Final = 500
"""Calls that wait for a batch in this process."""
BACKUP_LOOK_S: Final = 2 * 86_400.0
BACKUP_ACT_S: Final = 14 * 86_400.0
_PLACES: Final = ("buying", "queued", "pausing", "shelf")
_MIB: Final = 1024 * 1024


class Mark(StrEnum):
    """What a fact asks for."""

    GOOD = "good"
    LOOK = "look"
    ACT = "act"


class HealthCheck(NamedTuple):
    """One fact with its mark, in words."""

    name: str
    value: str
    said: str
    mark: Mark = Mark.GOOD
    path: str = ""
    right: Right | None = None
    """Who may follow the path."""


_PATHS: Final = {
    "Paid lines that wait": ("/console/orders?status=pending", Right.ORDERS_ALL),
    "Breakers open": ("/console/suppliers", Right.SUPPLIERS_MANAGE),
    "Purchases that nobody knows": ("/console/purchases", Right.ATTEMPTS_MANAGE),
    "Offers without a fresh price": ("/console/suppliers", Right.SUPPLIERS_MANAGE),
    "Payments to decide about": ("/console/money", Right.COMPANIES_VIEW),
}
"""Where more is told about a fact, and who may read it there."""


class HealthFacts(Struct):
    """What was found out."""

    state: State
    orders: fulfilment.Pulse
    offers: suppliers.SupplierFigures
    webhooks: webhooks.WebhookFigures
    events: events.EventRate
    low: list[Low]
    processes: list[SeenProcess]
    pending: list[str]
    database_bytes: int
    embedded: bool
    backup: Backup | None
    locked: bool
    """Whether row-level security stands behind the queries."""
    proposals: int | None
    """Payments that wait for whoever looks, if that is somebody who decides about them."""
    batchers: dict[str, tuple[int, int, int]]
    """Calls that wait, batches and calls so far, of this process."""


class Queue(NamedTuple):
    """What waits for one company, and since when."""

    company: str
    lines: int
    places: dict[str, int]
    oldest: str


async def overview(visit: Visit) -> Response:
    """Where things stand."""
    facts = await _look(visit.services, visit.state, visit.someone)
    groups = _checks(facts)
    every = [check for _, checks in groups for check in checks]
    return render(
        "console/overview.html",
        visit,
        groups_of_checks=groups,
        worst=worst(every),
        acts=[check.name for check in every if check.mark is Mark.ACT],
        looks=[check.name for check in every if check.mark is Mark.LOOK],
        queues=_queues(facts),
        low=facts.low if visit.may(Right.COMPANIES_VIEW) else [],
        processes=facts.processes,
    )


def _queues(facts: HealthFacts) -> list[Queue]:
    """Companies whose lines wait, those with the most first."""
    places: dict[str, dict[str, int]] = {}
    for (state, company, place), lines in facts.orders.waiting.items():
        if state == facts.state.word:
            places.setdefault(company, dict.fromkeys(_PLACES, 0))[place] += lines
    oldest = {
        who: age for (state, who), age in facts.orders.oldest_wait_s.items() if state == facts.state.word
    }
    found = [
        Queue(company, sum(counts.values()), counts, duration(oldest.get(company, 0.0)))
        for company, counts in places.items()
    ]
    return sorted(found, key=lambda one: (-one.lines, one.company))


async def _look(services: Services, state: State, person: Person) -> HealthFacts:
    """The facts of now."""
    async with services.pool.acquire() as conn:
        return HealthFacts(
            state=state,
            orders=await fulfilment.take(conn),
            offers=await _offers(conn),
            webhooks=await webhooks.take(conn),
            events=await events.take(conn),
            low=await low_balance.low(conn, state),
            processes=await heartbeat.seen(conn),
            pending=await pending(conn),
            database_bytes=await conn.fetchval("SELECT pg_database_size(current_database())"),
            embedded=services.settings.database_url is None,
            backup=await backups.last(conn),
            locked=await tenants_locked(conn),
            proposals=await _proposals(conn, state, person),
            batchers={name: (g.waiting, g.batches, g.calls) for name, g in services.orders.batchers.items()},
        )


async def _proposals(conn: Connection, state: State, person: Person) -> int | None:
    return await lists.waiting(conn, None, state, person.id) if person.may(Right.MONEY_APPROVE) else None


async def _offers(conn: Connection) -> suppliers.SupplierFigures:
    """The offers of all suppliers together."""
    found = (await suppliers.figures(conn)).values()
    return suppliers.SupplierFigures(
        unknown=sum(one.unknown for one in found),
        fresh=sum(one.fresh for one in found),
        stale=sum(one.stale for one in found),
        none=sum(one.none for one in found),
    )


def worst(checks: list[HealthCheck]) -> Mark:
    """What the service as a whole asks for."""
    marks = {check.mark for check in checks}
    return next(mark for mark in (Mark.ACT, Mark.LOOK, Mark.GOOD) if mark in marks or mark is Mark.GOOD)


def _checks(facts: HealthFacts) -> list[tuple[str, list[HealthCheck]]]:
    """Every fact with its mark and the page that tells more, in groups."""
    groups = {"Orders": _orders, "Suppliers": _suppliers, "Clients": _clients, "Machine": _machine}
    return [(title, [_led(check) for check in of(facts)]) for title, of in groups.items()]


def _led(check: HealthCheck) -> HealthCheck:
    path, right = _PATHS.get(check.name, ("", None))
    return check._replace(path=path, right=right)


def _orders(facts: HealthFacts) -> Iterator[HealthCheck]:
    word = facts.state.word
    lines = sum(count for (state, _, _), count in facts.orders.waiting.items() if state == word)
    oldest = max(
        (age for (state, _), age in facts.orders.oldest_wait_s.items() if state == word), default=0.0
    )
    waits = f"The oldest has waited for {duration(oldest)}."
    delivered = "Everything that was paid for is delivered."
    mark = _above(oldest, WAIT_LOOK_S, WAIT_ACT_S)
    yield _count("Paid lines that wait", lines, delivered, waits, mark)
    waiting, batches, calls = facts.batchers["confirm"]
    size = f"{calls / batches:.1f}" if batches else "–"
    said = f"{number(calls)} calls in {number(batches)} batches of this process; {number(waiting)} wait now."
    yield HealthCheck(
        "Calls in a Confirm batch", size, said, Mark.LOOK if waiting >= GATE_LOOK else Mark.GOOD
    )
    rate = f"{'≥ ' if facts.events.many else ''}{number(facts.events.count)}"
    last = facts.events.last_at
    said = "None yet." if last is None else f"The last one on {last:%-d %b at %H:%M} UTC."
    yield HealthCheck("Events in five minutes", rate, said)


def _suppliers(facts: HealthFacts) -> Iterator[HealthCheck]:
    away = sorted(name for name, one in facts.orders.suppliers.items() if one.breaker)
    shut = f"Not bought from now: {', '.join(away[:5])}{' …' if len(away) > 5 else ''}."
    yield _count(
        "Breakers open", len(away), f"{number(len(facts.orders.suppliers))} suppliers can be asked.", shut
    )
    known, unknown = "The end of every purchase is known.", "A person has to find out what came of them."
    yield _count("Purchases that nobody knows", facts.offers.unknown, known, unknown, Mark.ACT)
    stale = facts.offers.stale + facts.offers.none
    said = f"{number(facts.offers.fresh)} prices are fresh; those that are not can't be used."
    yield _count("Offers without a fresh price", stale, said, said)


def _clients(facts: HealthFacts) -> Iterator[HealthCheck]:
    late = facts.webhooks.late_s
    trouble = facts.webhooks.failing + facts.webhooks.disabled
    said = (
        f"{number(facts.webhooks.failing)} endpoints fail, {number(facts.webhooks.disabled)} were turned off."
    )
    mark = max(_above(late, WEBHOOK_LOOK_S, WEBHOOK_ACT_S), Mark.LOOK if trouble else Mark.GOOD, key=_rank)
    yield HealthCheck("Webhooks are late by", duration(late), said, mark)
    none = "No company is below what it wants to be told about."
    yield _count("Low balances", len(facts.low), none, "They are listed below.")
    if facts.proposals is not None:
        none, some = "Nobody has proposed to move money.", "Others have proposed to move money."
        yield _count("Payments to decide about", facts.proposals, none, some)


def _machine(facts: HealthFacts) -> Iterator[HealthCheck]:
    present = [one for one in facts.processes if one.works and one.present]
    hosts = sorted({one.host for one in present})
    if present:
        yield HealthCheck("Workers at work", number(len(present)), f"On {', '.join(hosts[:5])}.")
    else:
        said = "Nothing is delivered late, refunded, bought or sent: start `voucherd worker` or `voucherd serve`."
        yield HealthCheck("Workers at work", "0", said, Mark.ACT)
    same, older = "The schema is this program's.", "Run `voucherd migrate`."
    yield _count("Migrations to run", len(facts.pending), same, older, Mark.ACT)
    yield HealthCheck(
        "Database", f"{number(facts.database_bytes // _MIB)} MiB", "Tables and indexes, all together."
    )
    if facts.embedded or facts.backup is not None:
        yield _backup(facts.backup)
    if not facts.locked:
        said = "Row-level security is off, because a role is missing: see the operator's guide."
        yield HealthCheck("Second lock between companies", "off", said, Mark.LOOK)


def _backup(taken: Backup | None) -> HealthCheck:
    if taken is None:
        said = (
            "A worker takes one every night; `voucherd backup` takes one now. Keep the master key elsewhere."
        )
        return HealthCheck("Last backup", "never", said, Mark.LOOK)
    age_s = (clock.now() - taken.at).total_seconds()
    said = f"{number(max(1, taken.bytes // _MIB))} MiB, taken in {duration(taken.seconds)}."
    return HealthCheck(
        "Last backup", f"{duration(age_s)} ago", said, _above(age_s, BACKUP_LOOK_S, BACKUP_ACT_S)
    )


def _count(name: str, count: int, none: str, some: str, mark: Mark = Mark.LOOK) -> HealthCheck:
    """A count that is good at 0."""
    return HealthCheck(name, number(count), some, mark) if count else HealthCheck(name, "0", none)


def _above(value: float, look: float, act: float) -> Mark:
    return Mark.ACT if value >= act else Mark.LOOK if value >= look else Mark.GOOD


def _rank(mark: Mark) -> int:
    return list(Mark).index(mark)


def duration(seconds: float) -> str:
    """A span as people say it: in the largest unit of which there are two."""
    span = timedelta(seconds=int(seconds))
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if span.total_seconds() >= 2 * size:
            return f"{int(span.total_seconds() // size)} {unit}"
    return f"{int(span.total_seconds())} s"
