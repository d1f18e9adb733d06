"""What a reader fills in to try a call from its page. Pure; the page's own script sends it, with a sandbox key only."""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct

from voucherd.api.guide.samples import FINISHED, YESTERDAY, call_of
from voucherd.api.openapi.markup import indented
from voucherd.api.openapi.reference import ReferenceOperation
from voucherd.storefront.service import SampleProduct


class Input(Struct, frozen=True):
    """One thing to fill in."""

    name: str
    place: str
    """`path`, `query` or `header`."""
    value: str
    example: str
    required: bool
    choices: tuple[str, ...] = ()


class TryForm(Struct, frozen=True):
    """A call that can be tried."""

    anchor: str
    title: str
    method: str
    path: str
    inputs: tuple[Input, ...]
    body: str | None


def try_form(operation: ReferenceOperation, product: SampleProduct) -> TryForm:
    """The form of a call: what it must have is filled in where an example would work."""
    call = call_of(operation, "", product)
    return TryForm(
        operation.anchor,
        operation.title,
        operation.method,
        operation.path,
        tuple(_input(one, operation, product) for one in operation.described.get("parameters", ())),
        None if call.body is None else indented(Raw(call.body)),
    )


def _input(parameter: dict[str, Any], operation: ReferenceOperation, product: SampleProduct) -> Input:
    name, place, example = parameter["name"], parameter["in"], str(parameter.get("example", ""))
    required = bool(parameter.get("required"))
    known = {
        "since": YESTERDAY if required else "",
        "slug": product.brand_slug if "/brand/" in operation.path else product.slug,
        FINISHED[0]: example if (name, example) == FINISHED else "",
        "currency": example,
    }
    words = parameter["schema"].get("enum", ()) if place == "query" else ()
    return Input(
        name,
        place,
        known.get(name, "") if required or place == "header" else "",
        example,
        required,
        tuple(str(word) for word in words if word is not None),
    )
