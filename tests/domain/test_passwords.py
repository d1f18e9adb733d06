"""Which passwords are refused, and that every way to choose one asks."""

from __future__ import annotations

import ast

import pytest

from tests.store.deeds_in_code import modules
from voucherd.cli.user import new_password
from voucherd.people.passwords import CHARACTERS_MAX, CHARACTERS_MIN, COMMON, WeakPassword, refuse_weak

KNOWN = ("ann.smith@acme-trading.example", "Ann Smith", "Acme Trading GmbH")


@pytest.mark.parametrize(
    "password",
    [
        "password1234",
        "Password1234!",
        "P@ssw0rd2026!!",
        "ann.smith@acme-trading.example",
        "Smith.Ann.2026",
        "acmetrading2026",
        "AcmeAcmeAcme1",
        "qwertyuiop12",
        "1q2w3e4r5t6y",
        "123456789012",
        "839201748365",
        "aaaaaaaaaaaaaaaa",
        "xyzxyzxyzxyzxyz",
        "iloveyou123456",
        "welcome to acme1",
        "Summer2026!!!",
        "short",
        "x" * (CHARACTERS_MAX + 1),
    ],
)
def test_what_everybody_would_guess_is_refused(password: str) -> None:
    """OP-92: common words, rows of keys, repetitions, numbers, and one's own address, name and company."""
    with pytest.raises(WeakPassword):
        refuse_weak(password, KNOWN)


@pytest.mark.parametrize("word", sorted(COMMON))
def test_no_common_word_becomes_a_password_by_a_number_and_a_sign(word: str) -> None:
    """OP-92: once, twice, with a capital letter, a year or signs."""
    for written in (f"{word}{word}", f"{word.capitalize()}2026", f"{word}!!", f"123{word}"):
        with pytest.raises(WeakPassword):
            refuse_weak(written.ljust(CHARACTERS_MIN, "1"), ())


@pytest.mark.parametrize(
    "password", ["correct horse battery staple", "zebra lamp cloud", "k3nt-8fhs-2mmd-qq4t"]
)
def test_a_few_words_and_random_letters_are_taken(password: str) -> None:
    """OP-92: length and surprise count, not signs."""
    refuse_weak(password, KNOWN)


def test_passwords_that_the_program_makes_are_taken() -> None:
    """OP-92: the command line asks the same function."""
    for _ in range(300):
        refuse_weak(new_password(), KNOWN)


def test_every_new_password_is_hashed_by_the_one_function_that_refuses() -> None:
    """OP-92: nobody else calls argon2, and only a password that was right is hashed without being looked at."""
    named = {
        (module, part.attr if isinstance(part, ast.Attribute) else part.id)
        for module, tree in modules().items()
        for part in ast.walk(tree)
        if isinstance(part, ast.Attribute | ast.Name)
    }
    assert {module for module, name in named if name in {"PasswordHasher", "_hasher"}} == {"people.users"}
    assert {module for module, name in named if name == "hash_again"} == {"people.users", "people.sign_in"}
    ways = {module for module, name in named if name == "hash_password"}
    assert ways == {
        *("pages.people.links", "pages.people.security", "pages.setup.begin"),
        *("cli.user", "cli.demo_shop.seed"),
    }
