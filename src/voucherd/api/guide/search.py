"""Search in the docs: every page with its words. The script of the pages searches in the same index. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

QUERY_CHARS_MAX: Final = 100
FOUND_MAX: Final = 20
WORD_CHARS_MAX: Final = 40
_TAG: Final = re.compile(r"<[^>]*>|&[a-z]+;|&#[0-9]+;")
_WORD: Final = re.compile(r"[a-z0-9]{2,}")
_CAPITAL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Entry(Struct, frozen=True, array_like=True):
    """A page as the index has it."""

    path: str
    title: str
    kind: str
    """Such as `Guide` or `Error`: shown beside the title."""
    words: str
    """Every word of the page once, with a space before each."""


def entry(path: str, title: str, kind: str, page: str) -> Entry:
    """The entry of a page, from its HTML."""
    text = _TAG.sub(" ", page)
    # A field such as orderStatus is found by its whole name and by each of its words.
    found = dict.fromkeys(words_of(text) + words_of(_CAPITAL.sub(" ", text)))
    return Entry(path, title, kind, "".join(f" {word}" for word in found))


def words_of(text: str) -> list[str]:
    """The words of a text, in lower case."""
    return [word[:WORD_CHARS_MAX] for word in _WORD.findall(text.lower())]


def find(index: Iterable[Entry], query: str) -> list[Entry]:
    """The pages that have, for every word of the query, one that begins so; those that have it in their title first."""
    wanted = words_of(query[:QUERY_CHARS_MAX])
    if not wanted:
        return []
    scored = []
    for one in index:
        title = "".join(f" {word}" for word in words_of(one.title))
        if all(f" {word}" in one.words or f" {word}" in title for word in wanted):
            in_title = sum(f" {word}" in title for word in wanted)
            whole = words_of(one.title) == wanted
            scored.append((-whole, -in_title, one))
    return [one for *_, one in sorted(scored, key=lambda score: score[:2])][:FOUND_MAX]
