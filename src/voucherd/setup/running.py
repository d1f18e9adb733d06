"""The settings that hold now: those of the start, and what the operator has chosen in the console (OP-152)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import asyncpg
import structlog

from voucherd.db import Pool
from voucherd.settings import Settings
from voucherd.setup import store

LOGO: Final = "operator_logo"
"""The name of the shop's logo, beside the settings."""
ONLY_EUROS: Final = "checklist_only_euros"
HIDDEN: Final = "checklist_hidden"
"""What the checklist remembers, beside the settings."""

logger = structlog.get_logger(__name__)


class RunningSettings:
    """Reads what was chosen, and tells the parts of the process when something changed."""

    def __init__(self, pool: Pool, started_with: Settings) -> None:
        self._pool = pool
        self.started_with = started_with
        self.now = started_with
        self.stored: dict[str, str] = {}
        self.begun = False
        """Whether the operator was seen to have somebody; that stays so."""
        self.complete = False
        """Whether the shop was seen to lack nothing that the checklist asks for."""
        self._told: list[Callable[[Settings], None]] = []

    def tell(self, part: Callable[[Settings], None]) -> None:
        """Call this with the settings whenever they have changed."""
        self._told.append(part)

    async def refresh(self) -> None:
        """Read what was chosen; the parts of the process hear of it only if it is other than before."""
        try:
            stored = await store.stored(self._pool)
        except asyncpg.UndefinedTableError:
            return  # The migration that makes the table is about to run.
        if stored == self.stored:
            return
        now, refused = self.started_with.changed(stored)
        for line in refused:
            logger.warning("setting_ignored", reason=line)
        self.stored, self.now = stored, now
        for part in self._told:
            part(now)

    @property
    def logo(self) -> str | None:
        """The name of the shop's logo."""
        return self.stored.get(LOGO)
