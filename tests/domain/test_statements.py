"""Statements with names: what PostgreSQL gets to see of them."""

from __future__ import annotations

import pytest
from msgspec import Struct

from voucherd.statements import (
    BIGINT,
    BIGINT_OR_NULL,
    ENUM,
    FLAG,
    NUMBER_LIST,
    TEXT,
    WORD,
    RowSet,
    Where,
    picker,
    statement,
)


class Parcel(Struct):
    """Something to store."""

    id: int
    town: str
    fragile: bool
    note: str | None = None
    stops: tuple[int, ...] = ()


PARCELS = RowSet("p", id=BIGINT, town=WORD, fragile=FLAG, note=TEXT, stops=NUMBER_LIST)


def test_a_set_of_rows_is_an_array_for_each_column_and_names_each_once() -> None:
    """The alias is the name space: two sets of rows in one statement may have columns of one name."""
    letters = RowSet("l", id=ENUM)
    sql = f"SELECT p.id, :at FROM {PARCELS}, {letters} WHERE p.id::int = :at"  # noqa: S608 - It is never run.
    assert statement(sql, "at", letters, PARCELS) == (
        "SELECT p.id, $1 FROM unnest($3::text::bigint[], $4::text::text[], $5::text::int[]::bool[], $6::text[], "
        "string_to_array($7::text, ',')) AS p (id, town, fragile, note, stops), "
        "unnest($2::text::smallint[]) AS l (id) WHERE p.id::int = $1"
    )
    assert PARCELS.names == "id, town, fragile, note, stops"
    assert PARCELS.only("id") == "unnest(:p.id::text::bigint[]) AS p (id)"


def test_values_come_from_the_attributes_of_the_rows_in_the_order_of_the_columns() -> None:
    """Texts that are all missing are no array at all; a column that the rows don't have is given."""
    rows = [Parcel(7, "Utrecht", fragile=True, stops=(3, 4)), Parcel(8, "Delft", fragile=False)]
    assert PARCELS.values(rows) == ["{7, 8}", "{Utrecht,Delft}", "{1, 0}", [], "3 4,"]
    assert PARCELS.values(rows, note=["a", None])[3] == ["a", None]
    assert PARCELS.values([]) == PARCELS.values([], note=[]) == ["{}", "{}", "{}", [], ""]
    assert RowSet("x", id=BIGINT_OR_NULL, town=WORD).values((), id=[1, None], town="ab") == [
        "{1, NULL}",
        "{a,b}",
    ]


@pytest.mark.parametrize("names", [(), ("at",), ("at", "by", "whom"), ("at", "by", "by")])
def test_a_parameter_that_is_missing_or_not_used_is_found_at_once(names: tuple[str, ...]) -> None:
    """A statement is made when its module is imported, so a mistake in it never reaches a call."""
    assert statement("SELECT :at::date, :by", "at", "by") == "SELECT $1::date, $2"
    with pytest.raises(ValueError, match="parameters and names differ"):
        statement("SELECT :at::date, :by", *names)


def test_a_column_that_a_row_lacks_is_found_at_once() -> None:
    """A picker is made at import, too."""
    assert picker(["o.id", "now()", "c.active"], "c.active", "o.id")((1, 2, 3)) == (3, 1)
    with pytest.raises(ValueError, match="is not in list"):
        picker(["o.id", "now()"], "o.id", "c.active")


def test_conditions_are_numbered_as_they_are_added_and_left_out_without_a_value() -> None:
    """The same name twice is one parameter."""
    where = Where("o.status <> 4")
    where.also("o.id = :id", id=None)
    where.also("hash(o.reference) = hash(:reference::text) AND o.reference = :reference", reference="a")
    where.also("(o.at, o.id) < (:at, :id)", at=5, id=6)
    assert str(where) == (
        "o.status <> 4 AND hash(o.reference) = hash($1::text) AND o.reference = $1 AND (o.at, o.id) < ($2, $3)"
    )
    assert (where.parameter(9), where.values) == ("$4", ["a", 5, 6, 9])
