"""The invariants of the wallets (invariant 1: entries sum to zero, balances are their sums, none is negative)."""

from __future__ import annotations

from typing import Final

from voucherd.audit.model import Check

CHECKS: Final = (
    Check(
        "entries-continue",
        "a wallet's entries behind those that are archived have no gap, and each carries on from the one before",
        """
        SELECT wallet_id, seq, amount_minor, hold_minor, balance_after_minor, held_after_minor
        FROM (SELECT e.*, lag(e.seq, 1, coalesce(l.seq, 0)) OVER chain AS seq_before,
                     lag(e.balance_after_minor, 1, coalesce(l.balance_minor, 0)) OVER chain AS balance_before,
                     lag(e.held_after_minor, 1, coalesce(l.held_minor, 0)) OVER chain AS held_before
              FROM entry e LEFT JOIN archived_ledger l ON l.wallet_id = e.wallet_id
              WHERE e.seq > coalesce(l.seq, 0)
              WINDOW chain AS (PARTITION BY e.wallet_id ORDER BY e.seq)) link
        WHERE seq <> seq_before + 1 OR balance_after_minor <> balance_before + amount_minor
           OR held_after_minor <> held_before + hold_minor
        """,
    ),
    Check(
        "payments-are-told",
        "a top-up or correction has its row of the trail and, unless a command, the program or an operator who"
        " was alone made it or it is play money, its approval",
        """
        SELECT e.wallet_id, e.seq, e.kind, e.amount_minor, e.reference, d.trail_id, d.approval_id
        FROM entry e JOIN wallet w ON w.id = e.wallet_id
        LEFT JOIN payment_deed d ON d.wallet_id = e.wallet_id AND d.seq = e.seq
        LEFT JOIN trail t ON t.id = d.trail_id AND t.company_id = w.company_id AND t.state = w.state
              AND t.detail ->> 'reference' = e.reference AND split_part(t.detail ->> 'amount', ' ', 2) = w.currency
              AND regexp_replace(replace(split_part(t.detail ->> 'amount', ' ', 1), '.', ''), '^(-?)0+(?=[0-9])', '\\1')
                  = e.amount_minor::text
        LEFT JOIN approval a ON a.id = d.approval_id AND a.status = 1 AND a.company_id = w.company_id
              AND a.state = w.state AND a.currency = w.currency AND a.amount_minor = e.amount_minor
              AND a.reference = e.reference AND a.kind = CASE e.kind WHEN 1 THEN 2 ELSE 3 END
        WHERE e.kind IN (1, 6) AND (d.wallet_id IS NULL OR CASE WHEN d.trail_id IS NULL
            THEN e.at > (SELECT applied_at FROM schema_migration WHERE name = 'safekeeping')
            ELSE t.id IS NULL
              OR (a.id IS NULL AND (e.kind = 6 OR t.action <> 'wallet.top-up'
                                    OR (w.state = 0 AND t.actor_kind NOT IN (3, 4)
                                        AND (t.actor_kind <> 0 OR EXISTS (
                                             SELECT FROM app_user u WHERE u.company_id IS NULL
                                             AND u.id IS DISTINCT FROM t.actor_id AND u.created_at <= t.at))))) END)
        """,
    ),
    Check(
        "wallet-is-its-entries",
        "a wallet's balance and hold are the sums of its entries",
        """
        SELECT w.id AS wallet_id, w.balance_minor, coalesce(e.amount, 0) AS entries_minor,
               coalesce(a.amount, 0) AS archived_minor, w.held_minor, coalesce(e.hold, 0) AS entries_hold_minor, w.seq,
               coalesce(e.count, 0) AS entries
        FROM wallet w FULL JOIN (
            SELECT wallet_id, sum(amount_minor) AS amount, sum(hold_minor) AS hold, count(*) AS count, max(seq) AS seq
            FROM entry GROUP BY wallet_id) e ON e.wallet_id = w.id
        LEFT JOIN (
            SELECT wallet_id, sum(refunded_minor - charged_minor) AS amount FROM archived_wallet GROUP BY 1) a
          ON a.wallet_id = w.id
        LEFT JOIN archived_ledger l ON l.wallet_id = w.id
        WHERE w.id IS NULL OR w.balance_minor <> coalesce(e.amount, 0) + coalesce(a.amount, 0)
           OR w.held_minor <> coalesce(e.hold, 0) OR w.seq <> greatest(e.seq, l.seq, 0)
        """,
    ),
    Check(
        "wallet-not-negative",
        "no wallet, at any time, had less than it held or less than nothing",
        """
        SELECT id AS wallet_id, NULL::bigint AS seq, balance_minor, held_minor FROM wallet
        WHERE held_minor < 0 OR balance_minor < held_minor
        UNION ALL
        SELECT wallet_id, seq, balance_after_minor, held_after_minor FROM entry
        WHERE held_after_minor < 0 OR balance_after_minor < held_after_minor
        """,
    ),
    Check(
        "legs-sum-to-zero",
        "the legs of every transfer sum to zero",
        """
        SELECT wallet_id, seq, sum(amount_minor) AS sum_minor
        FROM ledger_leg GROUP BY wallet_id, seq HAVING sum(amount_minor) <> 0
        """,
    ),
    Check(
        "wallet-holds-are-orders",
        "what a wallet holds is what its resolving orders hold",
        """
        SELECT w.id AS wallet_id, w.held_minor, o.company_id, o.payment_currency,
               coalesce(o.held, 0) AS orders_held_minor
        FROM wallet w FULL JOIN (
            SELECT company_id, payment_currency, (id & 1)::smallint AS state, sum(held_minor) AS held
            FROM orders WHERE held_minor <> 0 GROUP BY 1, 2, 3) o
          ON o.company_id = w.company_id AND o.payment_currency = w.currency AND o.state = w.state
        WHERE coalesce(w.held_minor, 0) <> coalesce(o.held, 0)
        """,
    ),
    Check(
        "order-entries-fit",
        "an order's entries are in its own wallet and sum to what it was charged, refunded and holds",
        """
        WITH booked AS (
            SELECT e.order_id, e.wallet_id, sum(e.amount_minor) AS amount, sum(e.hold_minor) AS hold
            FROM entry e WHERE e.order_id IS NOT NULL GROUP BY 1, 2)
        SELECT coalesce(o.id, b.order_id) AS order_id, b.wallet_id, o.charged_minor, o.refunded_minor, o.held_minor,
               coalesce(b.amount, 0) AS entries_minor, coalesce(b.hold, 0) AS entries_hold_minor
        FROM orders o FULL JOIN booked b ON b.order_id = o.id LEFT JOIN wallet w ON w.id = b.wallet_id
        WHERE o.id IS NULL OR coalesce(b.amount, 0) <> o.refunded_minor - o.charged_minor
           OR coalesce(b.hold, 0) <> o.held_minor
           OR (b.wallet_id IS NOT NULL AND (w.id IS NULL OR w.company_id <> o.company_id
               OR w.currency <> o.payment_currency OR w.state <> (o.id & 1)))
        """,
    ),
    Check(
        "archived-entries-fit",
        "how a wallet stood when entries left is the sum of what left and of the entries up to there that stayed",
        """
        SELECT coalesce(l.wallet_id, a.wallet_id) AS wallet_id, l.seq, l.balance_minor, l.held_minor,
               coalesce(a.amount, 0) AS archived_minor, coalesce(e.amount, 0) AS entries_minor,
               coalesce(e.hold, 0) AS entries_hold_minor
        FROM archived_ledger l FULL JOIN (
            SELECT wallet_id, sum(refunded_minor - charged_minor) AS amount FROM archived_wallet GROUP BY 1) a
          ON a.wallet_id = l.wallet_id
        LEFT JOIN LATERAL (
            SELECT sum(amount_minor) AS amount, sum(hold_minor) AS hold FROM entry
            WHERE wallet_id = l.wallet_id AND seq <= l.seq) e ON true
        WHERE CASE WHEN l.wallet_id IS NULL THEN a.amount <> 0
              ELSE l.balance_minor <> coalesce(a.amount, 0) + coalesce(e.amount, 0)
                   OR l.held_minor <> coalesce(e.hold, 0) END
        """,
    ),
)
