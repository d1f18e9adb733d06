"""The samples of the docs, in every language: each is taken off its page and run against a real server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import uvicorn
from msgspec import Struct
from uvicorn.server import ServerState

from tests.patience import HANG_S, until, until_true
from tests.shop import Company, Shop
from tests.wire.programs import ENDINGS, PROGRAMS, TITLES, compiled, program, run, shown, started
from voucherd.api.errors import Op
from voucherd.api.openapi import document
from voucherd.api.openapi.reference import ReferenceOperation, operations
from voucherd.api.routes import ROUTES
from voucherd.ids import State
from voucherd.keys.key_text import Scope
from voucherd.server.protocol import ApiProtocol
from voucherd.settings import Settings

SLUG = "gift-10"
BY_HAND = {Op.EVENT_STREAM}
"""It never ends; the test of streams runs it."""
FRESH = (Op.CONFIRM, Op.RESOLVE, Op.CANCEL)
"""What needs an order that is only created."""
DESCRIBED = dict(
    zip(
        [route.op for route in ROUTES],
        operations(document(None, Settings().body_bytes_max)),
        strict=True,
    )
)


OPS = [op for op in DESCRIBED if op not in BY_HAND]
EXPECTED = {op: min(map(int, DESCRIBED[op].described["responses"])) for op in OPS} | {Op.CANCEL: 204}
"""What each sample gets: its good answer. An order that is only created is deleted by Cancel."""


class Tried(Struct):
    """A company that runs the samples, and what it has to run them on."""

    company: Company
    finished: str
    event: str

    @property
    def headers(self) -> dict[str, str]:
        """Its sandbox key."""
        return self.company.bearer(State.SANDBOX)


@pytest.fixture
async def address(quiet_shop: Shop) -> AsyncIterator[str]:
    """The shop on a free port."""
    config = uvicorn.Config(
        quiet_shop.app, http=ApiProtocol, loop="none", lifespan="off", log_config=None, access_log=False
    )
    config.load()
    state = ServerState()
    server = await asyncio.get_running_loop().create_server(
        lambda: ApiProtocol(config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()
    for connection in list(state.connections):
        connection.transport.abort()
    await until_true(lambda: not state.connections)
    await server.wait_closed()


async def made(shop: Shop, path: str, headers: dict[str, str], body: object) -> dict[str, str]:
    """What a POST makes."""
    answer = await shop.client.post(f"/api/1.03/{path}", headers=headers, json=body)
    assert answer.status_code == 201, answer.text
    found: dict[str, str] = answer.json()
    return found


async def customer(shop: Shop) -> Tried:
    """A company whose key may do everything, with an order that is finished."""
    company = await shop.company(scopes=frozenset(Scope))
    trx = (await shop.create(company, (SLUG, 1), state=State.SANDBOX))["trx"]
    headers = company.bearer(State.SANDBOX)
    outcome = {"x-sandbox-outcome": "finished"}
    done = await shop.client.patch(f"/api/1.03/order/confirm/{trx}", headers=headers | outcome)
    assert done.json()["orderStatus"] == "finished"
    events = await shop.client.get(f"/api/1.03/event?trx={trx}", headers=headers)
    return Tried(company, trx, events.json()["data"][-1]["id"])


async def logged(shop: Shop, tried: Tried) -> str:
    """The id of a call that was just made; none if there were too many in this second to log it."""
    asked = await shop.client.get("/api/1.03/account", headers=tried.headers)
    await shop.program.services.request_log.flush()
    request_id = str(asked.headers["x-request-id"])
    query = "SELECT request_id FROM request_log WHERE request_id = $1"
    return await shop.pool.fetchval(query, request_id) or ""


async def filled(shop: Shop, tried: Tried, op: Op, text: str) -> str:
    """The sample with what is this company's own: a trx, an endpoint, an event, a key."""
    path = DESCRIBED[op].path
    examples = {one["name"]: str(one["example"]) for one in in_path(DESCRIBED[op])}
    own = dict(examples)
    if "{trx}" in path:
        fresh = op in FRESH
        own["trx"] = (
            (await shop.create(tried.company, (SLUG, 1), state=State.SANDBOX))["trx"]
            if fresh
            else tried.finished
        )
    elif "/webhook/{id}" in path or op is Op.REPLAY_EVENT:
        body = {"url": "https://shop.example.com/hooks"}
        endpoint = (await made(shop, "webhook", tried.headers, body))["id"]
        own["id"] = tried.event if op is Op.REPLAY_EVENT else endpoint
        text = text.replace(WEBHOOK_EXAMPLE, endpoint) if op is Op.REPLAY_EVENT else text
    elif "/event/{id}" in path:
        own["id"] = tried.event
    elif "/request/{id}" in path:
        own["id"] = await until(lambda: logged(shop, tried))
    elif "/key/{id}" in path:
        own["id"] = (await made(shop, "key", tried.headers, {"description": "a till"}))["id"]
    for name, example in examples.items():
        if name in ("trx", "id"):
            assert example in text, f"{op}: its sample names no {name}"
            text = text.replace(example, own[name])
    return text


def in_path(operation: ReferenceOperation) -> list[dict[str, str]]:
    """The parameters of a path."""
    return [one for one in operation.described.get("parameters", ()) if one["in"] == "path"]


WEBHOOK_EXAMPLE = in_path(DESCRIBED[Op.WEBHOOK])[0]["example"]

# What runs all samples of a language in one process and prints the status that each of them got.
RUNNERS = {
    "curl": 'curl() {{ command curl -sS -o /dev/null -w "got %{{http_code}}\\n" "$@"; }}\n'
    "for one in {words}; do . $one; done",
    "python": "for one in {names}:\n    space = {{}}\n    exec(compile(open(one).read(), one, 'exec'), space)\n"
    "    print('\\ngot', space['answer'].status_code)",
    "php": "<?php foreach ({names} as $one) {{\n    include $one;\n"
    '    echo "\\ngot ", explode(" ", $http_response_header[0])[1], "\\n";\n}}',
    "typescript": "const real = fetch;\nglobalThis.fetch = async (...all) => {{\n  const answer = await real(...all);\n"
    "  console.log('\\ngot ' + answer.status);\n  return answer;\n}};\nfor (const one of {names}) await import(one);",
}


class Written(Struct):
    """The samples of one language as files, and who runs them."""

    language: str
    tried: Tried
    files: dict[str, Path]

    async def run(self, file: Path) -> str:
        """What a program prints."""
        return await run(PROGRAMS[self.language], str(file), KEY=self.tried.company.keys[State.SANDBOX])

    async def statuses(self, folder: Path, names: list[str]) -> list[int]:
        """What each of these samples got, in order."""
        paths = [str(self.files[name]) for name in names]
        runner = folder / ("run.mjs" if self.language == "typescript" else f"run.{self.language}")
        runner.write_text(
            RUNNERS[self.language].format(words=" ".join(paths), names=json.dumps(paths)), encoding="utf-8"
        )
        printed = await self.run(runner)
        return [int(line[4:]) for line in printed.splitlines() if line.startswith("got ")]


async def written(shop: Shop, address: str, folder: Path, language: str) -> Written:
    """Every sample of a language: off the pages, with the address of the server."""
    program(PROGRAMS[language])
    tried = await customer(shop)
    pages = {op.value: DESCRIBED[op].page for op in OPS} | {"first": "/docs", "stream": "/docs/events"}
    sources = {}
    for name, path in pages.items():
        page = await shop.client.get(path)
        sources[name] = shown(page.text)[language].replace(shop.settings.public_url, address)
    for op in OPS:
        sources[op.value] = await filled(shop, tried, op, sources[op.value])
    if language == "typescript":
        return Written(language, tried, await compiled(folder, sources))
    files = {name: folder / f"{name}.{ENDINGS[language]}" for name in sources}
    for name, source in sources.items():
        files[name].write_text(source, encoding="utf-8")
    return Written(language, tried, files)


@pytest.mark.parametrize("language", TITLES)
async def test_every_sample_of_the_docs_runs_as_printed(
    quiet_shop: Shop, address: str, tmp_path: Path, language: str
) -> None:
    """OP-49: word for word but for the address and what is the company's own; the first order prints two codes."""
    shop = quiet_shop
    await shop.product(SLUG, stock=100)
    samples = await written(shop, address, tmp_path, language)
    got = await samples.statuses(tmp_path, [op.value for op in OPS])
    assert dict(zip(OPS, got, strict=True)) == EXPECTED

    printed = await samples.run(samples.files["first"])
    if language == "curl":
        lines = json.loads(printed)["items"][0]["orderLines"]
        printed = " ".join(line["voucherCode"] for line in lines)
    codes = printed.split()
    assert len(codes) == 2
    assert all(code.startswith("TEST") for code in codes)

    await follow(shop, samples)
    await shop.assert_books_balance()


async def follow(shop: Shop, samples: Written) -> None:
    """The sample of the stream prints an event as it happens, and ends when its key does."""
    tried = samples.tried
    key = await made(shop, "key", tried.headers, {"description": "follows", "scopes": ["events:read"]})
    process = await started(PROGRAMS[samples.language], str(samples.files["stream"]), KEY=key["key"])
    assert process.stdout is not None
    await until_true(lambda: shop.program.services.streams.open > 0)
    trx = (await shop.create(tried.company, (SLUG, 1), state=State.SANDBOX))["trx"]
    heard = b""
    while trx.encode() not in heard:
        heard = await asyncio.wait_for(process.stdout.readline(), HANG_S)
        assert heard, "the stream ended too soon"
    await shop.client.delete(f"/api/1.03/key/{key['id']}", headers=tried.headers)
    await asyncio.wait_for(process.communicate(), HANG_S)
