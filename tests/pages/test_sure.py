"""Deeds that can't be undone ask on a page of their own."""

from __future__ import annotations

import re

from tests.pages.people import someone
from tests.shop import Shop
from voucherd.actors import SYSTEM
from voucherd.db import transaction
from voucherd.ids import State
from voucherd.pages.page import BODY_BYTES_MAX
from voucherd.pages.routes import PAGES
from voucherd.webhooks import deeds as webhook_deeds
from voucherd.webhooks.endpoints import Draft


async def test_an_endpoint_is_removed_only_after_the_question_was_answered(shop: Shop) -> None:
    """OP-175: the question stands on a page of its own, with or without JavaScript; Back has the focus."""
    company = await shop.company()
    owner = await someone(shop, "owner", company)
    async with transaction(shop.pool) as tx:
        endpoint, _ = await webhook_deeds.add(
            tx, SYSTEM, shop.sealer, company.id, State.LIVE, Draft("https://hooks.example.com/")
        )
    path = f"/portal/webhooks/{shop.ids.webhook(endpoint.id)}"

    asked = await owner.post(f"{path}/remove", {"sure": "", "back": path, "subject": "<hooks.example.com>"})

    assert asked.status_code == 200
    assert "The endpoint and its log are removed." in asked.text
    assert "&lt;hooks.example.com&gt;" in asked.text
    assert f'<a class="button" href="{path}" autofocus>Back</a>' in asked.text
    assert re.search(r'<button class="danger solid">Remove endpoint</button>', asked.text)
    assert (await owner.get(path)).status_code == 200, "nothing is removed yet"
    assert (await owner.post(f"{path}/remove", {"sure": "yes"})).status_code == 303
    assert (await owner.get(path)).status_code == 404


async def test_back_leads_to_no_other_site(shop: Shop) -> None:
    """OP-175: what the form says of the way back is used only if it is an address of ours."""
    owner = await someone(shop, "owner", await shop.company())
    for back in (
        "https://elsewhere.example/",
        "//elsewhere.example/",
        "/\\elsewhere.example",
        "javascript:1",
    ):
        asked = await owner.post("/portal/sandbox/reset", {"sure": "", "back": back})
        assert '<a class="button" href="/" autofocus>Back</a>' in asked.text


def test_what_asks_says_what_its_button_does_and_takes_no_file() -> None:
    """OP-175: every question has a button of its own words; a form with a file could not be asked about."""
    asking = [page for page in PAGES if page.asks]
    assert len(asking) >= 10
    for page in asking:
        assert page.method == "POST", page.path
        assert page.sure, page.path
        assert page.body_bytes_max == BODY_BYTES_MAX, page.path
