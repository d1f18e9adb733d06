"""Operations are written once; an attribute of a blocking client answers, of an async one it is awaited.

A method under `@operation` describes a call as steps, one under `@listing` a list in pages, one under `@streaming` an
endless stream. What is called depends on the engine that the resource was made with, and so do the types.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping, Sequence
from functools import update_wrapper, wraps
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload
from urllib.parse import quote
from uuid import uuid4

from voucherd_client.engine import AsyncEngine, AsyncPages, Engine, Pages, Walk
from voucherd_client.shapes.pages import Page
from voucherd_client.steps import KEY_HEADER, Request, Retries, Steps, answered, decode, encode
from voucherd_client.stream import Stream

P = ParamSpec("P")
T = TypeVar("T")
E = TypeVar("E", bound=Engine | AsyncEngine)


class Resource(Generic[E]):
    """A noun of the API, with its operations."""

    def __init__(self, engine: E, retries: Retries) -> None:
        self._engine = engine
        self._retries = retries

    def _read(self, path: str, kind: type[T], query: Sequence[tuple[str, str]] = ()) -> Steps[T]:
        """A call that changes nothing."""
        return decode((yield from self._bytes(path, query)), kind)

    def _write(
        self,
        method: str,
        path: str,
        kind: type[T],
        body: Any = None,
        *,
        key: str | None = None,
        query: Sequence[tuple[str, str]] = (),
        headers: Mapping[str, str | None] | None = None,
    ) -> Steps[T]:
        """A call that changes something, and what it answers."""
        key = str(uuid4()) if key is None else key
        answer = yield from self._do(method, path, body, key=key, query=query, headers=headers)
        return decode(answer, kind, key)

    def _do(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = None,
        query: Sequence[tuple[str, str]] = (),
        headers: Mapping[str, str | None] | None = None,
    ) -> Steps[bytes]:
        """A call that changes something, once: every attempt carries the same key and the same bytes."""
        sent = {name: text for name, text in (headers or {}).items() if text is not None}
        sent[KEY_HEADER] = str(uuid4()) if key is None else key
        for name, text in sent.items():
            # An empty key would be none, and a call without one may be done twice.
            if not text or not text.isascii() or not text.isprintable():
                raise ValueError(f"{name}: must be printable ASCII characters")
        content = None if body is None else encode(body)
        request = Request(method=method, path=path, query=tuple(query), headers=sent, body=content)
        return answered(request, self._retries)

    def _ask(self, path: str, kind: type[T], body: Any) -> Steps[T]:
        """A question with a body, which changes nothing either."""
        request = Request(method="POST", path=path, body=encode(body))
        return decode((yield from answered(request, self._retries)), kind)

    def _bytes(self, path: str, query: Sequence[tuple[str, str]] = ()) -> Steps[bytes]:
        """A file."""
        return answered(Request(method="GET", path=path, query=tuple(query)), self._retries)

    def _walk(
        self, path: str, kind: type[Page[T]], cursor: str, query: Sequence[tuple[str, str]] = ()
    ) -> Walk[T]:
        """A list in pages, from this cursor on; the empty one is its beginning."""
        return Walk(cursor, lambda at: self._read(path, kind, [*query, ("cursor", at)]))


def segment(text: str) -> str:
    """A name as a part of a path. An empty one, or dots, would lead elsewhere."""
    if text in ("", ".", ".."):
        raise ValueError(f"{text!r} is the name of nothing")
    return quote(text, safe="")


class operation(Generic[P, T]):  # noqa: N801 - A decorator.
    """A method whose call is answered."""

    def __init__(self, described: Callable[Concatenate[Any, P], Steps[T]]) -> None:
        self._described = described
        update_wrapper(self, described)  # type: ignore[arg-type]  # For help() and for editors.

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...
    @overload
    def __get__(self, owner: Resource[Engine], kind: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, owner: Resource[AsyncEngine], kind: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, owner: Any, kind: type) -> Any:
        return self if owner is None else _bound(self._described, owner, owner._engine.run)


class listing(Generic[P, T]):  # noqa: N801 - A decorator.
    """A method whose call is a list in pages."""

    def __init__(self, described: Callable[Concatenate[Any, P], Walk[T]]) -> None:
        self._described = described
        update_wrapper(self, described)  # type: ignore[arg-type]  # For help() and for editors.

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...
    @overload
    def __get__(self, owner: Resource[Engine], kind: type) -> Callable[P, Pages[T]]: ...
    @overload
    def __get__(self, owner: Resource[AsyncEngine], kind: type) -> Callable[P, AsyncPages[T]]: ...
    def __get__(self, owner: Any, kind: type) -> Any:
        return self if owner is None else _bound(self._described, owner, owner._engine.pages)


class streaming(Generic[P, T]):  # noqa: N801 - A decorator.
    """A method whose call never ends by itself."""

    def __init__(self, described: Callable[Concatenate[Any, P], Stream[T]]) -> None:
        self._described = described
        update_wrapper(self, described)  # type: ignore[arg-type]  # For help() and for editors.

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...
    @overload
    def __get__(self, owner: Resource[Engine], kind: type) -> Callable[P, Generator[T, None, None]]: ...
    @overload
    def __get__(self, owner: Resource[AsyncEngine], kind: type) -> Callable[P, AsyncGenerator[T, None]]: ...
    def __get__(self, owner: Any, kind: type) -> Any:
        return self if owner is None else _bound(self._described, owner, owner._engine.stream)


def _bound(described: Callable[..., Any], owner: Any, run: Callable[[Any], Any]) -> Callable[..., Any]:
    @wraps(described)
    def called(*words: Any, **named: Any) -> Any:
        return run(described(owner, *words, **named))

    return called
