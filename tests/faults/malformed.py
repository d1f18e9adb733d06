"""Requests that are not quite HTTP, or not quite JSON: as many as wanted, the same again for the same seed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from tests.faults.oddities import (
    CHUNKS,
    FIELDS,
    FRAMINGS,
    JSONS,
    METHODS,
    ODD_METHODS,
    ODD_PATHS,
    ODD_VERSIONS,
    TARGETS,
)

LARGE = 300_000


@dataclass(frozen=True)
class Nonsense:
    """What is sent, in pieces, and how it ends."""

    kind: str
    pieces: tuple[bytes, ...]
    hangs_up: bool = False
    """Without waiting for an answer."""


class Forge:
    """Makes them."""

    def __init__(self, seed: int, key: str, trx: str) -> None:
        self._chance = random.Random(seed)
        self._key = f"Authorization: Bearer {key}"
        self._trx = trx
        self._kinds: tuple[Callable[[], bytes], ...] = (
            self._line,
            self._path,
            self._framing,
            self._fields,
            self._json,
            self._large,
            self._mutated,
            self._mutated,
            self._noise,
            self._pipelined,
        )

    def next(self) -> Nonsense:
        """One more."""
        make = self._chance.choice(self._kinds)
        raw = make()
        cuts = sorted(
            self._chance.randrange(len(raw) + 1) for _ in range(self._chance.choice((0, 0, 0, 1, 2)))
        )
        edges = [0, *cuts, len(raw)]
        pieces = tuple(raw[start:end] for start, end in pairwise(edges))
        return Nonsense(make.__name__.strip("_"), pieces, hangs_up=self._chance.random() < 0.03)

    def _head(self, line: bytes, *fields: bytes) -> bytes:
        return b"\r\n".join([line, b"Host: shop", self._key.encode(), *fields]) + b"\r\n\r\n"

    def _target(self) -> tuple[str, str]:
        method, _, path = self._chance.choice(TARGETS).format(trx=self._trx).partition(" ")
        return method, path

    def _line(self) -> bytes:
        choice = self._chance.choice
        space = choice((" ", " ", "\t", "  ", "\r", "\x0b", ""))
        words = (choice(METHODS + ODD_METHODS), self._target()[1], choice(ODD_VERSIONS))
        return self._head(space.join(words).encode())

    def _path(self) -> bytes:
        method = self._chance.choice(METHODS).encode()
        return self._head(method + b" " + self._chance.choice(ODD_PATHS) + b" HTTP/1.1")

    def _framing(self) -> bytes:
        fields = [field.encode() for field in self._chance.choice(FRAMINGS)]
        body = self._chance.choice(CHUNKS + JSONS)
        line = " ".join(self._target()) + " HTTP/1.1"
        return self._head(line.encode(), b"Content-Type: application/json", *fields) + body

    def _fields(self) -> bytes:
        fields = self._chance.sample(FIELDS, self._chance.randint(1, 4))
        return self._head((" ".join(self._target()) + " HTTP/1.1").encode(), *fields)

    def _json(self) -> bytes:
        body = self._chance.choice(JSONS)
        line = " ".join(self._target()) + " HTTP/1.1"
        length = b"Content-Length: %d" % len(body)
        return self._head(line.encode(), b"Content-Type: application/json", length) + body

    def _large(self) -> bytes:
        line = (" ".join(self._target()) + " HTTP/1.1").encode()
        kind = self._chance.randrange(5)
        if kind == 0:
            return self._head(b"GET /" + b"x" * self._chance.randint(5_000, 80_000) + b" HTTP/1.1")
        if kind == 1:
            return self._head(line, b"X: " + b"y" * self._chance.randint(10_000, 80_000))
        if kind == 2:
            return self._head(line, *[b"X-%d: y" % at for at in range(self._chance.randint(90, 500))])
        if kind == 3:
            return self._head(line, b"Content-Length: %d" % LARGE) + b" " * self._chance.randint(0, LARGE)
        return (
            self._head(line, b"Transfer-Encoding: chunked") + b"ffff\r\n" + b" " * 65_535 + b"\r\n0\r\n\r\n"
        )

    def _valid(self) -> bytes:
        cart = {"items": [{"productSlug": "now", "amount": 1}], "paymentCurrency": "EUR", "reference": "r"}
        method, path = self._target()
        body = json.dumps(cart).encode() if method == "POST" else b""
        fields = [b"Content-Type: application/json", b"Content-Length: %d" % len(body)] if body else []
        return self._head(f"{method} {path} HTTP/1.1".encode(), *fields) + body

    def _mutated(self) -> bytes:
        """A request that was in order, with some bytes of it changed, taken out, repeated or put in."""
        raw = bytearray(self._valid())
        for _ in range(self._chance.randint(1, 6)):
            at = self._chance.randrange(len(raw))
            match self._chance.randrange(5):
                case 0:
                    raw[at] = self._chance.randrange(256)
                case 1:
                    del raw[at : at + self._chance.randint(1, 9)]
                case 2:
                    raw[at:at] = bytes([self._chance.choice(b'\r\n\0 \t:"{}[],0')]) * self._chance.randint(
                        1, 3
                    )
                case 3:
                    end = at + self._chance.randint(1, 40)
                    raw[at:at] = raw[at:end]
                case _:
                    raw[at] ^= 1 << self._chance.randrange(8)
            if not raw:
                break
        return bytes(raw)

    def _noise(self) -> bytes:
        return self._chance.randbytes(self._chance.choice((1, 3, 20, 200, 5_000)))

    def _pipelined(self) -> bytes:
        """Several at once, in order and not."""
        return b"".join(
            self._chance.choice((self._valid, self._mutated, self._framing))()
            for _ in range(self._chance.randint(2, 5))
        )
