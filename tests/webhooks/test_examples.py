"""docs/webhooks.md: its examples verify what we sign, in every language that this machine has, and nothing else."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs import pages
from tests.docs.pages import DOCS
from tests.patience import HANG_S
from tests.wire import programs
from voucherd.api.wire.webhooks import TYPES
from voucherd.pages.assets import templates
from voucherd.webhooks import signing
from voucherd.webhooks.targets import PORTS

PAGE = DOCS / "webhooks.md"
SECRET, OTHER = signing.new_secret(), signing.new_secret()
BODY = '{"id":"evt_1","type":"order.finished","data":{"name":"Café \\" $HOME"}}'
RUN_S_MAX = HANG_S


def example(language: str, word: str) -> str:
    """The example in this language that holds this word."""
    (found,) = [block for block in pages.blocks(PAGE, language) if word in block]
    return found


def headers(secret: str = SECRET, *, age_s: int = 0, body: str = BODY) -> dict[str, str]:
    """The headers of a message that was signed so long ago, while both secrets are valid."""
    now_s = int(time.time()) - age_s
    return {
        "webhook-id": "evt_1",
        "webhook-timestamp": str(now_s),
        "webhook-signature": signing.sign([OTHER, secret], "evt_1", now_s, body.encode()),
    }


def cases() -> list[tuple[str, dict[str, str], str, bool]]:
    """What is to be verified, signed now: a message is good for five minutes, and a run of all tests takes longer."""
    return [
        (SECRET, headers(), BODY, True),
        (OTHER, headers(), BODY, True),
        (signing.new_secret(), headers(), BODY, False),
        (SECRET, headers(), BODY + " ", False),
        (SECRET, headers(age_s=400), BODY, False),
        (SECRET, headers() | {"webhook-id": "evt_2"}, BODY, False),
        (SECRET, headers() | {"webhook-signature": "v1,"}, BODY, False),
    ]


def run(program: str, *arguments: str, source: str, **env: str) -> str:
    """What the program prints."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not on this machine: its example in docs/webhooks.md was NOT run")
    done = subprocess.run(
        [found, *arguments],
        input=source.encode(),
        capture_output=True,
        timeout=RUN_S_MAX,
        env={**os.environ, **env},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def test_the_example_in_python_verifies() -> None:
    """OP-54: no library is needed."""
    space: dict[str, Callable[[str, dict[str, str], bytes], bool]] = {}
    exec(example("python", "def verify"), space)  # noqa: S102 - Our own page.
    for secret, given, body, good in cases():
        assert space["verify"](secret, given, body.encode()) is good


def test_the_example_in_php_verifies() -> None:
    """OP-54: what is printed in the guide is what was run here."""
    ending = "echo json_encode(array_map(fn($c) => verify(...$c), json_decode(getenv('CASES'), true)));"
    source = "<?php\n" + example("php", "function verify") + "\n" + ending
    signed = cases()
    given = json.dumps([case[:3] for case in signed])
    assert json.loads(run("php", source=source, CASES=given)) == [good for *_, good in signed]


async def test_the_example_in_typescript_verifies(tmp_path: Path) -> None:
    """OP-54: it passes the strictest check of types, and runs wherever there is Web Crypto."""
    ending = (
        "const cases = JSON.parse(process.env.CASES!) as [string, Record<string, string>, string][];\n"
        "const found = cases.map(([secret, headers, body]) => verify(secret, new Headers(headers), body));\n"
        "console.log(JSON.stringify(await Promise.all(found)));"
    )
    source = example("typescript", "function verify") + "\n" + ending
    made = await programs.compiled(tmp_path, {"verify": source})
    signed = cases()
    given = json.dumps([case[:3] for case in signed])
    printed = await programs.run(programs.program("node"), str(made["verify"]), CASES=given)
    assert json.loads(printed) == [good for *_, good in signed]


@pytest.mark.parametrize(
    ("language", "word", "recipe"),
    [
        ("python", "def verify", "python"),
        ("typescript", "function verify", "typescript"),
        ("php", "function verify", "php"),
        ("sh", "openssl", "curl"),
    ],
)
def test_the_docs_of_a_running_service_show_the_same_examples(language: str, word: str, recipe: str) -> None:
    """OP-54: what is verified here is what /docs/webhooks prints."""
    assert templates()[f"docs/recipes/verify.{recipe}"] == example(language, word)


def test_the_example_in_a_shell_computes_the_signature() -> None:
    """OP-54: with openssl, by hand."""
    given = headers()
    printed = run(
        "sh",
        source=example("sh", "openssl"),
        SECRET=SECRET,
        ID=given["webhook-id"],
        TIMESTAMP=given["webhook-timestamp"],
        BODY=BODY,
    )
    assert f"v1,{printed.strip()}" in given["webhook-signature"].split(" ")


def test_the_page_names_every_event_and_port() -> None:
    """OP-54: the types that an endpoint can ask for, and ping; the ports that are reached."""
    told = [row[0].strip("`") for row in pages.rows(PAGE, "type")]
    assert sorted(told) == sorted([*TYPES, "ping"])
    ports = ", ".join(map(str, PORTS[:-1])) + f" or {PORTS[-1]}"
    assert re.search(ports, PAGE.read_text(encoding="utf-8"))
