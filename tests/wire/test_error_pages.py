"""A page for each code of an error: what the `type` of a problem leads to."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

from tests.shop import Shop, open_shop
from tests.wire.test_pages import Outline
from voucherd.api.errors import CODES
from voucherd.api.guide import guidebook
from voucherd.db import Pool

PLACE = "/docs/errors/"
ACCEPT = {"accept": "application/problem+json"}
WEIGHT_BYTES_MAX = 150_000
BODY_BYTES_MAX = 262_144
# A code stands behind a status, in whichever way the refusal is written.
WRITTEN = re.compile(r'(?:HttpError|error|DescribedProblem)\(\s*(?:request,\s*)?[45]\d\d,\s*"([a-z_]+)"')


def codes() -> set[str]:
    """The codes that have a page."""
    return {
        path.removeprefix(PLACE) for path in guidebook(None, BODY_BYTES_MAX).paths if path.startswith(PLACE)
    }


def test_every_code_that_the_service_can_answer_with_has_a_page() -> None:
    """OP-143: a code that is added somewhere without a row in the table of problems has no page, and fails here."""
    source = Path(str(files("voucherd")))
    texts = [path.read_text("utf-8") for part in ("api", "server") for path in (source / part).rglob("*.py")]
    written = {code for text in texts for code in WRITTEN.findall(text)}

    assert len(written) > 20, "the pattern finds codes"
    assert (written | set(CODES.values())) - codes() == set()


async def test_the_type_of_a_problem_is_a_page_about_its_code(shop: Shop) -> None:
    """OP-26, OP-143: RFC 9457 has a type for each kind of problem, and whoever opens it can read what to do."""
    company = await shop.company()
    calls = [
        ("GET", "/api/1.03/order/TRX", company.bearer(), "order_not_found"),
        ("GET", "/api/1.03/order", {}, "unauthorized"),
        ("POST", "/api/1.03/order", company.bearer(), "not_json"),
        ("GET", "/api/1.03/nothing", company.bearer(), "no_such_path"),
    ]
    for method, path, headers, code in calls:
        said = (await shop.client.request(method, path, headers={**headers, **ACCEPT})).json()
        assert (said["code"], said["type"]) == (code, f"/docs/errors/{code}")
        page = await shop.client.get(said["type"])
        assert page.status_code == 200, path
        assert f"<h1><code>{code}</code></h1>" in page.text
        assert said["title"] in page.text


async def test_the_list_names_every_code(shop: Shop) -> None:
    """OP-143: whoever looks for a code finds its page; one that is not there has none."""
    index = await shop.client.get("/docs/errors")
    assert {f"{PLACE}{code}" for code in codes()} <= set(Outline(index.text).links)
    assert (await shop.client.get(f"{PLACE}no-such-code")).status_code == 404


async def test_behind_a_proxy_with_a_path_of_its_own_the_type_begins_with_it(
    pool: Pool, database_url: str, tmp_path: Path
) -> None:
    """OP-143: the type leads to the page from the outside, too."""
    url = "https://example.com/vouchers"
    async with open_shop(pool, database_url, tmp_path, with_worker=False, public_url=url) as shop:
        said = (await shop.client.get("/api/1.03/order", headers=ACCEPT)).json()
    assert said["type"] == "/vouchers/docs/errors/unauthorized"
