"""What changed since the audit's last mark: the same checks, over a part of the tables.

Every change of an order appends an event, every movement of money an entry with the next number of its wallet, and a
lot is sold from its cursor on. So the marks are few: the last event, and each wallet's last entry with its balance.
What was well up to there and goes on without a break is well. A row from before the marks that somebody changed by hand
has no event: only the whole audit sees it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec
from msgspec import Struct

from voucherd import trail
from voucherd.actors import Actor
from voucherd.audit.model import Check
from voucherd.db import Connection, Tx
from voucherd.trail.chain import Head, heads
from voucherd.trail.heads import read_head

ACTION: Final = "audit.mark"
PART_S_MAX: Final = 3_600.0


# A wallet as the last run found it, or as it stood when entries of it left for the archive, if that is later.
_KNOWN: Final = """(
    SELECT DISTINCT ON (id) id, seq, balance_minor, held_minor FROM (
        SELECT id, seq, balance_minor, held_minor FROM audit_wallet
        UNION ALL SELECT wallet_id, seq, balance_minor, held_minor FROM archived_ledger) known
    ORDER BY id, seq DESC)"""


class AuditMark(Struct, frozen=True):
    """Up to where all was well."""

    at: datetime
    event_id: int
    heads: list[Head]


# What is looked at again, each as a table of the transaction: the entries since the marks; the orders that something
# happened to, with all that wait; the lots that those were sold from, with the first place of theirs; lots that came
# since, a day earlier for imports that were under way; and the purchases of all these, with those that are under way.
_PARTS: Final = {
    "audited_entry": f"""
        SELECT e.* FROM wallet w LEFT JOIN {_KNOWN} m ON m.id = w.id
        CROSS JOIN LATERAL (SELECT * FROM entry WHERE wallet_id = w.id AND seq > coalesce(m.seq, 0) OFFSET 0) e
    """,  # noqa: S608 - Constants of ours.
    "audited_order": """
        SELECT DISTINCT order_id AS id FROM (
            SELECT order_id FROM event WHERE id > {event_id} UNION ALL SELECT order_id FROM waiting
            UNION ALL SELECT order_id FROM audited_entry) changed
        WHERE order_id IS NOT NULL
    """,
    "audited_lot": """
        SELECT c.lot_id AS id, min(c.seq_from) AS low FROM audited_order a JOIN outcome c ON c.order_id = a.id
        WHERE c.lot_id IS NOT NULL GROUP BY c.lot_id
    """,
    "new_lot": "SELECT id, attempt_id FROM lot WHERE imported_at > '{at}'::timestamptz - interval '1 day'",
    "audited_attempt": """
        SELECT id FROM attempt WHERE status IN (0, 1, 2)
        UNION SELECT a.id FROM supplier s CROSS JOIN LATERAL (
            SELECT id FROM attempt WHERE supplier_id = s.id AND placed_at > '{at}'::timestamptz - interval '1 day'
            OFFSET 0) a
        UNION SELECT l.attempt_id FROM audited_order o JOIN attempt_line l ON l.order_id = o.id
        UNION SELECT attempt_id FROM waiting WHERE attempt_id IS NOT NULL
        UNION SELECT attempt_id FROM new_lot WHERE attempt_id IS NOT NULL
        UNION SELECT (data ->> 'attempt')::uuid FROM event WHERE id > {event_id} AND type LIKE 'attempt.%'
    """,
}

_KEYS: Final = {"audited_entry": "wallet_id, seq"}
"""What rows are looked up by, where it is not their id."""

# These stand in the place of the tables of their names. A check that adds up by order or by purchase sees whole orders
# and whole purchases, as it does in all of the tables.
_CHANGED: Final = """
    orders AS (SELECT t.* FROM audited_order a JOIN orders t ON t.id = a.id),
    order_item AS (SELECT t.* FROM audited_order a JOIN order_item t ON t.order_id = a.id),
    outcome AS (SELECT t.* FROM audited_order a JOIN outcome t ON t.order_id = a.id),
    entry AS (SELECT t.* FROM audited_order a JOIN entry t ON t.order_id = a.id),
    event AS (SELECT t.* FROM audited_order a JOIN event t ON t.order_id = a.id)
"""
_NEW_ENTRIES: Final = """
    entry AS (SELECT * FROM audited_entry),
    ledger_leg AS (
        SELECT t.* FROM audited_entry a CROSS JOIN LATERAL (
            SELECT * FROM ledger_leg WHERE wallet_id = a.wallet_id AND seq = a.seq OFFSET 0) t)
"""
_PURCHASES: Final = """
    attempt AS (SELECT t.* FROM audited_attempt a JOIN attempt t ON t.id = a.id),
    attempt_line AS (SELECT t.* FROM audited_attempt a JOIN attempt_line t ON t.attempt_id = a.id),
    quarantined_code AS (SELECT t.* FROM audited_attempt a JOIN quarantined_code t ON t.attempt_id = a.id),
    lot AS (SELECT t.* FROM audited_attempt a JOIN lot t ON t.attempt_id = a.id),
    purchase_leg AS (
        SELECT t.* FROM audited_attempt a CROSS JOIN LATERAL (
            SELECT * FROM purchase_leg WHERE attempt_id = a.id OFFSET 0) t)
"""
# From the outcome on that stands before the first one of these orders.
_SOLD_SINCE: Final = """
    outcome AS (
        SELECT t.* FROM audited_lot a CROSS JOIN LATERAL (
            SELECT * FROM outcome WHERE lot_id = a.id AND seq_from >= coalesce(
                (SELECT max(seq_from) FROM outcome WHERE lot_id = a.id AND seq_from < a.low), 0) OFFSET 0) t)
"""
_NEW_LOTS: Final = """
    lot AS (SELECT t.* FROM new_lot a JOIN lot t ON t.id = a.id),
    code AS (
        SELECT t.* FROM new_lot a CROSS JOIN LATERAL (SELECT * FROM code WHERE lot_id = a.id OFFSET 0) t)
"""
_QUOTES: Final = """
    attempt AS (SELECT t.* FROM audited_attempt a JOIN attempt t ON t.id = a.id),
    quote AS (
        SELECT * FROM quote WHERE at > '{at}'::timestamptz - interval '1 day'
            OR id IN (SELECT quote_id FROM offer) OR id IN (SELECT quote_id FROM attempt))
"""

# Sums that are few by themselves, with the few entries that stayed behind.
_ALL: Final = "entry AS (SELECT * FROM entry)"

NARROWED: Final = {
    "archived-entries-fit": _ALL,
    "payments-are-told": _NEW_ENTRIES,
    "wallet-not-negative": _NEW_ENTRIES,
    "legs-sum-to-zero": _NEW_ENTRIES,
    "code-once": _SOLD_SINCE,
    "lot-has-its-codes": _NEW_LOTS,
    "bought-for-by-one": _PURCHASES,
    "purchase-once": _PURCHASES,
    "purchase-is-its-lines": _PURCHASES,
    "purchase-codes-are-kept": _PURCHASES,
    "lot-is-its-purchase": _PURCHASES,
    "purchase-legs-sum-to-zero": _PURCHASES,
    "quotes-are-their-suppliers": _QUOTES,
}
"""The part of the tables for a check, where it is not the orders that changed."""

GONE_ON: Final = {
    "entries-continue": f"""
        SELECT wallet_id, seq, amount_minor, hold_minor, balance_after_minor, held_after_minor
        FROM (SELECT e.*, lag(e.seq, 1, coalesce(m.seq, 0)) OVER chain AS seq_before,
                     lag(e.balance_after_minor, 1, coalesce(m.balance_minor, 0)) OVER chain AS balance_before,
                     lag(e.held_after_minor, 1, coalesce(m.held_minor, 0)) OVER chain AS held_before
              FROM audited_entry e LEFT JOIN {_KNOWN} m ON m.id = e.wallet_id
              WINDOW chain AS (PARTITION BY e.wallet_id ORDER BY e.seq)) link
        WHERE seq <> seq_before + 1 OR balance_after_minor <> balance_before + amount_minor
           OR held_after_minor <> held_before + hold_minor
    """,  # noqa: S608 - Constants of ours.
    "wallet-is-its-entries": f"""
        SELECT coalesce(w.id, m.id) AS wallet_id, w.balance_minor,
               coalesce(m.balance_minor, 0) + coalesce(e.amount, 0) AS entries_minor, w.held_minor,
               coalesce(m.held_minor, 0) + coalesce(e.hold, 0) AS entries_hold_minor, w.seq,
               coalesce(e.seq, m.seq, 0) AS entries
        FROM wallet w FULL JOIN {_KNOWN} m ON m.id = w.id LEFT JOIN (
            SELECT wallet_id, sum(amount_minor) AS amount, sum(hold_minor) AS hold, max(seq) AS seq
            FROM audited_entry GROUP BY wallet_id) e ON e.wallet_id = w.id
        WHERE w.id IS NULL OR w.balance_minor <> coalesce(m.balance_minor, 0) + coalesce(e.amount, 0)
           OR w.held_minor <> coalesce(m.held_minor, 0) + coalesce(e.hold, 0) OR w.seq <> coalesce(e.seq, m.seq, 0)
    """,  # noqa: S608 - Constants of ours.
    "cursor-is-what-is-sold": """
        SELECT a.id AS lot_id, l.size, l.cursor, coalesce(b.seq_to, 0) + c.sold AS sold, c.furthest
        FROM audited_lot a LEFT JOIN lot l ON l.id = a.id
        LEFT JOIN LATERAL (
            SELECT max(seq_to) AS seq_to FROM (
                (SELECT seq_from + line_to - line_from AS seq_to FROM outcome WHERE lot_id = a.id AND seq_from < a.low
                 ORDER BY seq_from DESC LIMIT 1)
                UNION ALL SELECT seq_to FROM archived_codes WHERE lot_id = a.id AND seq_from < a.low) before) b ON true
        CROSS JOIN LATERAL (
            SELECT sum(seq_to - seq_from) AS sold, max(seq_to) AS furthest FROM (
                SELECT seq_from, seq_from + line_to - line_from AS seq_to FROM outcome
                WHERE lot_id = a.id AND seq_from >= a.low
                UNION ALL SELECT seq_from, seq_to FROM archived_codes
                WHERE lot_id = a.id AND seq_from >= a.low) taken) c
        WHERE l.id IS NULL OR l.cursor <> coalesce(b.seq_to, 0) + c.sold OR l.cursor <> c.furthest
           OR l.cursor > l.size OR l.cursor < 0
    """,
}
"""Checks that go on from a mark instead of beginning at nothing."""

# The rows that vouch for each other: none can be moved alone.
_HASH: Final = """
    SELECT encode(sha256(convert_to(coalesce(string_agg(line, E'\n' ORDER BY line COLLATE "C"), ''), 'UTF8')), 'hex')
    FROM (SELECT concat_ws(' ', 'check', name, (extract(epoch FROM at) * 1000000)::bigint, event_id) AS line
          FROM audit_mark
          UNION ALL SELECT concat_ws(' ', 'wallet', id, seq, balance_minor, held_minor) FROM audit_wallet) marks
"""


async def marked(conn: Connection, names: list[str]) -> AuditMark | None:
    """The marks of the last run; None if they are not those that it wrote, not of all checks, or too old."""
    row = await conn.fetchrow(
        f"""
        SELECT m.at, m.event_id, t.detail ->> 'hash' = ({_HASH}) AS believed, t.detail -> 'heads' AS heads
        FROM (SELECT min(at) AS at, min(event_id) AS event_id, min(trail_id) AS trail_id, array_agg(name) AS names
              FROM audit_mark) m
        JOIN trail t ON t.id = m.trail_id AND t.action = $2 CROSS JOIN event_mark e
        WHERE m.names @> $1::text[] AND e.removed <= m.event_id
        """,  # noqa: S608 - Constants of ours.
        names,
        ACTION,
    )
    if row is None or not row["believed"]:
        return None
    texts = msgspec.json.decode(row["heads"] or "[]", type=list[str])
    return AuditMark(row["at"], row["event_id"], [read_head(text) for text in texts])


async def gather(tx: Tx, mark: AuditMark) -> int:
    """Put together what changed since, for this transaction; how many orders that are."""
    for name, sql in _PARTS.items():
        part = sql.format(event_id=mark.event_id, at=mark.at.isoformat())
        await tx.execute(f"CREATE TEMPORARY TABLE {name} ON COMMIT DROP AS {part}", timeout=PART_S_MAX)
        # A check that looks up what belongs to each order must not read all of them for each.
        await tx.execute(f"CREATE INDEX ON {name} ({_KEYS.get(name, 'id')})")
        await tx.execute(f"ANALYZE {name}")
    return int(await tx.fetchval("SELECT count(*) FROM audited_order"))


def narrowed(check: Check, mark: AuditMark) -> tuple[str, str]:
    """The tables that stand in for others, and the query: the check's own, or the one that goes on from a mark."""
    if check.name in GONE_ON:
        return "", GONE_ON[check.name]
    return f"WITH {NARROWED.get(check.name, _CHANGED).format(at=mark.at.isoformat())}", check.sql


async def move_marks(tx: Tx, actor: Actor, names: list[str], event_id: int) -> None:
    """Write down that all was well in this transaction's snapshot, which has every event up to that one."""
    await tx.execute(
        """
        INSERT INTO audit_wallet AS m (id, seq, balance_minor, held_minor)
        SELECT id, seq, balance_minor, held_minor FROM wallet
        ON CONFLICT (id) DO UPDATE
        SET seq = excluded.seq, balance_minor = excluded.balance_minor, held_minor = excluded.held_minor
        WHERE (m.seq, m.balance_minor, m.held_minor)
              IS DISTINCT FROM (excluded.seq, excluded.balance_minor, excluded.held_minor)
        """
    )
    await tx.execute("DELETE FROM audit_mark")
    await tx.execute(
        "INSERT INTO audit_mark (name, at, event_id, trail_id)"
        " SELECT name, now(), $2, 0 FROM unnest($1::text[]) AS name",
        names,
        event_id,
    )
    detail = {"hash": await tx.fetchval(_HASH), "heads": [str(head) for head in await heads(tx)]}
    await trail.record(tx, actor, ACTION, "books", detail)
    await tx.execute("UPDATE audit_mark SET trail_id = currval(pg_get_serial_sequence('trail', 'id'))")
