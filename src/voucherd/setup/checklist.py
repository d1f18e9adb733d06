"""What a new shop still lacks until its first sale: read from the tables, so that nothing can be forgotten."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from voucherd.db import Connection
from voucherd.setup.running import ONLY_EUROS

_DONE: Final = """
SELECT EXISTS (SELECT FROM totp WHERE user_id = $1 AND confirmed_at IS NOT NULL)
         OR EXISTS (SELECT FROM passkey WHERE user_id = $1) AS second_factor,
       EXISTS (SELECT FROM fx_rate WHERE currency <> 'EUR') AS rates,
       EXISTS (SELECT FROM product) AS product,
       EXISTS (SELECT FROM lot WHERE state = 0) OR EXISTS (SELECT FROM offer WHERE state = 0) AS codes,
       EXISTS (SELECT FROM company) AS company,
       EXISTS (SELECT FROM app_user WHERE company_id IS NOT NULL AND password_hash IS NOT NULL) AS owner,
       EXISTS (SELECT FROM api_key WHERE state = 0) AS key,
       EXISTS (SELECT FROM wallet WHERE state = 0 AND seq > 0) AS balance,
       EXISTS (SELECT FROM wallet w WHERE w.state = 0
               AND EXISTS (SELECT FROM entry e WHERE e.wallet_id = w.id AND e.kind = 2)) AS sale
"""
"""Each stops at the first row that it finds; a shop that has none of something has few rows of it."""


async def look(
    conn: Connection, user_id: int, stored: Mapping[str, str], fx_url: str | None
) -> dict[str, bool]:
    """What is done, by name, in the order in which a shop is set up, for the person who looks."""
    row = await conn.fetchrow(_DONE, user_id)
    assert row is not None, "a SELECT without FROM has one row"
    done = {"profile": "operator_name" in stored, **dict(row)}
    done["rates"] = done["rates"] or fx_url is not None or ONLY_EUROS in stored
    return done
