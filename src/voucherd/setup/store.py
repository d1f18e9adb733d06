"""The only place that touches setting and operator_logo: what the operator has chosen while the shop runs."""

from __future__ import annotations

from collections.abc import Mapping

from voucherd.db import Connection, Pool, Tx


async def stored(connection: Connection | Pool) -> dict[str, str]:
    """Everything that was chosen, by name, as the environment would write it."""
    rows = await connection.fetch("SELECT name, value FROM setting ORDER BY name")
    return {row["name"]: row["value"] for row in rows}


async def keep(tx: Tx, chosen: Mapping[str, str | None]) -> None:
    """Choose these; None goes back to what the program was started with."""
    await tx.execute(
        "DELETE FROM setting WHERE name = ANY($1::text[])", [name for name in chosen if chosen[name] is None]
    )
    kept = {name: value for name, value in chosen.items() if value is not None}
    await tx.execute(
        """
        INSERT INTO setting (name, value) SELECT * FROM unnest($1::text[], $2::text[])
        ON CONFLICT (name) DO UPDATE SET value = excluded.value, changed_at = now()
        """,
        list(kept),
        list(kept.values()),
    )


async def set_logo(tx: Tx, name: str, content: bytes) -> None:
    """Keep the shop's logo, in place of the one before."""
    await tx.execute(
        """
        INSERT INTO operator_logo (name, content) VALUES ($1, $2)
        ON CONFLICT (only_row) DO UPDATE SET name = excluded.name, content = excluded.content
        """,
        name,
        content,
    )


async def remove_logo(tx: Tx) -> None:
    """Forget the shop's logo."""
    await tx.execute("DELETE FROM operator_logo")


async def find_logo(connection: Connection | Pool, name: str) -> bytes | None:
    """The picture of this name, if it is the shop's."""
    content: bytes | None = await connection.fetchval(
        "SELECT content FROM operator_logo WHERE name = $1", name
    )
    return content
