"""The pages beside the API: small, safe, cached as long as they may be, and made from the document."""

from __future__ import annotations

import re
from functools import cache
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest

import voucherd
from tests.shop import Shop
from voucherd.api import events
from voucherd.api.errors import CODES
from voucherd.api.guide import Guidebook
from voucherd.api.guide.error_pages import ADVICE
from voucherd.api.openapi.examples import EXAMPLE_URL
from voucherd.api.openapi.problems import ANYWHERE, OFF_THE_MAP, REPEATED
from voucherd.api.operations import OPERATIONS
from voucherd.api.operations.orders import SLUG
from voucherd.api.routes import ROUTES
from voucherd.api.system import SystemEndpoints
from voucherd.db import Pool, transaction
from voucherd.http import Request
from voucherd.metrics.page import Metrics
from voucherd.pages import guide as docs
from voucherd.people import user_store
from voucherd.people.users import UserDraft
from voucherd.settings import Settings
from voucherd.storefront.service import SampleProduct

WEIGHT_BYTES_MAX = 150_000
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
CSS = (files("voucherd.pages") / "static" / "docs.css").read_text("utf-8")
SOURCE = Path(voucherd.__file__).parent


class Outline(HTMLParser):
    """What a reader's software makes of the page."""

    VOID = frozenset({"meta", "link", "img", "br", "input"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.forms: list[str] = []
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
        if tag == "form":
            self.forms.append(str(given["action"]))
        if tag in ("link", "img", "script"):
            self.fetched.append(str(given.get("href") or given.get("src")))

    def handle_endtag(self, tag: str) -> None:
        """Every element is closed in its turn."""
        assert self.open.pop() == tag


@cache
def pages(public_url: str | None = None) -> dict[str, str]:
    """Every page of the docs by its path."""
    book = Guidebook(public_url, Settings().body_bytes_max)
    drawn = {path: book.page(path, SampleProduct("gift-10", "acme")) for path in book.paths}
    return {path: page.decode() for path, page in drawn.items() if page is not None}


@cache
def outlines() -> dict[str, Outline]:
    """The same, as a reader's software sees them."""
    return {path: Outline(page) for path, page in pages().items()}


async def test_the_start_leads_to_the_way_in(shop: Shop) -> None:
    """OP-154: a shop that nobody has set up yet says how; after that whoever is signed out signs in."""
    empty = await shop.client.get("/", headers={"accept": "text/html"})
    assert (empty.status_code, "setup-link" in empty.text) == (200, True)
    async with transaction(shop.pool) as tx:
        await user_store.add_user(tx, UserDraft("ann@shop.example", None, "admin"), "no password opens this")
    answer = await shop.client.get("/")
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")


async def test_every_page_of_the_docs_is_served(shop: Shop) -> None:
    """Each has the strict policy; what is read by everybody may be kept for five minutes."""
    for path in (*pages(), "/docs/search?q=webhook"):
        answer = await shop.client.get(path)
        assert answer.status_code == 200, path
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert (answer.headers["cache-control"], answer.headers["vary"]) == ("public, max-age=300", "cookie")
        assert "set-cookie" not in answer.headers, path
        assert "<!-- " not in answer.text, path


def test_the_docs_run_and_load_nothing_foreign() -> None:
    """The pages keep to their policy: one script of our own, no inline style, nothing from elsewhere."""
    for path, outline in outlines().items():
        assert outline.tags.count("script") == 1, path
        assert not {"style", "iframe"} & set(outline.tags)
        assert "style" not in outline.attributes
        assert not [name for name in outline.attributes if name.startswith("on")]
        assert all(one.startswith("/static/") for one in outline.fetched)
    assert "url(" not in CSS
    assert "@import" not in CSS


def test_a_key_that_is_tried_can_not_be_sent_by_a_form() -> None:
    """The field has no name, so that a browser without our script sends it nowhere, and nothing fills it in."""
    fields = {match for page in pages().values() for match in re.findall(r'<input id="try-key"[^>]*>', page)}
    (field,) = fields
    assert " name=" not in field
    assert 'autocomplete="off"' in field


async def test_static_files_are_kept_for_ever_and_pages_briefly(shop: Shop) -> None:
    """A static file's path holds a hash of its content, so a changed one has another path."""
    fetched = set(outlines()["/docs"].fetched)
    assert len(fetched) == 3
    for path in fetched:
        assert re.fullmatch(r"/static/[a-z]+\.[0-9a-f]{12}\.(css|js|svg)", path)
        answer = await shop.client.get(path)
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    for path in ("/openapi.json", "/docs/search.json"):
        assert (await shop.client.get(path)).headers["cache-control"] == "public, max-age=300"
    for path in ("/healthz", "/api/1.03/order"):
        assert (await shop.client.get(path)).headers["cache-control"] == "no-store"


async def test_every_page_of_the_docs_weighs_little(shop: Shop) -> None:
    """A page with all that it fetches, the index of search too, stays under 150 KB, unpacked."""
    fetched = {*outlines()["/docs"].fetched, "/docs/search.json"}
    parts = [await shop.client.get(path, headers={"accept-encoding": "identity"}) for path in fetched]
    around = sum(len(part.content) for part in parts)
    for path, page in pages().items():
        assert len(page.encode()) + around < WEIGHT_BYTES_MAX, path


async def test_every_link_of_the_docs_leads_somewhere(shop: Shop) -> None:
    """Anchors exist once each, and other links are pages of ours."""
    wanted = set()
    for path, outline in outlines().items():
        assert not outline.open
        assert len(set(outline.ids)) == len(outline.ids), path
        wanted |= {path + link if link.startswith("#") else link for link in outline.links}
    for link in wanted - {"https://www.standardwebhooks.com"}:
        path, _, anchor = link.partition("#")
        if path in pages():
            assert not anchor or anchor in outlines()[path].ids, link
        else:
            answer = await shop.client.get(path, headers={"accept": "text/html"})
            assert answer.status_code in (200, 303), link


def test_the_docs_show_every_operation_in_every_version() -> None:
    """OP-04: the pages are made from the same table."""
    by_title = {title: page for page in pages().values() for title in re.findall("<h1>(.*?)</h1>", page)}
    for route in ROUTES:
        page = by_title[OPERATIONS[route.op].title]
        for version in route.versions:
            assert f"<code>/api/{version}/{route.path}</code>" in page


def test_the_docs_have_landmarks_and_headings_in_order() -> None:
    """Someone who listens to a page can find their way: landmarks, one first heading, no level left out."""
    for path, outline in outlines().items():
        for landmark in ("header", "main", "footer"):
            assert outline.tags.count(landmark) == 1, path
        levels = [int(tag[1]) for tag in outline.tags if re.fullmatch("h[1-6]", tag)]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after <= before + 1 for before, after in pairwise(levels)), path
        page = pages()[path]
        assert '<html lang="en">' in page
        assert 'class="skip" href="#content"' in page
        navigation = re.findall("<nav[^>]*>", page)
        assert len(set(navigation)) == len(navigation)
        assert all("aria-label=" in one for one in navigation)


def test_every_code_of_an_error_has_a_page_that_says_what_to_do() -> None:
    """OP-26: `type` of a problem leads to it. Whatever code the API and its server speak, somebody can look it up."""
    written = re.compile(r'(?:HttpError|error|DescribedProblem)\(\s*(?:request, )?[45][0-9]{2}, "([a-z_]+)"')
    sources = [*(SOURCE / "api").rglob("*.py"), *(SOURCE / "server").rglob("*.py")]
    codes = {code for source in sources for code in written.findall(source.read_text("utf-8"))}
    codes |= {
        events.TOO_OLD_CODE,
        *CODES.values(),
        *(one.code for one in (*ANYWHERE, *OFF_THE_MAP, *REPEATED)),
    }
    assert len(codes) > 40
    for code in codes:
        page = pages()[f"/docs/errors/{code}"]
        assert f"<h1><code>{code}</code></h1>" in page
        assert '<h2 id="what-to-do">' in page
    assert codes == set(ADVICE)


async def test_a_problem_that_a_client_meets_can_be_looked_up(shop: Shop) -> None:
    """OP-26: by its code."""
    company = await shop.company()
    headers = company.bearer() | {"accept": "application/problem+json"}
    refused = await shop.client.patch("/api/1.03/order/confirm/TRX0", headers=headers)
    page = await shop.client.get(f"/docs/errors/{refused.json()['code']}")
    assert page.status_code == 200
    assert refused.json()["title"] in page.text


async def test_the_samples_order_a_product_that_is_for_sale(shop: Shop) -> None:
    """The first example works as it is printed: it names a product of this shop that anyone can order."""
    await shop.product("gift-10", stock=1)
    page = (await shop.client.get("/docs")).text
    assert page.count("gift-10") >= 5
    assert SLUG not in page
    assert "/api/1.03/product/gift-10" in (await shop.client.get("/docs/reference/find-product")).text


@pytest.mark.parametrize("stocked", [True, False])
async def test_the_docs_are_there_without_a_product(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, stocked: bool
) -> None:
    """Nothing is for sale, or the database does not answer in time: then the samples name a product that is made up."""
    if stocked:
        await shop.product("gift-10", stock=1)
        monkeypatch.setattr(docs, "SAMPLE_WAIT_S_MAX", 0.0)
    page = await shop.client.get("/docs")
    assert page.status_code == 200
    assert SLUG in page.text


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
    for ground in ("ground", "raised", "tint"):
        for text in ("ink", "dim", "accent", "key", "bad"):
            assert _contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for badge in ("get", "post", "patch", "delete", "good"):
        assert _contrast(colours["on-badge"], colours[badge]) >= 4.5, badge
    assert _contrast(colours["on-accent"], colours["accent"]) >= 4.5
    for ground in ("ground", "raised"):
        assert _contrast(colours["edge"], colours[ground]) >= 3, ground


async def test_pages_can_only_be_read(shop: Shop) -> None:
    """OP-25: another method gets 405 with Allow; HEAD gets the headers alone."""
    for path in ("/docs", "/openapi.json", "/healthz"):
        refused = await shop.client.post(path)
        assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")
    head = await shop.client.head("/docs")
    assert (head.status_code, head.content) == (200, b"")
    assert int(head.headers["content-length"]) > 10_000


async def test_paths_that_do_not_exist_are_not_found(shop: Shop) -> None:
    """No path reaches into the files of the package."""
    for path in (
        "/static/docs.css",
        "/static/../pages.py",
        "/docs/../templates/docs.html",
        "/portals",
        "/docs/",
        "/docs/nothing",
        "/docs/start",
        "/docs/errors/nothing",
        "/docs/objects/nothing",
        "/docs/reference/nothing",
        "/docs/recipes/verify.php",
    ):
        answer = await shop.client.get(path)
        assert (answer.status_code, answer.text) == (404, "not found"), path


@pytest.mark.parametrize("public_url", [None, "https://codes.example.org/shop"])
async def test_the_document_and_the_page_say_where_the_service_is(pool: Pool, public_url: str | None) -> None:
    """The address is the operator's public one; without it the document points to wherever it was read from."""
    settings = None if public_url is None else Settings(public_url=public_url)
    system = SystemEndpoints(pool, cast(Metrics, None), settings)
    answer = await system.answer(Request("GET", "/openapi.json", b"", {}, b"", "", "req_1"))
    assert isinstance(answer.body, bytes)
    assert f'"servers":[{{"url":"{public_url or "/"}"}}]' in answer.body.decode()
    assert f"{public_url or EXAMPLE_URL}/api/1.03/order" in pages(public_url)["/docs"]
