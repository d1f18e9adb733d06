"""Search for words in names, brands and slugs. Pure; the database folds what it keeps in the same way."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

QUERY_CHARS_MAX: Final = 200
TERMS_MAX: Final = 10

_MARKS: Final = re.compile("[\u0300-\u036f]+")
_BETWEEN: Final = re.compile(r"[\x01-/:-@\[-`{-\x7f]+")


def folded(text: str) -> str:
    """The text without accents and capitals: the database's function of the same name."""
    bare = _MARKS.sub("", unicodedata.normalize("NFKD", text))
    # Letter by letter: the database knows no letter whose small form depends on its place in the word.
    return "".join(letter.lower() for letter in bare)


def terms(text: str) -> list[str]:
    """The words of a text, folded, each once."""
    return list(dict.fromkeys(word for word in _BETWEEN.split(folded(text)) if word))


def prefix_query(words: Sequence[str]) -> str:
    """The query for rows that have, for each word, one that begins with it."""
    # Nothing in a folded word needs an escape: quotes and backslashes stand between words.
    return " & ".join(f"'{word}':*" for word in words)
