"""The health of the service: what is so, and what each fact asks for. The judgement is pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct

from voucherd import backups, clock, heartbeat
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
from voucherd.purchasing import metrics as fulfilment
from voucherd.services import Services
from voucherd.suppliers import overview as suppliers
from voucherd.suppliers import store as supplier_store
from voucherd.suppliers.overview import SupplierJudgement
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
    "Paid codes to deliver": ("/console/orders?status=pending", Right.ORDERS_ALL),
    "Failing suppliers": ("/console/suppliers", Right.SUPPLIERS_MANAGE),
    "Doubtful suppliers": ("/console/suppliers", Right.SUPPLIERS_MANAGE),
    "Purchases to decide": ("/console/purchases?problem=unknown", Right.ATTEMPTS_MANAGE),
    "Supplier prices out of date": ("/console/suppliers", Right.SUPPLIERS_MANAGE),
    "Low balances": ("/console/companies", Right.COMPANIES_VIEW),
}
"""Where more is told about a fact, and who may read it there."""


class HealthFacts(Struct):
    """What was found out."""

    state: State
    orders: fulfilment.Pulse
    offers: suppliers.SupplierFigures
    suppliers: dict[str, SupplierJudgement]
    """How each supplier that we buy from is doing, by its name."""
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
    batchers: dict[str, tuple[int, int, int]]
    """Calls that wait, batches and calls so far, of this process."""


class Queue(NamedTuple):
    """What waits for one company, and since when."""

    company: str
    lines: int
    places: dict[str, int]
    oldest: str


async def health(visit: Visit) -> Response:
    """Every fact about the service, with what it asks for."""
    facts = await look(visit.services, visit.state)
    groups = checks(facts)
    return render(
        "console/health.html",
        visit,
        groups_of_checks=groups,
        line=health_line(groups),
        queues=_queues(facts),
        processes=facts.processes,
    )


class HealthLine(NamedTuple):
    """The health of the service in one sentence, and what is not as it should be."""

    text: str
    mark: Mark
    troubles: list[HealthCheck]


def health_line(groups: list[tuple[str, list[HealthCheck]]]) -> HealthLine:
    """What the service as a whole asks for."""
    every = [check for _, group in groups for check in group]
    troubles = sorted((one for one in every if one.mark is not Mark.GOOD), key=lambda one: -_rank(one.mark))
    if not troubles:
        return HealthLine("All systems normal", Mark.GOOD, [])
    acts = sum(one.mark is Mark.ACT for one in troubles)
    count, verb = (acts, "action") if acts else (len(troubles), "a look")
    text = f"1 thing needs {verb}" if count == 1 else f"{count} things need {verb}"
    return HealthLine(text, troubles[0].mark, troubles)


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


async def look(services: Services, state: State) -> HealthFacts:
    """The facts of now."""
    async with services.pool.acquire() as conn:
        return HealthFacts(
            state=state,
            orders=await fulfilment.take(conn),
            offers=await _offers(conn),
            suppliers=await _judged(conn, state),
            webhooks=await webhooks.take(conn),
            events=await events.take(conn),
            low=await low_balance.low(conn, state),
            processes=await heartbeat.seen(conn),
            pending=await pending(conn),
            database_bytes=await conn.fetchval("SELECT pg_database_size(current_database())"),
            embedded=services.settings.database_url is None,
            backup=await backups.last(conn),
            locked=await tenants_locked(conn),
            batchers={name: (g.waiting, g.batches, g.calls) for name, g in services.orders.batchers.items()},
        )


async def _judged(conn: Connection, state: State) -> dict[str, SupplierJudgement]:
    """The judgement about each active supplier of a state, by name."""
    lately = await suppliers.lately(conn, state)
    return {
        row.name: suppliers.judge(
            lately.get(row.id, suppliers.NO_CALLS),
            row.health.word(row.now),
            active=True,
            quote_error=row.quote_error,
        )
        for row in await supplier_store.suppliers(conn)
        if row.state is state and row.active
    }


async def _offers(conn: Connection) -> suppliers.SupplierFigures:
    """The offers of all suppliers together."""
    found = (await suppliers.figures(conn)).values()
    return suppliers.SupplierFigures(
        unknown=sum(one.unknown for one in found),
        fresh=sum(one.fresh for one in found),
        stale=sum(one.stale for one in found),
        none=sum(one.none for one in found),
    )


def checks(facts: HealthFacts) -> list[tuple[str, list[HealthCheck]]]:
    """Every fact with its mark and the page that tells more, in groups."""
    groups = {"Orders": _orders, "Suppliers": _suppliers, "Companies": _clients, "System": _machine}
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
    found = _count("Paid codes to deliver", lines, delivered, waits, _above(oldest, WAIT_LOOK_S, WAIT_ACT_S))
    yield found._replace(value=f"≥ {found.value}") if word in facts.orders.more_wait else found
    waiting, batches, calls = facts.batchers["confirm"]
    size = f"{calls / batches:.1f}" if batches else "–"
    said = f"Confirm calls that share one transaction on this server, on average; {number(waiting)} wait now."
    yield HealthCheck(
        "Calls confirmed together", size, said, Mark.LOOK if waiting >= GATE_LOOK else Mark.GOOD
    )
    rate = f"{'≥ ' if facts.events.many else ''}{number(facts.events.count)}"
    last = facts.events.last_at
    ago = "" if last is None else duration((clock.now() - last).total_seconds())
    said = "None yet." if last is None else f"The last one {ago} ago."
    yield HealthCheck("Events in the last 5 minutes", rate, said)


def _suppliers(facts: HealthFacts) -> Iterator[HealthCheck]:
    failing = [f"{name} ({judged.text})" for name, judged in facts.suppliers.items() if judged.kind == "bad"]
    many = len(facts.suppliers)
    good = "1 supplier can be asked." if many == 1 else f"{number(many)} suppliers can be asked."
    yield _count("Failing suppliers", len(failing), good, f"{_named(failing)}.", Mark.ACT)
    doubtful = [
        f"{name} ({judged.text})" for name, judged in facts.suppliers.items() if judged.kind == "warn"
    ]
    none = "No supplier is doubtful."
    yield _count("Doubtful suppliers", len(doubtful), none, f"{_named(doubtful)}.")
    known, unknown = "The outcome of every purchase is known.", "Find out at the supplier what came of them."
    yield _count("Purchases to decide", facts.offers.unknown, known, unknown, Mark.ACT)
    stale = facts.offers.stale + facts.offers.none
    said = f"{number(facts.offers.fresh)} prices are current; the others can’t be bought at."
    yield _count("Supplier prices out of date", stale, said, said)


def _named(names: list[str]) -> str:
    return f"{', '.join(names[:5])}{' …' if len(names) > 5 else ''}"


def _clients(facts: HealthFacts) -> Iterator[HealthCheck]:
    late = facts.webhooks.late_s
    trouble = facts.webhooks.failing + facts.webhooks.disabled
    said = (
        f"{number(facts.webhooks.failing)} endpoints fail, {number(facts.webhooks.disabled)} were turned off."
    )
    mark = max(_above(late, WEBHOOK_LOOK_S, WEBHOOK_ACT_S), Mark.LOOK if trouble else Mark.GOOD, key=_rank)
    yield HealthCheck("Webhook delay", duration(late), said, mark)
    none = "No balance is below its owner’s warning level."
    some = "They are below what their owners want to be warned at."
    yield _count("Low balances", len(facts.low), none, some)


def _machine(facts: HealthFacts) -> Iterator[HealthCheck]:
    present = [one for one in facts.processes if one.works and one.present]
    hosts = sorted({one.host for one in present})
    if present:
        yield HealthCheck("Workers running", number(len(present)), f"On {', '.join(hosts[:5])}.")
    else:
        said = "Nothing is bought, refunded or sent: start `voucherd worker` or `voucherd serve`."
        yield HealthCheck("Workers running", "0", said, Mark.ACT)
    same, older = "The database fits this version.", "Run `voucherd migrate`."
    yield _count("Database updates to run", len(facts.pending), same, older, Mark.ACT)
    yield HealthCheck(
        "Database size", f"{number(facts.database_bytes // _MIB)} MiB", "Tables and indexes together."
    )
    if facts.embedded or facts.backup is not None:
        yield _backup(facts.backup)
    if not facts.locked:
        said = (
            "The second lock between companies is off, because a role is missing: see the operators’ guide."
        )
        yield HealthCheck("Row-level security", "off", said, Mark.LOOK)


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
