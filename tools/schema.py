"""`make schema`: schema.sql, the whole schema for reading, written from a migrated database by subject."""

from __future__ import annotations

import asyncio
import re
import textwrap
from collections import defaultdict
from pathlib import Path
from typing import Final

import asyncpg

from voucherd.db import Connection
from voucherd.embedded import throwaway
from voucherd.migrate import migrate, migrations

FILE: Final = Path(__file__).parents[1] / "schema.sql"
WIDTH: Final = 120

HEAD: Final = """\
-- The whole schema, for reading: what src/voucherd/migrations/ makes, without the rows that they put in. `make schema`
-- writes this file from a migrated database; tests prove that it is current and that it makes the same schema.
--
-- Money is a bigint of minor units beside its currency, a rate is a bigint of 1e-8 (`…_e8`), a share is an integer of
-- basis points (`…_bp`). `state` is 0 for live and 1 for the sandbox, and the lowest bit of every id of an order, a
-- wallet, a lot and a quote. "Companies read" names the row-level security under which reads for one company run.
"""
TAIL: Final = """
-- ── Rights ──────────────────────────────────────────────────────────────────────────────────────────────────────────

-- Makes the policies and rights that the tables above name.
SELECT arrange_tenants();
SELECT arrange_service();
"""

Said = tuple[str | None, str]
"""The words about a part of a table, and the part."""

_MADE: Final = re.compile(r"^CREATE (?:UNLOGGED )?(?:TABLE|VIEW|SEQUENCE|FUNCTION) (\w+)", re.MULTILINE)
_SUBJECT: Final = re.compile(r"-- ([A-Z][^:\n]*): ")

_OBJECTS: Final = """
SELECT c.oid, c.relname AS name, c.relkind::text AS kind, c.relpersistence = 'u' AS unlogged,
       array_to_string(c.reloptions, ', ') AS options,
       obj_description(c.oid, 'pg_class') AS words, pg_get_viewdef(c.oid, true) AS text,
       (SELECT pg_get_expr(polqual, polrelid, true) FROM pg_policy
        WHERE polrelid = c.oid AND polname = 'tenant') AS rule,
       has_table_privilege('voucherd_tenant', c.oid, 'SELECT') AS readable
FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND (c.relkind IN ('r', 'v')
  OR c.relkind = 'S' AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype IN ('a', 'i')))
UNION ALL
SELECT p.oid, p.proname, 'f', false, NULL, obj_description(p.oid, 'pg_proc'), pg_get_functiondef(p.oid), NULL, false
FROM pg_proc p WHERE p.pronamespace = current_schema()::regnamespace
"""
_COLUMNS: Final = """
SELECT a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull AS required,
       a.attidentity <> '' AS identity,
       a.attgenerated <> '' AS generated, pg_get_expr(d.adbin, d.adrelid, true) AS value,
       (SELECT quote_ident(collname) FROM pg_collation
        WHERE oid = a.attcollation AND oid <> t.typcollation) AS collation,
       a.attstorage <> t.typstorage AS external, col_description(a.attrelid, a.attnum) AS words
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_CONSTRAINTS: Final = """
SELECT k.conname AS name, k.contype::text AS kind, pg_get_constraintdef(k.oid, true) AS text, f.relname AS other,
       obj_description(k.oid, 'pg_constraint') AS words,
       ARRAY(SELECT a.attname FROM unnest(k.conkey) WITH ORDINALITY AS n (attnum, place)
             JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = n.attnum ORDER BY n.place)::text[] AS columns
FROM pg_constraint k LEFT JOIN pg_class f ON f.oid = k.confrelid
WHERE k.conrelid = $1 AND k.contype IN ('p', 'u', 'f', 'c') ORDER BY strpos('pufc', k.contype::text), k.conname
"""
_INDEXES: Final = """
SELECT pg_get_indexdef(i.indexrelid, 0, true) AS text, obj_description(i.indexrelid, 'pg_class') AS words
FROM pg_index i WHERE i.indrelid = $1
  AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u'))
ORDER BY i.indexrelid::regclass::text
"""
_TRIGGERS: Final = """
SELECT pg_get_triggerdef(t.oid, true) AS text, p.proname AS function, obj_description(t.oid, 'pg_trigger') AS words
FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid WHERE t.tgrelid = $1 AND NOT t.tgisinternal ORDER BY t.tgname
"""


def subjects() -> dict[str, list[str]]:
    """The subjects in the order of the migrations, each with the objects that its migrations make."""
    found: dict[str, list[str]] = {"Migrations": ["schema_migration"]}
    for migration in migrations():
        subject = _SUBJECT.match(migration.sql)
        assert subject, f"{migration.label}.sql does not begin with its subject, such as '-- Orders: '"
        found.setdefault(subject[1], []).extend(_MADE.findall(migration.sql))
    return found


async def write_schema(connection: Connection) -> str:
    """The SQL that makes the schema of this connection, in the order in which a person would read it."""
    objects = {row["name"]: row for row in await connection.fetch(_OBJECTS)}
    parts = [HEAD]
    made: set[str] = set()
    # Foreign keys and triggers whose table or function comes further down.
    later: dict[str, list[str]] = defaultdict(list)
    for subject, names in subjects().items():
        parts.append(f"\n-- ── {subject} {'─' * (WIDTH - 7 - len(subject))}\n")
        for name in (name for name in dict.fromkeys(names) if name in objects and name not in made):
            made.add(name)
            text, needing = await _object(connection, objects[name], made)
            for needed, statement in needing:
                if needed in made:
                    text += statement
                else:
                    later[needed].append(statement)
            parts.append(text + "".join(later.pop(name, ())))
    assert made == set(objects), f"no migration makes {sorted(set(objects) - made)}"
    assert not later, f"nothing makes {sorted(later)}"
    return "\n".join(parts) + TAIL


async def _object(
    connection: Connection, row: asyncpg.Record, made: set[str]
) -> tuple[str, list[tuple[str, str]]]:
    """The statements of one object, and those that need another one beside it."""
    match row["kind"]:
        case "r":
            return await _table(connection, row, made)
        case "f":
            return _said(row["words"]) + _function(row["text"]), []
        case "v":
            return _said(row["words"]) + f"CREATE VIEW {row['name']} AS\n{row['text']}\n", []
        case _:
            return _said(row["words"]) + f"CREATE SEQUENCE {row['name']} AS bigint;\n", []


async def _table(
    connection: Connection, table: asyncpg.Record, made: set[str]
) -> tuple[str, list[tuple[str, str]]]:
    name = table["name"]
    of_columns, of_table, needing = await _constraints(connection, table, made)
    lines: list[Said] = []
    storage = ""
    rows = await connection.fetch(_COLUMNS, table["oid"])
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        told = f"{row['name']:<{width}} {_column(row)} {' '.join(of_columns[row['name']])}".rstrip()
        lines.append((row["words"], _wrapped(told.replace("NOT NULL PRIMARY", "PRIMARY"), " " * width)))
        if row["external"]:
            storage += f"ALTER TABLE {name} ALTER COLUMN {row['name']} SET STORAGE EXTERNAL;\n"
    options = f" WITH ({table['options']})" if table["options"] else ""
    text = _said(table["words"]) + _read_by(table)
    text += f"CREATE {'UNLOGGED ' * table['unlogged']}TABLE {name} (\n{_body(lines + of_table)}){options};\n{storage}"
    for row in await connection.fetch(_INDEXES, table["oid"]):
        told = plain(row["text"]).replace(" USING btree", "")
        if len(told) > WIDTH:
            told = told.replace(" WHERE ", "\n    WHERE ")
        text += f"{_said(row['words'])}{told};\n"
    for row in await connection.fetch(_TRIGGERS, table["oid"]):
        head, each, tail = plain(row["text"]).partition(" FOR EACH ")
        statement = f"{_wrapped(head, '    ')}\n{_wrapped(f'   {each}{tail}', ' ' * 8)};\n"
        needing.append((row["function"], _said(row["words"]) + statement))
    return text, needing


async def _constraints(
    connection: Connection, table: asyncpg.Record, made: set[str]
) -> tuple[dict[str, list[str]], list[Said], list[tuple[str, str]]]:
    """Those of single columns, those of the table, and foreign keys to a table that comes further down."""
    name = table["name"]
    of_columns: dict[str, list[str]] = defaultdict(list)
    of_table: list[Said] = []
    needing: list[tuple[str, str]] = []
    for row in await connection.fetch(_CONSTRAINTS, table["oid"]):
        text, columns, kind = plain(row["text"]), row["columns"], row["kind"]
        # A name that PostgreSQL gives by itself need not be written.
        given = {
            "p": f"{name}_pkey",
            "u": f"{name}_{'_'.join(columns)}_key",
            "f": f"{name}_{'_'.join(columns)}_fkey",
            "c": rf"{name}(_{columns[0]})?_check\d*",
        }[kind]
        is_given = re.fullmatch(given, row["name"]) is not None
        whole = text if is_given else f"CONSTRAINT {row['name']} {text}"
        if kind == "f" and row["other"] not in made:
            needing.append((row["other"], _wrapped(f"ALTER TABLE {name} ADD {whole};", "") + "\n"))
        elif len(columns) == 1 and is_given and not row["words"]:
            short = re.sub(r"^(PRIMARY KEY|UNIQUE) \(\w+\)|^FOREIGN KEY \(\w+\) (.*)", r"\1\2", text)
            of_columns[columns[0]].append(short)
        else:
            of_table.append((row["words"], _wrapped(whole, "    ")))
    return of_columns, of_table, needing


def _column(row: asyncpg.Record) -> str:
    parts = [plain(row["type"])]
    if row["collation"]:
        parts.append(f"COLLATE {row['collation']}")
    if row["identity"]:
        parts.append("GENERATED ALWAYS AS IDENTITY")
    elif row["required"]:
        parts.append("NOT NULL")
    if row["generated"]:
        parts.append(f"GENERATED ALWAYS AS ({row['value']}) STORED")
    elif row["value"] is not None:
        parts.append(f"DEFAULT {plain(row['value'])}")
    return " ".join(parts)


def _body(lines: list[Said]) -> str:
    """Columns and constraints, each with its words: behind it where they fit, else above it."""
    text = ""
    for at, (words, line) in enumerate(lines):
        whole = textwrap.indent(line + "," * (at < len(lines) - 1), "    ")
        if words and "\n" not in whole and len(whole) + len(words) + 5 <= WIDTH:
            text += f"{whole}  -- {words}\n"
        else:
            text += textwrap.indent(_said(words), "    ") + whole + "\n"
    return text


def _read_by(table: asyncpg.Record) -> str:
    if table["rule"] is not None:
        rule = " ".join(table["rule"].split())
        return _said(f"Companies read: {plain(rule)}." if table["readable"] else "Companies read none of it.")
    return _said("Companies read all of it." if table["readable"] else None)


def _function(text: str) -> str:
    """The function as a person writes it: its head on one line, and no name of a schema."""
    found = re.fullmatch(
        r"CREATE OR REPLACE FUNCTION \w+\.(.*?)\s*\n(AS \$function\$|RETURN |BEGIN ATOMIC)(.*)",
        text,
        re.DOTALL,
    )
    assert found, text
    head = _wrapped("CREATE FUNCTION " + plain(" ".join(found[1].split())), "    ")
    if found[2].startswith("AS"):
        return f"{head} AS $${found[3].strip(' ').removesuffix(chr(10)).removesuffix('$function$')}$$;\n"
    return f"{head}\n{found[2]}{found[3].rstrip()};\n"


def plain(text: str) -> str:
    """An expression without the casts and forms that PostgreSQL adds when it reads one back."""
    text = re.sub(r"('(?:[^']|'')*')::text\b(?!\[)", r"\1", text)
    text = re.sub(r"(\w+\(\w+\)|\w+) >= (-?\w+) AND \1 <= (\w+ \+ \w+|\w+)", r"\1 BETWEEN \2 AND \3", text)
    text = re.sub(r"(\S+) = ANY \(ARRAY\[([^\]]*)\]\)", r"\1 IN (\2)", text)
    text = re.sub(r"(\S+) <> ALL \(ARRAY\[([^\]]*)\]\)", r"\1 NOT IN (\2)", text)
    text = re.sub(r"\b(\d+)::bigint", r"\1", text.replace("timestamp with time zone", "timestamptz"))
    return re.sub(r"\n\s*CASE", "CASE", text)


def _wrapped(text: str, indent: str) -> str:
    """A statement of one line, broken where it is too long; one of several lines as it is."""
    if "\n" in text or len(text) <= WIDTH - 5:
        return text
    return "\n".join(
        textwrap.wrap(
            text, WIDTH - 5, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
    )


def _said(words: str | None) -> str:
    """The words as lines of a comment."""
    return "".join(f"-- {line}\n" for line in textwrap.wrap(words, WIDTH - 3)) if words else ""


async def _main() -> None:
    with throwaway() as url:
        await migrate(url)
        connection = await asyncpg.connect(url)
        try:
            FILE.write_text(await write_schema(connection), encoding="utf-8")
        finally:
            await connection.close()


if __name__ == "__main__":
    asyncio.run(_main())
