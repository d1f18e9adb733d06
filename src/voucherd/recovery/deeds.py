"""Recovering: withhold the codes that may have been sold, and start a new epoch of numbers. One transaction."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from voucherd import trail
from voucherd.actors import Actor
from voucherd.db import Connection, Tx
from voucherd.ids import State
from voucherd.recovery import signs, store
from voucherd.trail import heads
from voucherd.vault import withheld
from voucherd.vault.withheld import AtRisk

SoldMax: TypeAlias = Mapping[int, int]
"""For a lot, how many of its codes the lost database sold after the moment, at most."""


class NothingToRecover(Exception):
    """The database is not of an earlier moment as far as anybody knows."""


class UnknownLot(Exception):
    """A bound was given for a lot that has nothing at risk."""

    def __init__(self, lot: int) -> None:
        super().__init__(f"lot {lot} has no code that could be sold: no bound is needed for it")


class LotPlan(Struct, frozen=True):
    """What becomes of a lot: the positions from its cursor to the end are withheld, the rest goes on selling."""

    lot: AtRisk
    end: int

    @property
    def count(self) -> int:
        """How many codes are withheld."""
        return self.end - self.lot.cursor


class Plan(Struct, frozen=True):
    """What a recovery does, or would do."""

    moment: datetime
    now: datetime
    lots: list[LotPlan]
    orders_open: int
    orders_shown: list[int]

    @property
    def live(self) -> list[LotPlan]:
        """Lots of real codes: those of the sandbox are worth nothing."""
        return [one for one in self.lots if one.lot.state is State.LIVE]

    @property
    def lost_s(self) -> float:
        """How long the lost time was at most."""
        return max((self.now - self.moment).total_seconds(), 0.0)


async def plan(
    conn: Connection, moment: datetime, sold_max: SoldMax, *, otherwise: int | None = None, lock: bool = False
) -> Plan:
    """What a recovery would do; for lots without a bound `otherwise` is one, and without that all is withheld."""
    lots = await withheld.at_risk(conn, lock=lock)
    unknown = sorted(sold_max.keys() - {one.lot for one in lots})
    if unknown:
        raise UnknownLot(unknown[0])
    plans = [LotPlan(one, one.end(sold_max.get(one.lot, otherwise))) for one in lots]
    count, shown = await store.open_orders(conn)
    now: datetime = await conn.fetchval("SELECT clock_timestamp()")
    return Plan(moment, now, [one for one in plans if one.count], count, shown)


async def find_moment(conn: Connection, data: Path, told: datetime | None) -> tuple[datetime, str]:
    """The moment to which the database was restored, and what tells of it; refused if nothing does."""
    noted = await store.open_restore(conn)
    if noted is not None:
        return noted.moment if told is None else min(told, noted.moment), noted.source
    sign = await signs.sign_of_restore(conn, data)
    if told is None and sign is None:
        raise NothingToRecover(
            "nothing tells that this database was restored; if it was, say to when: --moment"
        )
    if told is not None and await store.recovered_since(conn, told):
        raise NothingToRecover("the database was recovered after that moment already")
    moment = await store.last_trace(conn) if told is None else told
    return moment, "an earlier moment, by other tools"


async def recover(
    tx: Tx,
    actor: Actor,
    data: Path,
    told: datetime | None,
    sold_max: SoldMax,
    *,
    otherwise: int | None = None,
) -> Plan:
    """Withhold what may have been sold after the moment, and let no number of that time come again."""
    # A second one waits here, and then finds that nothing is left to do.
    await store.be_alone(tx)
    moment, source = await find_moment(tx, data, told)
    lost = await heads.missing(tx, heads.read_notes(data / heads.FILE))
    await store.note_restore(tx, moment, source)
    restore = await store.open_restore(tx)
    assert restore is not None, "it was written a moment ago"
    done = await plan(tx, moment, sold_max, otherwise=otherwise, lock=True)
    await withheld.withhold(tx, restore.id, {one.lot.lot: (one.lot.cursor, one.end) for one in done.lots})
    await store.jump(tx, done.lost_s)
    await store.close_restore(tx, restore.id)
    detail = {
        "moment": moment.isoformat(),
        "lots": len(done.live),
        "codes": sum(one.count for one in done.live),
        "lostHeads": [str(head) for head in lost],
    }
    await trail.record(tx, actor, "database.recover", source, detail)
    return done


async def record_restore(tx: Tx, actor: Actor, moment: datetime, source: str) -> None:
    """Write down that this database was restored to a moment: nothing is sold until it is recovered."""
    await store.note_restore(tx, moment, source)
    await trail.record(tx, actor, "backup.restore", source, {"moment": moment.isoformat()})
