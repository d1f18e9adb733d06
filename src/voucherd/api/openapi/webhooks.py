"""The messages that we send, as a part of the document: one for every type of event."""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET

from voucherd.api import query
from voucherd.api.openapi.examples import examples, listed
from voucherd.api.openapi.schemas import REF
from voucherd.api.wire.events import DATA, WHEN

_HEADERS: Final = (
    query.in_header(
        "webhook-id", "The id of the event: the same at every attempt.", "evt_033J10V76MA9JTDJ5AHVP77Y62"
    ),
    query.in_header(
        "webhook-timestamp", "When this attempt was sent, in seconds of Unix time.", "1769851920"
    ),
    query.in_header(
        "webhook-signature",
        "`v1,` and the base64 of an HMAC-SHA256 with the endpoint's secret over id, timestamp and body, with dots "
        "between. Several, with spaces between, while a secret is replaced: one of them must fit.",
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    ),
)
_ANSWERS: Final = {
    "2XX": {"description": "You have it. Anything else, or nothing within 15 seconds, is tried again."},
    "410": {"description": "You want nothing more: the endpoint is disabled."},
}


def messages(public_url: str) -> dict[str, dict[str, Any]]:
    """Every message by the type of its event."""
    return {
        type_: {"post": _message(type_, shape, public_url)}
        for shape, (_, types, _) in DATA.items()
        for type_ in types
    }


def _message(type_: str, shape: str, public_url: str) -> dict[str, Any]:
    example = examples(public_url)[type_].body
    assert example is not UNSET, "A test compares the examples with the types of events."
    return {
        "operationId": "on" + "".join(word.capitalize() for word in type_.replace("_", ".").split(".")),
        "tags": ["Webhooks"],
        "summary": type_,
        "description": WHEN[type_],
        # It carries no key of yours; its signature says whom it is from.
        "security": [],
        "parameters": [{**header.described, "required": True} for header in _HEADERS],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {"$ref": REF + shape},
                    "examples": listed({"body": example}),
                }
            },
        },
        "responses": _ANSWERS,
    }
