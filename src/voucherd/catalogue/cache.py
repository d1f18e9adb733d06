"""Product versions that this process has read before. They never change, so they are never read twice."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from voucherd.catalogue.products import ProductVersion

VERSIONS_MAX: Final = 50_000
"""About 40 MB; a catalogue larger than this still works, with more reading."""


class VersionCache:
    """A bounded memory of versions by id; when it is full the one that came first goes first."""

    def __init__(self, size_max: int = VERSIONS_MAX) -> None:
        self._size_max = size_max
        self._versions: dict[int, tuple[datetime, ProductVersion]] = {}

    def __len__(self) -> int:
        return len(self._versions)

    def get(self, version_id: int, product_created_at: datetime | None = None) -> ProductVersion | None:
        """The version, if it is known.

        Ids start at 1 in every database. A process that meets two of them, as a test run does, tells them
        apart by the moment at which the product was made.
        """
        known = self._versions.get(version_id)
        if known is None or (product_created_at is not None and known[0] != product_created_at):
            return None
        return known[1]

    def keep(self, version: ProductVersion, product_created_at: datetime) -> None:
        """Remembers the version."""
        if version.version_id not in self._versions and len(self._versions) >= self._size_max:
            del self._versions[next(iter(self._versions))]
        self._versions[version.version_id] = (product_created_at, version)

    def forget(self, version_id: int) -> None:
        """Forgets what had this id before: it was another database's, or a transaction's that never ended."""
        self._versions.pop(version_id, None)
