"""The docs page: the OpenAPI document and a short guide as HTML that needs no script."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from jinja2 import DictLoader, Environment, StrictUndefined, Template

from voucherd.api.openapi import reference
from voucherd.api.openapi.examples import EXAMPLE_URL
from voucherd.api.openapi.paths import MAIN_VERSION
from voucherd.api.operations.orders import SLUG, TRX
from voucherd.api.requests import OUTCOMES
from voucherd.http import HTML, Response
from voucherd.pages.assets import static_paths, templates

BRIEFLY: Final = b"public, max-age=300"


@cache
def _template() -> Template:
    """The page's template, compiled."""
    environment = Environment(
        loader=DictLoader(dict(templates())),
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
        static=static_paths(),
        operations=reference.operations(document),
        objects=reference.objects(document),
        any_failures=reference.any_failures(document),
        outcomes=OUTCOMES.values(),
        main_version=MAIN_VERSION,
        trx=TRX.example,
        slug=SLUG,
    )
    return Response(200, html.encode(), HTML, [], BRIEFLY)
