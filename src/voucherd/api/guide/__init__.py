"""The docs for integrators at /docs: a guide in short pages, and a reference made from the API's own description."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup, escape
from msgspec import Struct

from voucherd.api.guide import search
from voucherd.api.guide.error_pages import pages_by_code
from voucherd.api.guide.samples import EXAMPLE_PRODUCT, LANGUAGES, call_of, samples_of
from voucherd.api.guide.try_forms import try_form
from voucherd.api.openapi import document, reference
from voucherd.api.openapi.examples import EXAMPLE_URL
from voucherd.api.openapi.markup import prose
from voucherd.api.openapi.reference import ReferenceOperation
from voucherd.api.operations import SECTIONS
from voucherd.api.outcomes import OUTCOMES
from voucherd.api.routes import MAIN, ROUTES
from voucherd.api.wire.webhooks import TYPES
from voucherd.pages.assets import static_paths, templates
from voucherd.storefront.service import SampleProduct

GUIDES_KEPT_MAX: Final = 4
ROOT: Final = "/docs"
_HEADING: Final = re.compile(r'<h2 id="([a-z0-9-]+)">(.*?)</h2>')
_MARKS: Final = re.compile(r"\{[%{].*?[%}]\}")
FIRST_CALLS: Final = ("create-order", "confirm-order")
"""What the first page tries, one after the other."""
_BY_HAND: Final = {"stream-events": "stream"}
"""Operations whose samples are written by hand: recipes, by their anchor."""


class GuidePage(NamedTuple):
    """A page of the guide: the last part of its address, its title, and what it tells."""

    name: str
    title: str
    summary: str


PAGES: Final = (
    GuidePage("authentication", "Keys", "How calls prove who sends them, and what a key may do."),
    GuidePage(
        "orders", "Orders in two steps", "Create fixes the price; Confirm or Resolve pays and delivers."
    ),
    GuidePage("sandbox", "Sandbox", "Play money, codes that are worth nothing, and outcomes of your choice."),
    GuidePage(
        "errors", "Errors and retries", "What went wrong, and how to repeat a call without paying twice."
    ),
    GuidePage("webhooks", "Webhooks", "Be told what happens, and verify who tells it."),
    GuidePage("events", "Events", "The same news in pages, and as a stream."),
    GuidePage("catalogue", "Catalogue", "Products, prices and stock, and how to keep a copy."),
    GuidePage(
        "lists", "Lists and pages", "Leaf through lists, walk through everything, and read large orders."
    ),
    GuidePage("money", "Money", "Amounts, rounding, balances and statements."),
    GuidePage("versions", "Versions", "What each version of the API has, and how long it stays."),
)
"""The pages behind the first one, in reading order."""


class DocsPage(Struct, frozen=True):
    """A page of the docs before it is drawn."""

    title: str
    kind: str
    summary: str
    template: str
    text: str
    """What search finds it by, beside its title."""
    facts: dict[str, Any] = {}


class Guidebook:
    """Every page of the docs by its path. A page is drawn when it is asked for first, and kept."""

    def __init__(self, public_url: str | None, body_bytes_max: int) -> None:
        described = document(public_url, body_bytes_max)
        self._url = public_url or EXAMPLE_URL
        self._info: dict[str, str] = described["info"]
        self._operations = reference.operations(described)
        self._objects = reference.objects(described)
        self._errors = pages_by_code(self._operations, body_bytes_max)
        self._any_failures = reference.any_failures(described)
        self._pages = dict(self._written()) | dict(self._derived())
        self._product = EXAMPLE_PRODUCT
        self._drawn: dict[str, bytes] = {}
        self.index = [
            search.entry(path, page.title, page.kind, page.text) for path, page in self._pages.items()
        ]

    @property
    def paths(self) -> list[str]:
        """The path of every page but the one of search."""
        return list(self._pages)

    def page(self, path: str, product: SampleProduct | None) -> bytes | None:
        """The page at this path, with samples that order this product; None where there is no such page."""
        page = self._pages.get(path)
        if page is None:
            return None
        if (product or EXAMPLE_PRODUCT) != self._product:
            self._drawn.clear()
            self._product = product or EXAMPLE_PRODUCT
        if path not in self._drawn:
            facts = page.facts | self._tried(path, page.facts.get("operation"))
            content = self._content(page.template, **facts)
            self._drawn[path] = self._framed(path, page.title, page.summary, content)
        return self._drawn[path]

    def found(self, query: str) -> bytes:
        """The page that lists what was found."""
        words = query[: search.QUERY_CHARS_MAX]
        found = search.find(self.index, words)
        content = self._content("search", query=words, found=found, found_max=search.FOUND_MAX)
        return self._framed(f"{ROOT}/search", "Search", "Search in the docs.", content, query=words)

    def _written(self) -> Iterator[tuple[str, DocsPage]]:
        """The pages that are written by hand."""
        start = GuidePage("start", "Order prepaid codes", self._info["summary"])
        for page in (start, *PAGES):
            text = _MARKS.sub(" ", templates()[f"docs/{page.name}.html"])
            path = ROOT if page is start else f"{ROOT}/{page.name}"
            yield path, DocsPage(page.title, "Guide", page.summary, page.name, text)

    def _derived(self) -> Iterator[tuple[str, DocsPage]]:
        """The pages that are made from the API's own description."""
        yield (
            f"{ROOT}/reference",
            DocsPage("Reference", "Reference", "Every call, by subject.", "reference", "calls"),
        )
        yield (
            f"{ROOT}/objects",
            DocsPage("Objects", "Reference", "What is sent and answered.", "objects", "fields"),
        )
        for operation in self._operations:
            summary = f"{operation.method} {operation.path}"
            named = " ".join(row.name for row in operation.parameters)
            failing = " ".join(failure.code for failure in operation.failures)
            text = f"{summary} {operation.words} {named} {failing}"
            facts = {"operation": operation}
            yield operation.page, DocsPage(operation.title, "Call", summary, "operation", text, facts)
        for one in self._objects:
            text = " ".join((escape(one.words), *(f"{row.name} {row.words}" for row in one.rows)))
            summary = f"The fields of {one.title.lower()}."
            yield (
                f"{ROOT}/objects/{one.anchor}",
                DocsPage(one.title, "Object", summary, "object", text, {"object": one}),
            )
        for error in self._errors.values():
            text = " ".join(f"{one.status} {one.text} {one.when}" for one in error.wordings)
            summary = f"The error {error.code}: when it comes, and what to do."
            page = DocsPage(error.code, "Error", summary, "error", f"{text} {error.advice}", {"error": error})
            yield f"{ROOT}/errors/{error.code}", page

    def _tried(self, path: str, operation: ReferenceOperation | None) -> dict[str, Any]:
        """The samples of a page's calls, and the forms to try them."""
        if path == ROOT:
            first = [one for one in self._operations if one.anchor in FIRST_CALLS]
            return {"try_forms": [try_form(one, self._product) for one in first]}
        if operation is None:
            return {}
        recipe = _BY_HAND.get(operation.anchor)
        if recipe is not None:
            return {"call_samples": self._recipe(recipe), "try_form": None}
        samples = samples_of(call_of(operation, self._url, self._product))
        return {"call_samples": samples, "try_form": try_form(operation, self._product)}

    def _recipe(self, name: str) -> dict[str, str]:
        """A sample that is written by hand, in each language."""
        return {
            language.id: templates()[f"docs/recipes/{name}.{language.id}"]
            .rstrip("\n")
            .replace("{url}", self._url)
            .replace("{slug}", self._product.slug)
            for language in LANGUAGES
        }

    def _content(self, name: str, **facts: Any) -> Markup:
        known = {
            "url": self._url,
            "info": self._info,
            "main_version": MAIN,
            "slug": self._product.slug,
            "recipe": self._recipe,
            "languages": LANGUAGES,
            "pages": PAGES,
            "sections": self._sections(),
            "objects": self._objects,
            "errors": [*self._errors.values()],
            "any_failures": self._any_failures,
            "outcomes": [(one.form, one.told) for one in OUTCOMES.values()],
            "event_types": TYPES,
            "versions": _versions(self._operations),
        }
        return Markup(_environment().get_template(f"docs/{name}.html").render(known | facts))  # noqa: S704 - A template.

    def _framed(self, path: str, title: str, summary: str, content: Markup, query: str = "") -> bytes:
        """The whole page around its content."""
        headings = [(id_, Markup(words)) for id_, words in _HEADING.findall(content)]  # noqa: S704 - Our own.
        order = [f"{ROOT}/{page.name}" for page in PAGES]
        at = order.index(path) if path in order else -1
        following = PAGES[0] if path == ROOT else PAGES[at + 1] if 0 <= at < len(PAGES) - 1 else None
        page = _environment().get_template("docs/frame.html")
        return page.render(
            info=self._info,
            path=path,
            title=title,
            summary=summary,
            content=content,
            headings=headings if len(headings) > 1 else [],
            following=following,
            pages=PAGES,
            sections=self._sections(),
            query=query,
        ).encode()

    def _sections(self) -> list[tuple[str, str, list[ReferenceOperation]]]:
        """The operations by section: its name, its words, and what is in it."""
        return [
            (one.name, one.words, [op for op in self._operations if op.section == one.name])
            for one in SECTIONS
        ]


def _versions(operations: list[ReferenceOperation]) -> list[tuple[ReferenceOperation, tuple[str, ...]]]:
    """Operations that other versions have, too, and which; all others are in the main version alone."""
    pairs = zip(operations, ROUTES, strict=True)
    return [(operation, route.versions) for operation, route in pairs if route.versions != (MAIN,)]


@cache
def _environment() -> Environment:
    made = Environment(
        loader=DictLoader(dict(templates())),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["prose"] = prose
    made.globals["static"] = static_paths()
    return made


@lru_cache(maxsize=GUIDES_KEPT_MAX)
def guidebook(public_url: str | None, body_bytes_max: int) -> Guidebook:
    """The docs of a service at this address, made once for all services of this process that are alike."""
    return Guidebook(public_url, body_bytes_max)
