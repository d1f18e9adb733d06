"""The orders that docs/prices.md works out by hand, created and paid over HTTP."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tests.domain.test_pricing import read_table
from tests.scenarios.test_company_prices import give_list, say
from tests.shop import Shop
from voucherd.catalogue import fx_store, price_book
from voucherd.catalogue.fx import parse_rate
from voucherd.catalogue.price_list_files import PriceChange
from voucherd.catalogue.texts import read_share
from voucherd.db import transaction
from voucherd.money import Money

ORDERED = read_table("product", "vatCategory")


def same(amount: Any, currency: str, told: str) -> bool:
    """Whether an amount on the wire is what the page says."""
    return f"{Decimal(str(amount)):.2f} {currency}" == told or f"{amount} {currency}" == told


def assert_as_told(
    order: dict[str, Any], own: str, paid: tuple[str, str, str], sums: tuple[str, str, str]
) -> None:
    """Every figure of the order is the page's."""
    units, pays, totals = (
        read_table("product", own),
        read_table("product", paid[0]),
        read_table("item", sums[0]),
    )
    for item in order["items"]:
        slug, line, currency = item["productSlug"], item["orderLines"][0], item["priceCurrency"].upper()
        assert same(item["singlePriceAmount"], currency, units[slug][own]), slug
        assert same(line["priceVatTurnover"], currency, units[slug]["VAT turnover"]), slug
        assert same(line["priceVatAmount"], currency, units[slug]["VAT"]), slug
        assert same(item["singlePriceAmountInPaymentCurrency"], "USD", pays[slug][paid[0]]), slug
        assert same(line["priceVatTurnoverInPaymentCurrency"], "USD", pays[slug][paid[1]]), slug
        assert same(line["priceVatAmountInPaymentCurrency"], "USD", pays[slug][paid[2]]), slug
        assert same(item["totalPriceAmountInPaymentCurrency"], "USD", totals[slug][sums[0]]), slug
        assert same(item["totalPriceVatInPaymentCurrency"], "USD", totals[slug][sums[1]]), slug
        assert same(item["totalPriceInclVatInPaymentCurrency"], "USD", totals[slug][sums[2]]), slug
    assert same(order["priceAmount"], "USD", totals["order"][sums[0]])
    assert same(order["priceVat"], "USD", totals["order"][sums[1]])
    assert same(order["priceInclVat"], "USD", totals["order"][sums[2]])


async def test_the_page_s_orders_cost_what_the_page_says(
    quiet_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-50 to OP-52, OP-71, OP-72: four products in three currencies, plain, then with a list and margins."""
    monkeypatch.setattr(price_book, "EPOCH_AGE_S_MAX", 0)
    shop = quiet_shop
    for currency, row in read_table("currency", "units for 1 EUR").items():
        await shop.fx(currency, parse_rate(row["fx: EUR for 1 unit"]))
    for slug, row in ORDERED.items():
        fee = row["sells at"][4:] if row["sells at"].startswith("fee ") else None
        await shop.product(
            slug,
            face=row["face value"],
            price=row["sells at"],
            fee=fee,
            vat_category=row["vatCategory"],
            stock=20,
        )
    company = await shop.company(balance="1000.00 USD")
    cart = [(slug, int(row["amount"])) for slug, row in ORDERED.items()]

    plain = await shop.create(company, *cart, currency="USD")
    assert_as_told(
        plain,
        "price",
        ("paid price", "paid VAT turnover", "paid VAT"),
        ("total price", "total VAT", "total including VAT"),
    )

    list_id = await give_list(shop, "of the page", company)
    for slug, row in read_table("product", "the list says").items():
        said = row["the list says"]
        if said.startswith("fee "):
            await say(shop, list_id, PriceChange(slug, fee=said[4:]))
        elif said.endswith(" off"):
            await say(shop, list_id, PriceChange(slug, discount=said.removesuffix(" off")))
        else:
            await say(shop, list_id, PriceChange(slug, price=said))
    async with transaction(shop.pool) as tx:
        for currency, row in read_table("from", "to").items():
            await fx_store.set_margin(tx, currency, row["to"], read_share("margin", row["margin"]))
    agreed = await shop.create(company, *cart, currency="USD")
    assert_as_told(
        agreed,
        "own price",
        ("price with margin", "VAT turnover with margin", "VAT with margin"),
        ("all prices", "all VAT", "all including VAT"),
    )

    for order in (plain, agreed):
        await shop.confirm(company, order["trx"])
    left = await shop.balance(company, "USD")
    paid = [Money.read(read_table("item", name)["order"][told]).minor for name, told in (
        ("total price", "total including VAT"), ("all prices", "all including VAT"))]  # fmt: skip
    assert left.minor == 100_000 - sum(paid)
    await shop.assert_books_balance()
