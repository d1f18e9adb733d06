"""A file of a million codes: how fast it is taken in, and in how much memory."""

from __future__ import annotations

from typing import Final

from bench import machine
from bench.figures import Row, judged
from bench.session import Session

CODES_A_SECOND_MIN: Final = 150_000


async def measure(session: Session) -> None:
    """Import it as the operator's command would."""
    slug = await session.seeder.product("wholesale")
    await session.stage.pool.execute("CHECKPOINT")
    database_before_s = machine.family_cpu_s(session.stage.database_pid)
    report = await session.seeder.stock(slug, session.plan.import_codes)
    database_s = machine.family_cpu_s(session.stage.database_pid) - database_before_s
    ours_us, database_us = (1e6 * cpu_s / report.codes for cpu_s in (report.cpu_s, database_s))
    session.add(
        Row(
            what=f"import of {report.codes:,} codes",
            rate=report.codes_per_second,
            more=f"memory {report.rss_before_mb:.0f} → {report.rss_peak_mb:.0f} MB at most,"
            f" CPU {ours_us:.1f} + {database_us:.1f} µs a code with the database's",
            goal=judged(f"≥ {CODES_A_SECOND_MIN:,}", report.codes_per_second >= CODES_A_SECOND_MIN),
        )
    )
