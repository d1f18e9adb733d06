"""Codes from a file in the operator's console: tried out, taken whole or not at all, and never left lying around."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from tests.pages.people import Someone, someone
from tests.pages.test_console_products import jobs
from tests.shop import Shop
from voucherd.db import Connection, Pool
from voucherd.ids import State
from voucherd.vault import imports, uploads

PATH = "/console/stock/import"
TERMS = {"slug": "gift", "supplier": "wholesale", "purchase": "9.00 EUR"}


async def upload(shop: Shop, clerk: Someone, text: str, **fields: str) -> str:
    """Send a file; the page of its dry run."""
    answer = await clerk.post(PATH, TERMS | fields, files={"file": ("codes.csv", text.encode())})
    assert answer.status_code == 303, answer.text
    await jobs(shop).settled()
    return str(answer.headers["location"])


async def test_a_file_of_codes_is_tried_and_then_taken(shop: Shop) -> None:
    """OP-91, OP-94: what is new, known and bad is told first; then all of it is taken, in one transaction."""
    clerk = await someone(shop, "stock")
    await shop.product("gift")
    await shop.stock_codes("gift", [("KNOWN-CODE-1", "")])
    text = (
        "code,serial,expires\nNEW-1,S1,2099-01-01\nNEW-2,,\nKNOWN-CODE-1,,\nNEW-1,,\n,,\nNEW-3,,1999-01-01\n"
    )
    path = await upload(shop, clerk, text)
    page = (await clerk.get(path)).text
    for said in (
        "Import 2 codes",
        "<dt>Wrong lines</dt><dd>2",
        "<dt>There already</dt><dd>2",
        "expires: already past",
    ):
        assert said in page, said
    assert "NEW-1" not in page
    assert await shop.left("gift") == 1
    kept = await shop.pool.fetchval("SELECT sealed FROM upload")
    assert b"NEW-1" not in kept
    assert "Some lines are wrong" in (await clerk.post(path, follow=True)).text
    assert (await clerk.post(path, {"skip_bad": "yes"})).status_code == 303
    await jobs(shop).settled()
    page = (await clerk.get(path)).text
    assert "2 codes are in stock now" in page
    assert await shop.left("gift") == 3
    assert await shop.pool.fetchval("SELECT count(*) FROM upload WHERE sealed IS NOT NULL") == 0
    row = await shop.pool.fetchrow(
        "SELECT actor, action, subject, detail::text FROM trail WHERE action <> 'wallet.top-up'"
    )
    assert row is not None
    assert tuple(row)[:3] == (clerk.email, "stock.import", "product gift")
    assert "NEW-1" not in row[3]
    assert "upload it again" in (await clerk.post(path, {"skip_bad": "yes"}, follow=True)).text
    again = (await clerk.get(await upload(shop, clerk, text.replace("\nNEW-3,,1999-01-01", "")))).text
    assert "There is nothing new in this file" in again
    progress = await clerk.get(f"{path}/progress")
    assert progress.text.startswith("event: reload")
    await shop.assert_books_balance()


async def test_what_can_not_be_imported_is_said_beside_its_field(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-91: wrong fields, files that are none, a file that is gone, and an import that breaks; none takes anything."""
    clerk = await someone(shop, "stock")
    await shop.product("gift")
    await shop.product("any", face=None, face_range="5-500 EUR", price=None, fee="1.02")
    file = {"file": ("codes.csv", b"code\nA-1\n")}
    for wrong, said in (
        ({"slug": "none"}, "No product fits"),
        ({"purchase": "9"}, "Must be an amount"),
        ({"purchase": "9 USD"}, "There is no exchange rate for USD"),
        ({"face": "11 EUR"}, "The product has 10.00\N{NO-BREAK SPACE}EUR"),
        ({"slug": "any"}, "Is needed"),
        ({"supplier": " "}, "Must be 1 to 100"),
    ):
        answer = await clerk.post(PATH, TERMS | wrong, files=file)
        assert answer.status_code == 422
        assert said in answer.text, wrong
    assert (await clerk.post(PATH, TERMS)).status_code == 422
    huge = await clerk.post(PATH, TERMS, files={"file": ("x.csv", b"x" * (33 * 1024 * 1024))})
    assert huge.status_code == 413
    refused = (await clerk.get(await upload(shop, clerk, "serial\nS1\n"))).text
    assert "the header has no column" in refused

    gone = await upload(shop, clerk, "code\nA-1\nA-2\n")
    await shop.pool.execute("UPDATE upload SET created_at = now() - interval '16 minutes' WHERE status = 1")
    assert "is gone" in (await clerk.get(gone)).text
    assert "upload it again" in (await clerk.post(gone, follow=True)).text
    assert await uploads.sweep(shop.pool) == 1
    assert await shop.pool.fetchval("SELECT count(*) FROM upload WHERE sealed IS NOT NULL") == 0

    async def breaks(*_: object) -> None:
        raise RuntimeError("in the middle")

    path = await upload(shop, clerk, "code\nA-1\nA-2\n", slug="any", face="25 EUR")
    with monkeypatch.context() as patch:
        patch.setattr(imports._Intake, "finish", breaks)
        await clerk.post(path)
        await jobs(shop).settled()
    assert "Something went wrong on our side" in (await clerk.get(path)).text
    path = await upload(shop, clerk, "code\nA-1\nA-2\n", slug="any", face="25 EUR")
    await shop.pool.execute(
        "UPDATE upload SET status = 2, seen_at = now() - interval '1 minute' WHERE status = 1"
    )
    assert "The import was interrupted" in (await clerk.get(path)).text
    await clerk.post(path)
    await jobs(shop).settled()
    assert "2 codes are in stock" in (await clerk.get(path)).text
    assert await shop.left("any") == 2


async def test_nothing_is_said_of_a_file_after_its_job_has_ended(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-91: a job waits for its last word on how far it is, or that word might contradict the next job's."""
    clerk = await someone(shop, "stock")
    await shop.product("gift")
    note_progress, end, over = uploads.note_progress, uploads.end, asyncio.Event()
    begun = ended = 0

    async def slowly(conn: Pool | Connection, upload_id: UUID, permille: int) -> None:
        nonlocal begun, ended
        begun += 1
        await over.wait()
        for _ in range(20):
            await asyncio.sleep(0)
        await note_progress(conn, upload_id, permille)
        ended += 1

    async def ends(*how: Any) -> None:
        await end(*how)
        over.set()

    monkeypatch.setattr(uploads, "note_progress", slowly)
    monkeypatch.setattr(uploads, "end", ends)
    path = await upload(shop, clerk, "code\nA-1\nA-2\n")
    assert begun == ended == 1
    await clerk.post(path)
    await jobs(shop).settled()
    assert begun == ended
    assert "2 codes are in stock" in (await clerk.get(path)).text


async def test_lots_are_listed_by_what_expires_first(shop: Shop) -> None:
    """OP-91: what is left, what it cost and when it expires, page by page; no code anywhere."""
    clerk = await someone(shop, "stock")
    await shop.product("gift")
    now = datetime.now(UTC)
    for days in (400, 3, 40):
        await shop.stock("gift", 2, expires=now + timedelta(days=days))
    for at in range(49):
        await shop.stock("gift", 1, expires=now + timedelta(days=500 + at) if at % 2 else None)
    page = (await clerk.get("/console/lots?slug=gift")).text
    expiries = re.findall('"Expires"><span class="nowrap">(?:<time[^>]*>([^<]*)</time>|(Never))', page)
    assert next(day or never for day, never in expiries) == f"{now + timedelta(days=3):%-d %b %Y}"
    assert page.count("In 2 days") == 1
    assert page.count("<tr>") == 51
    onward = page.rpartition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
    rest = (await clerk.get(onward)).text
    assert rest.count("<tr>") == 3
    assert "never" in rest
    assert "CODE-" not in page + rest
    assert "There is no such product" in (await clerk.get("/console/lots?slug=none")).text
    newest = (await clerk.get("/console/lots?sold_out=yes&before=7")).text
    assert newest.count("<tr>") == 4
    clerk.look_at(State.SANDBOX)
    assert "No codes in stock" in (await clerk.get("/console/lots?after=x.y")).text
