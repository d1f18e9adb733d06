"""The few lines of the results that the README shows, so that nobody types a figure."""

from __future__ import annotations

from pathlib import Path
from typing import Final

README: Final = Path(__file__).parent.parent / "README.md"
TITLE: Final = "## How fast\n"
SHOWN: Final = (
    "pgbench TPC-B, 8 clients",
    "create+confirm, 1,000 wallets, 256 conn.",
    "create+confirm, one hot wallet, 256 conn.",
    "create+resolve, 1,000 wallets, 256 conn.",
    "· create, one hot wallet, 1 conn.",
    "· confirm, one hot wallet, 1 conn.",
    "find, 64 conn.",
    "import of 1,000,000 codes",
)
COLUMNS: Final = (0, 1, 2, 6)
"""What, the rate, the median and the goal."""


def shown(results: str) -> str:
    """The README's table: some rows and columns of the results' first one."""
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in _first_table(results)]
    head, _rule, *rows = lines
    # A name may come twice, as a part of two lifecycles: the first is that of Confirm.
    firsts = {row[0]: row for row in reversed(rows)}
    chosen = [head, *(firsts[name] for name in SHOWN)]
    picked = [[row[column].removeprefix("· ") for column in COLUMNS] for row in chosen]
    picked.insert(1, ["---"] * len(COLUMNS))
    return "\n".join("| " + " | ".join(row) + " |" for row in picked)


def renewed(readme: str, results: str) -> str:
    """The README with the table of these results in the place of the one before."""
    before, title, after = readme.partition(TITLE)
    prose, bar, rest = after.partition("\n| what")
    if not bar:
        raise ValueError("the README has no table under its title on speed")
    end = rest.index("\n\n")
    return f"{before}{title}{prose}\n{shown(results)}{rest[end:]}"


def _first_table(results: str) -> list[str]:
    start = results.index("| what")
    return results[start:].partition("\n\n")[0].strip().splitlines()
