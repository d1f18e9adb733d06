"""What the operator has done before the load begins: companies with keys and money, products, stock, old orders."""

from __future__ import annotations

import itertools
import secrets
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from bench.stage import Stage
from bench.stock import Import, Imported
from voucherd.actors import SYSTEM
from voucherd.catalogue import store as catalogue
from voucherd.catalogue.products import ProductDraft
from voucherd.companies import store as company_store
from voucherd.companies.model import CompanyDraft
from voucherd.db import transaction
from voucherd.ids import ORDER_BLOCK_SIZE, Identifiers, State
from voucherd.keys import store as key_store
from voucherd.keys.key_text import KeyDraft
from voucherd.money import Money
from voucherd.vault.master_key import check_fingerprint, load_or_create_master
from voucherd.wallet import deeds as wallets

RATE_LIMIT_MAX: Final = 1_000_000
BALANCE: Final = "100000000.00 EUR"
MOVEMENTS_AT_ONCE: Final = 1_000_000
MOVEMENTS_S_MAX: Final = 300.0
_count = itertools.count(1)

_MOVEMENTS: Final = """
    INSERT INTO entry (wallet_id, seq, kind, amount_minor, balance_after_minor, held_after_minor, order_id, reference,
                       at)
    SELECT wallet_id, seq + 1 + n, CASE WHEN n % 1000 = 0 THEN 1 ELSE 2 END,
           CASE WHEN n % 1000 = 0 THEN 999 * 950 ELSE -950 END,
           balance_after_minor + 999 * 950 - n % 1000 * 950, held_after_minor,
           CASE WHEN n % 1000 <> 0 THEN (1::bigint << 50) + n * 2 END,
           CASE WHEN n % 1000 = 0 THEN 'invoice ' || n END, at + n * interval '1 us'
    FROM entry, generate_series($3::bigint, $4::bigint - 1) n WHERE wallet_id = $1 AND seq = $2
"""


@dataclass(frozen=True, slots=True)
class Buyer:
    """A company and its keys of one state."""

    company_id: int
    keys: tuple[str, ...]


class Seeder:
    """Fills the database through the service's own functions."""

    def __init__(self, stage: Stage, master: bytes) -> None:
        self._stage = stage
        self.ids = Identifiers(master)
        self._products: dict[str, tuple[int, int]] = {}

    @classmethod
    async def open(cls, stage: Stage) -> Seeder:
        """A seeder with the master key that the server will find."""
        master = load_or_create_master(stage.folder / "data" / "master.key", create=True)
        async with stage.pool.acquire() as conn:
            await check_fingerprint(conn, master)
        return cls(stage, master)

    async def buyers(self, count: int, *, keys: int = 1, state: State = State.LIVE) -> list[Buyer]:
        """New companies, each with money and so many keys."""
        made = []
        async with transaction(self._stage.pool) as tx:
            for _ in range(count):
                draft = CompanyDraft(f"Company {next(_count)}", "NL", verified=True)
                company = await company_store.add_company(tx, draft)
                key_draft = KeyDraft(rate_limit=RATE_LIMIT_MAX)
                issued = [await key_store.add_key(tx, company.id, state, key_draft) for _ in range(keys)]
                await wallets.top_up(tx, SYSTEM, company, state, Money.read(BALANCE), secrets.token_hex(8))
                made.append(Buyer(company.id, tuple(key.text for key in issued)))
        return made

    async def product(self, slug: str, *, stock: int = 0, async_delivery: bool = False) -> str:
        """A product with so many codes on its shelf; its slug."""
        draft = ProductDraft(
            slug=slug,
            name=slug.title(),
            brand=f"Brand {slug}",
            product_type="giftcard",
            category="gifts",
            redeem_type="currency",
            region="ww",
            face=Money.read("10.00 EUR"),
            selling=Money.read("9.50 EUR"),
            async_delivery=async_delivery,
        )
        async with transaction(self._stage.pool) as tx:
            version = await catalogue.add_product(tx, draft)
            brand_id = await tx.fetchval(
                "SELECT brand_id FROM product_version WHERE id = $1", version.version_id
            )
        self._products[slug] = version.product_id, brand_id
        if stock:
            await self.stock(slug, stock)
        return slug

    async def stock(self, slug: str, count: int) -> Imported:
        """Import so many new codes, in a process of its own as the operator's command would."""
        path = self._stage.folder / f"{slug}.csv"
        _write_codes(path, count)
        product_id, brand_id = self._products[slug]
        order = Import(str(path), product_id, brand_id)
        said = await self._stage.child([sys.executable, "-m", "bench.stock"], msgspec.json.encode(order))
        path.unlink()
        return msgspec.json.decode(said, type=Imported)

    async def left(self, slug: str) -> int:
        """How many codes of a product are still for sale."""
        product_id, _ = self._products[slug]
        query = "SELECT coalesce(sum(size - cursor), 0) FROM lot WHERE product_id = $1"
        return int(await self._stage.pool.fetchval(query, product_id))

    async def old_movements(self, company_id: int, count: int) -> None:
        """So many movements of the company's wallet: a top-up, 999 orders that spend it, a top-up …"""
        row = await self._stage.pool.fetchrow("SELECT id, seq FROM wallet WHERE company_id = $1", company_id)
        assert row is not None
        # What looks at every row anew is right for a batch of orders, and slow for years of them.
        async with transaction(self._stage.pool) as tx:
            await tx.execute("ALTER TABLE entry DISABLE TRIGGER USER")
            await tx.execute("ALTER TABLE wallet DISABLE TRIGGER USER")
            for start in range(0, count, MOVEMENTS_AT_ONCE):
                end = min(count, start + MOVEMENTS_AT_ONCE)
                await tx.execute(_MOVEMENTS, row["id"], row["seq"], start, end, timeout=MOVEMENTS_S_MAX)
            await tx.execute(
                "UPDATE wallet w SET seq = e.seq, balance_minor = e.balance_after_minor FROM entry e"
                " WHERE w.id = $1 AND e.wallet_id = $1 AND e.seq = $2",
                *(row["id"], row["seq"] + count),
            )
            await tx.execute("ALTER TABLE entry ENABLE TRIGGER USER")
            await tx.execute("ALTER TABLE wallet ENABLE TRIGGER USER")
        await self._stage.pool.execute("VACUUM ANALYZE entry", timeout=MOVEMENTS_S_MAX)

    async def old_orders(self, template_trx_id: int, count: int) -> None:
        """So many unconfirmed orders like this one, each a little older than the one before."""
        blocks = -(-count // ORDER_BLOCK_SIZE)
        async with transaction(self._stage.pool) as tx:
            # The ids come from blocks that no process will be given.
            await tx.execute(
                """
                CREATE TEMP TABLE fresh ON COMMIT DROP AS
                SELECT (block * $2 + n) * 2 AS id, row_number() OVER () AS age
                FROM (SELECT nextval('order_block') AS block FROM generate_series(1, $1)) blocks,
                     generate_series(0, $2 - 1) n
                LIMIT $3
                """,
                *(blocks, ORDER_BLOCK_SIZE, count),
            )
            await tx.execute(
                """
                INSERT INTO orders (id, company_id, type, status, payment_currency, payment_fx_e8, price_minor,
                                    vat_minor, lines, created_at, expires_at, updated_at)
                SELECT f.id, company_id, type, 0, payment_currency, payment_fx_e8, price_minor, vat_minor, lines,
                       created_at - f.age * interval '1 ms', expires_at, updated_at
                FROM orders, fresh f WHERE orders.id = $1
                """,
                template_trx_id,
            )
            await tx.execute(
                """
                INSERT INTO order_item
                SELECT f.id, item_no, version_id, amount, first_line, face_minor, face_fx_e8, price_currency,
                       price_fx_e8, price_minor, vat_minor, turnover_minor, pay_price_minor, pay_vat_minor,
                       pay_turnover_minor, offers
                FROM order_item, fresh f WHERE order_id = $1
                """,
                template_trx_id,
            )
        await self._stage.pool.execute("ANALYZE orders, order_item")


def _write_codes(path: Path, count: int) -> None:
    """A file as a wholesaler sends it: no code is ever the same twice."""
    batch = secrets.token_hex(4).upper()
    with path.open("w", encoding="ascii") as file:
        file.write("code,serial,expires\n")
        file.writelines(f"{batch}-{at * 2654435761 % 2**32:08X}-{at:08d},S{at:09d},\n" for at in range(count))
