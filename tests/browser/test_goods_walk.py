"""The operator's console in a real browser: codes come in, orders are cancelled, purchases are settled."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
from playwright.async_api import FilePayload, Page, ViewportSize

from tests.browser.walker import DESKTOP, NARROW_FIRST, PHONE, Walker
from tests.cli.terminal import Terminal
from tests.patience import until

Look: TypeAlias = Callable[[str], Awaitable[None]]
BLIND: Final = """
base_url = "http://127.0.0.1:{port}"
[quote]
path = "/products/{{sku}}"
fields = {{ price = "price", price_currency = "currency", stock = "stock" }}
[buy]
method = "POST"
path = "/orders/{{reference}}"
fields = {{ codes = "codes" }}
"""


async def call(walker: Walker, method: str, path: str, body: object | None = None) -> dict[str, Any]:
    """A call of the demo's company, with its key."""
    answer = await walker.page.request.fetch(
        f"{walker.demo.url}/api/1.03{path}",
        method=method,
        headers={"authorization": f"Bearer {walker.demo.live.key}", "content-type": "application/json"},
        data=None if body is None else json.dumps(body),
    )
    assert answer.ok, await answer.text()
    return dict(await answer.json())


async def until_said(page: Page, text: str) -> None:
    """Load the page again until it says this."""

    async def said() -> bool:
        await page.reload()
        return bool(await page.get_by_text(text, exact=True).count())

    await until(said, f"{text} is not on {page.url}")


@asynccontextmanager
async def wholesaler() -> AsyncIterator[int]:
    """A supplier that names a price and hangs up whenever something is bought; where it listens."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if head.startswith(b"GET"):
            body = b'{"price": "9.00", "currency": "EUR", "stock": 50}'
            size = str(len(body)).encode()
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: " + size)
            writer.write(b"\r\nconnection: close\r\n\r\n" + body)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def new_product(walker: Walker, slug: str) -> None:
    """A product that may be delivered later, added by hand."""
    page = walker.page
    await page.goto("/console/products/-/new")
    for label, text in (
        ("Slug", slug),
        ("Name", "Walkers’ card"),
        ("Brand", "Walkers"),
        ("Category", "games"),
        ("Face value", "10"),
        ("Price", "9.50"),
    ):
        await page.get_by_label(re.compile(f"^{label}( optional)?$")).fill(text)
    await page.get_by_label("May be delivered later").check()
    await page.get_by_role("button", name="Add").click()
    await page.get_by_text("was added").wait_for()


async def import_codes(walker: Walker, count: int, look: Look) -> None:
    """Codes from a file with one bad line: tried, then taken."""
    page = walker.page
    await page.get_by_role("main").get_by_role("link", name="Import codes").click()
    await page.get_by_label("Bought from").fill("Wholesale EU")
    await page.get_by_label("Cost of one code").fill("9.00")
    lines = [f"WALK-{secrets.token_hex(6)},S{at},2031-12-31" for at in range(count)]
    content = "\n".join(["code,serial,expires", *lines, "EXPIRED-1,,2001-01-01"])
    file = FilePayload(name="codes.csv", mimeType="text/csv", buffer=content.encode())
    await page.get_by_label("File").set_input_files(file)
    await look("console-stock-import")
    await page.get_by_role("button", name="Check the file").click()
    await page.get_by_label("Leave out the wrong lines").check()
    await look("console-stock-report")
    await page.get_by_role("button", name=f"Import {count} codes").click()
    await page.get_by_text(f"{count} codes are in stock now").wait_for()
    await page.get_by_role("link", name="Lots", exact=True).click()
    await page.get_by_text("Wholesale EU").wait_for()
    await look("console-lots")


@pytest.mark.parametrize("size", NARROW_FIRST)
async def test_the_operator_takes_codes_in_and_cancels_an_order(
    walk: Callable[..., Awaitable[Walker]], size: ViewportSize
) -> None:
    """OP-91: upload, dry run, import, the order that they went to, and its cancellation with the refund told before."""
    walker = await walk(size)
    page, slug = walker.page, f"walk-{size['width']}"
    # The same page again, only wider: what axe finds there it finds on the telephone.
    look = walker.assert_fits if size is DESKTOP else walker.assert_sound
    await walker.sign_in(walker.demo.operator)
    await page.goto("/console/products/-/new")
    await look("console-product-form")
    await new_product(walker, slug)
    await look("console-product")
    await import_codes(walker, 2, look)
    order = await call(
        walker, "POST", "/order", {"items": [{"productSlug": slug, "amount": 2}], "paymentCurrency": "EUR"}
    )
    await call(walker, "PATCH", f"/order/confirm/{order['trx']}")
    await page.goto("/console/orders")
    await look("console-orders")
    await page.locator(f"a[href$='/console/orders/{order['trx']}']").first.click()
    await page.locator(".timeline").get_by_text("Delivered").wait_for()
    await look("console-order")
    created = await call(
        walker, "POST", "/order", {"items": [{"productSlug": slug, "amount": 1}], "paymentCurrency": "EUR"}
    )
    await page.goto(f"/console/orders/{created['trx']}")
    await page.get_by_role("link", name="Withdraw order").click()
    await look("console-order-cancel")
    await page.get_by_role("button", name="Withdraw order").click()
    await page.get_by_text("The order is withdrawn").wait_for()
    for path in ("products", "products/-/files", "late-codes"):
        await page.goto(f"/console/{path}")
        await look(f"console-{path.partition('/')[0]}{'-files' if '/' in path else ''}")


async def test_codes_come_in_without_javascript(walk: Callable[..., Awaitable[Walker]]) -> None:
    """OP-91: everything works without scripts: the page of an import loads itself again until it is done."""
    walker = await walk(scripts=False)
    await walker.sign_in(walker.demo.operator)
    await new_product(walker, "walk-plain")
    await import_codes(walker, 3, walker.assert_fits)


async def test_the_operator_settles_what_nobody_can_tell(
    walk: Callable[..., Awaitable[Walker]], shell: Terminal, tmp_path: Path
) -> None:
    """OP-44: a purchase without an answer needs a hand; the codes that are brought by hand go to the order."""
    walker = await walk()
    page, slug = walker.page, "walk-blind"
    await walker.sign_in(walker.demo.operator)
    await new_product(walker, slug)
    async with wholesaler() as port:
        file = tmp_path / "blind.toml"
        file.write_text(BLIND.format(port=port), encoding="utf-8")
        add = ("supplier", "add", "blind", "--kind", "http", "--file", str(file), "--on-unknown", "wait")
        await asyncio.to_thread(shell.json, *add, "--settle", "0", "--key", "-", stdin="its key")
        await asyncio.to_thread(shell.json, "supplier", "offer", "blind", slug)
        await page.goto("/console/suppliers/blind")
        await until_said(page, "Available")
        await walker.assert_sound("console-supplier")
        body = {"items": [{"productSlug": slug, "amount": 1}], "paymentCurrency": "EUR"}
        order = await call(walker, "POST", "/order", body)
        confirmed = asyncio.create_task(call(walker, "PATCH", f"/order/confirm/{order['trx']}"))
        await page.goto("/console/purchases")
        await until_said(page, "1 code waits for it")
        await walker.assert_sound("console-purchases")
        await page.get_by_role("row").nth(1).get_by_role("link").first.click()
        await walker.assert_sound("console-purchase")
        await page.get_by_role("link", name="Decide by hand").click()
        await page.get_by_label("Codes").fill("HAND-CODE-1,S-1")
        await page.get_by_label("Reason").last.fill("Their mail of this morning")
        await walker.assert_sound("console-settle")
        await page.set_viewport_size(PHONE)
        await walker.assert_fits("console-settle")
        await page.get_by_role("button", name="Store these codes").click()
        await page.get_by_text("1 code was taken").wait_for()
        await walker.assert_fits("console-purchase")
        assert (await confirmed)["orderStatus"] == "finished"
