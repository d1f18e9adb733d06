"""Statements whose parameters and columns have names; the numbers that PostgreSQL wants are given once, at import.

Rows go into a statement as one array for each column, however many there are. `RowSet` names each column once, for the
SQL (`FROM {ROWS}` is an `unnest` under an alias) and for the values (the rows' attributes of the same names).
`statement` then turns every `:name` into `$n`, by the order in which the values will be given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter, itemgetter
from typing import Any, Final, NamedTuple

from voucherd.db import numbers, sparse_numbers, words

_NAME: Final = re.compile(r"(?<![:\w]):([a-z_]+(?:\.[a-z_0-9]+)?)")
"""A name behind a single colon; two colons are a cast."""


class Kind(NamedTuple):
    """How the values of a column travel: the SQL around the parameter, and what becomes of them in Python."""

    sql: str
    encode: Callable[[Iterable[Any]], Any]


def _sparse(values: Iterable[Any]) -> list[Any]:
    """The values as they are; none at all if all are missing, because a shorter array is filled up with NULL."""
    found = list(values)
    return [] if found.count(None) == len(found) else found


def _flags(values: Iterable[Any]) -> str:
    return numbers(map(int, values))


def _lists(values: Iterable[Iterable[int]]) -> str:
    """One list of numbers each, in a text that is split again: an array of arrays would have to be even."""
    return ",".join([" ".join(map(str, one)) for one in values])


BIGINT: Final = Kind("{}::text::bigint[]", numbers)
INT: Final = Kind("{}::text::int[]", numbers)
SMALLINT: Final = Kind("{}::text::smallint[]", numbers)
ENUM: Final = Kind("{}::text::smallint[]", _flags)
FLAG: Final = Kind("{}::text::int[]::bool[]", _flags)
BIGINT_OR_NULL: Final = Kind("{}::text::bigint[]", sparse_numbers)
INT_OR_NULL: Final = Kind("{}::text::int[]", sparse_numbers)
WORD: Final = Kind("{}::text::text[]", words)
ADDRESS: Final = Kind("{}::text::inet[]", words)
TEXT: Final = Kind("{}::text[]", _sparse)
UUID: Final = Kind("{}::uuid[]", _sparse)
MOMENT: Final = Kind("{}::timestamptz[]", _sparse)
NUMBER_LIST: Final = Kind("string_to_array({}::text, ',')", _lists)
"""Lists of numbers; the statement splits each again, with `string_to_array(…, ' ')`."""


class RowSet:
    """Rows that a statement takes under an alias, one array for each named column."""

    def __init__(self, alias: str, **kinds: Kind) -> None:
        self.alias = alias
        self.names = ", ".join(kinds)
        self._kinds = kinds
        self._encoders = [kind.encode for kind in kinds.values()]
        self._get = attrgetter(*kinds)
        self._get_others: dict[tuple[str, ...], Callable[[Any], Any]] = {}
        self._empty = [encode(()) for encode in self._encoders]

    def __str__(self) -> str:
        return self.only(*self._kinds)

    def only(self, *names: str) -> str:
        """The rows with these of their columns."""
        arrays = ", ".join(self._kinds[name].sql.format(f":{self.alias}.{name}") for name in names)
        return f"unnest({arrays}) AS {self.alias} ({', '.join(names)})"

    @property
    def numbered(self) -> str:
        """The rows with one more column, `place`: their number, because a result has no order of its own."""
        arrays = ", ".join(kind.sql.format(f":{self.alias}.{name}") for name, kind in self._kinds.items())
        return f"unnest({arrays}) WITH ORDINALITY AS {self.alias} ({self.names}, place)"

    @property
    def parameters(self) -> list[str]:
        """The names of the parameters, in the order of `values`."""
        return [f"{self.alias}.{name}" for name in self._kinds]

    def values(self, rows: Sequence[object], **given: Iterable[Any]) -> list[Any]:
        """The parameters: each column as given, or else the rows' attribute of its name."""
        if not given:
            if not rows:
                return self._empty
            # One look at each row for all of its columns: this is the money path.
            columns = zip(*map(self._get, rows), strict=True)
            return [encode(column) for encode, column in zip(self._encoders, columns, strict=True)]
        names = tuple(given)
        get = self._get_others.get(names)
        if get is None:
            others = [name for name in self._kinds if name not in given]
            assert len(others) != 1, "one attribute would come back without its tuple"
            get = self._get_others[names] = attrgetter(*others) if others else _no_attributes
        found = zip(*map(get, rows), strict=True)
        return [
            encode(given[name] if name in given else next(found, ()))
            for name, encode in zip(self._kinds, self._encoders, strict=True)
        ]


def _no_attributes(_row: object) -> tuple[()]:
    return ()


def statement(sql: str, *parameters: RowSet | str) -> str:
    """The statement with `$n` for each `:name`, numbered in the order of these parameters."""
    names = [name for one in parameters for name in (one.parameters if isinstance(one, RowSet) else [one])]
    numbered = {name: f"${at}" for at, name in enumerate(names, start=1)}
    used = set(_NAME.findall(sql))
    if used != set(names) or len(numbered) != len(names):
        raise ValueError(f"parameters and names differ: {sorted(used ^ set(names))}")
    return _NAME.sub(lambda found: numbered[found[1]], sql)


class Where:
    """The conditions of a query that is put together for each call, and the values of its parameters, in order."""

    def __init__(self, *conditions: str) -> None:
        self.values: list[Any] = []
        self._conditions = list(conditions)

    def __str__(self) -> str:
        return " AND ".join(self._conditions)

    def parameter(self, value: object) -> str:
        """The `$n` of one more value."""
        self.values.append(value)
        return f"${len(self.values)}"

    def also(self, condition: str, **values: object) -> None:
        """One more condition, with these values for its `:name`s; left out if one of them is not there."""
        if any(value is None for value in values.values()):
            return
        numbered = {name: self.parameter(value) for name, value in values.items()}
        self._conditions.append(_NAME.sub(lambda found: numbered[found[1]], condition))


def picker(columns: Sequence[str], *names: str) -> Callable[[Any], tuple[Any, ...]]:
    """A function from a row of these columns to the values of some of them, in the order of `names`."""
    assert len(names) > 1, "one value would come back without its tuple"
    return itemgetter(*[columns.index(name) for name in names])
