"""The wholesaler's memory: what it was told to do, and every sale that it ever made, in a SQLite file."""

from __future__ import annotations

import json
import secrets
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TABLES = """
    CREATE TABLE IF NOT EXISTS product (
        sku TEXT PRIMARY KEY, price TEXT NOT NULL, currency TEXT NOT NULL, stock INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS behaviour (
        sku TEXT PRIMARY KEY, mode TEXT NOT NULL, seconds REAL NOT NULL, hidden_s REAL NOT NULL, times INTEGER);
    CREATE TABLE IF NOT EXISTS purchase (
        reference TEXT PRIMARY KEY, id TEXT NOT NULL, sku TEXT NOT NULL, count INTEGER NOT NULL, price TEXT NOT NULL,
        currency TEXT NOT NULL, codes TEXT NOT NULL, at REAL NOT NULL, visible_at REAL NOT NULL,
        now TEXT NOT NULL, later TEXT NOT NULL, later_at REAL NOT NULL);
    CREATE TABLE IF NOT EXISTS repeat (reference TEXT NOT NULL, at REAL NOT NULL);
"""


@dataclass
class Behaviour:
    """How the wholesaler treats purchases of a product."""

    mode: str = "honest"
    seconds: float = 0.0
    hidden_s: float = 0.0
    times: int | None = None


class Book:
    """Everything durable: a sale is on disk before anyone hears of it."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.row_factory = sqlite3.Row
        self._db.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;" + _TABLES)

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def put_product(self, sku: str, price: str, currency: str, stock: int) -> None:
        """Sell a product, or sell it differently."""
        self._db.execute("INSERT OR REPLACE INTO product VALUES (?, ?, ?, ?)", (sku, price, currency, stock))

    def product(self, sku: str) -> sqlite3.Row | None:
        """A product that is sold."""
        row: sqlite3.Row | None = self._db.execute("SELECT * FROM product WHERE sku = ?", (sku,)).fetchone()
        return row

    def behave(self, sku: str, behaviour: Behaviour) -> None:
        """From now on treat purchases of this product (or `*`, all of them) like that."""
        row = (sku, behaviour.mode, behaviour.seconds, behaviour.hidden_s, behaviour.times)
        self._db.execute("INSERT OR REPLACE INTO behaviour VALUES (?, ?, ?, ?, ?)", row)

    def be_honest(self) -> None:
        """Forget all misbehaviour."""
        self._db.execute("DELETE FROM behaviour")

    def next_behaviour(self, sku: str) -> Behaviour:
        """How to treat this purchase; one that was asked for a number of times is used up."""
        row = self._db.execute(
            "SELECT * FROM behaviour WHERE sku IN (?, '*') AND (times IS NULL OR times > 0) ORDER BY sku DESC LIMIT 1",
            (sku,),
        ).fetchone()
        if row is None:
            return Behaviour()
        self._db.execute("UPDATE behaviour SET times = times - 1 WHERE sku = ?", (row["sku"],))
        return Behaviour(row["mode"], row["seconds"], row["hidden_s"], row["times"])

    def sell(
        self,
        order: dict[str, Any],
        product: sqlite3.Row,
        codes: list[dict[str, str]],
        *,
        hidden_s: float = 0.0,
        status: tuple[str, str, float] = ("done", "done", 0.0),
    ) -> sqlite3.Row:
        """Record a purchase: its status now, and the one that it will have so many seconds later."""
        moment = time.time()
        now, later, after_s = status
        row = (
            order["reference"], f"W-{secrets.token_hex(6)}", order["sku"], order["quantity"], product["price"],
            product["currency"], json.dumps(codes), moment, moment + hidden_s, now, later, moment + after_s,
        )  # fmt: skip
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute(
                "UPDATE product SET stock = max(stock - ?, 0) WHERE sku = ?", (len(codes), order["sku"])
            )
            self._db.execute("INSERT INTO purchase VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        found = self.purchase(order["reference"])
        assert found is not None
        return found

    def purchase(self, reference: str) -> sqlite3.Row | None:
        """A purchase under the buyer's own reference."""
        row: sqlite3.Row | None = self._db.execute(
            "SELECT * FROM purchase WHERE reference = ?", (reference,)
        ).fetchone()
        return row

    def cancel(self, reference: str) -> None:
        """Take a purchase back; the codes of one that is under way never existed."""
        self._db.execute(
            "UPDATE purchase SET now = 'cancelled', later = 'cancelled', codes = '[]' WHERE reference = ?",
            (reference,),
        )

    def note_repeat(self, reference: str) -> None:
        """Somebody bought twice with one reference."""
        self._db.execute("INSERT INTO repeat VALUES (?, ?)", (reference, time.time()))

    def a_code_sold_before(self) -> dict[str, str] | None:
        """Any code that somebody has already."""
        row = self._db.execute(
            "SELECT codes FROM purchase WHERE codes <> '[]' ORDER BY at LIMIT 1"
        ).fetchone()
        return None if row is None else dict(json.loads(row["codes"])[0])

    def sales(self) -> list[sqlite3.Row]:
        """Every purchase, oldest first."""
        return self._db.execute("SELECT * FROM purchase ORDER BY at, reference").fetchall()

    def pass_time(self) -> None:
        """Let whatever was to come later have come."""
        self._db.execute("UPDATE purchase SET later_at = 0, visible_at = 0")

    def repeats(self) -> list[str]:
        """The references that were bought with more than once."""
        return [row["reference"] for row in self._db.execute("SELECT reference FROM repeat ORDER BY at")]


def status_of(purchase: sqlite3.Row) -> str:
    """The status of a purchase at this moment."""
    return str(purchase["now"] if time.time() < purchase["later_at"] else purchase["later"])


def codes_of(purchase: sqlite3.Row) -> list[dict[str, str]]:
    """The codes that can be seen at this moment: none before the purchase is done."""
    codes: list[dict[str, str]] = json.loads(purchase["codes"])
    return codes if status_of(purchase) == "done" else []
