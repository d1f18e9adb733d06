"""The tables brand, product, product_version, fx_rate and vat_rate, as prices need them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

from voucherd.catalogue.cache import VersionCache
from voucherd.catalogue.fx import BASE, EUR_E8_MAX, BadRates, DayRates
from voucherd.catalogue.products import (
    Leaflet,
    Listing,
    ProductChanges,
    ProductDraft,
    ProductVersion,
    amend,
    draft_of,
    slugify,
)
from voucherd.catalogue.rules import SLUG_LENGTH_MAX
from voucherd.db import Connection, Tx
from voucherd.money import DIGITS, RATE_ONE

PAGE_MAX: Final = 1_000

_CACHE: Final = VersionCache()

# A day is a day in UTC, whatever the session's time zone.
_TODAY: Final = "(now() AT TIME ZONE 'UTC')::date"

_VERSION: Final = """
    SELECT v.id AS version_id, v.product_id, p.slug, v.name, b.slug AS brand_slug, b.name AS brand_name,
           v.product_type, v.category, v.redeem_type, v.region, v.vat_category, v.async_delivery, v.incentive,
           v.face_currency, v.face_minor, v.face_min_minor, v.face_max_minor, v.price_minor, v.price_currency,
           v.fee_variable_e8, v.fee_fixed_minor, p.created_at, p.active, p.allow_loss
    FROM product_version v JOIN product p ON p.id = v.product_id JOIN brand b ON b.id = v.brand_id"""

DESCRIPTION: Final = (
    "brand_id, name, product_type, category, redeem_type, region, vat_category, async_delivery, incentive, "
    "face_currency, face_minor, face_min_minor, face_max_minor, price_minor, price_currency, "
    "fee_variable_e8, fee_fixed_minor, redeem_instructions, terms, image_url"
)
_DESCRIBED: Final = ", ".join(f"${at + 1}" for at in range(DESCRIPTION.count(",") + 1))

# Changes of products take turns, so that their numbers become visible in order (migration 0003).
_TAKE_TURNS: Final = "LOCK TABLE product_change IN SHARE ROW EXCLUSIVE MODE"


class ProductExists(Exception):
    """The slug is taken."""

    def __init__(self, slug: str) -> None:
        self.slug = slug
        super().__init__(f"there is a product {slug} already")


class UnknownProduct(LookupError):
    """No product has that slug."""

    def __init__(self, slug: str) -> None:
        self.slug = slug
        super().__init__(f"there is no product {slug[:SLUG_LENGTH_MAX]!a}")


@dataclass(frozen=True, slots=True)
class BrandRow:
    """A brand of products."""

    brand_id: int
    slug: str
    name: str


@dataclass(frozen=True, slots=True)
class FxRate:
    """The exchange rate in force for a currency: what one unit is worth in EUR."""

    currency: str
    day: date
    eur_e8: int
    source: str
    set_at: datetime


# ── products ──────────────────────────────────────────────────────────────────────────────────────────────


async def current(conn: Connection, slugs: Sequence[str], cache: VersionCache = _CACHE) -> dict[str, Listing]:
    """The products that have these slugs, as they stand now; unknown slugs are left out."""
    rows = await conn.fetch(
        "SELECT slug, active, version_id, created_at, allow_loss FROM product WHERE slug = ANY($1::text[])",
        slugs,
    )
    found = {row["version_id"]: cache.get(row["version_id"], row["created_at"]) for row in rows}
    missing = [version_id for version_id, version in found.items() if version is None]
    read = await _read(conn, missing, cache) if missing else {}
    return {
        row["slug"]: Listing(
            found[row["version_id"]] or read[row["version_id"]], row["active"], row["allow_loss"]
        )
        for row in rows
    }


async def for_sale(conn: Connection, product_ids: Sequence[int]) -> dict[int, bool]:
    """Whether each of these products is for sale."""
    rows = await conn.fetch("SELECT id, active FROM product WHERE id = ANY($1::int[])", product_ids)
    return {row[0]: row[1] for row in rows}


async def lock(tx: Tx, slugs: Sequence[str]) -> dict[str, Listing]:
    """The same, held still until the transaction ends; two that ask for many products take turns."""
    # Before any row, like every change, or it and a single change would wait for one another.
    await tx.execute(_TAKE_TURNS)
    await tx.execute("SELECT FROM product WHERE slug = ANY($1::text[]) ORDER BY id FOR NO KEY UPDATE", slugs)
    return await current(tx, slugs)


async def versions(
    conn: Connection, version_ids: Iterable[int], cache: VersionCache = _CACHE
) -> dict[int, ProductVersion]:
    """The versions with these ids; unknown ids are left out."""
    known: dict[int, ProductVersion] = {}
    missing: list[int] = []
    for version_id in set(version_ids):
        version = cache.get(version_id)
        if version is None:
            missing.append(version_id)
        else:
            known[version_id] = version
    return known | await _read(conn, missing, cache) if missing else known


async def list_products(
    conn: Connection,
    *,
    active: bool | None = None,
    brand_slug: str | None = None,
    after_slug: str = "",
    limit: int = PAGE_MAX,
) -> list[Listing]:
    """The products in order of their slugs, a page at a time, from the one behind `after_slug` on."""
    # The page is found among the slugs first: joined before, every page would read all products.
    rows = await conn.fetch(
        f"""{_VERSION}
            WHERE p.version_id = v.id AND p.id = ANY (ARRAY(
                SELECT q.id FROM product q
                WHERE q.slug > $1 AND ($2::boolean IS NULL OR q.active = $2)
                  AND ($3::text IS NULL OR EXISTS (
                      SELECT FROM product_version w JOIN brand c ON c.id = w.brand_id
                      WHERE w.id = q.version_id AND c.slug = $3))
                ORDER BY q.slug LIMIT $4))
            ORDER BY p.slug""",  # noqa: S608 - Constants of ours.
        after_slug,
        active,
        brand_slug,
        min(limit, PAGE_MAX),
    )
    return [Listing(_version(row), row["active"], row["allow_loss"]) for row in rows]


async def add_product(tx: Tx, draft: ProductDraft, *, active: bool = True) -> ProductVersion:
    """The first version of a new product; the caller tells the world of it."""
    await tx.execute(_TAKE_TURNS)
    brand = await add_or_get_brand(tx, draft.brand)
    # The two rows point at each other, so both ids are drawn before either is written.
    version_id = await tx.fetchval(
        f"""WITH drawn AS MATERIALIZED (
                SELECT nextval(pg_get_serial_sequence('product', 'id'))::integer AS product_id,
                       nextval(pg_get_serial_sequence('product_version', 'id'))::integer AS version_id),
            added AS (
                INSERT INTO product (id, slug, active, version_id) OVERRIDING SYSTEM VALUE
                SELECT product_id, $21, $22, version_id FROM drawn
                ON CONFLICT (slug) DO NOTHING RETURNING id, version_id)
            INSERT INTO product_version (id, product_id, {DESCRIPTION}) OVERRIDING SYSTEM VALUE
            SELECT version_id, id, {_DESCRIBED} FROM added RETURNING id""",  # noqa: S608 - Constants of ours.
        brand.brand_id,
        *_description(draft),
        draft.slug,
        active,
    )
    if version_id is None:
        raise ProductExists(draft.slug)
    return await _read_new(tx, version_id)


async def set_product(tx: Tx, slug: str, changes: ProductChanges) -> ProductVersion:
    """The product's newest version after the changes; the caller tells the world of it.

    Where nothing but `active` or `allow_loss` changes there is no new version.
    """
    # The locks make two operators' changes follow one another: the later amends what the earlier left.
    await tx.execute(_TAKE_TURNS)
    version_id = await tx.fetchval("SELECT version_id FROM product WHERE slug = $1 FOR NO KEY UPDATE", slug)
    if version_id is None:
        raise UnknownProduct(slug)
    before = await _read_new(tx, version_id)
    leaflet = (await leaflets(tx, [version_id]))[version_id]
    draft = amend(before, changes, leaflet)
    if draft != draft_of(before, leaflet):
        brand = await add_or_get_brand(tx, draft.brand)
        version_id = await tx.fetchval(
            f"""INSERT INTO product_version (product_id, {DESCRIPTION})
                VALUES ($21, {_DESCRIBED})
                RETURNING id""",  # noqa: S608 - Constants of ours.
            brand.brand_id,
            *_description(draft),
            before.product_id,
        )
    await tx.execute(
        """UPDATE product SET version_id = $2, active = coalesce($3, active), allow_loss = coalesce($4, allow_loss)
           WHERE id = $1""",
        before.product_id,
        version_id,
        changes.active,
        changes.allow_loss,
    )
    return await _read_new(tx, version_id)


async def take_turns(tx: Tx) -> None:
    """Be the only one who changes products, until the transaction ends."""
    await tx.execute(_TAKE_TURNS)


async def leaflets(conn: Connection, version_ids: Sequence[int]) -> dict[int, Leaflet]:
    """What these versions say to people."""
    rows = await conn.fetch(
        """SELECT id, coalesce(redeem_instructions, ''), coalesce(terms, ''), coalesce(image_url, '')
           FROM product_version WHERE id = ANY($1::integer[])""",
        version_ids,
    )
    return {row[0]: Leaflet(*row[1:]) for row in rows}


async def add_or_get_brand(tx: Tx, name: str) -> BrandRow:
    """The brand of that name, or of the slug that it makes, made if there is none yet (OP-159)."""
    slug = slugify(name)
    found = "SELECT id AS brand_id, slug, name FROM brand WHERE name = $2 OR slug = $1 ORDER BY name <> $2 LIMIT 1"
    row = await tx.fetchrow(found, slug, name)
    if row is None:
        await tx.execute(
            "INSERT INTO brand (slug, name) VALUES ($1, $2) ON CONFLICT (slug) DO NOTHING", slug, name
        )
        row = await tx.fetchrow(found, slug, name)
    assert row is not None, "It was there, or has just been made."
    return BrandRow(**row)


async def brand_of(conn: Connection, product_id: int) -> int:
    """The brand whose codes a product's are."""
    brand_id = await conn.fetchval(
        "SELECT v.brand_id FROM product p JOIN product_version v ON v.id = p.version_id WHERE p.id = $1",
        product_id,
    )
    return int(brand_id)


async def find_brand(conn: Connection, slug: str) -> int | None:
    """The brand of this slug."""
    brand_id: int | None = await conn.fetchval("SELECT id FROM brand WHERE slug = $1", slug)
    return brand_id


async def list_brands(conn: Connection) -> list[BrandRow]:
    """Every brand, in order of their slugs."""
    rows = await conn.fetch("SELECT id AS brand_id, slug, name FROM brand ORDER BY slug")
    return [BrandRow(**row) for row in rows]


# ── rates ─────────────────────────────────────────────────────────────────────────────────────────────────


async def rates(conn: Connection, currencies: Iterable[str]) -> dict[str, int]:
    """What one unit of each currency is worth in EUR today, ×1e8; currencies without a rate are left out."""
    return (await dated_rates(conn, currencies))[0]


async def dated_rates(conn: Connection, currencies: Iterable[str]) -> tuple[dict[str, int], dict[str, date]]:
    """The same, and the day of each; the base has none."""
    wanted = [currency for currency in set(currencies) if currency != BASE]
    found, days = {BASE: RATE_ONE}, {}
    if wanted:
        rows = await conn.fetch(
            f"""SELECT wanted.currency, latest.eur_e8, latest.day
                FROM unnest($1::text[]) AS wanted (currency)
                CROSS JOIN LATERAL (
                    SELECT eur_e8, day FROM fx_rate WHERE currency = wanted.currency AND day <= {_TODAY}
                    ORDER BY day DESC LIMIT 1) latest""",  # noqa: S608 - A constant of ours.
            wanted,
        )
        for currency, eur_e8, day in rows:
            found[currency], days[currency] = eur_e8, day
    return found, days


async def set_rate(tx: Tx, currency: str, eur_e8: int, source: str = "manual") -> date:
    """Sets today's rate of one currency and gives back the day; it replaces what the day had before."""
    today: date = await tx.fetchval(f"SELECT {_TODAY}")
    await set_rates(tx, [DayRates(today, {currency: eur_e8})], source)
    return today


async def set_rates(tx: Tx, days: Sequence[DayRates], source: str) -> int:
    """Sets the rates of these days and gives back how many; each replaces what its day had before."""
    rows = [(currency, rates.day, eur_e8) for rates in days for currency, eur_e8 in rates.eur_e8.items()]
    for currency, _day, eur_e8 in rows:
        if currency not in DIGITS:
            raise BadRates(f"{currency[:40]!a} is not a currency code of ISO 4217")
        if currency == BASE:
            raise BadRates(f"{BASE}: is the base and has no rate")
        assert 0 < eur_e8 <= EUR_E8_MAX, "Rates are read by parse_rate and parse_ecb only."
    await tx.execute(
        """INSERT INTO fx_rate (currency, day, eur_e8, source)
           SELECT currency, day, eur_e8, $4
           FROM unnest($1::text[], $2::date[], $3::bigint[]) AS fresh (currency, day, eur_e8)
           ON CONFLICT (currency, day) DO UPDATE
           SET eur_e8 = excluded.eur_e8, source = excluded.source, set_at = now()""",
        [row[0] for row in rows],
        [row[1] for row in rows],
        [row[2] for row in rows],
        source,
    )
    return len(rows)


async def list_rates(conn: Connection) -> list[FxRate]:
    """The rate in force today for every currency that has one."""
    rows = await conn.fetch(
        f"""SELECT DISTINCT ON (currency) currency, day, eur_e8, source, set_at FROM fx_rate
            WHERE day <= {_TODAY} ORDER BY currency, day DESC"""  # noqa: S608 - A constant of ours.
    )
    return [FxRate(**row) for row in rows]


async def vat_rates(conn: Connection, countries: Iterable[str]) -> dict[str, int]:
    """The standard VAT rate of today in each country, in basis points; countries without one are left out."""
    rows = await conn.fetch(
        f"""SELECT wanted.country, latest.rate_bp
            FROM unnest($1::text[]) AS wanted (country)
            CROSS JOIN LATERAL (
                SELECT rate_bp FROM vat_rate WHERE country = wanted.country AND valid_from <= {_TODAY}
                ORDER BY valid_from DESC LIMIT 1) latest""",  # noqa: S608 - A constant of ours.
        list(set(countries)),
    )
    return {row["country"]: row["rate_bp"] for row in rows}


# ── rows ──────────────────────────────────────────────────────────────────────────────────────────────────


async def _read(
    conn: Connection, version_ids: Sequence[int], cache: VersionCache
) -> dict[int, ProductVersion]:
    rows = await conn.fetch(f"{_VERSION} WHERE v.id = ANY($1::integer[])", version_ids)
    read: dict[int, ProductVersion] = {}
    for row in rows:
        version = _version(row)
        cache.keep(version, row["created_at"])
        read[version.version_id] = version
    return read


def forget(version_ids: Iterable[int]) -> None:
    """Whoever makes versions makes sure that nothing is remembered under their ids."""
    for version_id in version_ids:
        _CACHE.forget(version_id)


async def _read_new(tx: Tx, version_id: int) -> ProductVersion:
    """A version that this transaction may have made. It is not kept: the transaction may yet be undone."""
    forget([version_id])
    row = await tx.fetchrow(f"{_VERSION} WHERE v.id = $1", version_id)
    assert row is not None, "A product always points at a version."
    return _version(row)


def _version(row: Any) -> ProductVersion:
    values = dict(row)
    del values["created_at"], values["active"], values["allow_loss"]
    return ProductVersion(**values)


def _description(draft: ProductDraft) -> tuple[object, ...]:
    """The draft's columns, in the order of `DESCRIPTION` after the brand."""
    return (
        draft.name,
        draft.product_type,
        draft.category,
        draft.redeem_type,
        draft.region,
        draft.vat_category,
        draft.async_delivery,
        draft.incentive,
        *draft.figures(),
        draft.redeem_instructions or None,
        draft.terms or None,
        draft.image_url or None,
    )
