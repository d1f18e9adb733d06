"""Every list with heads to sort by: each leads to the rows in that order, in both directions, on every page."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.pages.people import Someone, someone
from tests.purchasing.conftest import Market, stopped_clock
from tests.shop import Company, open_shop
from voucherd import pages
from voucherd.db import Pool, transaction
from voucherd.ids import State
from voucherd.keys import store as key_store
from voucherd.keys.key_text import KeyDraft
from voucherd.pages.buyer import balances, keys, order_list, requests, webhooks
from voucherd.pages.console import brands, companies, lots, offers, orders, products, purchases, statements
from voucherd.pages.console import trail as trail_pages

LISTS: Final = {
    "/console/orders?company={company}": "created",
    "/console/companies?q=Company": "name status country vat costs",
    "/console/brands?q=brand": "name products slug",
    "/console/money?status=open": "company amount kind reference proposed status",
    "/console/prices?q=list": "name prices companies",
    "/console/prices/{list}?q=gift": "name price from until",
    "/console/suppliers?q=sup": "name status failed calls waiting unknown time",
    "/console/suppliers/sup-a/offers?status=all": "name sku face price stock asked",
    "/console/products?type=giftcard": "name brand face price",
    "/console/products?q=gift": "name brand face price",
    "/console/products?active=yes&category=gifts": "name brand face price",
    "/console/lots": "expires",
    "/console/lots?slug=gift-a": "expires",
    "/console/lots?sold_out=yes": "added",
    "/console/purchases?supplier=sup-a": "placed",
    "/console/purchases?problem=late": "placed",
    "/console/late-codes": "placed",
    "/console/trail?action=wallet": "at",
    "/console/trail?company={company}": "at",
    "/console/trail?from={day}&to={day}": "at",
    "/console/staff": "name role status factor",
    "/console/companies/{number}?all=yes": (
        "name role status factor key description state standing used expires"
    ),
    "/console/companies/{number}/statement?kind=order": "at",
    "/console/fx?q=d": "currency worth day source",
    "/console/fx/USD": "day worth source set",
    "/console/vat": "country today since",
    "/portal/orders?type=api": "created",
    "/portal/keys": "name used",
    "/portal/webhooks": "url status",
    "/portal/webhooks/{webhook}?status=failed": "at",
    "/portal/team": "name role status factor",
    "/portal/balances/EUR?kind=order": "at",
    "/portal/requests?status=200": "at",
}
"""Lists with a filter, and the keys of their heads."""
AGES: Final = {"at", "created", "placed", "added"}
"""One direction of these is the other turned round."""
STANDINGS: Final = ("Active", "Replaced", "Expired", "Revoked")
READ: Final[dict[str, Callable[[str], Any]]] = {
    "factor": lambda text: text in ("Yes", "On"),
    "standing": STANDINGS.index,
    "costs": lambda text: text == "Yes",
    "asked": lambda text: -int(text.split()[0]),
    "companies status": lambda text: ("Inactive" not in text, "Not verified" not in text),
    "webhooks status": lambda text: ("Off" in text, "Failing" in text),
    "lots expires": lambda text: date_of(text) if text != "Never" else "9999",
    "keys name": lambda text: None if text.startswith("No description") else text.casefold(),
    "prices companies": lambda text: 0 if "None" in text or text == "–" else text.count(",") + 1,
}
"""How a cell is compared where its words are not in the order of what they mean."""


class Cell(NamedTuple):
    """What a row is sorted by, and all that it says."""

    value: Any
    row: str


@pytest.fixture
async def market(
    pool: Pool, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Market]:
    """A shop without a worker whose lists have pages of two rows."""
    stopped_clock(monkeypatch)
    for module in (balances, brands, companies, keys, lots, offers, order_list, orders, products, purchases):
        monkeypatch.setattr(module, "PAGE_SIZE", 2)
    monkeypatch.setattr(requests, "PAGE_SIZE", 2)
    monkeypatch.setattr(trail_pages, "PAGE", 2)
    monkeypatch.setattr(webhooks, "LOG_SIZE", 2)
    monkeypatch.setattr(statements, "STATEMENT_LINES", 2)
    async with open_shop(pool, database_url, tmp_path, with_worker=False, confirm_wait_s=0) as shop:
        opened = Market(shop)
        yield opened
        await opened.dispatcher.stop()


async def test_each_head_of_a_list_leads_to_its_rows_in_that_order(market: Market) -> None:
    """OP-163: in both directions, on every page, with the filters of the address; an unknown sort is ignored."""
    ours = await fill(market)
    admin, owner = await someone(market.shop, "admin"), await someone(market.shop, "owner", ours)
    names = {
        "company": ours.name,
        "number": ours.id,
        "day": datetime.now(UTC).date(),
        "list": await market.shop.pool.fetchval("SELECT id FROM price_list WHERE name = 'list a'"),
        "webhook": await messages(market, ours),
    }
    wrong: list[str] = []
    for address, sorts in LISTS.items():
        person, path = owner if address.startswith("/portal") else admin, address.format_map(names)
        usual = await opened(person, path)
        assert set(links(usual)) == set(sorts.split()), path
        for key in sorts.split():
            wrong += [f"{path} by {key}: {said}" for said in await mistakes(person, path, usual, key)]
        unknown = await opened(person, f"{path}{'&' if '?' in path else '?'}sort=-nonsense")
        # By what each row is about: when a key was last used may be told meanwhile.
        if [row[0] for row in rows_of(unknown)] != [row[0] for row in rows_of(usual)]:
            wrong.append(f"{path}: an unknown sort changes it")
    assert not wrong, "\n".join(wrong)


def test_every_template_that_sorts_is_walked() -> None:
    """OP-163: a new list with heads needs a row above."""
    folder = Path(pages.__file__).parent / "templates"
    sorts = {path.stem for path in folder.glob("*/*.html") if "sort=sort" in path.read_text()}
    walked = {address.partition("?")[0].split("/")[2] for address in LISTS}
    others = {
        "company",
        "currency",
        "late",
        "offer_rows",
        "parts",
        "price_list",
        "rates",
        "statement",
        "webhook",
    }
    assert sorts - others <= walked | {"team"}


async def mistakes(person: Someone, path: str, usual: str, key: str) -> list[str]:
    """What is wrong with the pages to which a head leads, one after the other."""
    wrong: list[str] = []
    seen: dict[bool, list[str]] = {}
    page = usual
    for _ in range(2):
        link = links(page)[key]
        query = parse_qs(urlsplit(link).query)
        down = query["sort"] == [f"-{key}"]
        if not parse_qs(urlsplit(path).query).items() <= query.items():
            wrong.append(f"the filters are gone from {link}")
        page = await opened(person, link)
        if f'aria-sort="{"descending" if down else "ascending"}"' not in page:
            wrong.append(f"{link} does not say its order")
        for file in [one for one in hrefs(page) if "format=csv" in one or ".csv" in one]:
            if parse_qs(urlsplit(file).query).get("sort", query["sort"]) != query["sort"]:
                wrong.append(f"{file} has another order than {link}")
            assert (await person.get(file)).status_code == 200, file
        cells = await all_cells(person, page, path, key)
        values = [one.value for one in cells]
        known = sorted([one for one in values if one is not None], reverse=down)
        if values != known + [None] * (len(values) - len(known)):
            wrong.append(f"{link} has {values}")
        seen[down] = [one.row for one in cells]
    if len(seen.get(True, [])) < 2 or sorted(seen[True]) != sorted(seen.get(False, [])):
        wrong.append(f"the two directions differ, or have too few rows: {seen}")
    elif key in AGES and seen[True] != seen[False][::-1]:
        wrong.append(f"one direction is not the other turned round: {seen}")
    return wrong


async def opened(person: Someone, path: str) -> str:
    """A page that is there."""
    answer = await person.get(path)
    assert answer.status_code == 200, path
    return answer.text


async def all_cells(person: Someone, page: str, path: str, key: str) -> list[Cell]:
    """The column of a key, on this page and those behind it."""
    found: list[Cell] = []
    while True:
        found += cells(page, path, key)
        onward = re.search(r'rel="next" href="([^"]*)"', page)
        if onward is None:
            return found
        page = await opened(person, html.unescape(onward[1]))


def cells(page: str, path: str, key: str) -> list[Cell]:
    """The column of a key in the first list that has it."""
    name = urlsplit(path).path.split("/")[2]
    read = READ.get(f"{name} {key}") or READ.get(key)
    for table in page.split("<table")[1:]:
        found = [key_of(head) for head in re.findall(r'<th scope="col".*?</th>', table, re.DOTALL)]
        if key in found:
            rows = rows_of(table)
            return [Cell(value_of(row[found.index(key)], read), " ".join(map(said, row))) for row in rows]
    return []


def key_of(head: str) -> str:
    """The key that a head sorts by; empty for none."""
    link = re.search(r'class="sort" href="([^"]*)"', head)
    query = parse_qs(urlsplit(html.unescape(link[1])).query) if link else {}
    return query.get("sort", [""])[0].removeprefix("-")


def links(page: str) -> dict[str, str]:
    """Where the heads lead, by key."""
    found = [html.unescape(one) for one in re.findall(r'class="sort" href="([^"]*)"', page)]
    return {parse_qs(urlsplit(one).query)["sort"][0].removeprefix("-"): one for one in reversed(found)}


def hrefs(page: str) -> list[str]:
    """Where all links lead."""
    return [html.unescape(one) for one in re.findall(r'href="([^"]*)"', page)]


def rows_of(page: str) -> list[list[str]]:
    """The cells of each row of the body."""
    rows = re.findall(r"<tr>(?!<th scope=\"col\")(.*?)</tr>", page, re.DOTALL)
    return [re.findall(r"<t[dh]\b[^>]*>(.*?)</t[dh]>", row, re.DOTALL) for row in rows]


def said(cell: str) -> str:
    """A cell in words."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", cell)).split())


def value_of(cell: str, read: Callable[[str], Any] | None) -> Any:
    """What a cell is compared by: its moment, its number, its words; None where there is nothing."""
    text = said(cell)
    if read is not None and text != "–":
        return read(text)
    if text in ("", "–", "Never"):
        return None
    moment = re.search(r'datetime="([^"]*)"', cell)
    if moment:
        return moment[1]
    number = re.match(r"[0-9][0-9,]*(\.[0-9]+)?", text)
    return Decimal(number[0].replace(",", "")) if number else text.casefold()


def date_of(text: str) -> str:
    """The day that a text begins with, as it is compared."""
    return datetime.strptime(" ".join(text.split()[:3]), "%d %b %Y").replace(tzinfo=UTC).isoformat()


async def fill(market: Market) -> Company:
    """A shop with a few rows in every list."""
    shop, today = market.shop, datetime.now(UTC)
    await shop.fx("USD", 90_000_000)
    await shop.fx("AUD", 60_000_000)
    await shop.pool.execute("UPDATE fx_rate SET day = day - 3, source = 'ecb' WHERE currency = 'AUD'")
    await shop.pool.execute(
        """INSERT INTO fx_rate (currency, day, eur_e8, source, set_at)
           SELECT currency, day - back, eur_e8 + 1_000 * (back % 3), 'ecb', set_at - 2 * back * interval '1 day'
           FROM fx_rate CROSS JOIN generate_series(1, 4) AS back WHERE currency = 'USD'"""
    )
    for at, name in enumerate("cadbe"):
        await shop.product(
            f"gift-{name}",
            name=f"Gift {'edcba'[at]}",
            brand=f"brand {'xyxzz'[at]}",
            face=f"{(at + 1) * 10}.00 EUR",
            price=f"{(at + 1) * 9}.00 EUR",
            active=at != 3,
        )
        for days in (50 - at, 20 + at):
            await shop.stock(f"gift-{name}", 1, expires=today + timedelta(days=days))
    await shop.stock("gift-a", 1)
    ours = await shop.company(balance="1000.00 EUR", vat_number="NL123456789B01")
    other = await shop.company(country="DE", vat_number="DE123456789", expose_costs=False)
    await shop.company(country="BE", active=False, verified=False)
    await buy(market, ours)
    await people_and_keys(market, ours)
    ann, _ = await someone(shop, "finance"), await someone(shop, "admin")
    for at, company in enumerate((ours, other, ours)):
        wish = {"company": str(company.id), "kind": ("top-up", "up")[at % 2], "amount": str(40 - at)}
        wish |= {"currency": "EUR", "reference": f"ref {'bca'[at]}", "note": "as agreed"}
        assert (await ann.post("/console/money", wish)).status_code == 303
    clerk = await someone(shop, "stock")
    for name in ("list b", "list a", "list c"):
        path = (await clerk.post("/console/prices", {"name": name})).headers["location"]
    for at, name in enumerate("abc"):
        lists = await shop.pool.fetchval("SELECT id FROM price_list WHERE name = 'list a'")
        entry = {"product": f"gift-{name}", "discount": f"{(7, 12, 3)[at]}%"}
        entry |= {"from": f"203{(5, 3, 4)[at]}-01-01"} if at else {}
        entry |= {"until": f"203{(5, 8, 9)[at]}-01-01"} if at != 1 else {}
        assert (await clerk.post(f"/console/prices/{lists}/entries", entry)).status_code == 303
    assert (await clerk.post(f"{path}/entries", {"discount": "2%"})).status_code == 303
    await shop.pool.execute(
        "INSERT INTO price_list_company (company_id, list_id) SELECT $1, id FROM price_list WHERE name = 'list a'",
        other.id,
    )
    return ours


async def buy(market: Market, ours: Company) -> None:
    """Orders, delivered from the shelf and bought from suppliers."""
    shop = market.shop
    await shop.product("bought", name="Bought", brand="brand w", category="other")
    await shop.product("bought-too", name="A bought one", brand="brand w", category="other", face="5.00 EUR")
    await market.supplier("sup-b", "gift-a", price="9.50 EUR")
    await market.supplier("sup-a", "bought", "bought-too", "gift-a", price="8.00 EUR")
    for product in ("bought", "bought", "gift-c", "bought", "bought"):
        order = await shop.create(ours, (product, 1))
        await shop.confirm(ours, order["trx"])
        await market.round()
    await shop.pool.execute("UPDATE attempt SET spare = 1")
    await shop.pool.execute(
        "UPDATE offer SET quoted_at = now() - product_id * interval '1 hour', stock = product_id % 7"
    )


async def people_and_keys(market: Market, ours: Company) -> None:
    """A team, keys and endpoints."""
    shop = market.shop
    for role in ("buyer", "viewer", "developer"):
        await someone(shop, role, ours, strong=role == "viewer")
    async with transaction(shop.pool) as tx:
        for at, name in enumerate(("shop", "App", "till")):
            made = await key_store.add_key(tx, ours.id, State.LIVE, KeyDraft(description=name))
            await tx.execute(
                "UPDATE api_key SET last_used_at = now() - $2 * interval '1 day', expires_at = now() + $3 * interval"
                " '1 day', revoked_at = CASE WHEN $2 = 1 THEN now() END WHERE id = $1",
                made.id,
                (2, 1, 3)[at],
                (5, 9, 4)[at],
            )
    owner = await someone(shop, "owner", ours)
    for name in ("beta", "alpha", "gamma"):
        fields = {"url": f"https://{name}.example.com/hook", "description": name}
        assert (await owner.post("/portal/webhooks", fields)).status_code == 200
    await shop.pool.execute("UPDATE webhook SET enabled = false WHERE url LIKE '%alpha%'")


async def messages(market: Market, ours: Company) -> str:
    """An endpoint with some messages in its log; its number as addresses have it."""
    shop = market.shop
    number = await shop.pool.fetchval("SELECT id FROM webhook WHERE url LIKE '%beta%'")
    await shop.pool.execute(
        """WITH said AS (
               INSERT INTO event (at, company_id, state, type, data)
               SELECT now(), $2, 0, 'ping', '{}' FROM generate_series(1, 5) RETURNING id)
           INSERT INTO webhook_delivery (webhook_id, event_id, type, status, next_at, created_at)
           SELECT $1, id, 'ping', status, CASE status WHEN 0 THEN now() END, now() + id * interval '1 second'
           FROM said CROSS JOIN LATERAL (SELECT CASE WHEN id % 5 = 0 THEN 1 ELSE 2 END AS status) one""",
        number,
        ours.id,
    )
    return shop.program.services.ids.webhook(number)
