"""Addresses of pages: whether they show live or the sandbox, and what our own links begin with."""

from __future__ import annotations

import re
from typing import Final

from voucherd.http import HTML, Response
from voucherd.ids import State

SANDBOX: Final = "/sandbox"
LIVE: Final = "/live"
"""Only in what templates write, for a link that leads to live from wherever it stands."""

_STATED: Final = r"/(?:portal|console|account)(?:[/?#].*)?"
_IN_SANDBOX: Final = re.compile(f"{SANDBOX}({_STATED})", re.DOTALL)
_HAS_STATE: Final = re.compile(_STATED.encode(), re.DOTALL)
_OWN_LINK: Final = re.compile(rb' (href|action|formaction|src|data-live)="(/(?!/)[^"]*)"')
_ONE_STATE: Final = re.compile(
    r"/(?:portal/(?:orders|keys|webhooks|requests|approvals)|console/(?:orders|money|purchases|suppliers))(?=/)"
)


def split(path: str) -> tuple[State, str]:
    """Whether an address shows live or the sandbox, and the address without that."""
    found = _IN_SANDBOX.fullmatch(path)
    return (State.LIVE, path) if found is None else (State.SANDBOX, found[1])


def beside(path: str) -> str:
    """This page in either state: its address, or its list where the object is in one of them only."""
    if _HAS_STATE.fullmatch(path.encode()) is None:
        return ""
    found = _ONE_STATE.match(path)
    return path if found is None else found[0]


def lead(response: Response, state: State, root: str) -> None:
    """Let our links stay in the page's state, and begin with the path under which a proxy serves us.

    Templates and handlers write `/portal/orders`. Only a link that is to change the state names one.
    """

    def led(address: bytes) -> bytes:
        if address.startswith(b"/live/") and _HAS_STATE.fullmatch(address[len(LIVE) :]):
            address = address[len(LIVE) :]
        elif state is State.SANDBOX and _HAS_STATE.fullmatch(address):
            address = SANDBOX.encode() + address
        return root.encode() + address

    response.headers = [
        (name, led(value) if name == b"location" and value.startswith(b"/") else value)
        for name, value in response.headers
    ]
    if response.content_type == HTML and isinstance(response.body, bytes):
        # No text of others can look like a link: in it every quote is written as an entity.
        response.body = _OWN_LINK.sub(lambda link: b' %b="%b"' % (link[1], led(link[2])), response.body)
