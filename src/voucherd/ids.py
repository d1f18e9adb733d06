"""Identifiers: order ids and what is computed from them. Nothing here can be counted, guessed or forged.

An order id is a number whose lowest bit is the order's state. What clients see are sealed forms of it: one block
of AES over the number and a constant. A made-up trx or token does not decrypt to the constant and is refused
without a look-up; a real one says nothing about its neighbours. Where the wire wants an integer, the id is shuffled
among all numbers of its length.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

ORDER_BLOCK_SIZE: Final = 1024
KEPT_MAX: Final = 16_384
LINES_MAX: Final = 10_000
"""Lines of one order; a line's own number is that of its order × this + its place (OP-14)."""
ORDER_NUMBER_BITS: Final = 39
"""Numbers of orders, and so of lines, stay below 2^53: every reader of JSON takes them as they are."""

EPOCH_BLOCKS_MIN: Final = 1 << 20
"""Blocks of order ids that a new epoch leaves out at least: half a milliard of live orders (OP-121)."""
EPOCH_BLOCKS_A_SECOND: Final = 8
"""Blocks that it leaves out for each second of the lost time; a block is 512 live orders."""

_CROCKFORD: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS: Final = tuple(high + low for high in _CROCKFORD for low in _CROCKFORD)
_VALUES: Final = {pair: value for value, pair in enumerate(_PAIRS)}
_SHIFTS: Final = tuple(range(120, -1, -10))
_SEALED_CHARACTERS: Final = 26  # 128 bits in base 32.


def epoch_blocks(last: int, lost_s: float) -> int:
    """The block of order ids that a new epoch begins behind: none of it was taken in the lost time."""
    # A clock that went wrong must not use up all numbers there are.
    free = (1 << ORDER_NUMBER_BITS) // ORDER_BLOCK_SIZE - last
    return last + min(max(EPOCH_BLOCKS_MIN, int(lost_s * EPOCH_BLOCKS_A_SECOND)), free // 4)


class State(IntEnum):
    """Live or sandbox: picked by the API key, kept in the lowest bit of every id."""

    LIVE = 0
    SANDBOX = 1

    @property
    def word(self) -> str:
        """The word on the wire."""
        return "sandbox" if self else "live"


_STATES: Final = (State.LIVE, State.SANDBOX)


def state_of(number: int) -> State:
    """The state that an order, wallet or lot id carries."""
    return _STATES[number & 1]


def derive(master: bytes, purpose: str, length: int = 32) -> bytes:
    """A key of its own for each purpose, so that none opens what another sealed."""
    return HKDF(algorithm=SHA256(), length=length, salt=None, info=b"voucherd/" + purpose.encode()).derive(
        master
    )


class _Sealer:
    """One AES block, both ways. ECB is right here: each block is unique and stands alone."""

    def __init__(self, key: bytes) -> None:
        cipher = Cipher(algorithms.AES(key), modes.ECB())  # noqa: S305 - Single blocks only, see above.
        self.seal = cipher.encryptor().update
        self.open = cipher.decryptor().update


class _Shuffle:
    """A secret order of all numbers below 2^39 (a Feistel network): no two share a place, and places tell no count."""

    def __init__(self, key: bytes) -> None:
        self._seal = _Sealer(key).seal

    def place(self, number: int) -> int:
        """The number's place."""
        if number >> ORDER_NUMBER_BITS:
            raise ValueError("a number of an order is out of range")
        high, low = number >> _LOW_BITS, number & _LOW_MASK
        seal, pack = self._seal, _HALF.pack
        for turn in (0, 2):
            high ^= int.from_bytes(seal(pack(turn, low))[:4]) & _HIGH_MASK
            low ^= int.from_bytes(seal(pack(turn + 1, high))[:4]) & _LOW_MASK
        return high << _LOW_BITS | low

    def number(self, place: int) -> int:
        """The number at this place."""
        high, low = place >> _LOW_BITS, place & _LOW_MASK
        seal, pack = self._seal, _HALF.pack
        for turn in (2, 0):
            low ^= int.from_bytes(seal(pack(turn + 1, high))[:4]) & _LOW_MASK
            high ^= int.from_bytes(seal(pack(turn, low))[:4]) & _HIGH_MASK
        return high << _LOW_BITS | low


_HALF: Final = struct.Struct(">QQ")
_LOW_BITS: Final = 20
_LOW_MASK: Final = (1 << _LOW_BITS) - 1
_HIGH_MASK: Final = (1 << (ORDER_NUMBER_BITS - _LOW_BITS)) - 1
_ORDER: Final = struct.Struct(">Q8s")
_LINE: Final = struct.Struct(">QI4s")
_ORDER_MARK: Final = b"voucherd"
_LINE_MARK: Final = b"line"
_WEBHOOK_MARK: Final = b"endpoint"
_EVENT_MARK: Final = b"happened"
_KEY_MARK: Final = b"apikeyid"


class Identifiers:
    """Seals and opens every identifier that clients see."""

    def __init__(self, master: bytes) -> None:
        self._trx = _Sealer(derive(master, "trx"))
        self._tag = _Sealer(derive(master, "tag"))
        self._token = _Sealer(derive(master, "token"))
        self._event = _Sealer(derive(master, "event"))
        self._webhook = _Sealer(derive(master, "webhook"))
        self._key = _Sealer(derive(master, "key"))
        self._cursor = AESSIV(derive(master, "cursor", 64))
        self._number = _Shuffle(derive(master, "number"))
        self.order_number: Callable[[int], int] = lru_cache(KEPT_MAX)(self._number.place)
        # An order is named at least thrice: in the answer to Create, by Confirm, and in the answer to that.
        self.trx: Callable[[int], str] = lru_cache(KEPT_MAX)(self._trx_of)
        self._recent: dict[str, int] = {}
        self._tag_of: Callable[[int, int], str] = lru_cache(KEPT_MAX)(self._make_tag)

    def _trx_of(self, order_id: int) -> str:
        trx = self.trx_unkept(order_id)
        if len(self._recent) >= KEPT_MAX:
            self._recent.clear()
        self._recent[trx] = order_id
        return trx

    def trx_unkept(self, order_id: int) -> str:
        """`TRX` and 26 characters of Crockford base 32 (OP-09), for lists so long that they would push out the kept."""
        return "TRX" + _to_text(self._trx.seal(_ORDER.pack(order_id, _ORDER_MARK)))

    def ending_with(self, ending: str, order_ids: Sequence[int]) -> list[int]:
        """Those of the orders whose trx ends with these characters of base 32, which are its last bits."""
        wanted, mask = 0, (1 << 5 * len(ending)) - 1
        for character in ending:
            wanted = wanted << 5 | _CROCKFORD.index(character)
        sealed = self._trx.seal(b"".join([_ORDER.pack(order_id, _ORDER_MARK) for order_id in order_ids]))
        return [
            order_id
            for at, order_id in enumerate(order_ids)
            if int.from_bytes(sealed[16 * at : 16 * at + 16]) & mask == wanted
        ]

    def order_id(self, trx: str) -> int | None:
        """The order behind a trx of ours, or None for anything else."""
        recent = self._recent.get(trx)
        if recent is not None:
            return recent
        block = _from_text(trx[3:]) if trx.startswith("TRX") else None
        if block is None:
            return None
        number, mark = _ORDER.unpack(self._trx.open(block))
        return int(number) if mark == _ORDER_MARK and number < 1 << 63 else None

    def event(self, number: int) -> str:
        """`evt_` and 26 characters: the name of an event, and of a place in the feed; nobody can count by it."""
        return "evt_" + _to_text(self._event.seal(_ORDER.pack(number, _EVENT_MARK)))

    def event_number(self, name: str) -> int | None:
        """The number behind a name of ours, or None for anything else."""
        block = _from_text(name[4:]) if name.startswith("evt_") else None
        if block is None:
            return None
        number, mark = _ORDER.unpack(self._event.open(block))
        return int(number) if mark == _EVENT_MARK and number < 1 << 63 else None

    def webhook(self, number: int) -> str:
        """`wh_` and 26 characters: the name of an endpoint for webhooks."""
        return "wh_" + _to_text(self._webhook.seal(_ORDER.pack(number, _WEBHOOK_MARK)))

    def webhook_number(self, name: str) -> int | None:
        """The number behind a name of ours, or None for anything else."""
        block = _from_text(name[3:]) if name.startswith("wh_") else None
        if block is None:
            return None
        number, mark = _ORDER.unpack(self._webhook.open(block))
        return int(number) if mark == _WEBHOOK_MARK and number < 1 << 63 else None

    def key(self, number: int) -> str:
        """`key_` and 26 characters: the name of an API key, which says nothing of the key itself."""
        return "key_" + _to_text(self._key.seal(_ORDER.pack(number, _KEY_MARK)))

    def key_number(self, name: str) -> int | None:
        """The number behind a name of ours, or None for anything else."""
        block = _from_text(name[4:]) if name.startswith("key_") else None
        if block is None:
            return None
        number, mark = _ORDER.unpack(self._key.open(block))
        return int(number) if mark == _KEY_MARK and number < 1 << 63 else None

    def line_of_number(self, number: int) -> tuple[int, int]:
        """The (order id, line) behind the integer id of a line; of a made-up one, of an order that is not there."""
        order_number, line = divmod(number, LINES_MAX)
        return self._number.number(order_number), line

    def cursor(self, kind: bytes, place: bytes) -> str:
        """A place in a list of this kind, sealed: nobody reads it, makes one up, or takes it to another list."""
        return self._cursor.encrypt(place, [kind]).hex()

    def cursor_place(self, kind: bytes, cursor: str) -> bytes | None:
        """The place behind a cursor of ours, or None for anything else."""
        try:
            return self._cursor.decrypt(bytes.fromhex(cursor), [kind])
        except (ValueError, InvalidTag):
            return None

    def tags(self, order_id: int, lines: Sequence[int]) -> list[str]:
        """`TAG-` and a uuid for each of these lines."""
        if len(lines) == 1:
            return [self._tag_of(order_id, *lines)]
        return ["TAG-" + _uuid(block) for block in self._blocks(self._tag, order_id, lines)]

    def _make_tag(self, order_id: int, line: int) -> str:
        return "TAG-" + _uuid(self._tag.seal(_LINE.pack(order_id, line, _LINE_MARK)))

    def tokens(self, order_id: int, lines: Sequence[int]) -> list[str]:
        """The redemption token of each of these lines (OP-57)."""
        return [_to_text(block) for block in self._blocks(self._token, order_id, lines)]

    def line_of_token(self, token: str) -> tuple[int, int] | None:
        """The (order id, line) behind a redemption token of ours, or None."""
        block = _from_text(token)
        if block is None:
            return None
        number, line, mark = _LINE.unpack(self._token.open(block))
        return (int(number), int(line)) if mark == _LINE_MARK and number < 1 << 63 else None

    @staticmethod
    def _blocks(sealer: _Sealer, order_id: int, lines: Sequence[int]) -> list[bytes]:
        pack = _LINE.pack
        sealed = sealer.seal(b"".join([pack(order_id, line, _LINE_MARK) for line in lines]))
        return [sealed[at : at + 16] for at in range(0, len(sealed), 16)]


def line_number(order_number: int, line: int) -> int:
    """The integer id of a line (the extended shape's `id`)."""
    return order_number * LINES_MAX + line


def _to_text(block: bytes) -> str:
    """26 characters for 16 bytes, ten bits at a time: twice as fast as the library's base 32."""
    number = int.from_bytes(block)
    return "".join([_PAIRS[(number >> shift) & 1023] for shift in _SHIFTS])


def _from_text(text: str) -> bytes | None:
    """The 16 bytes behind 26 characters; one spelling each, so a trx can't be altered and still work."""
    if len(text) != _SEALED_CHARACTERS:
        return None
    number = 0
    try:
        for at in range(0, _SEALED_CHARACTERS, 2):
            number = (number << 10) | _VALUES[text[at : at + 2]]
    except KeyError:
        return None
    return number.to_bytes(16) if number < 1 << 128 else None


def _uuid(block: bytes) -> str:
    """The block as a version 8 uuid (RFC 9562: free form)."""
    digits = block.hex()
    variant = "89ab"[block[8] >> 6]
    return f"{digits[:8]}-{digits[8:12]}-8{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"
