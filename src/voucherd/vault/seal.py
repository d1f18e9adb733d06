"""Sealing: a code is readable only with the master key, and only at the place it was sealed for.

AES-GCM-SIV, because the nonce is the code's own place (lot, seq) and so needs no storage. Two codes are never
committed to one place; should part of an import be undone and its places be sealed again, this mode still
gives nothing away.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Final

from cryptography.exceptions import InvalidTag, UnsupportedAlgorithm
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV

from voucherd.ids import derive
from voucherd.vault.keys import KEY_VERSION

BLIND_BYTES: Final = 16
_PLACE: Final = struct.Struct(">QI")
"""A lot and a position in it: the 12 bytes of a nonce."""
_BRAND: Final = struct.Struct(">Q")
_SEPARATOR: Final = "\0"

_SANDBOX: Final = struct.Struct(">QII")
_SANDBOX_BYTES: Final = 2 * _SANDBOX.size
_CROCKFORD: Final = bytes(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ"[byte & 31] for byte in range(256))
_DIGITS: Final = bytes(b"0123456789"[byte % 10] for byte in range(256))

try:
    AESGCMSIV(bytes(32))
except UnsupportedAlgorithm:
    raise ImportError("voucherd needs AES-GCM-SIV: a `cryptography` built on OpenSSL 3.2 or newer") from None


class SealBroken(Exception):
    """The sealed code was altered, moved to another place, or sealed with another key."""


class Sealer:
    """Seals and opens codes, and blinds them so that equal ones meet unread."""

    version: Final = KEY_VERSION

    def __init__(self, master: bytes) -> None:
        cipher = AESGCMSIV(derive(master, f"vault/seal/{self.version}"))
        self._encrypt = cipher.encrypt
        self._decrypt = cipher.decrypt
        texts = AESGCMSIV(derive(master, f"vault/text/{self.version}"))
        self._encrypt_text = texts.encrypt
        self._decrypt_text = texts.decrypt
        # No version here: a code must meet its double whatever key sealed that one.
        self._blind = blake2b(key=derive(master, "vault/blind"), digest_size=BLIND_BYTES)
        sandbox = algorithms.AES(derive(master, "vault/sandbox"))
        # ECB is right here: every block is a different number and stands alone.
        self._scramble = Cipher(sandbox, modes.ECB()).encryptor().update  # noqa: S305

    def seal(self, lot_id: int, seq: int, code: str, serial: str) -> bytes:
        """The code and its serial, readable again only from this place."""
        if _SEPARATOR in code:
            raise ValueError("a code can't hold a NUL")
        place = _PLACE.pack(lot_id, seq)
        return self._encrypt(place, f"{code}\0{serial}".encode(), place)

    def open(self, lot_id: int, seq: int, sealed: bytes) -> tuple[str, str]:
        """The code and serial that were sealed at this place."""
        place = _PLACE.pack(lot_id, seq)
        try:
            code, _, serial = self._decrypt(place, sealed, place).decode().partition(_SEPARATOR)
        except InvalidTag:
            raise SealBroken(
                f"the code at {lot_id}/{seq} was altered, moved or sealed with another key"
            ) from None
        return code, serial

    def open_many(self, rows: Iterable[tuple[int, int, bytes]]) -> list[tuple[str, str]]:
        """The codes and serials of many (lot, seq, sealed), in their order."""
        unseal = self.open
        return [unseal(lot_id, seq, sealed) for lot_id, seq, sealed in rows]

    def seal_text(self, place: bytes, text: str) -> bytes:
        """A secret that is no code on a shelf, such as a supplier's key, readable again only for this place."""
        return self.seal_bytes(place, text.encode())

    def open_text(self, place: bytes, sealed: bytes) -> str:
        """The text that was sealed for this place."""
        return self.open_bytes(place, sealed).decode()

    def seal_bytes(self, place: bytes, data: bytes) -> bytes:
        """The same for bytes."""
        nonce = os.urandom(_PLACE.size)
        return nonce + self._encrypt_text(nonce, data, place)

    def open_bytes(self, place: bytes, sealed: bytes) -> bytes:
        """The bytes that were sealed for this place."""
        nonce, body = sealed[: _PLACE.size], sealed[_PLACE.size :]
        try:
            return self._decrypt_text(nonce, body, place)
        except (InvalidTag, ValueError):
            raise SealBroken("what was sealed was altered, moved or sealed with another key") from None

    def blinder(self, brand_id: int) -> Callable[[str], bytes]:
        """What blinds codes of one brand: equal codes give equal bytes, and nobody else can compute them."""
        keyed = self._blind.copy()
        keyed.update(_BRAND.pack(brand_id))
        copy = keyed.copy

        def blind(code: str) -> bytes:
            # Case stays: there are brands whose codes differ by nothing else.
            digest = copy()
            digest.update(code.strip().encode())
            return digest.digest()

        return blind

    def blind(self, brand_id: int, code: str) -> bytes:
        """The blinded form of one code."""
        return self.blinder(brand_id)(code)

    def generated(self, lot_id: int, seq: int) -> tuple[str, str]:
        """The sandbox's code and serial at this place (OP-49)."""
        return self.generated_range(lot_id, seq, seq + 1)[0]

    def generated_range(self, lot_id: int, seq_from: int, seq_to: int) -> list[tuple[str, str]]:
        """The sandbox's codes of a range: computed, always the same, plainly for tests, not to be guessed."""
        pack = _SANDBOX.pack
        blocks = self._scramble(
            b"".join([pack(lot_id, seq, half) for seq in range(seq_from, seq_to) for half in (0, 1)])
        )
        letters = blocks.translate(_CROCKFORD).decode("ascii")
        digits = blocks.translate(_DIGITS).decode("ascii")
        return [
            (
                f"TEST-{letters[at : at + 4]}-{letters[at + 4 : at + 8]}"
                f"-{letters[at + 8 : at + 12]}-{letters[at + 12 : at + 16]}",
                f"TEST{digits[at + 16 : at + 28]}",
            )
            for at in range(0, len(blocks), _SANDBOX_BYTES)
        ]
