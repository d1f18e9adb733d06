"""The wheel: voucherd runs without a checkout, and without a PostgreSQL that nobody uses."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import Final

import httpx
import pytest

from tests.anywhere import installed, programs
from tests.anywhere.installed import EMBEDDED, LOCK, ROOT, Installed, locked_names
from tests.patience import HANG_S
from voucherd.migrate import migrations

PACKAGE: Final = ROOT / "src" / "voucherd"
BYTES_MAX: Final = 180 * 1024 * 1024
"""Of what production installs, before anything is compiled; with the embedded server it is more than 240 MB."""


def _files(folder: Path) -> set[str]:
    found = (file for file in folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    return {file.relative_to(folder).as_posix() for file in found}


def _size(folder: Path) -> int:
    files = (file for entry in folder.iterdir() for file in entry.resolve().rglob("*"))
    return sum(file.stat().st_size for file in files if file.suffix != ".pyc" and file.is_file())


def test_the_wheel_has_every_file_of_the_package_and_the_licence(wheel: Path) -> None:
    """OP-127: migrations, templates and static files come along; the licence is told where programs look for it."""
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        [metadata] = [name for name in names if name.endswith(".dist-info/METADATA")]
        head = packed.read(metadata).decode().splitlines()
    assert {name.removeprefix("voucherd/") for name in names if name.startswith("voucherd/")} == _files(
        PACKAGE
    )
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    assert "License-Expression: Apache-2.0" in head
    assert "Provides-Extra: embedded" in head


def test_it_says_which_version_it_is_as_programs_are_asked(environment: Installed) -> None:
    """OP-127: `voucherd --version` and `voucherd version` say the same, outside of the checkout."""
    said = [environment.run(word) for word in ("--version", "version")]
    assert [(one.returncode, one.stdout, one.stderr) for one in said] == [(0, "voucherd 0.1.0\n", "")] * 2


def test_production_installs_no_server_that_it_does_not_use(environment: Installed) -> None:
    """OP-127: the embedded PostgreSQL is an extra; without it the whole runtime is well below what it was."""
    assert EMBEDDED not in locked_names(LOCK)
    assert EMBEDDED in locked_names(ROOT / "requirements.lock")
    assert _size(environment.package.parent) < BYTES_MAX


@pytest.mark.parametrize("words", [["demo", "--port", "0"], ["serve", "--port", "0"]])
def test_without_a_database_one_line_says_what_to_install(
    environment: Installed, tmp_path: Path, words: list[str]
) -> None:
    """OP-127: neither an address nor the extra: exit 1 with one line, and nothing is made in the data folder."""
    refused = environment.run(*words, VOUCHERD_DATA=str(tmp_path / "data"))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.count("\n") == 1
    assert refused.stderr.startswith("voucherd: ")
    for way_out in ("pip install 'voucherd[embedded]'", "VOUCHERD_DATABASE_URL"):
        assert way_out in refused.stderr
    assert not (tmp_path / "data").exists()


async def test_a_shop_opens_and_sells_without_a_checkout(
    environment: Installed, empty_schema_url: str, tmp_path: Path
) -> None:
    """OP-127: on a server of the operator's: migrations run, pages have their templates and styles, codes are sold."""
    with programs.demo(tmp_path / "data", empty_schema_url, [environment.program]) as shop:
        async with httpx.AsyncClient(base_url=shop.url, headers=shop.bearer(), timeout=HANG_S) as client:
            made = await client.post("/api/1.03/order", json=shop.cart())
            sold = await client.patch(f"/api/1.00/order/confirm/{made.json()['trx']}")
            page = await client.get("/sign-in")
            styles = [word for word in page.text.split('"') if word.startswith("/static/") and ".css" in word]
            looks = [await client.get(path) for path in styles]
        assert sold.json()["orderStatus"] == "finished", sold.text
        assert page.status_code == 200
        assert looks
        assert all(look.status_code == 200 for look in looks)


def test_with_the_extra_it_brings_its_own_server(environment: Installed) -> None:
    """OP-127: `voucherd[embedded]` needs no address."""
    with tempfile.TemporaryDirectory(prefix="voucherd-extra-") as name:
        folder = Path(name)
        # The server runs as an account of its own, which must be able to pass through here.
        folder.chmod(0o711)
        # Beside the environment, which stays without it for the other tests.
        installed.link(EMBEDDED, folder)
        ran = environment.run("migrate", VOUCHERD_DATA=str(folder / "data"), PYTHONPATH=name)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.count("ran ") == len(migrations())
