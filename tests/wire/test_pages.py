"""The pages beside the API: small, safe, cached as long as they may be, and made from the document."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise
from typing import cast

import pytest

from tests.shop import Shop
from voucherd.api.openapi.examples import EXAMPLE_URL
from voucherd.api.operations import OPERATIONS
from voucherd.api.routes import ROUTES
from voucherd.api.system import SystemEndpoints, guide
from voucherd.db import Pool
from voucherd.http import Request
from voucherd.metrics.page import Metrics
from voucherd.settings import Settings

WEIGHT_BYTES_MAX = 150_000
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
CSS = (files("voucherd.pages") / "static" / "docs.css").read_text("utf-8")


class Outline(HTMLParser):
    """What a reader's software makes of the page."""

    VOID = frozenset({"meta", "link", "img", "br"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the element."""
        given = dict(attrs)
        self.tags.append(tag)
        self.attributes |= set(given)
        if tag not in self.VOID:
            self.open.append(tag)
        if given.get("id"):
            self.ids.append(str(given["id"]))
        if tag == "a":
            self.links.append(str(given["href"]))
        if tag in ("link", "img", "script"):
            self.fetched.append(str(given.get("href") or given.get("src")))

    def handle_endtag(self, tag: str) -> None:
        """Every element is closed in its turn."""
        assert self.open.pop() == tag


async def page_of(shop: Shop) -> str:
    """The docs page."""
    answer = await shop.client.get("/docs")
    assert answer.status_code == 200
    return answer.text


async def test_the_start_leads_to_the_docs(shop: Shop) -> None:
    """Whoever opens the address in a browser finds something to read."""
    answer = await shop.client.get("/")
    assert (answer.status_code, answer.headers["location"]) == (303, "/docs")
    followed = await shop.client.get("/", follow_redirects=True)
    assert followed.url.path == "/docs"
    assert followed.headers["content-type"] == "text/html; charset=utf-8"


async def test_the_docs_page_may_run_and_load_nothing_foreign(shop: Shop) -> None:
    """A strict policy is sent, and the page keeps to it: no script, no inline style, nothing from elsewhere."""
    answer = await shop.client.get("/docs")
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    outline = Outline(answer.text)
    assert not {"script", "style", "iframe", "form"} & set(outline.tags)
    assert "style" not in outline.attributes
    assert not [name for name in outline.attributes if name.startswith("on")]
    assert all(path.startswith("static/") for path in outline.fetched)
    assert "url(" not in CSS
    assert "@import" not in CSS


async def test_static_files_are_kept_for_ever_and_pages_briefly(shop: Shop) -> None:
    """A static file's path holds a hash of its content, so a changed one has another path."""
    fetched = set(Outline(await page_of(shop)).fetched)
    assert len(fetched) == 2
    for path in fetched:
        assert re.fullmatch(r"static/[a-z]+\.[0-9a-f]{12}\.(css|svg)", path)
        answer = await shop.client.get("/" + path)
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    for path in ("/docs", "/openapi.json"):
        assert (await shop.client.get(path)).headers["cache-control"] == "public, max-age=300"
    for path in ("/healthz", "/api/1.03/order"):
        assert (await shop.client.get(path)).headers["cache-control"] == "no-store"


async def test_the_docs_weigh_little(shop: Shop) -> None:
    """Page, style and pictures together stay under 150 KB, packed as browsers ask for them."""
    paths = ["/docs", *{"/" + path for path in Outline(await page_of(shop)).fetched}]
    parts = [await shop.client.get(path, headers={"accept-encoding": "gzip"}) for path in paths]
    assert {part.headers["content-encoding"] for part in parts} == {"gzip"}
    assert sum(int(part.headers["content-length"]) for part in parts) < WEIGHT_BYTES_MAX
    plain = await shop.client.get("/docs", headers={"accept-encoding": "identity"})
    assert plain.text == parts[0].text


async def test_every_link_of_the_docs_leads_somewhere(shop: Shop) -> None:
    """Anchors exist once each, and other links are pages of ours."""
    outline = Outline(await page_of(shop))
    assert not outline.open
    assert len(set(outline.ids)) == len(outline.ids)
    for link in set(outline.links):
        if link.startswith("#"):
            assert link[1:] in outline.ids, link
        else:
            assert (await shop.client.get("/" + link)).status_code == 200, link


async def test_the_docs_show_every_operation_in_every_version(shop: Shop) -> None:
    """OP-04: the page is made from the same table."""
    page = await page_of(shop)
    for route in ROUTES:
        assert f">{OPERATIONS[route.op].title}</h3>" in page
        for version in route.versions:
            assert f"<code>/api/{version}/{route.path}</code>" in page


async def test_the_docs_have_landmarks_and_headings_in_order(shop: Shop) -> None:
    """Someone who listens to the page can find their way: landmarks, one first heading, no level left out."""
    page = await page_of(shop)
    outline = Outline(page)
    for landmark in ("header", "nav", "main", "footer"):
        assert outline.tags.count(landmark) == 1
    levels = [int(tag[1]) for tag in outline.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert '<html lang="en">' in page
    assert 'class="skip" href="#content"' in page


def _colours(block: str) -> dict[str, str]:
    return dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", block))


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(scheme: str) -> None:
    """WCAG AA: text has a contrast of at least 4.5 to what it stands on, in the light and in the dark."""
    light, _, rest = CSS.partition("@media (prefers-color-scheme: dark)")
    colours = _colours(light if scheme == "light" else rest)
    for ground in ("ground", "raised"):
        for text in ("ink", "dim", "accent", "key", "bad"):
            assert _contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for badge in ("get", "post", "patch", "good"):
        assert _contrast(colours["on-badge"], colours[badge]) >= 4.5, badge


async def test_pages_can_only_be_read(shop: Shop) -> None:
    """OP-25: another method gets 405 with Allow; HEAD gets the headers alone."""
    for path in ("/docs", "/openapi.json", "/healthz"):
        refused = await shop.client.post(path)
        assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")
    head = await shop.client.head("/docs")
    assert (head.status_code, head.content) == (200, b"")
    assert int(head.headers["content-length"]) > 20_000


async def test_paths_that_do_not_exist_are_not_found(shop: Shop) -> None:
    """No path reaches into the files of the package."""
    for path in (
        "/static/docs.css",
        "/static/../pages.py",
        "/docs/../templates/docs.html",
        "/portals",
        "/docs/",
    ):
        answer = await shop.client.get(path)
        assert (answer.status_code, answer.text) == (404, "not found"), path


@pytest.mark.parametrize("public_url", [None, "https://codes.example.org/shop"])
async def test_the_document_and_the_page_say_where_the_service_is(pool: Pool, public_url: str | None) -> None:
    """The address is the operator's public one; without it the document points to wherever it was read from."""
    settings = None if public_url is None else Settings(public_url=public_url)
    pages = SystemEndpoints(pool, cast(Metrics, None), settings)
    answer = await pages.answer(Request("GET", "/openapi.json", b"", {}, b"", "", "req_1"))
    assert isinstance(answer.body, bytes)
    assert f'"servers":[{{"url":"{public_url or "/"}"}}]' in answer.body.decode()
    told = guide(public_url, Settings().body_bytes_max).body.decode()
    assert f"URL={public_url or EXAMPLE_URL}\n" in told
