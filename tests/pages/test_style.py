"""Parts of pages: a page uses only what the style sheet has, and that has only what pages use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from tests.pages.people import someone
from tests.shop import Shop
from voucherd.pages.assets import icons, templates

STATIC: Final = files("voucherd.pages") / "static"
SHEET: Final = (STATIC / "site.css").read_text("utf-8")
SCRIPTS: Final = "".join((STATIC / name).read_text("utf-8") for name in ("site.js", "passkeys.js"))
PAGES: Final = {
    name: re.sub(r"\{#.*?#\}", "", text, flags=re.S)
    for name, text in templates().items()
    if not name.startswith(("docs/", "recipient/"))
}
MADE: Final = re.compile(r"(hue|space|swatch|type)-")
"""Classes whose names a page puts together."""


def defined() -> set[str]:
    """Every class that the style sheet knows."""
    rules = re.sub(r"/\*.*?\*/|\{[^{}]*\}", " ", SHEET, flags=re.S)
    return set(re.findall(r"\.(-?[a-z][a-z0-9-]*)", rules))


def used() -> set[str]:
    """Every class that a page names, as it stands or as a choice of an expression."""
    found: set[str] = set()
    for text in PAGES.values():
        for value in re.findall(r'class="((?:[^"{]|\{\{.*?\}\}|\{%.*?%\})*)"', text):
            bare = re.sub(r"\{\{.*?\}\}|\{%.*?%\}", " ", value)
            found |= set(bare.split())
    return found


def words_of_pages() -> set[str]:
    """Every word of the templates, handlers and scripts: a class may be given to a macro, or set by a script."""
    handlers = "".join(file.read_text("utf-8") for file in _python(files("voucherd.pages")))
    return set(re.findall(r"[a-z][a-z0-9-]*", "".join(PAGES.values()) + SCRIPTS + handlers))


def _python(folder: Traversable) -> Iterator[Traversable]:
    for file in folder.iterdir():
        if file.is_dir():
            yield from _python(file)
        elif file.name.endswith(".py"):
            yield file


def test_pages_use_only_classes_of_the_style_sheet() -> None:
    """OP-177: a class that nothing defines is a part that is missing."""
    assert {one for one in used() - defined() if not MADE.match(one)} == set()


def test_the_style_sheet_has_nothing_that_no_page_uses() -> None:
    """OP-177: a part that no page uses goes."""
    assert {one for one in defined() - words_of_pages() if not MADE.match(one)} == set()


def test_every_colour_is_defined_in_light_and_dark() -> None:
    """OP-177: a page is as readable at night."""
    light, dark = SHEET.split("@media (prefers-color-scheme: dark)", 1)
    colours = set(re.findall(r"(--[a-z-]+): #", light))
    assert colours - set(re.findall(r"(--[a-z-]+): #", dark.split("\n}\n", 1)[0])) == set()


async def test_one_page_shows_every_part_and_every_icon(shop: Shop) -> None:
    """OP-177: whoever makes a page finds its parts on one page."""
    page = await (await someone(shop, "admin")).get("/console/style")
    assert page.status_code == 200
    for name in icons():
        assert f">{name}</span>" in page.text
