"""The samples of the docs as programs: taken off the pages, and run in their own language."""

from __future__ import annotations

import asyncio
import html
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.docs.pages import ROOT
from tests.patience import HANG_S

TITLES: Final = {"curl": "curl", "python": "Python", "typescript": "TypeScript", "php": "PHP"}
PROGRAMS: Final = {"curl": "bash", "python": sys.executable, "typescript": "node", "php": "php"}
ENDINGS: Final = {"curl": "sh", "python": "py", "typescript": "ts", "php": "php"}
COMPILERS: Final = ROOT / "clients" / "typescript" / "node_modules" / ".bin"
AMBIENT: Final = "declare const process: { env: Record<string, string | undefined> };\n"
STRICT: Final = {
    "strict": True,
    "skipLibCheck": True,
    "target": "es2022",
    "module": "es2022",
    "moduleDetection": "force",
    "lib": ["es2022", "dom", "dom.iterable"],
    "types": [],
    "outDir": "made",
}


def shown(page: str) -> dict[str, str]:
    """The first sample of a page, by language."""
    found: dict[str, str] = {}
    for language, title in TITLES.items():
        box = re.search(
            f'<p class="panel-title">{title}</p><pre tabindex="0"><code>(.*?)</code></pre>', page, re.DOTALL
        )
        assert box is not None, title
        found[language] = html.unescape(box[1])
    return found


def program(name: str) -> str:
    """Where a program is; without it a sample can't be run, which fails where the suite decides about a change."""
    # The compiler comes with what the TypeScript client is tested with.
    path = shutil.which(name, path=os.pathsep.join([str(COMPILERS), os.environ["PATH"]]))
    if path is not None:
        return path
    why = f"{name} is not on this machine: the docs' samples were NOT run in it"
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(why)
    pytest.skip(why)


async def run(*command: str, **env: str) -> str:
    """What the command prints; it must succeed."""
    process = await started(*command, **env)
    printed, wrong = await asyncio.wait_for(process.communicate(), HANG_S)
    assert process.returncode == 0, f"{command}: {printed.decode()}{wrong.decode()}"
    return printed.decode()


async def started(*command: str, **env: str) -> asyncio.subprocess.Process:
    """A running command."""
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe, env=os.environ | env)


async def compiled(folder: Path, sources: dict[str, str]) -> dict[str, Path]:
    """Programs in TypeScript, checked strictly and made into what node runs."""
    for name, source in sources.items():
        (folder / f"{name}.ts").write_text(source, encoding="utf-8")
    (folder / "ambient.d.ts").write_text(AMBIENT, encoding="utf-8")
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    (folder / "tsconfig.json").write_text(json.dumps({"compilerOptions": STRICT}), encoding="utf-8")
    await run(program("tsc"), "--project", str(folder))
    return {name: folder / "made" / f"{name}.js" for name in sources}
