"""What the request log keeps of a body: nothing that is worth stealing, whatever is sent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voucherd.api import openapi
from voucherd.request_log.redaction import (
    ADDRESSES,
    BODY_BYTES_MAX,
    HIDDEN,
    KEPT_CHARS_MAX,
    SECRETS,
    SHOWN,
    WORDS,
    kept_body,
    kept_text,
)

JSON = b"application/json"
CANARY = "CANARY-7X1Q"


def kept(value: Any) -> Any:
    """What is kept of this JSON, read again."""
    return json.loads(kept_body(json.dumps(value).encode(), JSON))


def test_codes_keys_secrets_and_links_are_hidden_wherever_they_stand() -> None:
    """OP-148: by the names of the wire, at any depth, with whatever value."""
    for name in SECRETS:
        for value in (CANARY, [CANARY], {"name": CANARY}, [{"id": CANARY}], 12345678):
            found = kept({"data": [{"items": [{name: value, "status": "finished"}]}]})
            assert found == {"data": [{"items": [{name: HIDDEN, "status": "finished"}]}]}
    assert kept({"secret": None, "hasPin": True}) == {"secret": None, "hasPin": True}


def test_what_nobody_knows_is_hidden() -> None:
    """OP-148: a field that a client made up may hold anything."""
    assert kept({"reference": "order 7", "password": CANARY, "note": {"reference": CANARY}}) == {
        "reference": "order 7",
        "password": HIDDEN,
        "note": HIDDEN,
    }


def test_every_field_of_the_wire_is_shown_or_hidden_on_purpose() -> None:
    """OP-148: whoever adds a field says in the redaction which of the two it is."""
    named: set[str] = set()
    for schema in openapi.document(None, 1)["components"]["schemas"].values():
        named |= schema.get("properties", {}).keys()
    decided = SHOWN | ADDRESSES | SECRETS | WORDS
    assert named - decided == set()
    assert named >= SECRETS | ADDRESSES, "a name that is not on the wire needs no word"
    assert not SHOWN & (SECRETS | ADDRESSES)


def test_addresses_show_their_host_alone() -> None:
    """OP-148: the rest of an address may be somebody's secret."""
    assert kept({"url": f"https://user:{CANARY}@hooks.example.com:8443/{CANARY}?{CANARY}"}) == {
        "url": f"https://hooks.example.com/{HIDDEN}"
    }
    assert kept({"webhookUrl": "https://["}) == {"webhookUrl": HIDDEN}


@pytest.mark.parametrize(
    "secret",
    [
        "vk_live_Zt4Qn1h7Xc9Lw2Rk8Bv6Ys3Mf5Jd0PgAT00000",
        "vk_test_Zt4Qn1h7Xc9Lw2Rk8Bv6Ys3Mf5Jd0PgAT00000",
        "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
        "https://vouchers.example.com/r/62XX8RJAM7KN6YYWY5G4SBJZR4",
        "Authorization: Bearer abcdefghijklmnop",
        "https://vouchers.example.com/reset/abcdefghijklmnop",
    ],
)
def test_a_secret_in_the_wrong_place_is_hidden_too(secret: str) -> None:
    """OP-148: a key in a reference, a link in a description, a secret in a path or in the name of a field."""
    tail = secret[-12:]
    for body in ({"reference": f"my {secret}"}, {"description": secret}, {secret: 1}):
        assert tail not in kept_body(json.dumps(body).encode(), JSON)
    assert tail not in kept_body(f"bad thing: {secret}".encode(), b"text/plain; charset=utf-8")
    assert tail not in kept_text(f"/api/1.03/order?reference={secret}", 500)


def test_the_code_of_a_problem_is_shown_and_no_other_code() -> None:
    """OP-26, OP-148: one word in small letters is no voucher's code."""
    assert kept({"code": "order_expired"}) == {"code": "order_expired"}
    for code in (CANARY, "abcd-efgh", "12345678", ["x"], 7):
        assert kept({"code": code}) == {"code": HIDDEN}


def test_amounts_keep_their_digits() -> None:
    """OP-07, OP-148: 9.50 is not 9.5."""
    assert (
        kept_body(b'{"amount":9.50,"id":4732694963890000}', JSON) == '{"amount":9.50,"id":4732694963890000}'
    )


def test_what_is_no_json_or_too_long_is_not_kept() -> None:
    """OP-148: codes come as CSV, too; and a body has a bound."""
    assert kept_body(b"code\n" + CANARY.encode(), b"text/csv; charset=utf-8") == "(16 bytes, not kept)"
    assert kept_body(CANARY.encode(), JSON) == "(11 bytes, not kept)"
    assert kept_body(b"[" * 5_000, JSON) == "(5000 bytes, not kept)"
    assert kept_body(b"1" * (BODY_BYTES_MAX + 1), JSON) == f"({BODY_BYTES_MAX + 1} bytes, not kept)"
    assert kept_body(b"", None) == ""
    assert kept_body(None, JSON) == "(a stream, not kept)"
    long = kept_body(json.dumps({"reference": "x" * 9_000}).encode(), JSON)
    assert (len(long), long[-1]) == (KEPT_CHARS_MAX, "…")


@given(
    st.binary(max_size=300),
    st.sampled_from([JSON, b"text/plain", b"text/csv", None, b"application/problem+json"]),
)
def test_any_bytes_can_be_kept(body: bytes, kind: bytes | None) -> None:
    """OP-148: what is kept is printable text of a bounded length, whatever was sent."""
    text = kept_body(body, kind)
    assert len(text) <= KEPT_CHARS_MAX
    assert "\0" not in text
    text.encode()
