"""What has been spent today by those who have a limit for the day: the counters' table."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from voucherd.db import Tx, numbers
from voucherd.limits.spending import SpendKey


async def lock(tx: Tx, spend_keys: Collection[SpendKey]) -> dict[SpendKey, int]:
    """What each has spent today (UTC), locked until the transaction ends."""
    ranked = sorted(spend_keys)
    columns = [numbers([one[at] for one in ranked]) for at in range(3)]
    # In one order everywhere, so that two batches can't wait for each other.
    await tx.execute(
        """
        INSERT INTO spend (company_id, key_id, state, day)
        SELECT c, k, s, (now() AT TIME ZONE 'UTC')::date
        FROM unnest($1::text::int[], $2::text::bigint[], $3::text::smallint[]) AS p (c, k, s)
        ORDER BY c, k, s ON CONFLICT DO NOTHING
        """,
        *columns,
    )
    rows = await tx.fetch(
        """
        SELECT company_id, key_id, state, spent_eur_minor FROM spend
        JOIN unnest($1::text::int[], $2::text::bigint[], $3::text::smallint[]) AS p (c, k, s)
          ON company_id = c AND key_id = k AND state = s
        WHERE day = (now() AT TIME ZONE 'UTC')::date ORDER BY company_id, key_id, state FOR UPDATE OF spend
        """,
        *columns,
    )
    return {(row[0], row[1], row[2]): row[3] for row in rows}


async def save(tx: Tx, spent: Mapping[SpendKey, int]) -> None:
    """Write down what each has spent today; the caller holds their locks."""
    await tx.executemany(
        """
        UPDATE spend SET spent_eur_minor = $4
        WHERE company_id = $1 AND key_id = $2 AND state = $3 AND day = (now() AT TIME ZONE 'UTC')::date
        """,
        [(*one, minor) for one, minor in spent.items()],
    )
