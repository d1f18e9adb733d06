"""The wire is looked at from outside: through the same shop as the scenarios."""

from __future__ import annotations

from tests.scenarios.conftest import quiet_shop, shop

__all__ = ["quiet_shop", "shop"]
