"""The invariants of orders (invariant 2: charged less refunded is the price of delivered and pending lines)."""

from __future__ import annotations

from typing import Final

from voucherd.audit.model import Check

# Statuses are 0 created, 1 pending, 2 finished, 3 cancelled, 4 deleted;
# payments 0 unpaid, 1 paid, 2 partially refunded, 3 refunded.

CHECKS: Final = (
    Check(
        "order-is-its-items",
        "an order's price, VAT and lines are the sums of its items, which follow one another without a gap",
        """
        SELECT o.id AS order_id, o.price_minor, i.price AS items_price_minor, o.vat_minor, i.vat AS items_vat_minor,
               o.lines, i.lines AS items_lines, i.contiguous
        FROM orders o LEFT JOIN (
            SELECT order_id, sum(pay_price_minor * amount) AS price, sum(pay_vat_minor * amount) AS vat,
                   sum(amount) AS lines, bool_and(first_line = line_before) AS contiguous
            FROM (SELECT *, sum(amount) OVER (PARTITION BY order_id ORDER BY item_no) - amount AS line_before
                  FROM order_item) item GROUP BY order_id) i ON i.order_id = o.id
        WHERE i.order_id IS NULL OR o.price_minor <> i.price OR o.vat_minor <> i.vat OR o.lines <> i.lines
           OR NOT i.contiguous
        """,
    ),
    Check(
        "order-charge-fits-lines",
        "what an order was charged, less refunds, is the price of its delivered and pending lines; VAT alike",
        """
        WITH dropped AS (
            SELECT i.order_id,
                   sum((i.pay_price_minor + i.pay_vat_minor)
                       * (least(c.line_to, i.first_line + i.amount) - greatest(c.line_from, i.first_line))) AS price,
                   sum(i.pay_vat_minor
                       * (least(c.line_to, i.first_line + i.amount) - greatest(c.line_from, i.first_line))) AS vat
            FROM outcome c JOIN order_item i ON i.order_id = c.order_id
             AND c.line_from < i.first_line + i.amount AND c.line_to > i.first_line
            WHERE c.lot_id IS NULL GROUP BY i.order_id),
        booked AS (SELECT order_id, sum(vat_minor) AS vat FROM entry WHERE order_id IS NOT NULL GROUP BY order_id)
        SELECT o.id AS order_id, o.charged_minor, o.refunded_minor, o.held_minor, due.price AS lines_minor,
               coalesce(b.vat, 0) AS entries_vat_minor, due.vat AS lines_vat_minor
        FROM orders o LEFT JOIN dropped d ON d.order_id = o.id LEFT JOIN booked b ON b.order_id = o.id
        CROSS JOIN LATERAL (
            SELECT CASE WHEN o.payment_status = 0 THEN 0
                        ELSE o.price_minor + o.vat_minor - coalesce(d.price, 0) END AS price,
                   CASE WHEN o.payment_status = 0 THEN 0 ELSE o.vat_minor - coalesce(d.vat, 0) END AS vat) due
        WHERE o.charged_minor - o.refunded_minor <> due.price OR coalesce(-b.vat, 0) <> due.vat
           OR o.held_minor NOT IN (0, o.price_minor + o.vat_minor)
        """,
    ),
    Check(
        "order-counts-its-outcomes",
        "an order counts as many finished and cancelled lines as there are outcomes",
        """
        SELECT coalesce(o.id, c.order_id) AS order_id, o.lines_finished, coalesce(c.finished, 0) AS outcomes_finished,
               o.lines_cancelled, coalesce(c.cancelled, 0) AS outcomes_cancelled
        FROM orders o FULL JOIN (
            SELECT order_id, sum(CASE WHEN lot_id IS NULL THEN 0 ELSE line_to - line_from END) AS finished,
                   sum(CASE WHEN lot_id IS NULL THEN line_to - line_from ELSE 0 END) AS cancelled
            FROM outcome GROUP BY order_id) c ON c.order_id = o.id
        WHERE o.id IS NULL OR o.lines_finished <> coalesce(c.finished, 0)
           OR o.lines_cancelled <> coalesce(c.cancelled, 0)
        """,
    ),
    Check(
        "order-status-fits",
        "an order's status, its payment and its lines agree",
        """
        SELECT id AS order_id, status, payment_status, charged_minor, refunded_minor, held_minor, lines,
               lines_finished, lines_cancelled, cancelling
        FROM orders
        WHERE NOT CASE status
                WHEN 0 THEN payment_status = 0 AND lines_finished = 0 AND lines_cancelled = 0
                WHEN 1 THEN (payment_status IN (0, 1) AND lines_cancelled = 0
                             OR payment_status = 2 AND lines_cancelled > 0)
                            AND lines_finished + lines_cancelled < lines AND deadline_at IS NOT NULL
                WHEN 2 THEN payment_status = 1 AND lines_finished = lines
                WHEN 3 THEN payment_status IN (0, 2, 3) AND lines_cancelled > 0
                            AND lines_finished + lines_cancelled = lines
                WHEN 4 THEN payment_status = 0 AND lines_finished = 0 AND lines_cancelled = 0
                ELSE false END
           OR NOT CASE payment_status
                WHEN 0 THEN charged_minor = 0 AND refunded_minor = 0 AND lines_finished = 0
                WHEN 1 THEN charged_minor = price_minor + vat_minor AND refunded_minor = 0 AND held_minor = 0
                WHEN 2 THEN lines_cancelled BETWEEN 1 AND lines - 1 AND held_minor = 0
                WHEN 3 THEN lines_finished = 0 AND refunded_minor = charged_minor AND held_minor = 0
                ELSE false END
           OR (held_minor <> 0 AND NOT (status = 1 AND resolving))
        """,
    ),
    Check(
        "waiting-is-what-is-open",
        "the lines that wait are exactly the open lines of pending orders, each on its own shelf",
        """
        WITH item AS (
            SELECT o.id AS order_id, o.company_id, o.deadline_at, v.product_id, i.face_minor,
                   i.first_line, i.first_line + i.amount AS end_line
            FROM orders o JOIN order_item i ON i.order_id = o.id JOIN product_version v ON v.id = i.version_id
            WHERE o.status = 1),
        edge AS (
            SELECT i.*, s.line_to AS line_from,
                   lead(s.line_from, 1, i.end_line) OVER (PARTITION BY i.order_id, i.first_line ORDER BY s.line_from,
                                                          s.line_to) AS line_to
            FROM item i CROSS JOIN LATERAL (
                SELECT i.first_line AS line_from, i.first_line AS line_to
                UNION ALL
                SELECT c.line_from, c.line_to FROM outcome c
                WHERE c.order_id = i.order_id AND c.line_from < i.end_line AND c.line_to > i.first_line) s),
        open AS (
            SELECT (order_id & 1)::smallint AS state, product_id, face_minor, company_id, order_id, line_from, line_to,
                   deadline_at
            FROM edge WHERE line_from < line_to),
        waits AS (  -- Waits of one item that touch are one open range.
            SELECT state, product_id, face_minor, company_id, order_id, min(line_from) AS line_from,
                   max(line_to) AS line_to, deadline_at
            FROM (SELECT *, sum(fresh) OVER (PARTITION BY order_id ORDER BY line_from) AS run
                  FROM (SELECT w.*, i.item_no,
                               (w.line_from IS DISTINCT FROM lag(w.line_to) OVER (
                                PARTITION BY w.order_id, i.item_no ORDER BY w.line_from))::int AS fresh
                        FROM waiting w LEFT JOIN order_item i ON i.order_id = w.order_id AND w.line_from >= i.first_line
                             AND w.line_from < i.first_line + i.amount) step) island
            GROUP BY state, product_id, face_minor, company_id, order_id, deadline_at, run)
        (SELECT 'open, but does not wait' AS wrong, * FROM (SELECT * FROM open EXCEPT SELECT * FROM waits) missing)
        UNION ALL
        (SELECT 'waits, but is not open' AS wrong, * FROM (SELECT * FROM waits EXCEPT SELECT * FROM open) extra)
        """,
    ),
    Check(
        "events-tell-every-version",
        "the events of an order are numbered 1 to its version, less those that were kept for their time, and are of its"
        " company and state",
        """
        SELECT o.id AS order_id, o.version, coalesce(e.count, 0) AS events, e.first, e.last
        FROM orders o CROSS JOIN event_mark m LEFT JOIN (
            SELECT order_id, count(*) AS count, count(DISTINCT seq) AS distinct_count, min(seq) AS first,
                   max(seq) AS last, min(company_id) AS company_min, max(company_id) AS company_max
            FROM event WHERE order_id IS NOT NULL GROUP BY order_id) e ON e.order_id = o.id
        WHERE CASE WHEN e.order_id IS NULL THEN (o.updated_at <= m.removed_at) IS NOT TRUE
              ELSE e.count <> e.last - e.first + 1 OR e.distinct_count <> e.count OR e.last <> o.version
                   OR NOT (e.first = 1 OR e.first > 1 AND (o.created_at <= m.removed_at) IS TRUE)
                   OR e.company_min <> o.company_id OR e.company_max <> o.company_id END
        """,
    ),
    Check(
        "states-never-meet",
        "sandbox and live share no wallet, lot, order or event",
        """
        SELECT 'wallet' AS place, id, state::bigint AS meets FROM wallet WHERE (id & 1) <> state
        UNION ALL SELECT 'lot', id, state FROM lot
                  WHERE (id & 1) <> state
                     OR CASE WHEN generated THEN state = 0 ELSE state = 1 AND attempt_id IS NULL END
        UNION ALL SELECT 'entry', wallet_id, order_id FROM entry WHERE (order_id & 1) <> (wallet_id & 1)
        UNION ALL SELECT 'outcome', order_id, lot_id FROM outcome WHERE (order_id & 1) <> (lot_id & 1)
        UNION ALL SELECT 'waiting', order_id, state FROM waiting WHERE (order_id & 1) <> state
        UNION ALL SELECT 'event', order_id, state FROM event
                  WHERE order_id IS NOT NULL AND (order_id & 1) IS DISTINCT FROM state
        UNION ALL SELECT 'offer', i.order_id, o.lot_id
                  FROM order_item i CROSS JOIN LATERAL unnest(i.offers) WITH ORDINALITY AS o (lot_id, place)
                  WHERE o.place % 2 = 1 AND (o.lot_id & 1) <> (i.order_id & 1)
        """,
    ),
)
