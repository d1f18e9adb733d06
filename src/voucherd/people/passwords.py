"""Which passwords are too easy to guess: common words, rows of keys, and what everybody knows of a person. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

CHARACTERS_MIN: Final = 12
CHARACTERS_MAX: Final = 256
SURPRISING_MIN: Final = 6
"""So many letters must be left, of these many kinds, when everything that is easy to guess is taken out."""
KINDS_MIN: Final = 4
KNOWN_CHARACTERS_MIN: Final = 3
"""A shorter part of a name or an address gives nothing away."""
_COMMON: Final = """
    abcabc access account admin administrator alexander amanda america andrea andrew angel angels apple arsenal asdf
    asdfgh ashley august austin autumn baby babygirl bailey banana baseball basketball batman beautiful berlin
    billing blessed boomer bond brandon buster butterfly buyer canada change changeit changeme charlie cheese
    chelsea chocolate christ code codes company computer console cookie corvette coupon cowboy dallas daniel
    december default demo diamond dolphin donald dragon eagle easter elephant email england enter evil family
    february ferrari finance flower football forever freedom friday friend friends ginger giftcard godzilla google
    guest guitar hannah harley hello hockey holiday house hunter iloveyou internet invoice jackson january jasmine
    jennifer jessica jesus jordan joshua july june junior justin killer king kitty laptop letmein liverpool london
    login love lovely lover maggie manager march marina market martin master matrix matthew maverick melissa
    mercedes merlin michael michelle monday money monkey monster morning mother mustang mynoob naruto nicole ninja
    november october office online operator orange order orders owner paris pass passcode passe passphrase password
    passwort passw patrick payment peaches peanut pepper phoenix player please pokemon portal prince princess
    private purple qazwsx qwer qwert qwerty qwertz azerty rachel ranger root ronaldo samantha samsung saturday
    school secret security september service shadow shop silver simple slipknot snoopy soccer sophie spider spring
    standard starwars steelers stella summer sunday sunshine super superman support sweet system taylor temp
    temporary tennis test testing thomas thunder thursday tigger today tomorrow training trustno tuesday user
    vanessa victoria voucher voucherd vouchers wallet wednesday welcome whatever william willow winter winner wizard
    woche wachtwoord contrasena motdepasse geheim hallo schatz sommer yankees yellow zxcvbn
"""
COMMON: Final = frozenset(_COMMON.split())
_ROWS: Final = (
    "abcdefghijklmnopqrstuvwxyz",
    "qwertyuiop",
    "qwertzuiop",
    "azertyuiop",
    "asdfghjkl",
    "zxcvbnm",
    "yxcvbnm",
    "1q2w3e4r5t6y7u8i9o0p",
    "1qaz2wsx3edc4rfv5tgb6yhn7ujm",
)
_ROW_MIN: Final = 4
_LIKE: Final = str.maketrans("@4310$5!7+8", "aaeiossittb")
"""What people write for letters, and every program that guesses knows."""


class WeakPassword(ValueError):
    """The password is too short, too long or too easy to guess; says which."""

    def __init__(self, text: str, *, guessable: bool) -> None:
        super().__init__(text)
        self.guessable = guessable


def refuse_weak(password: str, known: Collection[str]) -> None:
    """Refuse a password that is too short, or made of common words and of what is known of the person."""
    if not CHARACTERS_MIN <= len(password) <= CHARACTERS_MAX:
        text = f"a password has {CHARACTERS_MIN} to {CHARACTERS_MAX} characters"
        raise WeakPassword(text, guessable=False)
    parts = {part for text in known for part in re.split(r"[\W_]+", text.lower())}
    own = {part for part in parts if len(part) >= KNOWN_CHARACTERS_MIN}
    # Numbers and signs at the ends are what people add when they are asked for some.
    core = re.sub(r"^[\W\d_]+|[\W\d_]+$", "", password.lower())
    for written in (core, core.translate(_LIKE)):
        left = surprising(written, own)
        if len(left) < SURPRISING_MIN or len(set(left)) < KINDS_MIN:
            raise WeakPassword(
                "this password is easy to guess: take a few words that have nothing to do with you or each other",
                guessable=True,
            )


def surprising(text: str, own: Collection[str]) -> str:
    """The letters that are left when words, rows of keys, repetitions, years and plain numbers are taken out."""
    for word in sorted({*COMMON, *own}, key=len, reverse=True):
        text = text.replace(word, " ")
    text = _without_rows(text)
    # Something that comes again and again is no longer than once.
    text = re.sub(r"(.{1,6}?)\1{2,}", r"\1", text)
    return "".join(part for part in re.split(r"[\W_]+", text) if not part.isdecimal())


def _without_rows(text: str) -> str:
    for row in (*_ROWS, *(row[::-1] for row in _ROWS)):
        for size in range(len(row), _ROW_MIN - 1, -1):
            for start in range(len(row) - size + 1):
                text = text.replace(row[start : start + size], " ")
    return text
