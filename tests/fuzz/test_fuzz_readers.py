"""Every function of the API that reads a request, against any query, headers and body."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.bounded import bounded, briefly
from tests.fuzz.inputs import around, kept
from tests.fuzz.world import MASTER
from voucherd.api import (
    accounts,
    catalogue_requests,
    events,
    key_requests,
    order_parts,
    query,
    requests,
    webhook_requests,
)
from voucherd.http import HttpError, Request
from voucherd.ids import Identifiers, State
from voucherd.orders.rules.refusals import BadInput

MODULES: Final = (
    accounts, catalogue_requests, events, key_requests, order_parts, query, requests, webhook_requests,
)  # fmt: skip
GIVEN: Final[dict[str, Any]] = {
    "ids": Identifiers(MASTER), "own": (), "state": State.SANDBOX, "company_id": 1, "ticket": None,
}  # fmt: skip
"""What readers want to know beside the request."""


def readers(module: ModuleType) -> list[Callable[..., object]]:
    """The functions that read a request, of which one that wants more than we know would be seen at once."""
    return [
        found
        for name, found in inspect.getmembers(module, inspect.isfunction)
        if found.__module__ == module.__name__
        and not name.startswith("_")
        and next(iter(inspect.signature(found).parameters), "") == "request"
        and found is not requests.decode  # It reads for others, each of which says what.
    ]


READERS: Final = tuple(reader for module in MODULES for reader in readers(module))
CURSORS: Final = (requests.read_cursor, catalogue_requests.read_number)


def read(reader: Callable[..., object], request: Request) -> None:
    """What was sent is read, or refused in our words."""
    more = [GIVEN[name] for name in list(inspect.signature(reader).parameters)[1:]]
    with bounded():
        try:
            reader(request, *more)
        except (BadInput, HttpError) as refusal:
            # The words reach the client, so they must be text that can be sent.
            str(refusal).encode()


def test_no_reader_is_forgotten() -> None:
    """Kin: each module that takes a request apart is walked, and each has something to walk."""
    assert all(readers(module) for module in MODULES)
    assert {reader.__name__ for reader in READERS} >= {
        "create",
        "find_all",
        "wishes",
        "add",
        "changes",
        "read_page",
    }


@briefly
@given(
    reader=st.sampled_from(READERS),
    asked=around(kept("queries")),
    body=around(kept("bodies")),
    header=st.sampled_from((b"content-type", b"accept", b"x-sandbox-outcome", b"last-event-id")),
    said=around(kept("headers")),
)
def test_a_request_is_read_or_refused_in_our_words(
    reader: Callable[..., object], asked: bytes, body: bytes, header: bytes, said: bytes
) -> None:
    """OP-25: bad input gets one line that names the field and the rule; nothing else is raised."""
    for headers in ({}, {header: said}):
        read(reader, Request("POST", "/", asked, headers, body, "192.0.2.1", "req_1"))
