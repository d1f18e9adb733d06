"""Signatures are those of Standard Webhooks: what its own libraries sign and verify."""

from __future__ import annotations

import base64

import pytest

from voucherd.webhooks.signing import NotGenuine, check_secret, new_secret, sign, verify

VECTORS = (
    (
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        '{"test": 2432232314}',
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    ),
    (
        "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw==",
        "evt_1",
        1767225600,
        '{"type":"order.finished","timestamp":"2026-01-01T00:00:00.000Z","data":{"name":"Café ☕"}}',
        "v1,Wk7vyWofOhGKDxFGLS3qk4TbsmrMasWnuDNjro1oJdw=",
    ),
)
SECRET, ID, TIME, BODY, SIGNATURE = VECTORS[0]


@pytest.mark.parametrize(("secret", "message_id", "time", "body", "signature"), VECTORS)
def test_signatures_are_those_of_the_published_library(
    secret: str, message_id: str, time: int, body: str, signature: str
) -> None:
    """OP-54: the expected values were computed by the reference implementation in Python."""
    assert sign([secret], message_id, time, body.encode()) == signature
    verify(secret, message_id, str(time), signature, body.encode(), now_s=time)


def test_both_secrets_sign_while_one_replaces_the_other() -> None:
    """OP-54: during the overlap of a rotation a receiver with either secret is content."""
    other = new_secret()
    both = sign([other, SECRET], ID, TIME, BODY.encode())
    assert both.endswith(" " + SIGNATURE)
    for secret in (other, SECRET):
        verify(secret, ID, str(TIME), both, BODY.encode(), now_s=TIME + 299)
    with pytest.raises(NotGenuine):
        verify(new_secret(), ID, str(TIME), both, BODY.encode(), now_s=TIME)


def test_whatever_was_changed_is_not_genuine() -> None:
    """OP-54: id, time and body are signed; a message from long ago is refused even if it is genuine."""
    good = (SECRET, ID, str(TIME), SIGNATURE, BODY.encode())
    for place, wrong in (
        (1, ID + "x"),
        (2, str(TIME + 1)),
        (2, "soon"),
        (2, "١٦١٤٢٦٥٣٣٠"),
        (3, ""),
        (3, "v1,"),
        (3, SIGNATURE[3:]),
        (3, SIGNATURE.replace("v1", "v1a")),
        (3, "v1,ﬀ"),
        (4, BODY.encode() + b" "),
    ):
        arguments = [*good]
        arguments[place] = wrong
        with pytest.raises(NotGenuine):
            verify(*arguments, now_s=TIME)  # type: ignore[arg-type]
    for late in (TIME - 301, TIME + 301):
        with pytest.raises(NotGenuine, match="too far from now"):
            verify(*good, now_s=late)


def test_a_secret_is_24_to_64_bytes_of_base64() -> None:
    """OP-54: ours are 32 random bytes, never the same twice; an integrator's own may be any that is long enough."""
    assert len({new_secret() for _ in range(100)}) == 100
    assert len(base64.b64decode(new_secret().removeprefix("whsec_"))) == 32
    for size in (24, 64):
        check_secret("whsec_" + base64.b64encode(bytes(size)).decode())
    for bad in (
        *("", "whsec_", "secret", "whsec_é", "whsec_####", "whsec_" + "A" * 31),
        *("whsec_" + base64.b64encode(bytes(size)).decode() for size in (0, 23, 65)),
        base64.b64encode(bytes(32)).decode(),
    ):
        with pytest.raises(ValueError, match="must be whsec_") as refused:
            check_secret(bad)
        assert not bad or bad not in str(refused.value) or bad == "whsec_"
