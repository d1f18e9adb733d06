"""What the service tells the world about itself, and what only the operator."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.shop import Shop, open_shop
from voucherd.db import Pool
from voucherd.settings import Settings, SettingsError

TOKEN: Final = "s3cret-of-the-operator"
WRONG: Final = (
    "",
    "Bearer",
    "Bearer ",
    f"Bearer {TOKEN[:-1]}",
    f"Bearer {TOKEN}x",
    f"Basic {TOKEN}",
    TOKEN,
    "Bearer ü",
)


async def told(shop: Shop, path: str, authorization: str | None = None) -> tuple[int, str]:
    """Status and text of an answer."""
    headers: dict[bytes, bytes] = (
        {} if authorization is None else {b"authorization": authorization.encode("latin-1")}
    )
    answer = await shop.client.get(path, headers=headers)
    return answer.status_code, answer.text


async def test_figures_are_for_who_brings_the_token(pool: Pool, database_url: str, tmp_path: Path) -> None:
    """OP-98: they name customers and suppliers; for the world there is no such path."""
    async with open_shop(pool, database_url, tmp_path, with_worker=False, metrics_token=TOKEN) as shop:
        for wrong in (None, *WRONG):
            assert await told(shop, "/metrics", wrong) == (404, "not found"), wrong
        key = (await shop.company()).bearer()["authorization"]
        assert await told(shop, "/metrics", key) == (404, "not found")
        status, page = await told(shop, "/metrics", f"Bearer {TOKEN}")
        assert status == 200
        assert "voucherd_http_seconds" in page
        assert TOKEN not in repr(shop.settings)


async def test_without_a_token_nobody_sees_figures(quiet_shop: Shop) -> None:
    """OP-98: the default; a token of nothing opens nothing."""
    for wrong in (None, *WRONG, "Bearer None"):
        assert await told(quiet_shop, "/metrics", wrong) == (404, "not found"), wrong


async def test_the_world_learns_that_the_service_is_well_and_nothing_else(
    pool: Pool, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-98: what is missing is told to the operator only."""
    async with open_shop(pool, database_url, tmp_path, with_worker=False, metrics_token=TOKEN) as shop:
        for wrong in (None, *WRONG):
            assert await told(shop, "/healthz", wrong) == (200, "ok")
            assert await told(shop, "/readyz", wrong) == (200, "ready")

        async def pending(_connection: object) -> list[str]:
            return ["0099_later.sql"]

        monkeypatch.setattr("voucherd.migrate.pending", pending)
        shop.program.system._readiness._asked_at = 0.0
        assert await told(shop, "/readyz") == (503, "not ready")
        assert await told(shop, "/readyz", f"Bearer {TOKEN}") == (503, "migrations: 1 to run")


def test_a_token_that_can_be_guessed_is_refused_without_showing_it() -> None:
    """OP-98: one line that names the setting."""
    with pytest.raises(SettingsError, match="VOUCHERD_METRICS_TOKEN: must be a secret of 16") as refused:
        Settings.load({}, {"VOUCHERD_METRICS_TOKEN": "hunter2"})
    assert "hunter2" not in str(refused.value)
