"""What a worker tells of itself when its work is late, and what processes tell of each other when one is odd."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path

import httpx
from structlog.testing import capture_logs

from tests.patience import HANG_S, until_true
from tests.shop import Shop
from voucherd.metrics import siblings, worker_status
from voucherd.metrics.siblings import Siblings
from voucherd.settings import Settings
from voucherd.worker import Round, RoundStanding, Worker

TOKEN = "s3cret-of-the-operator"


async def test_a_worker_whose_round_is_late_is_not_ready(quiet_shop: Shop, tmp_path: Path) -> None:
    """OP-125: which one is told to who brings the token; a client that sends nonsense is let go."""
    settings = Settings.load({"data": tmp_path, "worker_listen": "127.0.0.1:0", "metrics_token": TOKEN}, {})
    worker = quiet_shop.worker
    worker.rounds |= {"deliver": RoundStanding(0.1), "send_mail": RoundStanding(5.0)}
    with capture_logs() as lines:
        status = worker_status.shown(worker, settings)
        await status.__aenter__()
    port = lines[-1]["port"]
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=HANG_S) as client:
            assert (await client.get("/readyz")).status_code == 200
            worker.rounds["deliver"]._well_at -= 2 * worker_status.LATE_S_MAX
            refused = await client.get("/readyz")
            assert (refused.status_code, refused.text) == (503, "not ready")
            trusted = await client.get("/readyz", headers={"authorization": f"Bearer {TOKEN}"})
            assert (trusted.status_code, trusted.text) == (503, "late: deliver")
            assert (await client.get("/healthz")).text == "ok"
            assert (await client.head("/healthz")).headers["content-length"] == "2"
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /metrics HTTP/1.1\r\nx: " + b"y" * 65_536)
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()
    finally:
        await status.__aexit__(None, None, None)


async def test_a_round_that_fails_is_counted_and_grows_late(quiet_shop: Shop) -> None:
    """OP-125: late is measured from when it was last done well."""
    worker = quiet_shop.worker
    done = asyncio.Event()

    async def work(_worker: Worker) -> int:
        if not done.is_set():
            raise OSError("away")
        return 0

    standing = worker.rounds["odd"] = RoundStanding(0.0)
    with capture_logs():
        task = asyncio.create_task(worker._repeat(Round("odd", 0.001, "nobody", work)))
        await until_true(lambda: standing.failures >= 2)
        assert standing.rounds == 0
        late_s = standing.lag_s()
        assert late_s > 0
        done.set()
        await until_true(lambda: standing.rounds >= 2)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_process_that_is_silent_odd_or_gone_is_down_and_nothing_else(tmp_path: Path) -> None:
    """OP-125: a scrape waits for none of them longer than its limit."""
    free = asyncio.Event()

    async def silent(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await free.wait()
        writer.close()

    async def odd(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(json.dumps(["nonsense"]).encode())
        writer.close()

    servers = [
        await asyncio.start_unix_server(answer, str(tmp_path / f"{name}.socket"))
        for name, answer in (("1", silent), ("2", odd))
    ]
    (tmp_path / "3.socket").touch()
    async with Siblings(tmp_path, "4").shown(lambda: b"\x90"):
        found = await Siblings(tmp_path, "0").gathered()
    assert found == {"1": None, "2": None, "3": None, "4": []}
    assert not (tmp_path / "4.socket").exists()
    free.set()
    for server in servers:
        server.close()


async def test_a_process_that_can_not_show_its_figures_serves_on(tmp_path: Path) -> None:
    """OP-125: it is said in the log, and the scrape shows the process that was asked."""
    nowhere = Siblings(tmp_path / ("x" * 200) / "y", "0")
    with capture_logs() as lines:
        async with nowhere.shown(lambda: b""):
            assert await nowhere.gathered() == {}
    assert [line["event"] for line in lines] == ["figures_not_shared"]
    assert siblings.ANSWER_S_MAX <= 1.0
