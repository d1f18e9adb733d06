"""Years of trade as rows: whatever grows with orders, written with plain inserts and without statistics."""

from __future__ import annotations

from typing import Final

from voucherd.db import Pool, transaction

FIRST: Final = 2_000_000
"""Below the first id of any process, as older orders are."""
BLOCK: Final = 1 << 27
LOT_SIZE: Final = 10_000
OTHERS: Final = 20
"""Companies that share half of all orders; the other half is one company's."""

# An order of the history by its number i: when, whose, and how it stands. Most are old, a quarter is of the last day;
# an order that was never confirmed is not kept for longer than 31 days.
_PAST: Final = """
    SELECT i, {first} + 2 * i AS id, at, at + interval '1 day' AS expires_at,
           CASE WHEN i % 2 = 0 THEN {company} ELSE {company} + 1 + i / 2 % {others} END AS company_id,
           CASE WHEN m < 3 AND at < now() - interval '30 days' THEN 2 WHEN m < 3 THEN 0 WHEN m < 6 THEN 3
                WHEN m < 8 THEN 4 WHEN m = 9 THEN 1 ELSE 2 END AS status,
           m < 3 AND at < now() - interval '1 day' AND at >= now() - interval '30 days' AS expired
    FROM (SELECT i, i % 100 AS m, now() - interval '60 days' * power(({upto} - i)::float8 / ({upto} - {start}), 3)
                 - interval '1 minute' AS at FROM generate_series({start}, {upto} - 1) i) numbered
"""

_SCATTERED: Final = "i % 97, i"
"""Neighbours in time lie on pages of their own, as they do where many companies trade, however few there are here."""

_FILL: Final = (
    # ── orders ──
    """
    INSERT INTO orders (id, company_id, type, status, payment_status, payment_currency, payment_fx_e8, price_minor,
        vat_minor, lines, lines_finished, lines_cancelled, version, created_at, expires_at, updated_at, deadline_at,
        reference)
    SELECT id, company_id, 0, status, CASE status WHEN 1 THEN 1 WHEN 2 THEN 1 WHEN 3 THEN 3 ELSE 0 END, 'EUR',
           100000000, 0, 0, 1, (status = 2)::int, (status = 3)::int,
           CASE WHEN status = 0 AND NOT expired THEN 1 ELSE 2 END, at, expires_at, at,
           CASE WHEN status = 1 THEN now() + interval '1 day' END, 'invoice ' || i
    FROM ({past}) past ORDER BY {scattered}
    """,
    """
    INSERT INTO order_item (order_id, item_no, version_id, amount, first_line, face_minor, face_fx_e8, price_currency,
        price_fx_e8, price_minor, vat_minor, turnover_minor, pay_price_minor, pay_vat_minor, pay_turnover_minor, offers)
    SELECT id, 0, CASE WHEN status = 1 THEN {later} ELSE {gift} END, 1, 0, 1000, 100000000, 'EUR', 100000000, 0, 0, 0,
           0, 0, 0, '{{}}'
    FROM ({past}) past
    """,
    """
    UPDATE lot SET cursor = least(size, {upto} - {lot_size} * (l.place - 1))
    FROM unnest({lots}) WITH ORDINALITY AS l (id, place)
    WHERE lot.id = l.id AND {upto} > {lot_size} * (l.place - 1)
    """,
    """
    INSERT INTO outcome (order_id, line_from, line_to, lot_id, seq_from, at)
    SELECT id, 0, 1, CASE WHEN status = 2 THEN ({lots})[1 + i / {lot_size}] END,
           CASE WHEN status = 2 THEN i % {lot_size} END, at
    FROM ({past}) past WHERE status IN (2, 3)
    """,
    """
    INSERT INTO waiting (state, product_id, face_minor, company_id, order_id, line_from, line_to, not_before,
        deadline_at)
    SELECT 0, {later_product}, 1000, company_id, id, 0, 1, at, now() + interval '1 day'
    FROM ({past}) past WHERE status = 1
    """,
    """
    INSERT INTO entry (wallet_id, seq, kind, amount_minor, balance_after_minor, held_after_minor, order_id, at)
    SELECT w.id, w.seq + row_number() OVER (PARTITION BY w.id ORDER BY i), CASE WHEN i % 50 = 8 THEN 3 ELSE 2 END, 0,
           w.balance_minor, w.held_minor, past.id, past.at
    FROM ({past}) past JOIN wallet w ON w.company_id = past.company_id AND w.state = 0 WHERE status IN (2, 3)
    """,
    """
    INSERT INTO event (at, company_id, state, type, order_id, seq)
    SELECT e.at, company_id, 0, e.type, id, e.seq FROM ({past}) past CROSS JOIN LATERAL (
        SELECT 1 AS seq, past.at AS at, 'order.created' AS type UNION ALL
        SELECT 2, CASE WHEN expired THEN past.expires_at ELSE past.at END,
               CASE status WHEN 0 THEN 'order.expired' WHEN 1 THEN 'order.pending' WHEN 2 THEN 'order.finished'
                           WHEN 3 THEN 'order.cancelled' ELSE 'order.deleted' END
        WHERE status <> 0 OR expired) e
    ORDER BY i, seq
    """,
    """
    INSERT INTO event (at, type, data, state) SELECT at, 'product.updated', jsonb_build_object('slug', 'gift-10',
        'active', true, 'stocked', true), 0 FROM ({past}) past WHERE i % 20 = 0
    """,
    # ── who saw and did what ──
    """
    INSERT INTO reveal (at, order_id, company_id, line_from, lines, via, actor_kind)
    SELECT at, id, company_id, 0, 1, 0, 2 FROM ({past}) past WHERE status = 2
    """,
    """
    INSERT INTO trail (at, actor_kind, actor_id, actor, action, subject, company_id, state)
    SELECT at, 1, 1, 'somebody', 'order.confirm', id::text, company_id, 0 FROM ({past}) past WHERE i % 4 < 2
    """,
    """
    INSERT INTO line_view (order_id, line, link_viewed_at, voucher_viewed_at)
    SELECT id, 0, at, at FROM ({past}) past WHERE status = 2 AND i % 5 = 0
    """,
    """
    INSERT INTO order_pin (order_id, hash, set_at)
    SELECT id, sha256(id::text::bytea), at FROM ({past}) past WHERE i % 10 = 0
    """,
    """
    INSERT INTO idempotency (company_id, state, key, request, began_at, running_until, order_id, answer)
    SELECT company_id, 0, sha256(id::text::bytea), sha256('x'), greatest(at, now() - interval '29 days'), at, id, 'x'
    FROM ({past}) past
    """,
    """
    INSERT INTO approval (kind, company_id, state, order_id, amount_minor, currency, requested_by, requested_at,
        ends_at, status, decided_by, decided_at)
    SELECT 1, company_id, 0, id, 1, 'EUR', {asker}, at, expires_at, 1, {decider}, at FROM ({past}) past WHERE i % 10 = 0
    """,
    """
    INSERT INTO approval (kind, company_id, state, reference, amount_minor, currency, requested_by, requested_at,
        ends_at, status, decided_by, decided_at)
    SELECT 2, company_id, 0, 'payment ' || i, 1, 'EUR', {asker}, at, expires_at, 1, {decider}, at
    FROM ({past}) past WHERE i % 10 = 4
    """,
    # ── what clients were told ──
    """
    INSERT INTO order_webhook (order_id, url) SELECT id, 'https://hooks.example.com/' || id
    FROM ({past}) past WHERE i % 10 = 1
    """,
    """
    INSERT INTO webhook_delivery (webhook_id, event_id, type, status, attempts, tries, created_at)
    SELECT {webhook}, e.id, e.type, CASE WHEN e.id % 50 = 0 THEN 2 ELSE 1 END, 1, 1,
           greatest(e.at, now() - interval '29 days')
    FROM ({past}) past JOIN event e ON e.order_id = past.id WHERE past.company_id = {company}
    """,
    """
    INSERT INTO webhook_attempt (webhook_id, event_id, number, sent_at, ms, url, http)
    SELECT webhook_id, event_id, 1, created_at, 5, 'https://hooks.example.com/', 200
    FROM webhook_delivery WHERE attempts = 1 AND NOT EXISTS (
        SELECT FROM webhook_attempt a WHERE a.webhook_id = webhook_delivery.webhook_id
                                        AND a.event_id = webhook_delivery.event_id)
    """,
    """
    INSERT INTO mail (at, recipients, subject, body, sent_at, next_at, secret, ends_at)
    SELECT at, '{{a@example.com}}', 'An order', CASE WHEN i % 40 = 0 THEN '' ELSE 'text' END, at, NULL, i % 40 = 0,
           CASE WHEN i % 40 = 0 THEN at END
    FROM (SELECT i, greatest(at, now() - interval '29 days') AS at FROM ({past}) past WHERE i % 4 = 0) letter
    """,
    # ── what was bought for orders ──
    """
    INSERT INTO attempt (id, supplier_id, state, product_id, face_minor, sku, quote_id, price_minor, price_max_minor,
        count, urgent, status, worker, lease_until, placed_at, settles_at, ended_at, call_ms, codes)
    SELECT md5(id::text)::uuid, {supplier}, 0, {bought_product}, 1000, 'B', {quote}, 900, 900, 1, false,
           CASE WHEN i % 40 = 0 THEN 4 ELSE 3 END, 'w', at, at, at, at, 5, CASE WHEN i % 40 = 0 THEN 0 ELSE 1 END
    FROM ({past}) past WHERE i % 4 = 0 ORDER BY {scattered}
    """,
    """
    INSERT INTO attempt_line (attempt_id, order_id, line_from, line_to)
    SELECT md5(id::text)::uuid, id, 0, 1 FROM ({past}) past WHERE i % 4 = 0
    """,
    """
    INSERT INTO lot (id, product_id, face_minor, state, supplier, purchase_minor, purchase_currency, purchase_fx_e8,
        size, cursor, imported_at, attempt_id)
    SELECT nextval('lot_number') * 2, {bought_product}, 1000, 0, 'one', 900, 'EUR', 100000000, 1, 1, at,
           md5(id::text)::uuid
    FROM ({past}) past WHERE i % 4 = 0 AND i % 40 <> 0
    """,
    """
    INSERT INTO quote (id, supplier_id, state, product_id, face_minor, price_minor, currency, fx_e8, at)
    SELECT nextval('quote_number') * 2, {supplier}, 0, {bought_product}, 1000, 900, 'EUR', 100000000, at
    FROM ({past}) past WHERE i % 4 = 0
    """,
    # ── people at pages ──
    """
    INSERT INTO session (key, user_id, csrf, address, agent, created_at, expires_at)
    SELECT sha256(('s' || i)::bytea), {asker}, sha256('x'), '192.0.2.1', 'a', now(), now() + interval '1 day'
    FROM ({past}) past WHERE i % 20 = 0
    """,
    """
    INSERT INTO account_link (hash, user_id, kind, ends_at)
    SELECT sha256(('l' || i)::bytea), {decider}, 'invitation', now() + interval '1 day'
    FROM ({past}) past WHERE i % 20 = 0
    """,
    """
    INSERT INTO passkey_challenge (hash, network, ends_at)
    SELECT sha256(('c' || i)::bytea), '10.0.' || i, now() + interval '1 day' FROM ({past}) past WHERE i % 20 = 0
    """,
)

GROWING: Final = (
    *(
        "orders",
        "order_item",
        "outcome",
        "waiting",
        "entry",
        "wallet",
        "event",
        "reveal",
        "trail",
        "line_view",
    ),
    *("order_pin", "idempotency", "approval", "order_webhook", "webhook_delivery", "webhook_attempt", "mail"),
    *("attempt", "attempt_line", "lot", "quote", "code", "session", "account_link"),
    *("passkey_challenge", "trail_seal", "spend"),
)
"""The tables of the history: nothing looks at them by itself, so nobody knows how large they are."""


async def keep_unknown(pool: Pool) -> None:
    """Let nothing gather statistics, and begin the ids of new orders behind those of the history."""
    for table in GROWING:
        await pool.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
    await pool.execute("SELECT setval('order_block', $1)", BLOCK)


async def fill(pool: Pool, start: int, upto: int, places: dict[str, object]) -> None:
    """Add the orders of these numbers, and all that came of them; `places` are the ids that the rows point at."""
    values: dict[str, object] = {"start": start, "upto": upto, "first": FIRST, "others": OTHERS}
    values |= {"lot_size": LOT_SIZE, "scattered": _SCATTERED} | places
    past = _PAST.format(**values)
    async with transaction(pool) as tx:
        for statement in _FILL:
            await tx.execute(statement.format(past=past, **values), timeout=300)
