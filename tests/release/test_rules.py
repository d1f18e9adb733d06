"""The rules for migrations after a release: each is kept by the migrations that there are, and each can be broken."""

from __future__ import annotations

import pytest

from tests.release.rules import NAMES, broken_rules
from voucherd.migrate import Migration, migrations

BAD = {
    "drops": (
        "ALTER TABLE orders DROP COLUMN reference",
        "DROP TABLE sweep",
        "DROP FUNCTION folded(text)",
        "ALTER TABLE orders ADD COLUMN note text, DROP COLUMN reference",
    ),
    "renames": ("ALTER TABLE orders RENAME COLUMN reference TO note", "ALTER TABLE sweep RENAME TO progress"),
    "not null": (
        "ALTER TABLE orders ADD COLUMN note text NOT NULL",
        "ALTER TABLE orders ADD note text CHECK (length(note) < 9) NOT NULL",
        "ALTER TABLE orders ALTER COLUMN reference SET NOT NULL",
    ),
    "type": (
        "ALTER TABLE entry ALTER COLUMN kind TYPE integer",
        "ALTER TABLE entry ALTER kind SET DATA TYPE integer",
    ),
    "rewrite": (
        "ALTER TABLE orders ADD COLUMN note uuid DEFAULT gen_random_uuid()",
        "ALTER TABLE orders ADD COLUMN half bigint GENERATED ALWAYS AS (id / 2) STORED",
    ),
    "checked": (
        "ALTER TABLE orders ADD CONSTRAINT small CHECK (lines < 9)",
        "ALTER TABLE orders ADD CHECK (lines < 9)",
        "ALTER TABLE orders ADD FOREIGN KEY (type) REFERENCES kind",
        "ALTER TABLE orders ADD CONSTRAINT once UNIQUE (reference)",
    ),
    "index": (
        "CREATE INDEX orders_note ON orders (reference)",
        "CREATE UNIQUE INDEX orders_note ON orders (reference)",
        "CREATE INDEX CONCURRENTLY orders_note ON orders (reference)",
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS orders_note ON orders (reference); SELECT 1",
        "REINDEX TABLE orders",
    ),
    "all rows": ("UPDATE orders SET reference = 'none; WHERE'", "DELETE FROM event"),
    "lock": ("LOCK TABLE orders", "TRUNCATE event"),
}
GOOD = (
    "ALTER TABLE orders ADD COLUMN note text",
    "ALTER TABLE orders ADD COLUMN note text NOT NULL DEFAULT '', ADD COLUMN of_note boolean",
    "CREATE TABLE note (id bigint PRIMARY KEY, words text NOT NULL); CREATE INDEX note_words ON note (words);"
    " ALTER TABLE note ADD CHECK (words <> ''); UPDATE note SET words = 'x'",
    "CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS orders_note ON orders (reference)",
    "ALTER TABLE orders ADD CONSTRAINT small CHECK (lines < 9) NOT VALID",
    "ALTER TABLE orders VALIDATE CONSTRAINT small",
    "ALTER TABLE orders ADD CONSTRAINT once UNIQUE USING INDEX orders_note",
    "ALTER TABLE orders DROP CONSTRAINT small",
    "CREATE OR REPLACE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN DELETE FROM note; END$$",
    "COMMENT ON TABLE orders IS 'We; DROP TABLE nothing'; -- DROP TABLE orders;",
    "UPDATE orders SET reference = NULL WHERE id = 7",
)


@pytest.mark.parametrize("migration", migrations(), ids=[migration.label for migration in migrations()])
def test_a_migration_lets_the_program_before_it_go_on(migration: Migration) -> None:
    """From 0.1.0 on servers are replaced one by one: the old ones sell on the new schema meanwhile."""
    assert broken_rules(migration.sql) == []


@pytest.mark.parametrize(("name", "sql"), [(name, sql) for name, all_bad in BAD.items() for sql in all_bad])
def test_a_rule_that_is_broken_is_named(name: str, sql: str) -> None:
    """The rules can fail, each by its own name and no other."""
    assert [one.partition(":")[0] for one in broken_rules(sql)] == [name]
    excused = f"-- Allowed ({name}): no program in use needs it.\n{sql}"
    if ";" not in sql or name != "index":
        assert broken_rules(excused) == []


def test_every_rule_has_an_example() -> None:
    """A rule without one might never find anything."""
    assert BAD.keys() == NAMES
    assert broken_rules("-- Allowed (everything): why not.\nSELECT 1") == [
        "there is no rule 'everything' to be let off"
    ]


@pytest.mark.parametrize("sql", GOOD)
def test_what_the_program_before_can_bear_is_let_through(sql: str) -> None:
    """The rules leave a way to every change."""
    assert broken_rules(sql) == []
