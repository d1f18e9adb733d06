"""Deliveries verify with the libraries that integrators use: those of Standard Webhooks and of Svix."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
from typing import Any

import pytest

from tests.patience import HANG_S
from tests.shop import Shop
from tests.webhooks.postman import Postman
from tests.webhooks.receiver import Got, Receiver

DELIVERIES = 10_000
NODE = """
const { Webhook } = require("standardwebhooks");
const lines = require("fs").readFileSync(0, "utf8").trim().split("\\n").map((line) => JSON.parse(line));
const hook = new Webhook(process.env.SECRET);
let refused = 0;
for (const [headers, body] of lines) {
  hook.verify(body, headers);
  try { hook.verify(body + " ", headers); } catch { refused += 1; }
}
console.log(lines.length, refused);
"""


@pytest.mark.soak
@pytest.mark.timeout(600)
async def test_ten_thousand_deliveries_verify_with_the_libraries_of_others(
    shop: Shop, postman: Postman, receiver: Receiver
) -> None:
    """OP-54: standardwebhooks and svix for Python, standardwebhooks for JavaScript; each that is installed."""
    company = await shop.company()
    endpoint = await postman.endpoint(company, receiver.url())
    await shop.pool.execute(
        "INSERT INTO event (at, company_id, state, type, order_id, seq)"
        " SELECT now(), $1, 0, 'order.finished', 2 * at, 1 FROM generate_series(1, $2::int) at",
        company.id,
        DELIVERIES,
    )
    await postman.run()
    assert len({got.headers["webhook-id"] for got in receiver.got}) == DELIVERIES
    secret = postman.secrets[endpoint.id]
    done = [name for name in ("standardwebhooks", "svix") if _verified_by(name, secret, receiver.got)]
    if _verified_by_node(secret, receiver.got):
        done.append("standardwebhooks (npm)")
    missing = {"standardwebhooks", "svix", "standardwebhooks (npm)"} - set(done)
    if missing:
        pytest.skip(
            f"NOT installed, so NOT tried: {', '.join(sorted(missing))}; content: {', '.join(done) or 'none'}"
        )


def _verified_by(library: str, secret: str, received: list[Got]) -> bool:
    """Whether the library is here; it accepts every message, and none that was changed."""
    try:
        found: Any = importlib.import_module(f"{library}.webhooks")
    except ImportError:
        return False
    hook = found.Webhook(secret)
    for got in received:
        hook.verify(got.body, got.headers)
        with pytest.raises(found.WebhookVerificationError):
            hook.verify(got.body + b" ", got.headers)
    return True


def _verified_by_node(secret: str, received: list[Got]) -> bool:
    node = shutil.which("node")
    if node is None:
        return False
    lines = [json.dumps([got.headers, got.body.decode()]) for got in received]
    modules = os.environ.get("VOUCHERD_TEST_NODE_MODULES", "")
    done = subprocess.run(
        [node, "-e", NODE],
        input="\n".join(lines).encode(),
        capture_output=True,
        timeout=HANG_S,
        env={**os.environ, "SECRET": secret, "NODE_PATH": modules},
        check=False,
    )
    if b"Cannot find module" in done.stderr:
        return False
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [b"%d" % len(received)] * 2
    return True
