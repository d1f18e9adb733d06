"""A file of a million codes: how fast it is taken in, and in how much memory."""

from __future__ import annotations

from bench.figures import Row
from bench.session import Session


async def measure(session: Session) -> None:
    """Import it as the operator's command would."""
    slug = await session.seeder.product("wholesale")
    await session.stage.pool.execute("CHECKPOINT")
    report = await session.seeder.stock(slug, session.plan.import_codes)
    session.add(
        Row(
            what=f"import of {report.codes:,} codes",
            rate=report.codes_per_second,
            more=f"memory {report.rss_before_mb:.0f} → {report.rss_peak_mb:.0f} MB at most",
        )
    )
