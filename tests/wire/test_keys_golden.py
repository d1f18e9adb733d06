"""What the API says of keys, byte for byte (OP-55).

`VOUCHERD_TEST_UPDATE_GOLDEN=1` writes the files anew; then look at the difference before it is kept.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec import Struct

from tests.handmade import NOW
from tests.wire.gallery import IDS
from tests.wire.test_golden import GOLDEN, UPDATE
from voucherd.api.wire import keys as wire
from voucherd.api.wire.shapes import WalkMetadata
from voucherd.api.wire.templates import encode
from voucherd.ids import State
from voucherd.keys.key_text import Scope, read_networks
from voucherd.keys.store import Key

FOLDER = GOLDEN / "keys"
LATER = NOW + timedelta(days=1, microseconds=123_999)
FULL = Key(
    id=12,
    company_id=17,
    state=State.LIVE,
    prefix="vk_live_abc123",
    description='the "till"\u2028',
    scopes=frozenset({Scope.ORDERS_READ, Scope.KEYS_WRITE}),
    allow_ips=read_networks(["192.0.2.0/24", "2001:db8::1"]),
    rate_limit=1_200,
    expires_at=LATER,
    revoked_at=LATER,
    replaced_by=13,
    created_at=NOW,
    last_used_at=LATER,
    spend_order_eur_minor=50_000,
    spend_day_eur_minor=7,
)
BARE = Key(
    id=13, company_id=17, state=State.SANDBOX, prefix="vk_test_abc123", scopes=frozenset(), created_at=NOW
)
BODIES: dict[str, Struct] = {
    "key": wire.api_key(IDS, FULL, NOW, 12),
    "key-made": wire.api_key(IDS, BARE, NOW, 12, "vk_test_" + "x" * 38),
    "key-page": wire.ApiKeyPage([wire.api_key(IDS, BARE, NOW, 13)], WalkMetadata(1, IDS.key(13))),
}


@pytest.mark.parametrize("name", BODIES)
def test_an_answer_about_keys_is_what_it_always_was(name: str) -> None:
    """OP-07, OP-08, OP-55: every byte."""
    body = encode(BODIES[name])
    file = FOLDER / f"{name}.json"
    if UPDATE:
        file.write_bytes(body)
    assert body == file.read_bytes()


def test_no_golden_file_of_keys_is_left_behind() -> None:
    """OP-55: what is on the shelf is looked at."""
    assert {file.stem for file in FOLDER.iterdir()} == set(BODIES)
