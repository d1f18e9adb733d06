"""Passkeys (WebAuthn): registered with a name, signed in with alone. The only place that touches their tables.

A passkey is two factors at once: the device, and the person whom the device has recognised (user verification is
required). So it signs in without a password, and it counts as a second factor.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

import webauthn
from msgspec import Struct
from webauthn.helpers import base64url_to_bytes, options_to_json_dict
from webauthn.helpers.exceptions import WebAuthnException
from webauthn.helpers.structs import (
    AuthenticatorSelectionCriteria,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from voucherd.db import Connection, Pool, Tx
from voucherd.networks import network_of

SITE_NAME: Final = "voucherd"
CHALLENGE_BYTES: Final = 32
CHALLENGE_LIFE: Final = timedelta(minutes=5)
CHALLENGES_OF_NETWORK_MAX: Final = 20
PASSKEYS_MAX: Final = 10
NAME_CHARACTERS_MAX: Final = 60
SWEEP_MAX: Final = 5_000
HANDLE_BYTES: Final = 8


class BadPasskey(ValueError):
    """What the browser sent is no passkey's right answer to what it was asked."""


class TooManyPasskeys(ValueError):
    """A person has as many as are kept."""


class RelyingParty(Struct, frozen=True):
    """What a passkey is good for: one host, reached at one origin."""

    host: str
    origin: str


class Passkey(Struct, frozen=True):
    """One that a person has registered."""

    id: int
    name: str
    created_at: datetime
    used_at: datetime | None


def site_of(public_url: str) -> RelyingParty | None:
    """The site of this address; None where browsers allow no passkeys: at a bare IP address, or without TLS."""
    parts = urlsplit(public_url)
    host = parts.hostname or ""
    try:
        ip_address(host)
    except ValueError:
        if parts.scheme != "https" and host != "localhost" and not host.endswith(".localhost"):
            return None
        return RelyingParty(host, f"{parts.scheme}://{parts.netloc}".lower())
    return None


async def list_passkeys(connection: Connection | Pool, user_id: int) -> list[Passkey]:
    """The person's passkeys, oldest first."""
    rows = await connection.fetch(
        "SELECT id, name, created_at, used_at FROM passkey WHERE user_id = $1 ORDER BY id", user_id
    )
    return [Passkey(*row) for row in rows]


async def begin_registration(
    tx: Tx, site: RelyingParty, user_id: int, email: str, address: str
) -> dict[str, Any]:
    """What the browser needs to make a passkey."""
    rows = await tx.fetch("SELECT credential FROM passkey WHERE user_id = $1", user_id)
    if len(rows) >= PASSKEYS_MAX:
        raise TooManyPasskeys
    options = webauthn.generate_registration_options(
        rp_id=site.host,
        rp_name=SITE_NAME,
        user_name=email,
        user_id=user_id.to_bytes(HANDLE_BYTES, "big"),
        challenge=await _challenge(tx, user_id, address),
        authenticator_selection=AuthenticatorSelectionCriteria(
            resident_key=ResidentKeyRequirement.REQUIRED,
            user_verification=UserVerificationRequirement.REQUIRED,
        ),
        exclude_credentials=[PublicKeyCredentialDescriptor(id=row["credential"]) for row in rows],
    )
    return options_to_json_dict(options)


async def finish_registration(
    tx: Tx, site: RelyingParty, user_id: int, name: str, answer: dict[str, Any]
) -> Passkey:
    """The passkey that the browser made, stored under a name."""
    label = " ".join(name.split())[:NAME_CHARACTERS_MAX] or "Passkey"
    challenge = await _answered(tx, answer, user_id)
    try:
        made = webauthn.verify_registration_response(
            credential=answer,
            expected_challenge=challenge,
            expected_rp_id=site.host,
            expected_origin=site.origin,
            require_user_verification=True,
        )
    except (WebAuthnException, ValueError, KeyError, TypeError) as wrong:
        raise BadPasskey(str(wrong)) from None
    row = await tx.fetchrow(
        """
        INSERT INTO passkey (user_id, credential, public_key, sign_count, name)
        SELECT $1, $2, $3, $4, $5 WHERE (SELECT count(*) FROM passkey WHERE user_id = $1) < $6
        ON CONFLICT DO NOTHING RETURNING id, name, created_at, used_at
        """,
        user_id,
        made.credential_id,
        made.credential_public_key,
        made.sign_count,
        label,
        PASSKEYS_MAX,
    )
    if row is None:
        raise BadPasskey("it is registered already")
    return Passkey(*row)


async def begin_sign_in(tx: Tx, site: RelyingParty, address: str) -> dict[str, Any]:
    """What the browser needs to let a person choose a passkey; nobody is named."""
    options = webauthn.generate_authentication_options(
        rp_id=site.host,
        challenge=await _challenge(tx, None, address),
        user_verification=UserVerificationRequirement.REQUIRED,
    )
    return options_to_json_dict(options)


async def finish_sign_in(tx: Tx, site: RelyingParty, answer: dict[str, Any]) -> int:
    """The id of the person whose passkey this is."""
    challenge = await _answered(tx, answer, None)
    # Locked, so that the count of two answers at once goes up twice.
    row = await tx.fetchrow(
        "SELECT id, user_id, public_key, sign_count FROM passkey WHERE credential = $1 FOR UPDATE",
        _bytes(answer, "rawId"),
    )
    if row is None:
        raise BadPasskey("nobody has registered it")
    handle = _part(answer, "response").get("userHandle")
    if handle is not None and _decoded(handle) != row["user_id"].to_bytes(HANDLE_BYTES, "big"):
        raise BadPasskey("it is another person's")
    try:
        proven = webauthn.verify_authentication_response(
            credential=answer,
            expected_challenge=challenge,
            expected_rp_id=site.host,
            expected_origin=site.origin,
            credential_public_key=row["public_key"],
            credential_current_sign_count=row["sign_count"],
            require_user_verification=True,
        )
    except (WebAuthnException, ValueError, KeyError, TypeError) as wrong:
        raise BadPasskey(str(wrong)) from None
    await tx.execute(
        "UPDATE passkey SET sign_count = $2, used_at = now() WHERE id = $1", row["id"], proven.new_sign_count
    )
    return int(row["user_id"])


async def remove(tx: Tx, user_id: int, passkey_id: int) -> str | None:
    """Take a passkey of this person away; its name, None if there is none."""
    name = await tx.fetchval(
        "DELETE FROM passkey WHERE id = $1 AND user_id = $2 RETURNING name", passkey_id, user_id
    )
    return None if name is None else str(name)


async def sweep(pool: Pool) -> int:
    """Remove challenges that nobody answered; how many."""
    removed = await pool.fetch(
        """
        DELETE FROM passkey_challenge WHERE hash IN
            (SELECT hash FROM passkey_challenge WHERE ends_at < now() ORDER BY ends_at LIMIT $1) RETURNING true
        """,
        SWEEP_MAX,
    )
    return len(removed)


async def _challenge(tx: Tx, user_id: int | None, address: str) -> bytes:
    """Something new to sign, good for one answer; a network's oldest ones make room."""
    challenge = secrets.token_bytes(CHALLENGE_BYTES)
    network = network_of(address)
    await tx.execute(
        """
        DELETE FROM passkey_challenge WHERE hash IN
            (SELECT hash FROM passkey_challenge WHERE network = $1 ORDER BY ends_at DESC OFFSET $2
             FOR UPDATE SKIP LOCKED)
        """,
        network,
        CHALLENGES_OF_NETWORK_MAX - 1,
    )
    await tx.execute(
        "INSERT INTO passkey_challenge (hash, user_id, network, ends_at) VALUES ($1, $2, $3, now() + $4::interval)",
        hashlib.sha256(challenge).digest(),
        user_id,
        network,
        CHALLENGE_LIFE,
    )
    return challenge


async def _answered(tx: Tx, answer: dict[str, Any], user_id: int | None) -> bytes:
    """The challenge that was answered, if we set it for this person and nobody answered it before."""
    try:
        said = webauthn.helpers.parse_client_data_json(_bytes(_part(answer, "response"), "clientDataJSON"))
        challenge = bytes(said.challenge)
    except (WebAuthnException, ValueError, KeyError, TypeError) as wrong:
        raise BadPasskey(str(wrong)) from None
    known = await tx.fetchval(
        """
        DELETE FROM passkey_challenge WHERE hash = $1 AND user_id IS NOT DISTINCT FROM $2 AND ends_at > now()
        RETURNING true
        """,
        hashlib.sha256(challenge).digest(),
        user_id,
    )
    if not known:
        raise BadPasskey("it took too long, or was answered before")
    return challenge


def _part(answer: dict[str, Any], name: str) -> dict[str, Any]:
    part = answer.get(name)
    if not isinstance(part, dict):
        raise BadPasskey(f"{name} is missing")
    return part


def _bytes(answer: dict[str, Any], name: str) -> bytes:
    return _decoded(answer.get(name))


def _decoded(value: object) -> bytes:
    if not isinstance(value, str) or not value.isascii():
        raise BadPasskey("a part is no base64url")
    try:
        return base64url_to_bytes(value)
    except ValueError:
        raise BadPasskey("a part is no base64url") from None
