"""The OpenAPI document, made from the objects that the service itself works with, so that it can't be wrong."""

from __future__ import annotations

from importlib.metadata import version as installed_version
from typing import Any, Final

from voucherd.api.openapi.examples import EXAMPLE_URL
from voucherd.api.openapi.paths import HEADERS, failures, operation
from voucherd.api.openapi.problems import ANYWHERE
from voucherd.api.openapi.schemas import schemas
from voucherd.api.openapi.webhooks import messages
from voucherd.api.operations import SECTIONS
from voucherd.api.routes import ROUTES
from voucherd.keys.key_text import RATE_LIMIT_DEFAULT

_ABOUT: Final = """\
Sells prepaid codes in two steps. Create an order to fix its price; then confirm or resolve it to pay from your \
balance and get the codes.

The version is part of the path. `1.03` has every operation and extended order lines; `1.00` and `Next` have short \
ones. `1.02` is another name of `1.03`, on every path, and accounts, brands and products are alike in all versions: \
these paths are not listed again. A version keeps its shape for good: fields may be added, never removed or retyped, \
so ignore those that you do not know. A version to be retired answers with `Deprecation` and `Sunset` headers for 12 \
months first.

Amounts are JSON numbers with exactly as many digits as their currency has; read them as decimals, not as binary \
floats. Times are UTC.

An error is one line of `text/plain`, whatever `Accept` says; only with `Accept: application/problem+json`, which a \
client sends that is generated from this document, it is RFC 9457 with a stable `code`. A parameter that a call does \
not have is refused."""

_KEY: Final = (
    "An API key of your company, as `Authorization: Bearer <key>`. A key that begins with `vk_live_` works on live "
    "orders, one that begins with `vk_test_` on sandbox orders; the paths are the same. What a key may do is set by "
    f"its scopes, and how often by its rate limit, {RATE_LIMIT_DEFAULT} requests a minute unless agreed otherwise."
)


def document(public_url: str | None, body_bytes_max: int) -> dict[str, Any]:
    """The whole document; without an address of its own it points to wherever it was read from."""
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        for version in route.versions:
            item = paths.setdefault(f"/api/{version}/{route.path}", {})
            item[route.method.lower()] = operation(route, version, public_url or EXAMPLE_URL, body_bytes_max)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "voucherd order API",
            "version": installed_version("voucherd"),
            "summary": "Order prepaid codes: create, confirm, resolve, cancel, find.",
            "description": _ABOUT,
        },
        "servers": [{"url": public_url or "/"}],
        "security": [{"ApiKey": []}],
        "tags": [{"name": section.name, "description": section.words} for section in SECTIONS],
        "paths": paths,
        "webhooks": messages(public_url or EXAMPLE_URL),
        "components": {
            "schemas": schemas(),
            "responses": failures([*ANYWHERE]),
            "headers": HEADERS,
            "securitySchemes": {"ApiKey": {"type": "http", "scheme": "bearer", "description": _KEY}},
        },
    }
