"""Search along an order of products: its stretches, one after another, until a page is full (decision 30)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from voucherd.catalogue.rules import is_slug
from voucherd.db import Connection

STRETCH: Final = 1_024
"""Every product whose id this divides begins a stretch, as the table `product_place` says."""
SAMPLE_EVERY: Final = 32
SAMPLE_MAX: Final = 32
"""Stretches that are asked which term is the rarest: one in so many, and at most so many."""
COUNTED_MAX: Final = 100

END: Final = "\U0010ffff"
"""The key behind all others."""


class Window(Struct, frozen=True):
    """The part of an order between two places, without them."""

    low: str = ""
    low_id: int = 0
    high: str = END
    high_id: int = 0


def terms_of(words: Sequence[str], brand_slug: str | None, category: str | None) -> list[str]:
    """What a place must have, each as a query with `%` for the stretch."""
    # Nothing in a folded word needs an escape: quotes, backslashes and per cent signs stand between words.
    terms = [f"'%/{word}':*" for word in words]
    for mark, slug in (("=", brand_slug), ("#", category)):
        if slug is not None and is_slug(slug):
            terms.append(f"'%{mark}{slug}'")
    return terms


async def rarest_first(conn: Connection, sort: str, terms: Sequence[str]) -> list[str]:
    """The terms, sorted by how often a few stretches have them.

    The server has no idea how rare the beginning of a word is, and looks up all terms of a query before it compares.
    """
    if len(terms) < 2:
        return list(terms)
    rows = await conn.fetch(
        f"""SELECT given.term FROM unnest($1::text[]) WITH ORDINALITY AS given (term, at)
            CROSS JOIN LATERAL (
                SELECT count(*) FROM (
                    SELECT FROM (
                        SELECT b.product_id AS id FROM product_place b
                        WHERE b.product_id % {STRETCH} = 0 AND b.sort = $2
                          AND b.product_id % {STRETCH * SAMPLE_EVERY} = 0
                        UNION ALL SELECT 0 LIMIT {SAMPLE_MAX}) s
                    CROSS JOIN LATERAL (SELECT FROM product_place n WHERE {_has("given.term", "$2")} OFFSET 0) found
                    LIMIT {COUNTED_MAX}) counted) times (count)
            ORDER BY times.count, given.at""",  # noqa: S608 - Constants of ours.
        terms,
        sort,
    )
    return [row[0] for row in rows]


def walk(sort: str, whole: str, first: str | None, *, descending: bool) -> str:
    """Two items of a FROM clause: the places of `lane` that have all terms, in the order, as `found.product_id`.

    The arguments are parameters: the order, all terms, and the rarest if there are several. Each item needs the one
    before it, so the server can but take them in this order, and reads no further than the page that is asked for.
    """
    direction = "DESC" if descending else "ASC"
    later = f"""SELECT b.product_id FROM product_place b
                WHERE b.product_id % {STRETCH} = 0 AND b.sort = {sort}
                  AND (b.key, b.product_id) > (lane.low, lane.low_id)
                  AND (b.key, b.product_id) < (lane.high, lane.high_id)
                ORDER BY b.key {direction}, b.product_id {direction}"""  # noqa: S608 - Constants of ours.
    here = f"SELECT stretch_of({sort}, lane.low, lane.low_id)"
    stretches = f"({later}) UNION ALL ({here})" if descending else f"({here}) UNION ALL ({later})"
    occurs = f"(SELECT true FROM product_place n WHERE {_has(first, sort)} LIMIT 1)" if first else "true"  # noqa: S608
    # The window is no condition for an index: the words are rarer.
    return f"""(SELECT s.id FROM ({stretches}) s (id) WHERE {occurs} OFFSET 0) s
            CROSS JOIN LATERAL (
                SELECT n.product_id FROM product_place n
                WHERE {_has(whole, sort)}
                  AND ((n.key, n.product_id) > (lane.low, lane.low_id)
                       AND (n.key, n.product_id) < (lane.high, lane.high_id)) IS TRUE
                ORDER BY n.key {direction}, n.product_id {direction}) found"""  # noqa: S608 - As above.


def _has(query: str, sort: str) -> str:
    """That the place `n` lies in the stretch `s` and has what the query says."""
    return f"n.words @@ replace({query}, '%', left({sort}, 1) || s.id)::tsquery"
