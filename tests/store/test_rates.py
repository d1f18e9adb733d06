"""Exchange rates and VAT rates in a real PostgreSQL."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from voucherd.catalogue import store
from voucherd.catalogue.fx import BadRates, DayRates
from voucherd.catalogue.vat import EU_COUNTRIES
from voucherd.db import Pool, transaction
from voucherd.money import RATE_ONE


async def test_the_newest_rate_that_is_not_in_the_future_applies(pool: Pool) -> None:
    """OP-50: by the database's clock; EUR is always exactly one, and a currency without a rate is left out."""
    today: date = await pool.fetchval("SELECT (now() AT TIME ZONE 'UTC')::date")
    day = timedelta(days=1)
    async with transaction(pool) as tx:
        written = await store.set_rates(
            tx,
            [
                DayRates(today - 9 * day, {"USD": 90_000_000, "JPY": 600_000}),
                DayRates(today - day, {"USD": 92_319_055}),
                DayRates(today + day, {"USD": 99_000_000, "KWD": 301_204_819}),
            ],
            "ecb",
        )
        assert written == 5
        assert await store.rates(tx, ["USD", "JPY", "KWD", "EUR", "USD"]) == {
            "EUR": RATE_ONE,
            "USD": 92_319_055,
            "JPY": 600_000,
        }
        assert await store.rates(tx, ["EUR"]) == {"EUR": RATE_ONE}

        assert await store.set_rate(tx, "USD", 92_000_000) == today
        assert await store.set_rate(tx, "USD", 93_000_000) == today

        assert await store.rates(tx, ["USD"]) == {"EUR": RATE_ONE, "USD": 93_000_000}
        assert [
            (rate.currency, rate.day, rate.eur_e8, rate.source) for rate in await store.list_rates(tx)
        ] == [
            ("JPY", today - 9 * day, 600_000, "ecb"),
            ("USD", today, 93_000_000, "manual"),
        ]


async def test_a_rate_of_the_base_or_of_no_currency_is_refused(pool: Pool) -> None:
    """OP-50: EUR is the base."""
    async with transaction(pool) as tx:
        with pytest.raises(BadRates, match="EUR: is the base"):
            await store.set_rate(tx, "EUR", RATE_ONE)
        with pytest.raises(BadRates, match="'XYZ' is not a currency"):
            await store.set_rate(tx, "XYZ", RATE_ONE)
        assert await store.list_rates(tx) == []


async def test_every_eu_country_has_a_vat_rate_today(pool: Pool) -> None:
    """OP-52: the company's country's rate on the day of Create."""
    async with pool.acquire() as conn:
        today = await store.vat_rates(conn, EU_COUNTRIES)
        assert await store.vat_rates(conn, ["US", "NL"]) == {"NL": today["NL"]}
        countries = await conn.fetch("SELECT DISTINCT country FROM vat_rate")

    assert set(today) == EU_COUNTRIES == {row["country"] for row in countries}
    assert len(EU_COUNTRIES) == 27
    assert all(1500 <= rate_bp <= 2700 for rate_bp in today.values())


async def test_a_vat_rate_starts_on_its_day(pool: Pool) -> None:
    """OP-52: the rate in force today by the database's clock, not the one announced for tomorrow."""
    async with transaction(pool) as tx:
        await tx.execute(
            """INSERT INTO vat_rate SELECT 'NL', (now() AT TIME ZONE 'UTC')::date + 1, 2200
               UNION ALL SELECT 'BE', (now() AT TIME ZONE 'UTC')::date, 2200"""
        )
        assert await store.vat_rates(tx, ["NL", "BE"]) == {"NL": 2100, "BE": 2200}
