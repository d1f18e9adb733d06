"""Passkeys against an authenticator of our own making, which can also lie: what is not right opens nothing."""

from __future__ import annotations

import hashlib
import json
from base64 import urlsafe_b64encode
from typing import Any

import cbor2
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from voucherd.db import Pool, transaction
from voucherd.people import passkeys, user_store
from voucherd.people.passkeys import BadPasskey, RelyingParty
from voucherd.people.users import User, UserDraft

SITE = RelyingParty("shop.example", "https://shop.example")
ADDRESS = "198.51.100.7"
PRESENT, VERIFIED, ATTESTED = 1, 4, 64
ELSEWHERE: list[dict[str, Any]] = [
    {"origin": "https://evil.example"},
    {"host": "evil.example"},
    {"flags": PRESENT},
]
"""Answers that were made for another site, or for nobody whom the device recognised."""


def text(data: bytes) -> str:
    """As browsers send bytes."""
    return urlsafe_b64encode(data).decode().rstrip("=")


class Authenticator:
    """A device with one key; its answers can be bent."""

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.credential = hashlib.sha256(repr(id(self)).encode()).digest()
        self.count = 0

    def create(self, options: dict[str, Any], **bend: Any) -> dict[str, Any]:
        """The answer to a registration."""
        numbers = self.key.public_key().public_numbers()
        public = {1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32, "big"), -3: numbers.y.to_bytes(32, "big")}
        made = bytes(16) + len(self.credential).to_bytes(2, "big") + self.credential + cbor2.dumps(public)
        data = (
            self._data(bend.get("flags", PRESENT | VERIFIED) | ATTESTED, bend.get("host", SITE.host)) + made
        )
        attestation = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        return self._answer(options, "webauthn.create", {"attestationObject": text(attestation)}, bend)

    def get(self, options: dict[str, Any], user_id: int, **bend: Any) -> dict[str, Any]:
        """The answer to a sign-in."""
        self.count += 1
        data = self._data(bend.get("flags", PRESENT | VERIFIED), bend.get("host", SITE.host))
        said = self._said(options, "webauthn.get", bend)
        signature = self.key.sign(data + hashlib.sha256(said).digest(), ec.ECDSA(hashes.SHA256()))
        parts = {
            "authenticatorData": text(data),
            "signature": text(bend.get("signature", signature)),
            "userHandle": text(user_id.to_bytes(8, "big")),
        }
        return self._answer(options, "webauthn.get", parts, bend)

    def _data(self, flags: int, host: str) -> bytes:
        return hashlib.sha256(host.encode()).digest() + bytes([flags]) + self.count.to_bytes(4, "big")

    def _said(self, options: dict[str, Any], kind: str, bend: dict[str, Any]) -> bytes:
        said = {"type": kind, "challenge": options["challenge"], "origin": bend.get("origin", SITE.origin)}
        return json.dumps(said).encode()

    def _answer(
        self, options: dict[str, Any], kind: str, parts: dict[str, str], bend: dict[str, Any]
    ) -> dict[str, Any]:
        name = text(self.credential)
        response = {"clientDataJSON": text(self._said(options, kind, bend)), **parts}
        return {"id": name, "rawId": name, "type": "public-key", "response": response}


async def registered(pool: Pool, user: User, device: Authenticator, **bend: Any) -> passkeys.Passkey:
    """Register a device."""
    async with transaction(pool) as tx:
        options = await passkeys.begin_registration(tx, SITE, user.id, user.email, ADDRESS)
    async with transaction(pool) as tx:
        return await passkeys.finish_registration(
            tx, SITE, user.id, " My   key ", device.create(options, **bend)
        )


async def sign_in(pool: Pool, answer: dict[str, Any]) -> int:
    """Whose passkey it is."""
    async with transaction(pool) as tx:
        return await passkeys.finish_sign_in(tx, SITE, answer)


async def options_of(pool: Pool) -> dict[str, Any]:
    """Something to sign."""
    async with transaction(pool) as tx:
        return await passkeys.begin_sign_in(tx, SITE, ADDRESS)


async def test_a_passkey_opens_with_a_right_answer_only(pool: Pool) -> None:
    """OP-92: another site's, unverified, replayed, late, forged, cloned or another person's answer opens nothing."""
    async with transaction(pool) as tx:
        ann, bob = [
            await user_store.add_user(tx, UserDraft(f"{name}@shop.example", None, "admin"), "x")
            for name in ("ann", "bob")
        ]
    device = Authenticator()
    for bend in ELSEWHERE:
        with pytest.raises(BadPasskey):
            await registered(pool, ann, device, **bend)
    kept = await registered(pool, ann, device)
    assert kept.name == "My key"
    with pytest.raises(BadPasskey):
        await registered(pool, bob, device)  # It is Ann's already.

    answer = device.get(await options_of(pool), ann.id)
    assert await sign_in(pool, answer) == ann.id
    with pytest.raises(BadPasskey, match="answered before"):
        await sign_in(pool, answer)
    for bend in (*ELSEWHERE, {"signature": b"forged"}):
        with pytest.raises(BadPasskey):
            await sign_in(pool, device.get(await options_of(pool), ann.id, **bend))
    device.count = 0  # A copy of the device that has fallen behind.
    with pytest.raises(BadPasskey):
        await sign_in(pool, device.get(await options_of(pool), ann.id))
    device.count = 10
    with pytest.raises(BadPasskey, match="another person's"):
        await sign_in(pool, device.get(await options_of(pool), bob.id))
    late = device.get(await options_of(pool), ann.id)
    await pool.execute("UPDATE passkey_challenge SET ends_at = now()")
    with pytest.raises(BadPasskey):
        await sign_in(pool, late)
    assert await passkeys.sweep(pool) > 0
    async with transaction(pool) as tx:
        options = await passkeys.begin_registration(tx, SITE, ann.id, ann.email, ADDRESS)
    with pytest.raises(BadPasskey):
        await sign_in(pool, device.get(options, ann.id))  # That was asked for something else.
    with pytest.raises(BadPasskey, match="nobody has registered"):
        await sign_in(pool, Authenticator().get(await options_of(pool), ann.id))
    for nonsense in (
        {},
        {"response": 1},
        {"response": {"clientDataJSON": "e30"}},
        {"response": {}, "rawId": "ü"},
    ):
        with pytest.raises(BadPasskey):
            await sign_in(pool, nonsense)

    for _ in range(passkeys.CHALLENGES_OF_NETWORK_MAX + 5):
        await options_of(pool)
    assert await pool.fetchval("SELECT count(*) FROM passkey_challenge") == passkeys.CHALLENGES_OF_NETWORK_MAX
    assert [one.name for one in await passkeys.list_passkeys(pool, ann.id)] == ["My key"]
    async with transaction(pool) as tx:
        assert await passkeys.remove(tx, bob.id, kept.id) is None
        assert await passkeys.remove(tx, ann.id, kept.id) == "My key"
    with pytest.raises(BadPasskey):
        await sign_in(pool, device.get(await options_of(pool), ann.id))
