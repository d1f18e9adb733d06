"""Claims of work for a supplier: what they cost with a thousand and with a million waits, and how even turns are."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from bench.figures import Row, judged
from bench.jobs import Spread, jain, spread
from bench.session import Session, sound
from voucherd.db import Pool, transaction
from voucherd.ids import State
from voucherd.money import RATE_ONE, Money
from voucherd.orders.caches import OrderCaches
from voucherd.orders.model import Order
from voucherd.orders.rules.ruling import Windows
from voucherd.purchasing import claims
from voucherd.purchasing.dispatcher import Dispatcher
from voucherd.suppliers.offer_book import OfferBook
from voucherd.suppliers.protocol import (
    Answer,
    Bought,
    Code,
    Finding,
    NotFound,
    Sku,
    SupplierQuote,
    WantedCodes,
)
from voucherd.suppliers.registry import Spec
from voucherd.suppliers.store import (
    FreshQuote,
    SupplierDraft,
    SupplierRow,
    add_offer,
    add_supplier,
    save_quotes,
)
from voucherd.vault.seal import Sealer

SLUG: Final = "queued"
CLAIMS: Final = 200
SHORT: Final = 60
"""Waits of each company in the short queue: enough for all claims."""
CALLS: Final = 8
"""Purchases of one claim: the supplier's limit of calls at once."""
TIMES_THE_SMALL_MAX: Final = 2.0
JAIN_MIN: Final = 0.99
SPLIT_S_MAX: Final = 600.0


class Instant:
    """A supplier that sells at once, in this process: what is left is our own work."""

    looks_up = True
    bulk_max = 100

    async def quote(self, skus: Sequence[Sku]) -> list[SupplierQuote]:
        """Never asked: the quotes are written beforehand."""
        return [SupplierQuote(sku.sku, sku.face, Money.read("9.00 EUR"), 1_000_000_000) for sku in skus]

    async def buy(self, reference: str, wanted: WantedCodes) -> Answer:
        """Sell."""
        return Bought(tuple(Code(f"{reference}-{at}") for at in range(wanted.count)), reference[:8])

    async def look_up(self, reference: str, wanted: WantedCodes) -> Finding:
        """Nothing is ever unclear."""
        return NotFound()

    async def cancel(self, reference: str, wanted: WantedCodes) -> Finding:
        """Nothing is ever taken back."""
        return NotFound()

    async def close(self) -> None:
        """Nothing is open."""


async def measure(session: Session) -> None:
    """Claim from a short queue, then from a long one; then deliver from the long one."""
    plan, pool = session.plan, session.stage.pool
    await session.seeder.product(SLUG, async_delivery=True)
    keys = list(session.keys_by_company.values())[: plan.fair_companies]
    supplier = await _supplier(pool)
    short, _ = await _with_queue(session, supplier, keys, plan.fair_companies * SHORT)
    session.add(Row(what=f"claim of {CALLS} from {plan.fair_companies * SHORT:,} waits", times=short))
    long, shares = await _with_queue(session, supplier, keys, plan.queued_lines)
    ratio, index = long.p50_ms / short.p50_ms, jain(shares)
    session.add(
        Row(
            what=f"claim of {CALLS} from {plan.queued_lines:,} waits",
            times=long,
            more=f"{ratio:.2f} × the short queue",
            goal=judged(f"≤ {TIMES_THE_SMALL_MAX:g} × the short", ratio <= TIMES_THE_SMALL_MAX),
        )
    )
    session.add(
        Row(
            what=f"· turns of {len(keys)} companies in it",
            more=f"Jain {index:.4f}",
            goal=judged("Jain ≥ 0.99", index >= JAIN_MIN),
        )
    )
    await _deliver(session)
    # A million waits that nobody serves would keep the worker busy while other parts measure.
    async with transaction(pool) as tx:
        await tx.execute("ALTER TABLE waiting DISABLE TRIGGER USER")
        await tx.execute("DELETE FROM waiting", timeout=SPLIT_S_MAX)
        await tx.execute("ALTER TABLE waiting ENABLE TRIGGER USER")
    await pool.execute("VACUUM ANALYZE waiting", timeout=SPLIT_S_MAX)


async def _supplier(pool: Pool) -> SupplierRow:
    """A supplier with a quote for the product, and stock without end."""
    draft = SupplierDraft("bench", "http", State.LIVE, {}, quote_age_s=86_400, concurrency_max=CALLS)
    async with transaction(pool) as tx:
        row = await add_supplier(tx, draft, Sealer(secrets.token_bytes(32)))
        product_id = await tx.fetchval("SELECT id FROM product WHERE slug = $1", SLUG)
        await add_offer(tx, row, product_id, sku=SLUG, face_minor=1_000)
        await save_quotes(
            tx, row, [FreshQuote(product_id, 1_000, 1_000_000_000, 900, None, "EUR", RATE_ONE)], ()
        )
    return row


async def _with_queue(
    session: Session, supplier: SupplierRow, keys: list[str], lines: int
) -> tuple[Spread, list[int]]:
    """How long claims take with so many waits of one line each, and what each company got."""
    plan, pool = session.plan, session.stage.pool
    each = min(plan.large_codes, lines // len(keys))
    async with session.stage.server("--no-worker", confirm_wait_s=0) as server:
        sound(
            await server.load(
                keys=keys,
                connections=len(keys),
                operation="confirm",
                slug=SLUG,
                amount=each,
                ends_as="pending",
                rounds_max=max(1, lines // (each * len(keys))),
                patience_s=120,
            )
        )
    await _split(pool, supplier.id)
    waits = await pool.fetchval("SELECT count(*) FROM waiting WHERE supplier_id IS NOT NULL")
    assert waits >= lines * 0.99, f"{waits} wait, not {lines}"
    return await _claims(pool, supplier)


async def _split(pool: Pool, supplier_id: int) -> None:
    """Make a wait of its own of every line: the longest queue that so many lines can be.

    Other parts left waits of other products, which are none of this supplier's.
    """
    ours = "attempt_id IS NULL AND product_id = (SELECT id FROM product WHERE slug = $1)"
    async with transaction(pool) as tx:
        # What looks at every row anew is right for a claim, and slow for a million of them.
        await tx.execute("ALTER TABLE waiting DISABLE TRIGGER USER")
        await tx.execute("CREATE TEMP TABLE whole (LIKE waiting) ON COMMIT DROP")
        await tx.execute(f"INSERT INTO whole SELECT * FROM waiting WHERE {ours}", SLUG)  # noqa: S608 - A constant.
        await tx.execute(f"DELETE FROM waiting WHERE {ours}", SLUG, timeout=SPLIT_S_MAX)  # noqa: S608 - A constant.
        await tx.execute(
            """
            INSERT INTO waiting (state, product_id, face_minor, company_id, order_id, line_from, line_to, not_before,
                                 deadline_at, supplier_id)
            SELECT state, product_id, face_minor, company_id, order_id, n, n + 1, not_before, deadline_at, $1
            FROM whole CROSS JOIN LATERAL generate_series(line_from, line_to - 1) n
            """,
            supplier_id,
            timeout=SPLIT_S_MAX,
        )
        await tx.execute("ALTER TABLE waiting ENABLE TRIGGER USER")
    await pool.execute("VACUUM ANALYZE waiting", timeout=SPLIT_S_MAX)


async def _claims(pool: Pool, supplier: SupplierRow) -> tuple[Spread, list[int]]:
    turns, book, times = claims.Turns(), OfferBook(), []
    for _ in range(CLAIMS):
        began = time.perf_counter()
        made = await claims.claim(pool, book, supplier, bulk_max=1, worker="bench", turns=turns)
        times.append(time.perf_counter() - began)
        assert len(made) == CALLS, f"{len(made)} of {CALLS}"
        await pool.execute(
            "UPDATE attempt SET status = 4, ended_at = now() WHERE id = ANY($1::uuid[])",
            [attempt.id for attempt in made],
        )
    rows = await pool.fetch(
        "SELECT count(*) FROM (SELECT company_id FROM attempt_line l JOIN orders o ON o.id = l.order_id"
        " JOIN attempt a ON a.id = l.attempt_id ORDER BY a.placed_at DESC LIMIT $1) last GROUP BY company_id",
        CLAIMS * CALLS,
    )
    return spread(times[CLAIMS // 10 :]), [row[0] for row in rows]


async def _deliver(session: Session) -> None:
    """Buy and deliver from the long queue with a supplier that answers at once."""
    pool, plan = session.stage.pool, session.plan
    moved: list[Order] = []

    def open_instant(_spec: Spec, _pool: Pool) -> Instant:
        return Instant()

    caches = OrderCaches(Windows(timedelta(hours=72), timedelta(seconds=30)))
    dispatcher = Dispatcher(pool, Sealer(secrets.token_bytes(32)), caches, moved.extend, open_instant)
    before = await pool.fetchval("SELECT coalesce(sum(codes), 0) FROM attempt")
    began = time.monotonic()
    while time.monotonic() - began < plan.load_s:
        await dispatcher.dispatch()
        await asyncio.sleep(0)
    await dispatcher.settled()
    took_s = time.monotonic() - began
    codes = await pool.fetchval("SELECT coalesce(sum(codes), 0) FROM attempt") - before
    await dispatcher.stop()
    session.add(
        Row(
            what="· bought and delivered from it, 100 codes a purchase",
            rate=codes / took_s,
            more=f"{CALLS} purchases at once, a supplier that answers at once",
        )
    )
