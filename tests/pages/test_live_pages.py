"""Live pages end with what lets their visitor see them."""

from __future__ import annotations

import asyncio
from typing import Final
from uuid import uuid4

import pytest

from tests.pages.people import Someone, someone
from tests.patience import HANG_S
from tests.shop import Shop
from voucherd.pages.page import Audience, Page
from voucherd.pages.routes import PAGES
from voucherd.people.roles import COMPANY, OPERATOR

LIVE: Final = [page for page in PAGES if page.path.endswith(("/live", "/progress"))]
ENDS_S: Final = 1.5
LOSSES: Final = {
    "deactivated": "UPDATE app_user SET active = false WHERE id = $1",
    "signed out": "DELETE FROM session WHERE user_id = $1",
    "session too old": "UPDATE session SET expires_at = now() WHERE user_id = $1",
}


def roles(page: Page, *, may: bool) -> list[str]:
    """The roles that may see the page, or may not."""
    known = COMPANY if page.audience is Audience.COMPANY else OPERATOR
    return [name for name, rights in known.items() if (page.right in rights) is may]


# Every role of a company may see orders, so there is no right to them to lose.
CASES: Final = [
    (page, loss) for page in LIVE for loss in (*LOSSES, *(["right lost"] if roles(page, may=False) else []))
]


async def opened(shop: Shop, page: Page) -> tuple[Someone, str]:
    """Somebody who may look at the page, and its path with something to follow."""
    may = roles(page, may=True)[0]
    if page.audience is Audience.COMPANY:
        company = await shop.company(balance="100.00 EUR")
        await shop.product("later", async_delivery=True)
        trx = (await shop.create(company, ("later", 1)))["trx"]
        visitor = await someone(shop, may, company)
        await visitor.post(f"/portal/orders/{trx}/confirm")
        return visitor, page.path.replace("{trx}", trx)
    visitor, upload = await someone(shop, may), uuid4()
    kind = "stock" if "/stock/" in page.path else "products"
    await shop.pool.execute(
        "INSERT INTO upload (id, user_id, kind, name, bytes, terms, sealed) VALUES ($1, $2, $3, 'f', 1, '{}', 'x')",
        upload,
        visitor.user_id,
        kind,
    )
    return visitor, page.path.replace("{upload}", str(upload))


@pytest.mark.parametrize(("page", "loss"), CASES, ids=[f"{page.path}-{loss}" for page, loss in CASES])
async def test_a_live_page_ends_within_about_a_second_of_its_visitors_rights(
    shop: Shop, page: Page, loss: str
) -> None:
    """OP-98: whoever is deactivated, signed out or loses the right to a page hears nothing more of it."""
    visitor, path = await opened(shop, page)
    clock = asyncio.get_running_loop().time
    stream = asyncio.create_task(visitor.get(path))
    await asyncio.sleep(1.2)
    assert not stream.done(), stream.result().text
    if loss == "right lost":
        role = roles(page, may=False)[0]
        await shop.pool.execute("UPDATE app_user SET role = $2 WHERE id = $1", visitor.user_id, role)
    else:
        await shop.pool.execute(LOSSES[loss], visitor.user_id)
    lost_at = clock()
    async with asyncio.timeout(HANG_S):
        told = await stream
    assert clock() - lost_at < ENDS_S
    assert told.status_code == 200
    assert "reload" not in told.text


def test_every_live_page_is_tried() -> None:
    """OP-98: pages that stream are named so."""
    assert {page.path for page in LIVE} == {
        "/portal/orders/{trx}/live",
        "/console/stock/import/{upload}/progress",
        "/console/products/-/files/{upload}/progress",
    }
