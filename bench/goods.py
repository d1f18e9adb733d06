"""A large catalogue, made in the database: products of many brands and currencies, most of them in stock."""

from __future__ import annotations

from typing import Final

from voucherd.db import Pool, transaction

BULK_S_MAX: Final = 1_800.0
CHUNK: Final = 20_000
BRANDS: Final = 5_000
CATEGORIES: Final = 20
RARE: Final = "rare"
RARE_EVERY: Final = 50_000
"""One product in so many is of the rare category, and has the rare word in its name."""
CURRENCIES: Final = {
    "EUR": 100_000_000,
    "USD": 92_319_055,
    "GBP": 117_000_000,
    "JPY": 611_808,
    "KWD": 301_204_819,
}

_WORDS: Final = (
    "{gift,game,music,coffee,travel,fashion,books,cinema,sports,garden,kitchen,mobile,home,pet,toy,beauty}"
)

_PRODUCTS: Final = """
    INSERT INTO product (id, slug, version_id) OVERRIDING SYSTEM VALUE
    SELECT $1 + n, 'p-' || ($1 + n), $2 + n FROM generate_series(1, $3) n"""
_VERSIONS: Final = f"""
    INSERT INTO product_version (id, product_id, brand_id, name, product_type, category, redeem_type, region,
        vat_category, async_delivery, face_currency, face_minor, price_minor, price_currency) OVERRIDING SYSTEM VALUE
    SELECT $2 + n, $1 + n, $4 + hash % {BRANDS},
           initcap(words[1 + hash % 16] || ' ' || words[1 + (hash / 16) % 16]) || ' ' || face || ' no ' || n
               || CASE WHEN n % {RARE_EVERY} = 1 THEN ' {RARE}' ELSE '' END,
           CASE hash % 3 WHEN 0 THEN 'gamecard' ELSE 'giftcard' END,
           CASE WHEN n % {RARE_EVERY} = 1 THEN '{RARE}' ELSE 'category-' || (hash / 7) % {CATEGORIES} END,
           'currency', 'ww', 'multi_purpose', false, currencies[1 + hash % {len(CURRENCIES)}], face,
           face - face / 20, currencies[1 + hash % {len(CURRENCIES)}]
    FROM (SELECT n, abs(hashint8($1 + n)) AS hash, 500 + abs(hashint8($1 - n)) % 50000 AS face
          FROM generate_series(1, $3) n) made,
         (SELECT '{_WORDS}'::text[] AS words, $5::text[] AS currencies) given"""  # noqa: S608 - Constants.
_LOTS: Final = """
    INSERT INTO lot (id, product_id, face_minor, state, supplier, purchase_minor, purchase_currency, purchase_fx_e8,
                     size)
    SELECT 2 * nextval('lot_number'), v.product_id, v.face_minor, 0, 'wholesale', v.price_minor, 'EUR', 100000000, 10
    FROM product_version v WHERE v.id > $1 AND v.id <= $1 + $2 AND v.id % 5 < 3"""


async def stock_catalogue(pool: Pool, count: int, news: int) -> None:
    """So many more products; three in five are in stock, and of the first `news` that is not announced yet."""
    before = await pool.fetchval("SELECT coalesce(max(id), 0) FROM product")
    for currency, eur_e8 in CURRENCIES.items():
        if currency != "EUR":
            await pool.execute(
                "INSERT INTO fx_rate (currency, day, eur_e8, source) VALUES ($1, '2026-01-01', $2, 'bench')"
                " ON CONFLICT DO NOTHING",
                *(currency, eur_e8),
            )
    first_brand = await pool.fetchval("SELECT id FROM brand WHERE slug = 'brand-0'")
    if first_brand is None:
        first_brand = await pool.fetchval("SELECT coalesce(max(id), 0) + 1 FROM brand")
        await pool.execute(
            "INSERT INTO brand (id, slug, name) OVERRIDING SYSTEM VALUE"
            " SELECT $1 + n, 'brand-' || n, 'Brand ' || n FROM generate_series(0, $2 - 1) n",
            *(first_brand, BRANDS),
        )
    indexes = await _drop_indexes(pool)
    for start in range(0, count, CHUNK):
        await _chunk(pool, min(CHUNK, count - start), first_brand)
    await pool.execute(
        "UPDATE product_listing SET stocked = true WHERE version_id % 5 < 3 AND product_id > $1",
        before + news,
        timeout=BULK_S_MAX,
    )
    async with transaction(pool) as tx:
        await tx.execute("SET LOCAL maintenance_work_mem = '1GB'")
        for definition in indexes:
            await tx.execute(definition, timeout=BULK_S_MAX)
    for table, last in (("brand", "id"), ("product", "id"), ("product_version", "id")):
        await pool.execute(
            f"SELECT setval(pg_get_serial_sequence('{table}', '{last}'), (SELECT max(id) FROM {table}))"  # noqa: S608 - Constants.
        )
    await pool.execute("VACUUM ANALYZE product_listing, product_place", timeout=BULK_S_MAX)
    await pool.execute("ANALYZE product, product_version, brand, lot", timeout=BULK_S_MAX)


async def _drop_indexes(pool: Pool) -> list[str]:
    """Drop what is quicker made when all rows are there; the statements that make it again."""
    rows = await pool.fetch(
        "SELECT indexname, indexdef FROM pg_indexes WHERE indexname = 'product_place_words'"
        " OR (tablename = 'product_listing' AND indexdef NOT LIKE '%UNIQUE%')"
    )
    for row in rows:
        await pool.execute(f"DROP INDEX {row['indexname']}")
    return [row["indexdef"] for row in rows]


async def _chunk(pool: Pool, count: int, first_brand: int) -> None:
    async with transaction(pool) as tx:
        product = await tx.fetchval("SELECT coalesce(max(id), 0) FROM product")
        version = await tx.fetchval("SELECT coalesce(max(id), 0) FROM product_version")
        await tx.execute(_PRODUCTS, product, version, count, timeout=BULK_S_MAX)
        await tx.execute(
            _VERSIONS, product, version, count, first_brand, list(CURRENCIES), timeout=BULK_S_MAX
        )
        await tx.execute(_LOTS, version, count, timeout=BULK_S_MAX)
