"""What the fuzzers send: the corpus, pieces of it put together anew, and bytes at will."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

CORPUS: Final = Path(__file__).parent / "corpus"
EDITS_MAX: Final = 6
PUT_BYTES_MAX: Final = 24
LOOSE_BYTES_MAX: Final = 200
REPEATED_MAX: Final = 3_000
REPEATED_BYTES_MAX: Final = 24_000

_EDITS: Final = st.integers(0, EDITS_MAX)
_PLACES: Final = st.integers(0, 1 << 16)
_CUTS: Final = st.integers(0, 64)
# Mostly once; sometimes so often that a bound must hold.
_TIMES: Final = st.sampled_from((1, 1, 1, 2, 100, REPEATED_MAX))

ODDITIES: Final = (
    *(b"", b" ", b"\t", b"\r", b"\n", b"\r\n", b"9" * 25, b"9" * 5_000),
    *b"\0 \x7f \x80 \xff \xfe\xff \xef\xbb\xbf \xed\xa0\x80 \xf4\x8f\xbf\xbf".split(b" "),
    *"٣ ſ \u212a İ \u2028".encode().split(b" "),
    *b"-1 0 1e999999 1E-999999 0x1F NaN Infinity 1_000 +5 null true {} [] \\ud800 \\u0000".split(b" "),
    *b'" \' \\ [ {"a": %00 % %ED%A0%80 & = ; , : / ../ ? # < &#0;'.split(b" "),
    *b"9999-12-31 0001-01-01T00:00:00+23:59 9999-12-31T23:59:59-23:59 2026-W01-1 2026-02-30 24:00".split(
        b" "
    ),
)
"""What has broken readers before: ours, or those of others."""


@lru_cache
def kept(target: str) -> tuple[bytes, ...]:
    """The inputs that the repository keeps for this target."""
    return tuple(path.read_bytes() for path in sorted((CORPUS / target).iterdir()))


def around(seeds: tuple[bytes, ...]) -> SearchStrategy[bytes]:
    """These, with a few edits, and bytes that have nothing to do with them."""
    words = ODDITIES + tuple(dict.fromkeys(re.findall(rb"\w+|[^\w\s]+", b" ".join(seeds))))
    put = st.one_of(st.sampled_from(words), st.binary(max_size=PUT_BYTES_MAX))
    return st.one_of(_edited(st.sampled_from(seeds), put), st.binary(max_size=LOOSE_BYTES_MAX))


@st.composite
def _edited(draw: st.DrawFn, seeds: SearchStrategy[bytes], puts: SearchStrategy[bytes]) -> bytes:
    """One of the seeds after some edits, each of which cuts bytes out at a place and puts others there."""
    given = draw(seeds)
    for _ in range(draw(_EDITS)):
        at, cut, put, times = draw(_PLACES) % (len(given) + 1), draw(_CUTS), draw(puts), draw(_TIMES)
        put *= min(times, 1 + REPEATED_BYTES_MAX // (len(put) + 1))
        given = given[:at] + put + given[at + cut :]
    return given


def texts(seeds: tuple[bytes, ...]) -> SearchStrategy[str]:
    """The same as text, whatever the bytes are."""
    return st.one_of(
        around(seeds).map(lambda given: given.decode("utf-8", "surrogateescape")), st.text(max_size=60)
    )
