"""Figures about purchasing, for monitoring. Each costs the same however much there is.

Nothing is counted to its end: a figure stops at a named maximum and then means "at least so many". Recent purchases
stand for all; the oldest of a queue is one look into an index.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from msgspec import Struct, field

from voucherd.db import Connection
from voucherd.ids import State
from voucherd.purchasing.attempts import AttemptPhase
from voucherd.purchasing.records import PurchaseProblem
from voucherd.suppliers.breaker import Health

COMPANIES_MAX: Final = 500
"""Companies with waiting lines that are looked at, in each state."""
COMPANIES_NAMED_MAX: Final = 20
"""Those with the most lines have a figure of their own; the others share one."""
WAITS_COUNTED_MAX: Final = 2_000
WAITS_COUNTED_MIN: Final = 40
"""Waits that are counted in all, and of each company at least."""
SUPPLIERS_MAX: Final = 200
WINDOW_S: Final = 300
PURCHASES_MAX: Final = 500
"""Purchases of one supplier, newest first, that stand for the window; and of all of one status."""
PROBLEM_WINDOW_S: Final = 86_400
OTHERS: Final = "other"
"""The name that companies share which have none of their own here."""

_BREAKER: Final = {"closed": 0, "half-open": 1, "open": 2}


class SupplierPulse(Struct, frozen=True):
    """A supplier in the last minutes."""

    breaker: int
    """0 closed, 1 half-open, 2 open."""
    purchases: dict[str, int]
    """By how they stand."""
    p50_s: float | None
    p95_s: float | None
    """How long half of the calls took at most, and 95 of 100."""

    @property
    def error_ratio(self) -> float | None:
        """Of the purchases that ended, the part that failed or that nobody knows the end of."""
        bad = self.purchases["failed"] + self.purchases["unknown"]
        ended = bad + self.purchases["bought"]
        return bad / ended if ended else None


class Pulse(Struct):
    """All figures at one moment."""

    waiting: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """Lines by state, company and place."""
    more_wait: set[str] = field(default_factory=set)
    """The states in which more lines wait than were counted."""
    oldest_wait_s: dict[tuple[str, str], float] = field(default_factory=dict)
    suppliers: dict[str, SupplierPulse] = field(default_factory=dict)
    open: dict[tuple[str, str], int] = field(default_factory=dict)
    """Purchases whose end is not known, by supplier and status."""
    oldest_open_s: dict[tuple[str, str], float] = field(default_factory=dict)
    problems: dict[tuple[str, str], int] = field(default_factory=dict)
    """Of the last day, by supplier and problem."""


async def take(conn: Connection) -> Pulse:
    """The figures as they are now."""
    pulse = Pulse()
    for state in State:
        await _waiting(conn, state, pulse)
    await _suppliers(conn, pulse)
    await _open(conn, pulse)
    await _problems(conn, pulse)
    return pulse


_COMPANIES: Final = """
    WITH RECURSIVE found AS (
        (SELECT company_id FROM waiting WHERE state = $1 ORDER BY company_id LIMIT 1)
        UNION ALL
        SELECT next.company_id FROM found f CROSS JOIN LATERAL (
            SELECT company_id FROM waiting WHERE state = $1 AND company_id > f.company_id
            ORDER BY company_id LIMIT 1) next
    )
    SELECT company_id FROM found LIMIT $2
"""
_WAITS: Final = """
    SELECT c.id, c.name, w.place, sum(w.lines)::bigint, extract(epoch FROM max(w.age))::float8, count(*)
    FROM unnest($2::int[]) AS one (company_id) JOIN company c ON c.id = one.company_id
    CROSS JOIN LATERAL (
        SELECT CASE WHEN attempt_id IS NOT NULL THEN 'buying' WHEN supplier_id IS NOT NULL THEN 'queued'
                    WHEN ask_at IS NOT NULL THEN 'pausing' ELSE 'shelf' END AS place,
               line_to - line_from AS lines, now() - not_before AS age
        FROM waiting WHERE state = $1 AND company_id = one.company_id ORDER BY not_before LIMIT $3) w
    GROUP BY c.id, c.name, w.place
"""


async def _waiting(conn: Connection, state: State, pulse: Pulse) -> None:
    ids = [row[0] for row in await conn.fetch(_COMPANIES, int(state), COMPANIES_MAX)]
    if not ids:
        return
    each = max(WAITS_COUNTED_MIN, WAITS_COUNTED_MAX // len(ids))
    rows = await conn.fetch(_WAITS, int(state), ids, each)
    totals, counted = Counter[int](), Counter[int]()
    for row in rows:
        totals[row[0]] += row[3]
        counted[row[0]] += row[5]
    if len(ids) == COMPANIES_MAX or each in counted.values():
        pulse.more_wait.add(state.word)
    named = set(sorted(totals, key=lambda one: (-totals[one], one))[:COMPANIES_NAMED_MAX])
    for company_id, name, place, lines, age_s, _ in rows:
        company = name if company_id in named else OTHERS
        # Added up, also because somebody may be called like that.
        where, who = (state.word, company, place), (state.word, company)
        pulse.waiting[where] = pulse.waiting.get(where, 0) + lines
        pulse.oldest_wait_s[who] = max(pulse.oldest_wait_s.get(who, 0.0), age_s)


async def _suppliers(conn: Connection, pulse: Pulse) -> None:
    rows = await conn.fetch(
        """
        SELECT s.name, h.failures, h.open_until, now(), r.*
        FROM supplier s JOIN supplier_health h ON h.supplier_id = s.id
        CROSS JOIN LATERAL (
            SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY call_ms) AS p50,
                   percentile_disc(0.95) WITHIN GROUP (ORDER BY call_ms) AS p95,
                   count(*) FILTER (WHERE status = 0), count(*) FILTER (WHERE status = 1),
                   count(*) FILTER (WHERE status = 2), count(*) FILTER (WHERE status = 3),
                   count(*) FILTER (WHERE status = 4)
            FROM (SELECT status, call_ms FROM attempt
                  WHERE supplier_id = s.id AND placed_at > now() - make_interval(secs => $1)
                  ORDER BY placed_at DESC LIMIT $2) recent) r
        ORDER BY s.id LIMIT $3
        """,
        WINDOW_S,
        PURCHASES_MAX,
        SUPPLIERS_MAX,
    )
    for row in rows:
        pulse.suppliers[row[0]] = SupplierPulse(
            _BREAKER[Health(row[1], row[2]).word(row[3])],
            {phase.name.lower(): row[6 + phase] for phase in AttemptPhase},
            _seconds(row[4]),
            _seconds(row[5]),
        )


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000


# The conditions are written out: only so can the server use the small index of each status.
_ENDLESS: Final = " UNION ALL ".join(
    f"(SELECT supplier_id, status, placed_at FROM attempt WHERE status = {int(phase)} ORDER BY {by} LIMIT $1)"  # noqa: S608 - Constants only.
    for phase, by in (
        (AttemptPhase.CALLING, "supplier_id"),
        (AttemptPhase.ASKING, "ask_at"),
        (AttemptPhase.UNKNOWN, "placed_at"),
    )
)


async def _open(conn: Connection, pulse: Pulse) -> None:
    rows = await conn.fetch(
        f"""
        SELECT s.name, o.status, count(*), extract(epoch FROM now() - min(o.placed_at))::float8
        FROM ({_ENDLESS}) o JOIN supplier s ON s.id = o.supplier_id GROUP BY s.name, o.status
        """,  # noqa: S608 - Constants only.
        PURCHASES_MAX,
    )
    for name, status, count, age_s in rows:
        where = (name, AttemptPhase(status).name.lower())
        pulse.open[where] = count
        pulse.oldest_open_s[where] = age_s


async def _problems(conn: Connection, pulse: Pulse) -> None:
    rows: list[Any] = await conn.fetch(
        """
        SELECT s.name, count(*) FILTER (WHERE a.spare > greatest(a.codes - a.count, 0)),
               count(*) FILTER (WHERE a.status = 3 AND a.codes < a.count),
               count(*) FILTER (WHERE a.codes > a.count), count(*) FILTER (WHERE a.quarantined > 0)
        FROM (SELECT * FROM attempt
              WHERE (status = 2 OR spare > 0 OR quarantined > 0 OR codes > count OR (status = 3 AND codes < count))
                AND placed_at > now() - make_interval(secs => $1)
              ORDER BY placed_at DESC, id DESC LIMIT $2) a
        JOIN supplier s ON s.id = a.supplier_id GROUP BY s.name
        """,
        PROBLEM_WINDOW_S,
        PURCHASES_MAX,
    )
    words = (
        PurchaseProblem.LATE,
        PurchaseProblem.SHORT,
        PurchaseProblem.SURPLUS,
        PurchaseProblem.QUARANTINED,
    )
    for name, *counts in rows:
        pulse.problems |= {(name, word.value): count for word, count in zip(words, counts, strict=True)}
