"""The Python client as a stranger has it: from its wheel, with its README, against `voucherd demo`."""

from __future__ import annotations

import re
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.anywhere import installed, programs
from tests.anywhere.installed import clean_environment
from tests.docs import pages
from tests.docs.pages import ROOT
from tests.patience import HANG_S
from voucherd.webhooks import signing
from voucherd_client import __version__, errors, signatures
from voucherd_client.cli import KEY, TRIGGERS, URL
from voucherd_client.client import Client
from voucherd_client.operation import listing, operation, streaming

FOLDER = ROOT / "clients" / "python"
README = FOLDER / "README.md"
FIRST, AWAITED, REFUSED, RECEIVED = pages.blocks(README, "python")
NEEDED = ("httpx", "httpcore", "h11", "anyio", "sniffio", "idna", "certifi", "typing-extensions", "msgspec")
"""httpx and msgspec, and what those need."""


def test_the_readme_names_every_operation_and_only_those() -> None:
    """A stranger finds each in the table."""
    with Client("https://shop.example.com", "vk_test_x") as client:
        nouns = {name: type(noun) for name, noun in vars(client).items() if not name.startswith("_")}
    told = {
        noun: row[1].split("`")[1::2]
        for row in pages.rows(README, "noun")
        for noun in row[0].split("`")[1::2]
    }
    found = {
        name: {word for word, made in vars(noun).items() if isinstance(made, operation | listing | streaming)}
        for name, noun in nouns.items()
    }
    assert {noun: set(words) for noun, words in told.items()} == found
    assert set(re.findall(r"`((?:order|wallet)\.\w+)`", pages.prose_of(README))) == set(TRIGGERS)


def test_the_readme_names_no_error_that_does_not_exist() -> None:
    """Every class in its text and samples is one that can be caught."""
    named = [word for word in pages.quoted(README) if re.fullmatch("([A-Z][a-z]+){2,}", word)]
    named += re.findall(r"errors\.([A-Z]\w+)", README.read_text(encoding="utf-8"))
    assert len(named) > 10
    known = vars(errors).keys() | {"AsyncClient"}
    assert set(named) <= known


def test_the_first_order_takes_ten_lines() -> None:
    """What is promised at the top of the README."""
    assert len([line for line in FIRST.splitlines() if line.strip()]) <= 10


def test_the_recipe_for_webhooks_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """OP-54: what is printed in the README is what was run here."""
    old, new = signing.new_secret(), signing.new_secret()
    monkeypatch.setenv("WEBHOOK_SECRETS", f"{old} {new}")
    body = b'{"id":"evt_1","type":"ping","timestamp":"2026-01-31T09:32:00.000Z","data":{}}'
    space: dict[str, object] = {}
    exec(RECEIVED, space)  # noqa: S102 - Our own page.
    received = space["received"]
    assert callable(received)
    for secret, status in ((old, 204), (new, 204), (signing.new_secret(), 400)):
        assert received(body, signatures.signature_headers(secret, "evt_1", body)) == status


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client's wheel."""
    return installed.build(tmp_path_factory.mktemp("client-wheel"), FOLDER)


def test_the_wheel_is_typed_and_needs_two_packages(wheel: Path) -> None:
    """What pip reads: httpx and msgspec, nothing else; the licence, the types and the command come along."""
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        [metadata] = [packed.read(name).decode() for name in names if name.endswith(".dist-info/METADATA")]
        [points] = [packed.read(name).decode() for name in names if name.endswith("/entry_points.txt")]
    own = FOLDER / "src"
    sources = {file.relative_to(own).as_posix() for file in own.rglob("*") if "__pycache__" not in file.parts}
    files = {name for name in sources if (own / name).is_file()}
    assert {name for name in names if ".dist-info/" not in name} == files
    assert "voucherd_client/py.typed" in files
    assert re.findall(r"(?m)^Requires-Dist: ([\w-]+)", metadata) == ["httpx", "msgspec"]
    assert f"\nVersion: {__version__}\n" in metadata
    assert "License-Expression: Apache-2.0" in metadata
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    assert (FOLDER / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert "voucherd-client = voucherd_client.cli:main" in points


def test_a_stranger_gets_from_the_wheel_to_a_first_order(
    wheel: Path, empty_schema_url: str, tmp_path: Path
) -> None:
    """The samples of the README as printed, and the command, in an environment without the service: on the demo."""
    home = tmp_path / "home"
    python = installed.install_beside(wheel, home, NEEDED)
    with programs.demo(tmp_path / "data", empty_schema_url) as shop:
        env = clean_environment() | {URL: shop.url, KEY: shop.handout["sandbox"]["key"]}

        def said(*command: str | Path) -> str:
            done = subprocess.run(
                command, env=env, cwd="/", capture_output=True, text=True, timeout=HANG_S, check=False
            )
            assert (done.returncode, done.stderr) == (0, ""), done.stderr
            return done.stdout

        # One after another in one program: three would take three times as long to start.
        lines = said(python, "-W", "error", "-c", f"{FIRST}\n{AWAITED}\n{REFUSED}").splitlines()
        costs = re.fullmatch(r"(TRX\w{26}) costs (\d+\.\d\d) EUR", lines[0])
        assert costs is not None
        assert re.fullmatch(r"\['TEST[^']+', 'TEST[^']+'\]", lines[1])
        assert re.fullmatch(r"\d+\.\d\d EUR", lines[2])
        assert f"{costs[1]} {costs[2]}" in lines[3:-1]
        assert lines[-1].startswith("Some offers not available: no-such-product req_")
        command = python.parent / "voucherd-client"
        assert said(command, "trigger", "order.finished").startswith("order.finished  TRX")
