"""Thousands of lives of orders in virtual time, with crashes, a bad network and a clock that jumps."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from tests.faults.test_kill import shop_of
from tests.proof.replayed import Replay
from tests.proof.simulated import LIVES, World, simulate
from voucherd.db import Pool

SEEDS: Final = 20
LIVES_SOAK: Final = int(os.environ.get("VOUCHERD_SOAK_LIVES", "100000"))
FIRST: Final = int(os.environ.get("VOUCHERD_SOAK_SEED", "0"))
PLANTED_MAX: Final = 400
SAMPLE: Final = 3
SAMPLE_SOAK: Final = int(os.environ.get("VOUCHERD_SOAK_SAMPLE", "200"))
HOW: Final = (
    "seed {seed} fails; replay it exactly with: VOUCHERD_SOAK_SEED={seed} .venv/bin/python -m pytest "
    "tests/proof/test_simulated_lives.py -k one_seed"
)


def live_through(seeds: range) -> Counter[str]:
    """What was seen in all of them; the first that fails says how to see it again."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        try:
            seen += simulate(seed).seen
        except Exception as error:
            error.add_note(HOW.format(seed=seed))
            raise
    return seen


@pytest.mark.parametrize(
    "seeds", [SEEDS, pytest.param(-(-LIVES_SOAK // LIVES), marks=pytest.mark.soak)], ids=["short", "long"]
)
def test_no_crash_no_lost_message_and_no_clock_breaks_a_promise(seeds: int) -> None:
    """Invariants 1 to 4, OP-44 to OP-48: one transaction for one use case is enough, whatever happens around it."""
    seen = live_through(range(FIRST, FIRST + seeds))
    told = {name.split()[-1] for name in seen}
    assert {
        "FINISHED",
        "CANCELLED",
        "PENDING",
        "unheard",
        "crash",
        "freeze",
        "off",
        "slow",
        "clock",
    } <= told, seen


def test_one_seed_takes_the_same_course_again() -> None:
    """Invariants 1 to 4: a seed that fails can be looked at, step by step, as often as it takes."""
    first, again = simulate(FIRST), simulate(FIRST)
    assert first.trace
    assert first.trace == again.trace
    assert first.database.orders == again.database.orders
    assert first.trace != simulate(FIRST + 1).trace


def test_a_store_that_forgets_its_locks_is_found_out() -> None:
    """Invariants 1 to 3: without locks two hosts sell one code or spend one balance twice, and a seed shows it."""
    for seed in range(PLANTED_MAX):
        try:
            simulate(seed, locking=False)
        except AssertionError:
            return
    raise AssertionError(f"{PLANTED_MAX} seeds hid that nothing was locked")


@pytest.mark.parametrize(
    "sample", [SAMPLE, pytest.param(SAMPLE_SOAK, marks=pytest.mark.soak)], ids=["short", "long"]
)
async def test_the_real_store_does_what_the_simulated_one_did(
    pool: Pool, tmp_path: Path, sample: int
) -> None:
    """Invariants 1 to 4, OP-44 to OP-48: the same commands in the same order leave the same answers and rows."""
    async with shop_of(pool, tmp_path) as shop:
        seeds, done = count(FIRST), 0
        while done < sample:
            seed = next(seeds)
            assert seed < FIRST + 20 * sample, "hardly a seed is fit to be done again"
            world = await _simulated(seed)
            if world.database.overlapped:
                continue  # Which of two came first is not told by the order in which they were decided.
            steps = await Replay(shop, world).run()
            assert steps > LIVES, f"seed {seed} did nothing"
            done += 1


async def _simulated(seed: int) -> World:
    """A seed lived through in a thread: its loop is not this one."""
    return await asyncio.to_thread(simulate, seed)
