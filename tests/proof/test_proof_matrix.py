"""The fault matrix under load: nothing that was promised is lost, and nothing that broke stops sales elsewhere."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.proof.cells import BY_NAME, CELLS, Cell
from tests.proof.installation import FAKETIME, Installation, installed
from tests.proof.trial import Findings, Trial

SHORT: Final = (
    "kill -9 / api-1",
    "black hole / api-1",
    "kill -9 / database",
    "SIGSTOP / database",
    "read-only / database",
    "black hole / receiver",
)
"""The cells that tell the most: `make test` runs them, all others are for `make soak`."""
TRIALS_MAX: Final = 4
STOOD_S: Final = 1.0
ROUNDS: Final = int(os.environ.get("VOUCHERD_SOAK_ROUNDS", "1"))
"""How often the long form goes through the whole matrix."""


def _new_folder() -> Path:
    # The database's account must be able to reach it, so it can't be in a folder of pytest's.
    return Path(tempfile.mkdtemp(prefix="voucherd-proof-"))


@asynccontextmanager
async def an_installation(*, clocks: bool = False, disk: str | None = None) -> AsyncIterator[Installation]:
    """An installation in a folder that goes with it."""
    folder = _new_folder()
    try:
        async with installed(folder, clocks=clocks, disk=disk) as made:
            yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
async def installation() -> AsyncIterator[Installation]:
    """One for all cells that leave it as they found it."""
    async with an_installation() as made:
        yield made


async def assert_holds(shop: Installation, cell: Cell, seed: int) -> None:
    """Run the cell, say what was measured, and fail on what broke the demand.

    Times that were taken on a machine that stood still meanwhile say nothing: they are taken again, not for ever.
    """
    findings = Findings(cell)
    for _ in range(TRIALS_MAX):
        findings = await Trial(shop, cell, seed).run()
        sys.stdout.write(f"\n{findings}\n")
        assert not findings.faults, str(findings)
        if not findings.late or findings.stood_s < STOOD_S:
            break
    assert not findings.late, str(findings)


@pytest.mark.parametrize("name", SHORT)
async def test_a_fault_breaks_no_promise_and_sales_go_on_elsewhere(
    installation: Installation, name: str
) -> None:
    """Invariants 1 to 4, OP-28, OP-46: every acknowledged order is found, and others sell within five seconds."""
    await assert_holds(installation, BY_NAME[name], seed=1)


@pytest.mark.soak
@pytest.mark.parametrize("name", [cell.name for cell in CELLS])
async def test_the_whole_matrix_holds(name: str) -> None:
    """Invariants 1 to 4, OP-28, OP-46: the same for every fault of every part."""
    cell = BY_NAME[name]
    if cell.clocks and not FAKETIME:
        pytest.skip("libfaketime is not here")
    if cell.disk and os.geteuid() != 0:
        pytest.skip("only root can make a disk")
    async with an_installation(clocks=cell.clocks, disk=cell.target if cell.disk else None) as shop:
        for number in range(ROUNDS):
            await assert_holds(shop, cell, seed=number)


def test_each_cell_of_the_matrix_has_a_name_of_its_own() -> None:
    """Invariant 1: two cells of one name would hide that one of them is not tested."""
    assert len(BY_NAME) == len(CELLS)
