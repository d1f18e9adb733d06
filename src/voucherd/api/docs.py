"""The docs page: the OpenAPI document and a short guide as HTML that needs no script."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import Any, Final

from jinja2 import DictLoader, Environment, StrictUndefined, Template

from voucherd.api.http import Response
from voucherd.api.openapi import EXAMPLE_URL, examples, reference
from voucherd.api.openapi.operations import MAIN_VERSION
from voucherd.api.openapi.parameters import OUTCOMES

HTML: Final = b"text/html; charset=utf-8"
BRIEFLY: Final = b"public, max-age=300"
NO_SNIFFING: Final = (b"x-content-type-options", b"nosniff")

_FOR_EVER: Final = b"public, max-age=31536000, immutable"
_POLICY: Final = (
    b"default-src 'none'; style-src 'self'; img-src 'self' data:; script-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_PAGE_HEADERS: Final = (
    NO_SNIFFING,
    (b"content-security-policy", _POLICY),
    (b"referrer-policy", b"no-referrer"),
)
_TYPES: Final = {"css": b"text/css; charset=utf-8", "svg": b"image/svg+xml"}

# By name, not by import: the portal's files belong to the page, but the API depends on no code of the portal.
_FILES: Final = files("voucherd.portal")


@cache
def _static() -> dict[str, tuple[str, bytes]]:
    """Each static file by its name: its path, which holds a hash of the content, and the content."""
    found = {}
    for file in (_FILES / "static").iterdir():
        stem, _, kind = file.name.rpartition(".")
        if kind in _TYPES:
            content = file.read_bytes()
            found[file.name] = f"static/{stem}.{hashlib.sha256(content).hexdigest()[:12]}.{kind}", content
    return found


def assets() -> dict[str, Response]:
    """The static files by path. A changed file has another path, so a cache may keep one for ever."""
    return {
        f"/{path}": Response(200, content, _TYPES[path.rpartition(".")[2]], [NO_SNIFFING], _FOR_EVER)
        for path, content in _static().values()
    }


@cache
def _template() -> Template:
    """The page's template, compiled."""
    sources = {file.name: file.read_text("utf-8") for file in (_FILES / "templates").iterdir()}
    environment = Environment(
        loader=DictLoader(sources),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["prose"] = reference.prose
    return environment.get_template("docs.html")


def page(document: dict[str, Any], public_url: str | None) -> Response:
    """The whole page, made from the document."""
    html = _template().render(
        info=document["info"],
        url=public_url or EXAMPLE_URL,
        static={name: path for name, (path, _) in _static().items()},
        operations=reference.operations(document),
        objects=reference.objects(document),
        any_failures=reference.any_failures(document),
        outcomes=OUTCOMES.values(),
        main_version=MAIN_VERSION,
        trx=examples.trx(),
        slug=examples.SLUG,
    )
    return Response(200, html.encode(), HTML, list(_PAGE_HEADERS), BRIEFLY)
