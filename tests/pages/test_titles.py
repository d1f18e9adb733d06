"""What a browser shows of a page outside of it: the title of the tab, and the icon."""

from __future__ import annotations

import io
import re

from PIL import Image

from tests.pages.people import HTML, someone
from tests.shop import Shop
from voucherd.pages.page import Audience
from voucherd.pages.routes import PAGES


async def test_every_title_ends_with_the_name_of_the_site(shop: Shop) -> None:
    """OP-174: so that tabs of several services can be told apart; no two words are glued together."""
    owner, admin = await someone(shop, "owner", await shop.company()), await someone(shop, "admin")
    name = shop.program.services.settings.operator_name
    seen = 0
    for page in PAGES:
        if page.method != "GET" or "{" in page.path or page.path.startswith("/docs"):
            continue
        for prefix in ("", "/sandbox") if page.path.startswith(("/portal", "/console")) else ("",):
            person = admin if page.audience is Audience.OPERATOR else owner
            answer = await person.get(prefix + page.path)
            if not answer.headers.get("content-type", "").startswith("text/html"):
                continue
            (title,) = re.findall("<head>.*<title>([^<]*)</title>.*</head>", answer.text, re.DOTALL)
            assert re.fullmatch(rf"\S.* · {name}", title), (page.path, title)
            assert ("(sandbox)" in title) is bool(prefix), (page.path, title)
            seen += 1
    assert seen > 60
    problem = await shop.client.get("/no/such/page", headers=HTML)
    assert f"<title>Page not found · {name}</title>" in problem.text


async def test_browsers_and_telephones_find_an_icon_where_they_look_for_it(shop: Shop) -> None:
    """OP-174: /favicon.ico in three sizes, and /apple-touch-icon.png without rounded corners of its own."""
    small = await shop.client.get("/favicon.ico")
    assert (small.status_code, small.headers["content-type"]) == (200, "image/x-icon")
    assert Image.open(io.BytesIO(small.content)).info["sizes"] == {(16, 16), (32, 32), (48, 48)}
    large = await shop.client.get("/apple-touch-icon.png")
    assert (large.status_code, large.headers["content-type"]) == (200, "image/png")
    picture = Image.open(io.BytesIO(large.content)).convert("RGB")
    assert picture.size == (180, 180)
    assert picture.getpixel((0, 0)) == picture.getpixel((90, 10))
    page = (await shop.client.get("/sign-in", headers=HTML)).text
    assert 'rel="icon" href="/favicon.ico"' in page
    assert 'rel="apple-touch-icon" href="/apple-touch-icon.png"' in page


async def test_whoever_is_signed_in_keeps_the_navigation_on_a_page_that_is_not_there(shop: Shop) -> None:
    """OP-174: and finds the way home in the state that was looked at; the words are the reader's own."""
    owner = await someone(shop, "owner", await shop.company())
    for path, home in (("/no/such/page", "/portal"), ("/sandbox/portal/nothing", "/sandbox/portal")):
        page = await owner.get(path)
        assert page.status_code == 404
        assert '<nav class="side"' in page.text
        assert f'<a class="button primary" href="{home}">Back to the overview</a>' in page.text
    stranger = await shop.client.get("/no/such/page", headers={**HTML, "accept-language": "de"})
    assert "Seite nicht gefunden" in stranger.text
    assert '<nav class="side"' not in stranger.text
    viewer = await someone(shop, "viewer", await shop.company())
    refused = await viewer.get("/portal/team")
    assert (refused.status_code, "Your role does not let you manage the team." in refused.text) == (403, True)
