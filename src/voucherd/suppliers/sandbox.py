"""A supplier that sells nothing: generated `TEST-…` codes and chosen outcomes, for trying things out (OP-49).

It remembers what it did in a table, so that a purchase can be looked up from every process and after a restart.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

import asyncpg
import msgspec
from msgspec import Struct

from voucherd.db import Pool
from voucherd.money import BadAmount, Money, UnknownCurrency
from voucherd.suppliers.description import explained
from voucherd.suppliers.protocol import (
    BULK_MAX,
    Answer,
    Bought,
    Code,
    Finding,
    NotFound,
    QuoteFailed,
    Sku,
    SupplierQuote,
    SupplierRefused,
    Unclear,
    UnderWay,
    WantedCodes,
    Why,
)

DELAY_S_MAX: Final = 3_600.0
STOCK: Final = 1_000
SURPLUS: Final = 2
EXPIRES_AFTER: Final = timedelta(days=365)
_FAILURES: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError)
"""What the database does when it is away; a time-out is an OSError."""


class SandboxAnswer(StrEnum):
    """What becomes of a purchase."""

    FINISHED = "finished"
    OUT_OF_STOCK = "out-of-stock"
    FUNDS = "insufficient-balance"
    REJECTED = "rejected"
    PENDING = "pending"  # Under way until it is cancelled.
    SLOW = "slow"  # Under way, and delivered after `delay_s`.
    FAILS_LATER = "fails-later"  # Under way, and given up after `delay_s`.
    UNCLEAR = "unclear"  # Nothing is sold, and no answer comes.
    CRASH_AFTER_SALE = "crash-after-sale"  # Sold, and no answer comes, as if we had fallen just then.
    PARTIAL = "partial"  # Half of what was asked for, at least one.
    TOO_MANY = "too-many"  # Two codes more than were asked for.
    DUPLICATE = "duplicate"  # The first code is one that was sold before.


_REFUSALS: Final = {
    SandboxAnswer.OUT_OF_STOCK: Why.OUT_OF_STOCK,
    SandboxAnswer.FUNDS: Why.FUNDS,
    SandboxAnswer.REJECTED: Why.REJECTED,
}


class SandboxConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What the operator says of a sandbox supplier."""

    outcome: SandboxAnswer = SandboxAnswer.FINISHED
    delay_s: float = 0.0
    """For `slow` and `fails-later` until the end, for all others until the answer."""
    price: str = ""
    """Of one code, such as "9.50"; the face value where nothing is said."""
    currency: str = ""
    stock: int = STOCK
    fail_every: int = 0
    """Each so-manieth purchase is rejected, whatever the outcome; 0 for none."""
    bulk_max: int = 100


def read_config(config: Mapping[str, Any]) -> SandboxConfig:
    """The config; a ValueError of one line that names the key."""
    try:
        found = msgspec.convert(config, SandboxConfig)
    except msgspec.ValidationError as error:
        raise ValueError(explained(str(error))) from None
    if not 0 <= found.delay_s <= DELAY_S_MAX:
        raise ValueError(f"delay_s: must be between 0 and {DELAY_S_MAX:.0f}")
    if bool(found.price) != bool(found.currency):
        raise ValueError("currency: goes with a price, and a price with it")
    if found.price:
        _price(found)
    if found.stock < 0 or found.fail_every < 0:
        raise ValueError(f"{'stock' if found.stock < 0 else 'fail_every'}: must not be negative")
    if not 1 <= found.bulk_max <= BULK_MAX:
        raise ValueError(f"bulk_max: must be between 1 and {BULK_MAX}")
    return found


def _price(config: SandboxConfig) -> Money:
    try:
        money = Money.parse(config.price, config.currency)
    except UnknownCurrency:
        raise ValueError("currency: must be an ISO 4217 code") from None
    except BadAmount as error:
        raise ValueError(f"price: {error}") from None
    if money.minor <= 0:
        raise ValueError("price: must be above zero")
    return money


class SandboxPurchase(Struct, frozen=True):
    """A row of the sandbox's memory."""

    outcome: str
    sku: str
    count: int
    price_minor: int
    price_currency: str
    bought_at: datetime
    is_due: bool
    cancelled: bool


class SandboxSupplier:
    """Does what its config says."""

    looks_up = True

    def __init__(self, name: str, config: Mapping[str, Any], pool: Pool, timeout_s: float) -> None:
        self._name = name
        self._config = read_config(config)
        self._pool = pool
        self._timeout_s = timeout_s

    @property
    def bulk_max(self) -> int:
        """The config's own."""
        return self._config.bulk_max

    async def quote(self, skus: Sequence[Sku]) -> list[SupplierQuote]:
        """The chosen price and stock for everything."""
        if self._config.delay_s > self._timeout_s:
            await asyncio.sleep(self._timeout_s)
            raise QuoteFailed("no price: no answer in time")
        return [
            SupplierQuote(sku.sku, sku.face, self._price_of(sku.face), self._config.stock) for sku in skus
        ]

    async def buy(self, reference: str, wanted: WantedCodes) -> Answer:
        """The chosen outcome."""
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._buy(reference, wanted)
        except _FAILURES as error:
            return Unclear(type(error).__name__)

    async def look_up(self, reference: str, wanted: WantedCodes) -> Finding:
        """What the table says."""
        try:
            async with asyncio.timeout(self._timeout_s):
                return self._found(reference, await _find(self._pool, self._name, reference))
        except _FAILURES as error:
            return Unclear(type(error).__name__)

    async def cancel(self, reference: str, wanted: WantedCodes) -> Finding:
        """Cancelled, unless it is done."""
        try:
            async with asyncio.timeout(self._timeout_s):
                await _cancel(self._pool, self._name, reference)
        except _FAILURES as error:
            return Unclear(type(error).__name__)
        return await self.look_up(reference, wanted)

    async def close(self) -> None:
        """Nothing to let go of: the pool is not ours."""

    def _price_of(self, face: Money) -> Money:
        return _price(self._config) if self._config.price else face

    async def _buy(self, reference: str, wanted: WantedCodes) -> Answer:
        config, price = self._config, self._price_of(wanted.face)
        if price.currency != wanted.price_max.currency or price.minor > wanted.price_max.minor:
            return SupplierRefused(Why.PRICE, f"costs {price}")
        if config.stock < wanted.count:
            return SupplierRefused(Why.OUT_OF_STOCK)
        outcome = config.outcome
        if config.fail_every and await _next_number(self._pool) % config.fail_every == 0:
            outcome = SandboxAnswer.REJECTED
        if outcome in _REFUSALS:
            return SupplierRefused(_REFUSALS[outcome], outcome.value)
        if outcome is not SandboxAnswer.UNCLEAR:
            later = outcome in (SandboxAnswer.SLOW, SandboxAnswer.FAILS_LATER)
            delay_s = config.delay_s if later else 0.0
            await _remember(self._pool, self._name, reference, outcome, wanted, price, delay_s)
            if not later:
                await asyncio.sleep(config.delay_s)
        if outcome in (SandboxAnswer.UNCLEAR, SandboxAnswer.CRASH_AFTER_SALE):
            return Unclear(outcome.value)
        found = self._found(reference, await _find(self._pool, self._name, reference))
        return Unclear("forgotten") if isinstance(found, NotFound) else found

    def _found(self, reference: str, purchase: SandboxPurchase | None) -> Finding:
        if purchase is None:
            return NotFound()
        if purchase.cancelled:
            return SupplierRefused(Why.CANCELLED)
        if purchase.outcome == SandboxAnswer.PENDING or not purchase.is_due:
            return UnderWay(reference)
        if purchase.outcome == SandboxAnswer.FAILS_LATER:
            return SupplierRefused(Why.REJECTED, purchase.outcome)
        price = Money(purchase.price_minor, purchase.price_currency)
        return Bought(codes_of(self._name, reference, purchase), reference, price)


def codes_of(supplier: str, reference: str, purchase: SandboxPurchase) -> tuple[Code, ...]:
    """The codes of a purchase, computed: the same each time."""
    count = purchase.count
    if purchase.outcome == SandboxAnswer.PARTIAL:
        count = max(1, count // 2)
    if purchase.outcome == SandboxAnswer.TOO_MANY:
        count += SURPLUS
    names = [f"{supplier}\0{reference}\0{at}" for at in range(count)]
    if purchase.outcome == SandboxAnswer.DUPLICATE:
        names[0] = f"{supplier}\0{purchase.sku}"
    expires = purchase.bought_at.replace(microsecond=0) + EXPIRES_AFTER
    digests = [hashlib.sha256(name.encode()).hexdigest().upper() for name in names]
    return tuple(Code(f"TEST-{digest[:20]}", f"TS-{digest[20:32]}", expires) for digest in digests)


# ── the table ────────────────────────────────────────────────────────────────────────────────────────


async def _next_number(pool: Pool) -> int:
    number: int = await pool.fetchval("SELECT nextval('sandbox_purchase_number')")
    return number


async def _remember(
    pool: Pool,
    supplier: str,
    reference: str,
    outcome: SandboxAnswer,
    wanted: WantedCodes,
    price: Money,
    delay_s: float,
) -> None:
    # A second purchase under one reference would be ours to prevent; here it changes nothing.
    await pool.execute(
        """
        INSERT INTO sandbox_purchase (supplier, reference, outcome, sku, count, price_minor, price_currency, due_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, now() + make_interval(secs => $8)) ON CONFLICT DO NOTHING
        """,
        supplier,
        reference,
        outcome.value,
        wanted.sku,
        wanted.count,
        price.minor,
        price.currency,
        delay_s,
    )


async def _find(pool: Pool, supplier: str, reference: str) -> SandboxPurchase | None:
    row = await pool.fetchrow(
        """
        SELECT outcome, sku, count, price_minor, price_currency, bought_at, now() >= due_at, cancelled
        FROM sandbox_purchase WHERE supplier = $1 AND reference = $2
        """,
        supplier,
        reference,
    )
    return None if row is None else SandboxPurchase(*row)


async def _cancel(pool: Pool, supplier: str, reference: str) -> None:
    """Only what is still under way."""
    await pool.execute(
        """
        UPDATE sandbox_purchase SET cancelled = true
        WHERE supplier = $1 AND reference = $2 AND (outcome = 'pending' OR now() < due_at)
        """,
        supplier,
        reference,
    )
