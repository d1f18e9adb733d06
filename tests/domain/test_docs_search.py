"""Search in the docs: every word counts, a title counts more, and nothing that is typed breaks it."""

from __future__ import annotations

import pytest

from voucherd.api.guide import Guidebook
from voucherd.api.guide.search import FOUND_MAX, entry, find
from voucherd.settings import Settings

BOOK = Guidebook(None, Settings().body_bytes_max)
PAGES = [
    entry("/docs/a", "Confirm order", "Call", "<p>Pays &amp; delivers. See <code>orderStatus</code>.</p>"),
    entry("/docs/b", "Webhooks", "Guide", "Tells you that an order ends; confirm nothing twice."),
    entry("/docs/c", "insufficient_balance", "Error", "402 insufficient balance"),
]


def paths(query: str) -> list[str]:
    """Where the query leads."""
    return [one.path for one in find(PAGES, query)]


def test_every_word_must_begin_a_word_of_the_page() -> None:
    """More words find less; a word in the middle of another finds nothing."""
    assert paths("conf") == ["/docs/a", "/docs/b"]
    assert paths("conf twice") == ["/docs/b"]
    assert paths("onfirm") == []
    assert paths("twice nonsense") == []


def test_a_title_comes_before_a_mention_and_a_whole_title_before_all() -> None:
    """Whoever types the name of a call gets that call."""
    assert paths("order")[0] == "/docs/a"
    first = [find(BOOK.index, title)[0].title for title in ("Confirm order", "Webhooks", "late")]
    assert first == ["Confirm order", "Webhooks", "late"]


def test_a_field_and_a_code_are_found_by_their_words_and_as_a_whole() -> None:
    """As they are written, in small letters, or by a part."""
    for query in ("orderStatus", "orderstatus", "status"):
        assert paths(query) == ["/docs/a"], query
    for query in ("insufficient_balance", "balance", "402"):
        assert paths(query) == ["/docs/c"], query
    assert paths("amp") == paths("code") == []


@pytest.mark.parametrize(
    "query", ["", " ", "order " * 1_000, "o", "or", "ß€💶", "\x00", "<b>", "[(*", "a" * 10_000]
)
def test_whatever_is_typed_finds_pages_or_none(query: str) -> None:
    """It is bounded, and it never fails."""
    assert len(find(BOOK.index, query)) <= FOUND_MAX
