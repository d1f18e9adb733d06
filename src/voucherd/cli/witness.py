"""The witness of a command: writes into the audit trail what it did, in the first transaction that changes something.

One place for all commands: who, what, with which words. A command that knows its subject better than its words tell
says so with `Office.about`. A transaction that only reads leaves no row.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from enum import Enum
from typing import Any, Final

from voucherd import trail
from voucherd.cli.operator import operator
from voucherd.cli.words import StateWord
from voucherd.companies import store as company_store
from voucherd.companies.model import CompanyNotFound
from voucherd.db import Tx
from voucherd.ids import State
from voucherd.keys import store as key_store
from voucherd.logs import HIDDEN, scrub

__all__ = ["Witness", "operator"]

VALUE_CHARS_MAX: Final = 500
ROWS_LOOKED_AT: Final = 1_000
"""Of the trail, the newest: whoever writes at the same time writes fewer."""

_WITHHELD: Final = frozenset({"secret", "key", "key_file", "config", "header", "password", "token"})
"""Words that are secrets, or in which somebody may have put one."""
_SUBJECTS: Final = {
    "key_id": "key",
    "trx": "order",
    "attempt_id": "attempt",
    "number": "webhook",
    "event": "event",
    "email": "user",
    "name": None,
    "company": "company",
    "slug": "product",
    "currency": "currency",
}
"""What a command is about, by the name of its word: the first of these that it has. None: the noun says it."""
WRITES_ITSELF: Final = frozenset(
    {"attempt", "brand", "fx", "order", "price", "product", "stock", "supplier", "vault", "wallet"}
)
"""Nouns whose deeds write their own rows: their commands have no witness."""


class Witness:
    """What is known of a command while it runs."""

    def __init__(self, path: str, words: Mapping[str, Any]) -> None:
        self.action = ".".join(path.split()[1:])
        self._noun = path.split()[1]
        self._words = words
        self._subject = self._first_subject()
        self._company_id: int | None = None
        self._state: State | None = (
            words["state"].state if isinstance(words.get("state"), StateWord) else None
        )
        self._written = False

    def about(self, subject: str, company_id: int | None = None, state: State | None = None) -> None:
        """Say better what is done to what, and whose it is."""
        self._subject = subject
        self._company_id = company_id if company_id is not None else self._company_id
        self._state = state if state is not None else self._state

    async def __call__(self, tx: Tx) -> None:
        """Write the row if this transaction has changed anything, and neither its deed nor an earlier one has."""
        if self._written or not await tx.fetchval("SELECT pg_current_xact_id_if_assigned() IS NOT NULL"):
            return
        # A deed that writes its own row needs no witness.
        self._written = await tx.fetchval(
            "SELECT EXISTS (SELECT FROM (SELECT xmin FROM trail ORDER BY id DESC LIMIT $1) newest"
            " WHERE xmin = pg_current_xact_id_if_assigned()::xid)",
            ROWS_LOOKED_AT,
        )
        if self._written:
            return
        company_id = await self._whose(tx)
        detail = {name: _said(name, value) for name, value in self._words.items() if value is not None}
        await trail.record(
            tx,
            operator(),
            self.action,
            self._subject,
            detail,
            company_id=company_id,
            state=self._state,
        )
        self._written = True

    def _first_subject(self) -> str:
        for name, kind in _SUBJECTS.items():
            if isinstance(value := self._words.get(name), str | int):
                return f"{kind or self._noun} {value}"
        return self._noun

    async def _whose(self, tx: Tx) -> int | None:
        if isinstance(key_id := self._words.get("key_id"), int) and self._company_id is None:
            found = await key_store.owner_of(tx, key_id)
            if found is not None:
                self._company_id, self._state = found
        name = self._words.get("name" if self._noun == "company" else "company")
        if self._company_id is not None or not isinstance(name, str):
            return self._company_id
        try:
            return (await company_store.find_company(tx, name.strip())).id
        except CompanyNotFound:
            return None


def _said(name: str, value: Any) -> Any:
    """One word of a command as the trail keeps it."""
    if name in _WITHHELD:
        return HIDDEN
    if isinstance(value, bool | int):
        return value
    if isinstance(value, list | tuple):
        return [_said("", one) for one in value]
    if isinstance(value, str | Enum | date | timedelta):
        text = str(value)
    else:
        # Of a file its name: what is in it may be anything.
        text = str(getattr(value, "name", type(value).__name__))
    return scrub(text)[:VALUE_CHARS_MAX]
