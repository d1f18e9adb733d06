"""Every function of the API that reads a request, against any query, headers and body."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.bounded import bounded, briefly
from tests.fuzz.inputs import around, kept
from tests.fuzz.world import MASTER
from voucherd import api
from voucherd.api import requests
from voucherd.api.errors import Op
from voucherd.http import HttpError, Request
from voucherd.ids import Identifiers, State
from voucherd.orders.rules.refusals import BadInput

GIVEN: Final[dict[str, Any]] = {
    "ids": Identifiers(MASTER), "own": (), "state": State.SANDBOX, "company_id": 1, "ticket": None,
    "parameters": requests.FIND_ALL,
    "op": Op.CONFIRM, "asked": None,
}  # fmt: skip
"""What readers want to know beside the request."""


def readers() -> Iterator[Callable[..., object]]:
    """Every function of the API that takes a request apart; those that make the answer to one are none."""
    for found in pkgutil.iter_modules(api.__path__, api.__name__ + "."):
        module = import_module(found.name)
        for _, function in inspect.getmembers(module, inspect.isfunction):
            first, *_ = [*inspect.signature(function).parameters.values(), None]
            if (
                function.__module__ == module.__name__
                and not function.__name__.startswith("_")
                and first is not None
                and first.annotation == "Request"
                and function.__annotations__["return"] != "Response"
                and function is not requests.decode  # It reads for others, each of which says what.
            ):
                yield function


READERS: Final = tuple(readers())


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
    """OP-25: the walk finds what each part of the API reads, and knows all that a reader wants beside the request."""
    assert {reader.__module__.rpartition(".")[2] for reader in READERS} >= {
        *("accounts", "catalogue_requests", "events", "key_requests", "order_parts", "query", "requests"),
        *("outcomes", "request_log", "sandbox_requests", "webhook_requests"),
    }
    wanted = {name for reader in READERS for name in list(inspect.signature(reader).parameters)[1:]}
    assert wanted == GIVEN.keys()


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
