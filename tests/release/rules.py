"""The rules for every migration after a release: the program before it goes on selling while it runs and afterwards."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Rule:
    """One thing that a migration may not do to a table that was there before."""

    name: str
    why: str
    breaks: Callable[[str], re.Match[str] | None]
    """Of one statement, without its comments, texts and function bodies."""


def _finds(pattern: str) -> Callable[[str], re.Match[str] | None]:
    return re.compile(pattern, re.IGNORECASE).search


RULES: Final = (
    Rule(
        "drops",
        "the program before may still use it",
        _finds(r"\bDROP (TABLE|COLUMN|VIEW|SEQUENCE|FUNCTION|TYPE)\b"),
    ),
    Rule("renames", "the program before knows the old name", _finds(r"^ALTER .*\bRENAME\b")),
    Rule(
        "not null",
        "the program before does not fill it",
        _finds(
            r"\bADD (COLUMN )?(?!CONSTRAINT)\w+ (?=[^,]*\bNOT NULL\b)(?![^,]*\b(DEFAULT|GENERATED)\b)|\bSET NOT NULL\b"
        ),
    ),
    Rule("type", "it rewrites the table under a lock", _finds(r"\bALTER (COLUMN )?\w+ (SET DATA )?TYPE\b")),
    Rule(
        "rewrite",
        "a value that differs by row rewrites the table under a lock",
        _finds(
            r"\bADD (COLUMN )?(?!CONSTRAINT)\w+ [^,]*(\bSTORED\b|\bIDENTITY\b"
            r"|DEFAULT (gen_random_uuid|random|nextval|clock_timestamp)\b)"
        ),
    ),
    Rule(
        "checked",
        "it reads the whole table under a lock: add it NOT VALID, and validate it in a migration of its own",
        _finds(
            r"^ALTER TABLE \S+ (.*, ?)?ADD (CONSTRAINT \w+ )?(CHECK|FOREIGN KEY)\b(?!.*\bNOT VALID$)"
            r"|\bADD (CONSTRAINT \w+ )?(UNIQUE|PRIMARY KEY|EXCLUDE)\b(?!.*\bUSING INDEX\b)"
        ),
    ),
    Rule(
        "index",
        "nobody can write to the table meanwhile: build it with CREATE INDEX CONCURRENTLY IF NOT EXISTS",
        _finds(r"^CREATE (UNIQUE )?INDEX (?!CONCURRENTLY IF NOT EXISTS )|^REINDEX (?!.*\bCONCURRENTLY\b)"),
    ),
    Rule(
        "all rows",
        "it locks every row until it is done: change them in steps, by the worker",
        _finds(r"^UPDATE (?!.*\bWHERE\b)|^DELETE (?!.*\bWHERE\b)"),
    ),
    Rule("lock", "everybody waits for it", _finds(r"^(LOCK|TRUNCATE|CLUSTER|VACUUM FULL)\b")),
)
NAMES: Final = frozenset(rule.name for rule in RULES)

_ALLOWED: Final = re.compile(r"^-- Allowed \(([a-z ]+)\): \S.*$", re.MULTILINE)
# Function bodies, texts and comments, in which a word or a semicolon means nothing.
_HIDDEN: Final = re.compile(r"\$(\w*)\$.*?\$\1\$|'(?:[^']|'')*'|--[^\n]*", re.DOTALL)
_OWN_TABLE: Final = re.compile(r"^CREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?(\w+)", re.IGNORECASE)
_TARGET: Final = re.compile(
    r"^(?:ALTER TABLE|UPDATE|DELETE FROM|CREATE (?:UNIQUE )?INDEX .*? ON|LOCK TABLE) (?:ONLY )?(\w+)",
    re.IGNORECASE,
)


def broken_rules(sql: str) -> list[str]:
    """What a migration does that the program before can not bear, each in a sentence; nothing if all is well.

    A line `-- Allowed (drops): …` with a reason lets a file off one rule: the second half of a change, when no program
    that is still in use needs the first.
    """
    allowed = set(_ALLOWED.findall(sql))
    statements = [" ".join(one.split()) for one in _HIDDEN.sub("''", sql).replace("''\n", "\n").split(";")]
    statements = [one for one in (one.strip("' ") for one in statements) if one]
    # A table that the file makes itself is empty and nobody knows it yet.
    own = {found[1] for one in statements if (found := _OWN_TABLE.match(one))}
    broken = [f"there is no rule {name!r} to be let off" for name in sorted(allowed - NAMES)]
    for statement in statements:
        target = _TARGET.match(statement)
        if target and target[1] in own:
            continue
        broken += [
            f"{rule.name}: {statement[:60]!r}: {rule.why}"
            for rule in RULES
            if rule.name not in allowed and rule.breaks(statement)
        ]
    if len(statements) > 1 and any(
        re.match(r"CREATE (UNIQUE )?INDEX CONCURRENTLY ", one) for one in statements
    ):
        broken.append(
            "index: CREATE INDEX CONCURRENTLY can not run in a transaction: give it a file of its own"
        )
    return broken
