"""What a company or one of its keys may spend on an order and in a day. Pure, but for the counters' table."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

from msgspec import Struct

from voucherd.db import Tx, numbers
from voucherd.ids import State

SpendKey: TypeAlias = tuple[int, int, int]
"""A company, one of its keys (0: the company as a whole), and a state."""


class SpendLimit(Struct, frozen=True):
    """A limit of a key (0: of its company as a whole), in euro cents."""

    key_id: int
    order_max: int | None
    day_max: int | None


def limits_of(*rows: tuple[int, int | None, int | None]) -> tuple[SpendLimit, ...]:
    """Those of these (key, order, day) that limit anything."""
    return tuple(SpendLimit(*row) for row in rows if row[1] is not None or row[2] is not None)


def spend_key(company_id: int, limit: SpendLimit, state: State) -> SpendKey:
    """Whose spending the limit counts."""
    return company_id, limit.key_id, int(state)


async def lock(tx: Tx, purses: Collection[SpendKey]) -> dict[SpendKey, int]:
    """What each has spent today (UTC), locked until the transaction ends."""
    ranked = sorted(purses)
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
