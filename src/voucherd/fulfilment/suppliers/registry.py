"""From a supplier's row in the database to an adapter that speaks with it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from voucherd.ids import State


class Spec(Struct, frozen=True):
    """All that an adapter needs to know. The secret is opened for it, and shown nowhere."""

    name: str
    kind: str
    """One of KINDS."""
    state: State
    config: dict[str, Any]
    """As the operator wrote it; each kind checks its own (`check_config`)."""
    secret: str | None
    timeout_s: float
    """No call of the adapter takes longer, whatever the supplier does."""

    def __repr__(self) -> str:
        return f"Spec({self.name}, {self.kind})"
