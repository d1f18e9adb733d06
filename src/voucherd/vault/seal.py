"""Sealing: a code is readable only with the master key, and only at the place it was sealed for.

AES-GCM-SIV, because the nonce is the code's own place (lot, seq) and so needs no storage. Two codes are never
committed to one place; should part of an import be undone and its places be sealed again, this mode still
gives nothing away.

Every key has a version. What version 2 or a later one sealed begins with a mark that names it; what has no mark is of
version 1, which was there before marks were. Should the first bytes of such a seal look like a mark, both are tried.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Awaitable, Callable, Iterable, Sequence
from hashlib import blake2b
from typing import Final

from cryptography.exceptions import InvalidTag, UnsupportedAlgorithm
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV

from voucherd.db import Connection
from voucherd.ids import derive
from voucherd.vault.master_key import KEY_VERSION

BLIND_BYTES: Final = 16
_PLACE: Final = struct.Struct(">QI")
"""A lot and a position in it: the 12 bytes of a nonce."""
_BRAND: Final = struct.Struct(">Q")
_SEPARATOR: Final = "\0"
_SEPARATOR_BYTE: Final = _SEPARATOR.encode()
_MARK: Final = struct.Struct(">BH")
_MARKED: Final = 0xE5
_MARKED_BYTE: Final = bytes([_MARKED])
_UNMARKED: Final = ((KEY_VERSION, 0),)
VERSION_MAX: Final = 0xFFFF

_SANDBOX: Final = struct.Struct(">QII")
_SANDBOX_BYTES: Final = 2 * _SANDBOX.size
_CROCKFORD: Final = bytes(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ"[byte & 31] for byte in range(256))
_DIGITS: Final = bytes(b"0123456789"[byte % 10] for byte in range(256))

try:
    AESGCMSIV(bytes(32))
except UnsupportedAlgorithm:
    raise ImportError("voucherd needs AES-GCM-SIV: a `cryptography` built on OpenSSL 3.2 or newer") from None


class SealBroken(ValueError):
    """The sealed code was altered, moved to another place, or sealed with another key."""


class KeyNotKnown(SealBroken):
    """It was sealed with a key that this process has not heard of yet."""

    def __init__(self, version: int) -> None:
        super().__init__(f"what was sealed needs key {version}, which is not known here")
        self.version = version


def mark(version: int) -> bytes:
    """What stands in front of everything that a version sealed."""
    return b"" if version == KEY_VERSION else _MARK.pack(_MARKED, version)


class Sealer:
    """Seals and opens codes, and blinds them so that equal ones meet unread. Knows one key, and learns others."""

    refresh: Callable[[Connection], Awaitable[None]] | None = None
    """Looks for keys that are new; the key ring sets it."""
    trail_key: bytes
    """Keys the chain of the audit trail, which thus can't be made anew with the database alone."""

    def __init__(self, root: bytes) -> None:
        self._codes: dict[int, AESGCMSIV] = {}
        self._texts: dict[int, AESGCMSIV] = {}
        self._know(KEY_VERSION, derive(root, "vault/seal/1"), derive(root, "vault/text/1"))
        self.use(KEY_VERSION)
        self.trail_key = derive(root, "trail/chain")
        # No version here: a code must meet its double whatever key sealed that one.
        self._blind = blake2b(key=derive(root, "vault/blind"), digest_size=BLIND_BYTES)
        self._serial_blind = blake2b(key=derive(root, "vault/serial"), digest_size=BLIND_BYTES)
        sandbox = algorithms.AES(derive(root, "vault/sandbox"))
        # ECB is right here: every block is a different number and stands alone.
        self._scramble = Cipher(sandbox, modes.ECB()).encryptor().update  # noqa: S305

    @property
    def versions(self) -> frozenset[int]:
        """The keys that are known."""
        return frozenset(self._codes)

    def learn(self, version: int, data_key: bytes) -> None:
        """Know a key: what it sealed can be opened from now on."""
        self._know(version, derive(data_key, "vault/seal"), derive(data_key, "vault/text"))

    def forget(self, version: int) -> None:
        """Open nothing any more that this key sealed."""
        assert version != self.version, "the key that seals is needed"
        self._codes.pop(version, None)
        self._texts.pop(version, None)

    def use(self, version: int) -> None:
        """Seal with this key from now on."""
        self.version = version
        # Each pair changes as one: a thread may be sealing meanwhile, and a seal must bear the mark of its own key.
        self._code_key = mark(version), self._codes[version].encrypt
        self._text_key = mark(version), self._texts[version].encrypt

    def _know(self, version: int, codes: bytes, texts: bytes) -> None:
        assert KEY_VERSION <= version <= VERSION_MAX
        self._codes[version] = AESGCMSIV(codes)
        self._texts[version] = AESGCMSIV(texts)

    def seal(self, lot_id: int, seq: int, code: str, serial: str) -> bytes:
        """The code and its serial, readable again only from this place."""
        if _SEPARATOR in code:
            raise ValueError("a code can't hold a NUL")
        place = _PLACE.pack(lot_id, seq)
        marked, encrypt = self._code_key
        return marked + encrypt(place, f"{code}\0{serial}".encode(), place)

    def seal_many(
        self, lot_ids: Sequence[int], seqs: Sequence[int], codes: Sequence[bytes], serials: Sequence[bytes]
    ) -> list[bytes]:
        """Codes and serials in UTF-8, each sealed for its lot and position, in their order."""
        assert len(lot_ids) == len(seqs) == len(codes) == len(serials), "the columns of as many codes"
        if _SEPARATOR_BYTE in b" ".join(codes):
            raise ValueError("a code can't hold a NUL")
        marked, encrypt = self._code_key
        places = map(_PLACE.pack, lot_ids, seqs)
        plain = map(_SEPARATOR_BYTE.join, zip(codes, serials, strict=True))
        sealed = [encrypt(place, text, place) for place, text in zip(places, plain, strict=True)]
        return [marked + one for one in sealed] if marked else sealed

    def open(self, lot_id: int, seq: int, sealed: bytes) -> tuple[str, str]:
        """The code and serial that were sealed at this place."""
        place = _PLACE.pack(lot_id, seq)
        for version, start in self._readings(sealed):
            try:
                plain = self._codes[version].decrypt(place, sealed[start:], place)
            except (InvalidTag, KeyError):
                continue
            code, _, serial = plain.decode().partition(_SEPARATOR)
            return code, serial
        raise self._unopened(sealed, f"the code at {lot_id}/{seq}")

    def _readings(self, sealed: bytes) -> tuple[tuple[int, int], ...]:
        """The versions that may have sealed this, and where the seal begins."""
        if sealed[:1] != _MARKED_BYTE or len(sealed) < _MARK.size:
            return _UNMARKED
        _, version = _MARK.unpack_from(sealed)
        return ((version, _MARK.size), *_UNMARKED) if version in self._codes else _UNMARKED

    def _unopened(self, sealed: bytes, what: str) -> SealBroken:
        """Why no key has opened it."""
        if sealed[:1] == _MARKED_BYTE and len(sealed) >= _MARK.size:
            _, version = _MARK.unpack_from(sealed)
            if version > max(self._codes):
                return KeyNotKnown(version)
        return SealBroken(f"{what} was altered, moved or sealed with another key")

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
        marked, encrypt = self._text_key
        return marked + nonce + encrypt(nonce, data, place)

    def open_bytes(self, place: bytes, sealed: bytes) -> bytes:
        """The bytes that were sealed for this place."""
        for version, start in self._readings(sealed):
            middle = start + _PLACE.size
            try:
                return self._texts[version].decrypt(sealed[start:middle], sealed[middle:], place)
            except (InvalidTag, ValueError, KeyError):
                continue
        raise self._unopened(sealed, "what was sealed")

    def blind_serial(self, serial: bytes) -> bytes:
        """What a serial, stripped and in UTF-8, is found by: equal ones give equal bytes, and nobody else can."""
        digest = self._serial_blind.copy()
        digest.update(serial)
        return digest.digest()

    def blinder(self, brand_id: int) -> Callable[[bytes], bytes]:
        """What blinds codes of one brand, stripped and in UTF-8: equal ones give equal bytes, and nobody else can."""
        keyed = self._blind.copy()
        keyed.update(_BRAND.pack(brand_id))
        copy = keyed.copy

        def blind(code: bytes) -> bytes:
            # Case stays: there are brands whose codes differ by nothing else.
            digest = copy()
            digest.update(code)
            return digest.digest()

        return blind

    def blind(self, brand_id: int, code: str) -> bytes:
        """The blinded form of one code, whatever space is around it."""
        return self.blinder(brand_id)(code.strip().encode())

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
