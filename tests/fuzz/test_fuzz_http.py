"""The server against any bytes: they come in any pieces, and none of them breaks it."""

from __future__ import annotations

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.bounded import bounded, briefly
from tests.fuzz.inputs import around, kept, texts
from tests.fuzz.world import KEY, World
from voucherd.api import routes
from voucherd.api.routes import ROUTES
from voucherd.http import Request
from voucherd.pages.routes import PAGES

_HEADS = re.compile(rb"HTTP/1\.1 (\d{3}) [^\r\n]*\r\n((?:[^\r\n]+\r\n)*)\r\n")
CUTS_MAX = 8
HEADERS = (b"content-type", b"accept", b"accept-language", b"cookie", b"idempotency-key", b"last-event-id", b"origin",
           b"x-sandbox-outcome")  # fmt: skip


def cut(given: bytes, places: list[int]) -> list[bytes]:
    """The bytes in pieces."""
    at = sorted({0, len(given), *(place % (len(given) + 1) for place in places)})
    return [given[begin:end] for begin, end in pairwise(at)]


def answered(world: World, pieces: list[bytes]) -> list[int]:
    """The statuses of all answers, each of which has an id and is no failure of ours."""
    with bounded():
        heard = world.send(pieces)
    found = _HEADS.findall(heard)
    assert bool(found) == bool(heard)
    for status, fields in found:
        # 503: it was read, and wants the database; or too many calls wait.
        assert int(status) < 500 or status == b"503", heard[:1_000]
        assert status == b"100" or b"x-request-id: " in fields, heard[:1_000]
    return [int(status) for status, _ in found]


@briefly
@given(given=around(kept("http")), places=st.lists(st.integers(0, 1 << 16), max_size=CUTS_MAX))
def test_any_bytes_in_any_pieces_are_answered_in_http_or_not_at_all(
    world: World, given: bytes, places: list[int]
) -> None:
    """OP-25, OP-26: no exception, no failure of ours, an id on every answer."""
    answered(world, cut(given, places))


TARGETS = (
    *((method, path) for method, path, _ in routes.table(ROUTES)),
    *((page.method, page.path) for page in PAGES),
)


@briefly
@given(
    target=st.sampled_from(TARGETS),
    name=texts(kept("names")),
    query=around(kept("queries")),
    body=around(kept("bodies") + kept("forms")),
    headers=st.dictionaries(st.sampled_from(HEADERS), around(kept("headers")), max_size=3),
)
def test_every_operation_and_page_reads_or_refuses_whatever_it_is_sent(
    world: World, target: tuple[str, str], name: str, query: bytes, body: bytes, headers: dict[bytes, bytes]
) -> None:
    """OP-25: a good key, and anything in path, query, headers and body: it ends in a refusal or at the database."""
    method, path = target
    # As the server makes a path of what was sent: there is nothing in it that is no character.
    path = re.sub(r"\{\w+\}", lambda _: name.encode(errors="replace").decode(), path)
    request = Request(method, path, query, {b"authorization": KEY, **headers}, body, "192.0.2.1", "req_1")
    with bounded():
        response = world.answer(request)
    assert response.status < 500 or response.status == 503
