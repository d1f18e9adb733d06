"""The router: from a path to what is served there. Pure; the API's table and the pages' table both use it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Generic, NamedTuple, TypeVar

T = TypeVar("T")

_START: Final = ("/",)
"""The key of the path "/", which has neither a name nor a parameter."""


class Match(NamedTuple, Generic[T]):
    """What is served at a path, by method, and what stands in the path's parameters."""

    methods: dict[str, T]
    path: str
    """The path as the table writes it, such as `/api/1.03/order/{trx}`."""
    values: tuple[str, ...]


class Router(Generic[T]):
    """Finds a path with look-ups in dicts: one or two for most, at most one for each arrangement of parameters."""

    def __init__(self, table: Iterable[tuple[str, str, T]]) -> None:
        # By segments; a parameter is an empty segment.
        self._routes: dict[tuple[str, ...], tuple[dict[str, T], str]] = {}
        for method, path, target in table:
            methods, _ = self._routes.setdefault(_key(path), ({}, path))
            assert method not in methods, f"two routes at {method} {path}"
            methods[method] = target
        # Most requests ask for paths without a parameter, or with one at the end.
        self._whole = {
            "/".join(key): found
            for key, found in self._routes.items()
            if "" not in key[1:-1] and key is not _START
        }
        self._arrangements = _arrangements(self._routes)

    def match(self, path: str) -> Match[T] | None:
        """The target at this path; None for a path that does not exist."""
        head, slash, last = path.rpartition("/")
        if not last:
            found = self._routes.get(_START) if path == "/" else None
            return None if found is None else Match(*found, ())
        found = self._whole.get(path)
        if found is not None:
            return Match(*found, ())
        found = self._whole.get(head + slash)
        if found is not None:
            return Match(*found, (last,))
        return self._search(path)

    def _search(self, path: str) -> Match[T] | None:
        segments = path.split("/")
        if segments[0] or "" in segments[1:]:
            return None
        for places in self._arrangements.get(len(segments), ()):
            key = segments.copy()
            for at in places:
                key[at] = ""
            found = self._routes.get(tuple(key))
            if found is not None:
                return Match(*found, tuple([segments[at] for at in places]))
        return None


def names(path: str) -> tuple[str, ...]:
    """The names of a path's parameters, from left to right."""
    return tuple(part[1:-1] for part in path.split("/") if part.startswith("{"))


def _key(path: str) -> tuple[str, ...]:
    if path == "/":
        return _START
    return tuple("" if part.startswith("{") else part for part in path.split("/"))


def _arrangements(keys: Iterable[tuple[str, ...]]) -> dict[int, list[tuple[int, ...]]]:
    """Where parameters stand in the paths of each length, in the order to try: literals win, from left to right."""
    found: dict[int, set[tuple[int, ...]]] = {}
    for key in keys:
        places = tuple(at for at, part in enumerate(key) if not part and at)
        found.setdefault(len(key), set()).add(places)
    return {
        length: sorted(arrangements, key=lambda places: [-at for at in places])
        for length, arrangements in found.items()
    }
