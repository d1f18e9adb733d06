"""The invariants of codes (invariant 3: no code on two lines, no line with two codes, no cursor past its end)."""

from __future__ import annotations

from typing import Final

from voucherd.audit.model import Check

CHECKS: Final = (
    Check(
        "line-once",
        "no line has two outcomes, and none lies outside its order",
        """
        SELECT c.order_id, c.line_from, c.line_to, c.end_before, o.lines
        FROM (SELECT *, max(line_to) OVER (PARTITION BY order_id ORDER BY line_from
                                           ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS end_before
              FROM outcome) c LEFT JOIN orders o ON o.id = c.order_id
        WHERE c.end_before > c.line_from OR c.line_from < 0 OR c.line_to <= c.line_from OR o.id IS NULL
           OR c.line_to > o.lines
        """,
    ),
    Check(
        "code-once",
        "no code is on two lines, and none is withheld and on a line",
        """
        SELECT lot_id, seq_from, seq_to, end_before, order_id, line_from
        FROM (SELECT *, max(seq_to) OVER (PARTITION BY lot_id ORDER BY seq_from, order_id, line_from
                                          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS end_before
              FROM (SELECT lot_id, seq_from, seq_from + line_to - line_from AS seq_to, order_id, line_from
                    FROM outcome WHERE lot_id IS NOT NULL
                    UNION ALL SELECT lot_id, seq_from, seq_to, NULL, NULL FROM withheld
                    UNION ALL SELECT lot_id, seq_from, seq_to, NULL, NULL FROM archived_codes) taken) c
        WHERE end_before > seq_from
        """,
    ),
    Check(
        "code-of-its-product",
        "a delivered line got a code of the product and face value that its item asks for",
        """
        SELECT c.order_id, c.line_from, c.line_to, c.lot_id, l.product_id, l.face_minor, i.item_no
        FROM outcome c LEFT JOIN lot l ON l.id = c.lot_id
        LEFT JOIN order_item i ON i.order_id = c.order_id AND c.line_from >= i.first_line
              AND c.line_from < i.first_line + i.amount
        LEFT JOIN product_version v ON v.id = i.version_id
        WHERE c.lot_id IS NOT NULL AND (l.id IS NULL OR i.order_id IS NULL OR c.line_to > i.first_line + i.amount
              OR l.product_id <> v.product_id OR l.face_minor <> i.face_minor)
        """,
    ),
    Check(
        "cursor-is-what-is-sold",
        "a lot's cursor is the end of what was sold or withheld, without gaps, and never passes the lot's end",
        """
        SELECT coalesce(l.id, c.lot_id) AS lot_id, l.size, l.cursor, coalesce(c.sold, 0) AS sold,
               coalesce(c.furthest, 0) AS furthest
        FROM lot l FULL JOIN (
            SELECT lot_id, sum(seq_to - seq_from) AS sold, max(seq_to) AS furthest
            FROM (SELECT lot_id, seq_from, seq_from + line_to - line_from AS seq_to
                  FROM outcome WHERE lot_id IS NOT NULL
                  UNION ALL SELECT lot_id, seq_from, seq_to FROM withheld
                  UNION ALL SELECT lot_id, seq_from, seq_to FROM archived_codes) taken GROUP BY lot_id) c
          ON c.lot_id = l.id
        WHERE l.id IS NULL OR l.cursor <> coalesce(c.sold, 0) OR l.cursor <> coalesce(c.furthest, 0)
           OR l.cursor > l.size OR l.cursor < 0
        """,
    ),
    Check(
        "lot-has-its-codes",
        "a lot has a code at each position but for those that went to another lot; a generated one has none",
        """
        SELECT coalesce(l.id, c.lot_id) AS lot_id, l.size, l.generated, coalesce(c.count, 0) AS codes, c.first, c.last,
               coalesce(r.released, 0) AS released
        FROM lot l FULL JOIN (
            SELECT lot_id, count(*) AS count, min(seq) AS first, max(seq) AS last FROM code GROUP BY lot_id) c
          ON c.lot_id = l.id
        LEFT JOIN (
            SELECT w.lot_id, sum(r.seq_to - r.seq_from) AS released,
                   sum((SELECT count(*) FROM code k
                        WHERE k.lot_id = w.lot_id AND k.seq >= r.seq_from AND k.seq < r.seq_to)) AS still_here
            FROM withheld_release r JOIN withheld w ON w.id = r.withheld_id GROUP BY w.lot_id) r ON r.lot_id = l.id
        WHERE l.id IS NULL OR (l.generated AND c.lot_id IS NOT NULL) OR r.still_here > 0
           OR (NOT l.generated AND (coalesce(c.count, 0) + coalesce(r.released, 0) <> l.size OR c.first < 0
                                    OR c.last >= l.size))
        """,
    ),
)
