"""The invariants of purchases (invariant 4: one live purchase a line, and no code that a supplier gave us is lost)."""

from __future__ import annotations

from typing import Final

from voucherd.audit.model import Check

# An attempt's status is 0 calling, 1 asking, 2 unknown, 3 bought, 4 failed. The lines of one that was unknown, and that
# a person asks about again, may have been bought elsewhere meanwhile.

CHECKS: Final = (
    Check(
        "bought-for-by-one",
        "a line that is being bought waits with a purchase of its product that is under way and was made for it",
        """
        SELECT w.order_id, w.line_from, w.line_to, w.attempt_id, a.status
        FROM waiting w LEFT JOIN attempt a ON a.id = w.attempt_id
        WHERE w.attempt_id IS NOT NULL
          AND (a.id IS NULL OR a.status > 2
               OR (a.product_id, a.face_minor, a.state, a.urgent) <> (w.product_id, w.face_minor, w.state, w.urgent)
               OR NOT EXISTS (SELECT FROM attempt_line l WHERE l.attempt_id = w.attempt_id AND l.order_id = w.order_id
                              AND l.line_from <= w.line_from AND l.line_to >= w.line_to))
        """,
    ),
    Check(
        "purchase-once",
        "no line is in two purchases that are under way",
        """
        SELECT order_id, line_from, line_to, end_before, attempt_id
        FROM (SELECT l.*, max(l.line_to) OVER (PARTITION BY l.order_id ORDER BY l.line_from, l.attempt_id
                                               ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS end_before
              FROM attempt_line l JOIN attempt a ON a.id = l.attempt_id
              WHERE a.status < 2 AND NOT EXISTS (
                  SELECT FROM event e WHERE e.type = 'attempt.retried' AND e.data ->> 'attempt' = a.id::text)) live
        WHERE end_before > line_from
        """,
    ),
    Check(
        "purchase-is-its-lines",
        "a purchase asked for as many codes as it had lines, each inside one item of that product and state",
        """
        SELECT a.id AS attempt_id, a.count, coalesce(l.lines, 0) AS lines, coalesce(g.lines, 0) AS lines_archived,
               coalesce(l.astray, 0) AS lines_astray
        FROM attempt a LEFT JOIN (
            SELECT attempt_id, sum(lines) AS lines FROM archived_purchase GROUP BY 1) g ON g.attempt_id = a.id
        LEFT JOIN (
            SELECT l.attempt_id, sum(l.line_to - l.line_from) AS lines,
                   count(*) FILTER (WHERE i.order_id IS NULL OR l.line_to > i.first_line + i.amount
                                    OR v.product_id <> a.product_id OR i.face_minor <> a.face_minor
                                    OR (l.order_id & 1) <> a.state) AS astray
            FROM attempt_line l JOIN attempt a ON a.id = l.attempt_id
            LEFT JOIN order_item i ON i.order_id = l.order_id AND l.line_from >= i.first_line
                  AND l.line_from < i.first_line + i.amount
            LEFT JOIN product_version v ON v.id = i.version_id
            GROUP BY l.attempt_id) l ON l.attempt_id = a.id
        WHERE a.count <> coalesce(l.lines, 0) + coalesce(g.lines, 0) OR coalesce(l.astray, 0) <> 0
        """,
    ),
    Check(
        "purchase-codes-are-kept",
        "every code that a supplier gave us is in a lot of its purchase or in quarantine; a failed one has none",
        """
        SELECT coalesce(a.id, l.attempt_id, q.attempt_id) AS attempt_id, a.status, a.codes,
               coalesce(l.codes, 0) AS lots_codes, a.spare, coalesce(l.spare, 0) AS lots_spare, a.quarantined,
               coalesce(q.codes, 0) AS quarantined_codes
        FROM attempt a
        FULL JOIN (SELECT attempt_id, sum(size) AS codes, sum(spare) AS spare FROM lot WHERE attempt_id IS NOT NULL
                   GROUP BY attempt_id) l ON l.attempt_id = a.id
        FULL JOIN (SELECT attempt_id, count(*) AS codes FROM quarantined_code GROUP BY attempt_id) q
          ON q.attempt_id = a.id
        WHERE a.id IS NULL OR a.codes <> coalesce(l.codes, 0) OR a.spare <> coalesce(l.spare, 0)
           OR a.quarantined <> coalesce(q.codes, 0) OR (a.status = 4 AND l.attempt_id IS NOT NULL)
        """,
    ),
    Check(
        "lot-is-its-purchase",
        "a lot that was bought for somebody is of its purchase's product, face value, state and supplier",
        """
        SELECT l.id AS lot_id, l.attempt_id, l.product_id, l.face_minor, l.state, l.supplier
        FROM lot l LEFT JOIN attempt a ON a.id = l.attempt_id LEFT JOIN supplier s ON s.id = a.supplier_id
        WHERE l.attempt_id IS NOT NULL
          AND (a.product_id, a.face_minor, a.state, s.name)
              IS DISTINCT FROM (l.product_id, l.face_minor, l.state, l.supplier)
        """,
    ),
    Check(
        "purchase-legs-sum-to-zero",
        "what suppliers are owed for codes is what those codes are to us",
        """
        SELECT attempt_id, currency, sum(amount_minor) AS sum_minor
        FROM purchase_leg GROUP BY attempt_id, currency HAVING sum(amount_minor) <> 0
        """,
    ),
    Check(
        "wait-in-its-place",
        "a line waits in one place, ahead of others if it is a Resolve's, and only with a supplier that may sell it",
        """
        SELECT w.order_id, w.line_from, w.supplier_id, w.attempt_id, w.ask_at, w.urgent
        FROM waiting w LEFT JOIN orders o ON o.id = w.order_id
        WHERE num_nonnulls(w.supplier_id, w.attempt_id, w.ask_at) > 1 OR w.urgent IS DISTINCT FROM o.resolving
           OR (w.supplier_id IS NOT NULL AND NOT EXISTS (
               SELECT FROM offer f JOIN supplier s ON s.id = f.supplier_id
               WHERE f.supplier_id = w.supplier_id AND f.product_id = w.product_id AND f.state = w.state
                 AND s.state = w.state))
        """,
    ),
    Check(
        "cancelled-in-flight",
        "a cancelled order that is still pending has a purchase under way, and nothing else that it paid for waits",
        """
        SELECT o.id AS order_id, o.status, o.payment_status, count(w.attempt_id) AS waits_bought,
               count(w.order_id) - count(w.attempt_id) AS waits_idle
        FROM orders o LEFT JOIN waiting w ON w.order_id = o.id
        WHERE o.cancelling
        GROUP BY o.id, o.status, o.payment_status
        HAVING o.status IN (0, 4) OR (o.status = 1 AND (count(w.attempt_id) = 0
               OR (o.payment_status <> 0 AND count(w.order_id) > count(w.attempt_id))))
        """,
    ),
    Check(
        "quotes-are-their-suppliers",
        "quotes, offers and purchases are of the state of their supplier, and of the product of their quote",
        """
        SELECT 'quote' AS place, q.id::text AS id, q.supplier_id, q.state
        FROM quote q LEFT JOIN supplier s ON s.id = q.supplier_id
        WHERE (q.id & 1) <> q.state OR s.state IS DISTINCT FROM q.state
        UNION ALL
        SELECT 'offer', f.sku, f.supplier_id, f.state
        FROM offer f LEFT JOIN supplier s ON s.id = f.supplier_id LEFT JOIN quote q ON q.id = f.quote_id
        WHERE s.state IS DISTINCT FROM f.state OR (f.quote_id IS NOT NULL
              AND (q.supplier_id, q.product_id, q.face_minor, q.state)
                  IS DISTINCT FROM (f.supplier_id, f.product_id, f.face_minor, f.state))
        UNION ALL
        SELECT 'attempt', a.id::text, a.supplier_id, a.state
        FROM attempt a LEFT JOIN supplier s ON s.id = a.supplier_id LEFT JOIN quote q ON q.id = a.quote_id
        WHERE s.state IS DISTINCT FROM a.state
           OR (q.supplier_id, q.product_id, q.state) IS DISTINCT FROM (a.supplier_id, a.product_id, a.state)
           OR a.face_minor NOT BETWEEN q.face_minor AND coalesce(q.face_to_minor, q.face_minor)
        """,
    ),
    Check(
        "offered-what-was-there",
        "what an order was offered are lots and quotes of its product, face value and state",
        """
        SELECT i.order_id, i.item_no, o.number AS offer
        FROM order_item i CROSS JOIN LATERAL unnest(i.offers) WITH ORDINALITY AS o (number, place)
        JOIN product_version v ON v.id = i.version_id
        LEFT JOIN lot l ON o.number > 0 AND l.id = o.number
        LEFT JOIN quote q ON o.number < 0 AND q.id = -o.number
        WHERE o.place % 2 = 1
          AND ((coalesce(l.product_id, q.product_id), coalesce(l.state, q.state))
               IS DISTINCT FROM (v.product_id, (i.order_id & 1)::smallint)
               OR l.face_minor <> i.face_minor
               OR i.face_minor NOT BETWEEN q.face_minor AND coalesce(q.face_to_minor, q.face_minor))
        """,
    ),
)
