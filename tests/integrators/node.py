"""Programs in TypeScript: compiled as an integrator compiles them, and run with Node."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import Final

import pytest

from tests.docs.pages import ROOT
from tests.patience import HANG_S

CLIENT: Final = ROOT / "clients" / "typescript"
TOOLS: Final = CLIENT / "node_modules"
OPTIONS: Final = (
    *(
        "--strict",
        "--skipLibCheck",
        "--exactOptionalPropertyTypes",
        "--noUncheckedIndexedAccess",
        "--noUnusedLocals",
    ),
    *("--target", "ES2022", "--module", "NodeNext", "--lib", "ES2022,DOM,DOM.Iterable", "--types", "node"),
)


def require_node() -> None:
    """Skip a test where Node and the compiler are missing, but never where the suite decides about a change."""
    if shutil.which("node") is not None and (TOOLS / "typescript").is_dir():
        return
    why = "Node or the TypeScript compiler is missing (`make node-modules`): the clients were NOT tried"
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(why)
    pytest.skip(why)


async def run(*words: str | Path, folder: Path, **env: str) -> str:
    """What a program prints; it must succeed."""
    node = shutil.which("node")
    assert node is not None
    process = await asyncio.create_subprocess_exec(
        node,
        *map(str, words),
        cwd=folder,
        env={**os.environ, **env},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        said, _ = await asyncio.wait_for(process.communicate(), HANG_S)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, said.decode()
    return said.decode()


async def compiled(*words: str | Path, folder: Path) -> None:
    """Run the compiler; it must find nothing."""
    assert await run(TOOLS / "typescript" / "bin" / "tsc", *words, folder=folder) == ""


def modules(folder: Path, *names: str) -> Path:
    """A folder of a program that has these modules installed, and what programs for Node need to be compiled."""
    installed = folder / "node_modules"
    for name in ("@types", "undici-types", *names):
        (installed / name).parent.mkdir(parents=True, exist_ok=True)
        (installed / name).symlink_to(TOOLS / name)
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    return installed


async def install_client(installed: Path) -> None:
    """The client, built from its source and put there as npm puts a package."""
    package = installed / "voucherd-client"
    package.mkdir()
    shutil.copy(CLIENT / "package.json", package)
    await compiled("--project", CLIENT, "--outDir", package / "dist", folder=CLIENT)
