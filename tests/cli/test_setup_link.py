"""`voucherd setup-link`: a new link for a shop that nobody has set up, and none for any other."""

from __future__ import annotations

import re

from tests.cli.terminal import Terminal, assert_refused
from voucherd.cli.serve import _listening

LINK = r"http://127\.0\.0\.1:8080/set-up/[\w-]{43}"


def test_a_new_link_is_printed_until_the_shop_is_set_up(terminal: Terminal) -> None:
    """OP-150: each call prints another link; when the operator has somebody, it says so instead."""
    first = terminal.json("setup-link")["setupUrl"]
    shown = terminal.view("setup-link")
    assert re.fullmatch(LINK, first)
    (second,) = re.findall(LINK, shown)
    assert second != first
    assert "24 hours" in shown

    terminal.json("user", "add", "ann@shop.example", "--role", "admin")
    assert_refused(terminal.run("setup-link"), "the shop is set up", "Staff")


def test_serve_prints_the_link_of_an_empty_shop_alone() -> None:
    """OP-150: one line with the address, and for an empty shop the link and how to get another."""
    empty, set_up = _listening("http://shop", "token"), _listening("http://shop", None)
    assert empty.document == {"baseUrl": "http://shop", "setupUrl": "http://shop/set-up/token"}
    assert "http://shop/set-up/token" in str(empty.view)
    assert "voucherd setup-link" in str(empty.view)
    assert (set_up.document, set_up.view) == ({"baseUrl": "http://shop"}, "Listening on http://shop")
