"""The TypeScript client: current, clean for the strictest compiler, and right against a real voucherd."""

from __future__ import annotations

import json
import re
import shutil
import time
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal
from tests.cli.test_demo import Running
from tests.docs import pages
from tests.integrators.node import CLIENT, OPTIONS, compiled, install_client, modules, require_node, run
from tests.shop import Shop
from tests.suppliers.stalls import listening
from tools import typescript
from voucherd.cli.demo_shop.goods import goods
from voucherd.ids import State
from voucherd.webhooks import signing

README = CLIENT / "README.md"
PRODUCT, VARIABLE = "nimbari-play-10-eur", "velfox-any-eur"


def test_the_types_of_the_client_are_those_of_the_document() -> None:
    """OP-149: `make client-types` writes them anew."""
    for name, text in typescript.written().items():
        assert (typescript.FOLDER / name).read_text(encoding="utf-8") == text, name
    assert {file.name for file in typescript.FOLDER.iterdir()} == set(typescript.written())


def test_a_name_that_is_a_decimal_here_and_a_text_there_is_refused() -> None:
    """OP-149: the client reads decimals by the names of their fields."""
    schemas = {
        "Order": {"properties": {"price": {"type": "number"}, "note": {"$ref": typescript.REF + "Note"}}},
        "Note": {"properties": {"price": {"type": "string"}}},
    }
    lists = {"type": "array", "items": {"anyOf": [{"type": "number"}, {"type": "null"}]}}
    fields = {"price": {"type": ["number", "null"]}, "prices": lists, "note": {"type": "string"}}
    assert typescript.decimals({"Order": {"properties": fields}}, "Order") == ["price", "prices"]
    with pytest.raises(AssertionError, match="price"):
        typescript.decimals(schemas, "Order")


def test_the_client_needs_nothing_at_run_time() -> None:
    """OP-149: no dependency of its own, and none through the lock."""
    package = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))
    assert "dependencies" not in package
    assert "peerDependencies" not in package
    lock = json.loads((CLIENT / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert all(one.get("dev") for name, one in lock.items() if name)
    assert lock[""]["version"] == package["version"]
    # Another registry than the machine's own is nobody's business.
    assert not [name for name, one in lock.items() if "resolved" in one]


def test_the_first_order_of_the_readme_has_ten_lines() -> None:
    """OP-149: and it buys what the demo sells."""
    first = pages.blocks(README, "ts")[0]
    assert len(first.strip().splitlines()) <= 10
    assert re.findall(r'productSlug: "([\w-]+)"', first) == [goods()[0].draft.slug]


def signed_messages() -> str:
    """Messages as we sign them, with whether each is to be believed; the first one has an amount no float can hold."""
    data = {"state": "live", "currency": "EUR", "amount": 0, "balance": 0, "reference": "Café"}
    told = {"id": "evt_1", "type": "wallet.topped_up", "timestamp": "2026-01-31T09:32:00.000Z", "data": data}
    body = json.dumps(told, ensure_ascii=False).replace('"amount": 0', '"amount": 12345678901234567.10')
    secret, other = signing.new_secret(), signing.new_secret()

    def headers(*secrets: str, age_s: int = 0) -> dict[str, str]:
        at = int(time.time()) - age_s
        return {
            "webhook-id": "evt_1",
            "webhook-timestamp": str(at),
            "webhook-signature": signing.sign(secrets, "evt_1", at, body.encode()),
        }

    return json.dumps(
        [
            (secret, headers(secret), body, True),
            (secret, headers(other, secret), body, True),
            ([secret, other], headers(other), body, True),
            (other, headers(secret), body, False),
            (secret, headers(secret), body + " ", False),
            (secret, headers(secret, age_s=400), body, False),
            (secret, headers(secret) | {"webhook-id": "evt_2"}, body, False),
            (secret, headers(secret) | {"webhook-timestamp": "1e9"}, body, False),
            (secret, headers(secret) | {"webhook-signature": "v1,"}, body, False),
            (secret, headers(secret) | {"webhook-signature": "v1,%%% v2,x"}, body, False),
        ]
    )


def put_programs(folder: Path) -> list[Path]:
    """The client's suite and the programs of its README."""
    for file in (CLIENT / "test").glob("*.ts"):
        shutil.copy(file, folder)
    for number, block in enumerate(pages.blocks(README, "ts")):
        (folder / f"readme{number}.ts").write_text(block, encoding="utf-8")
    return sorted(folder.glob("*.ts"))


async def build(folder: Path) -> None:
    """All of them, compiled against the client as it is installed."""
    await install_client(modules(folder))
    await compiled(*OPTIONS, "--outDir", "built", *put_programs(folder), folder=folder)


async def prove(folder: Path, url: str, live: str, sandbox: str) -> None:
    """Run the suite and the programs of the README."""
    surroundings = {
        "VOUCHERD_URL": url,
        "VOUCHERD_KEY": live,
        "VOUCHERD_SANDBOX_KEY": sandbox,
        "VOUCHERD_PRODUCT": PRODUCT,
        "VOUCHERD_VARIABLE_PRODUCT": VARIABLE,
        "VOUCHERD_WEBHOOK_CASES": signed_messages(),
    }
    said = await run("--test-reporter=tap", "built/all.js", folder=folder, **surroundings)
    assert re.search(r"^# fail 0$", said, re.MULTILINE), said
    assert re.search(r"^# pass [1-9]\d$", said, re.MULTILINE), said
    for file in sorted((folder / "built").glob("readme*.js")):
        printed = await run(file, folder=folder, **surroundings | {"VOUCHERD_KEY": sandbox})
        if file.stem == "readme0":
            assert re.fullmatch(r"(\S+ http\S+/r/\S+\n){2}finished, paid \d+\.\d\d EUR\n", printed), printed


async def test_the_client_passes_its_suite(shop: Shop, tmp_path: Path) -> None:
    """OP-28, OP-149: orders, money, retries, iterators, errors, events and webhooks, with Node; and the README."""
    require_node()
    await build(tmp_path)
    company = await shop.company()
    await shop.product(PRODUCT, stock=50)
    await shop.product(VARIABLE, face_range="5-500 EUR", fee="1.05", async_delivery=True)
    async with listening(shop) as port:
        await prove(
            tmp_path, f"http://127.0.0.1:{port}", company.keys[State.LIVE], company.keys[State.SANDBOX]
        )
    await shop.assert_books_balance()


@pytest.mark.soak
async def test_the_client_passes_its_suite_against_the_demo(tmp_path: Path) -> None:
    """OP-149: the same against `voucherd demo`, as a stranger has it."""
    require_node()
    (program := tmp_path / "program").mkdir()
    await build(program)
    terminal = Terminal(tmp_path / "data")
    with Running(terminal, "--json") as demo:
        told = json.loads(demo.said())
        await prove(program, told["baseUrl"], told["live"]["key"], told["sandbox"]["key"])
        assert terminal.json("audit")["ok"]
