"""The audit trail in the console: found by who, what and when; and whether its chain is whole."""

from __future__ import annotations

from pathlib import Path

from tests.pages.people import someone
from tests.patience import until
from tests.scenarios.test_archive import make_old
from tests.scenarios.test_archived_blocks import archive_trail, seal_as_old
from tests.shop import Shop, open_shop
from voucherd.db import Pool
from voucherd.trail.chain import TrailSealing


async def test_what_was_done_is_found_and_its_chain_is_checked(shop: Shop) -> None:
    """OP-94: filters, heads, a chain that holds, one that was broken, and who has seen an order's codes."""
    company = await shop.company()
    await shop.product("gift", stock=1)
    order = await shop.create(company, ("gift", 1))
    await shop.confirm(company, order["trx"])
    admin, finance = await someone(shop, "admin"), await someone(shop, "finance")
    await admin.post(f"/console/companies/{company.id}/limits", {"order": "5", "day": ""})
    await admin.post("/console/fx", {"currency": "USD", "rate": "0.9"})

    async def found(query: str) -> str:
        answer = await finance.get(f"/console/trail?{query}")
        assert answer.status_code == 200, query
        return answer.text

    assert "company.limit" in await found("action=company&actor=admin")
    assert "company.limit" in await found(f"company={company.name}&from=2020-01-01&to=2999-12-31")
    for nothing in (
        "action=fx.list",
        "actor=nobody",
        "to=2020-01-01",
        f"action=fx&company={company.name}",
        "before=1",
    ):
        assert "Nothing of this sort" in await found(nothing), nothing
    assert (await finance.get("/console/trail?company=nobody")).status_code == 422
    assert (await finance.get("/console/trail?from=yesterday")).status_code == 422
    sealing = TrailSealing(shop.pool, shop.sealer.trail_key)

    async def sealed() -> bool:
        # A round leaves out what somebody may still be writing.
        await sealing.round()
        return "trail:1:" in await found("")

    await until(sealed)
    assert "Good: no row" in (await finance.get("/console/trail/check")).text
    async with shop.pool.acquire() as conn, conn.transaction():
        await conn.execute("ALTER TABLE trail DISABLE TRIGGER USER")
        await conn.execute("UPDATE trail SET actor = 'nobody' WHERE action = 'company.limit'")
        await conn.execute("ALTER TABLE trail ENABLE TRIGGER USER")
    assert "rows were changed" in (await finance.get("/console/trail/check")).text
    seen = (await finance.get(f"/console/reveals?trx={order['trx']}")).text
    assert "in the answer to Confirm" in seen
    assert (await finance.get("/console/reveals?trx=TRXnone")).status_code == 422


async def test_pages_say_where_the_archive_of_the_trail_begins(
    pool: Pool, database_url: str, tmp_path: Path
) -> None:
    """OP-134: the console and the portal never say that nobody saw a code that somebody saw."""
    async with open_shop(pool, database_url, tmp_path, with_worker=False, confirm_wait_s=0) as shop:
        company = await shop.company()
        await shop.product("gift", stock=2)
        old, new = [await shop.create(company, ("gift", 1)) for _ in range(2)]
        await shop.confirm(company, old["trx"])
        await make_old(shop)
        await seal_as_old(shop, 19)
        await archive_trail(shop)
        finance, buyer = await someone(shop, "finance"), await someone(shop, "owner", company)

        seen = (await finance.get(f"/console/reveals?trx={old['trx']}")).text
        assert "are in the archive" in seen
        assert "Nobody has seen" not in seen
        shown = (await finance.get(f"/console/orders/{old['trx']}")).text
        assert f"<code>voucherd trail reveals {old['trx']}</code>" in shown
        portal = (await buyer.get(f"/portal/orders/{old['trx']}")).text
        assert "is in the archive: ask the operator" in portal
        deeds = (await finance.get("/console/trail?action=test")).text
        assert "Nothing fits since then" in deeds
        assert "is in the archive, and in no list" in deeds
        assert "2 of the blocks are in the archive" in (await finance.get("/console/trail/check")).text
        await shop.pool.execute("UPDATE orders SET created_at = now() WHERE status = 2")
        assert "in the archive" not in (await buyer.get(f"/portal/orders/{old['trx']}")).text
        assert "in the archive" not in (await finance.get(f"/console/orders/{new['trx']}")).text
