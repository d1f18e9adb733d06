"""Sealing, blinding and the sandbox's computed codes; and the key file they all hang on."""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.patience import HANG_S
from voucherd.settings import Settings
from voucherd.vault import master_key as keys
from voucherd.vault.master_key import VaultKeyError, load_or_create_master, read_master
from voucherd.vault.seal import KeyNotKnown, SealBroken, Sealer

SEALER = Sealer(bytes(range(32)))
CODES = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=200)
LOTS = st.integers(0, 2**63 - 1)
SEQS = st.integers(0, 2**31 - 1)


@given(LOTS, SEQS, CODES, CODES | st.just(""))
def test_what_was_sealed_opens_to_the_same_code_and_serial(
    lot: int, seq: int, code: str, serial: str
) -> None:
    """Decision 3: codes are sealed, immutable rows."""
    assert SEALER.open(lot, seq, SEALER.seal(lot, seq, code, serial)) == (code, serial)


@given(st.data())
def test_a_single_flipped_bit_breaks_the_seal(data: st.DataObject) -> None:
    """Decision 3: nobody can alter a code without the key."""
    sealed = bytearray(SEALER.seal(2, 7, "ABCD-1234", "S1"))
    bit = data.draw(st.integers(0, len(sealed) * 8 - 1))
    sealed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(SealBroken):
        SEALER.open(2, 7, bytes(sealed))


@pytest.mark.parametrize(("lot", "seq"), [(2, 8), (4, 7), (7, 2)])
def test_a_code_moved_to_another_place_does_not_open(lot: int, seq: int) -> None:
    """Invariant 3: no code is on two lines, not even by copying rows in the database."""
    with pytest.raises(SealBroken):
        SEALER.open(lot, seq, SEALER.seal(2, 7, "ABCD-1234", "S1"))


@pytest.mark.parametrize("sealed", [b"", b"short", bytes(16), bytes(40)])
def test_bytes_that_were_never_sealed_do_not_open(sealed: bytes) -> None:
    """Decision 3: whatever is in the column, the answer is a refusal and no crash."""
    with pytest.raises(SealBroken):
        SEALER.open(2, 7, sealed)


def test_a_secret_that_is_no_code_opens_for_its_place_alone() -> None:
    """Invariant 3: a supplier's key or a picture can't be copied to another row, and no two seals are alike."""
    sealer = Sealer(bytes(range(32)))
    # One in 256 nonces begins like the mark of a later key, and is refused in other words.
    text = next(one for one in iter(lambda: sealer.seal_text(b"supplier/1", "sesame"), b"") if one[0] != 0xE5)
    data = next(one for one in iter(lambda: sealer.seal_bytes(b"logo/1", b"\x00\xff"), b"") if one[0] != 0xE5)

    assert sealer.open_text(b"supplier/1", text) == "sesame"
    assert sealer.open_bytes(b"logo/1", data) == b"\x00\xff"
    assert len(data) == 12 + 2 + 16
    assert sealer.seal_bytes(b"logo/1", b"\x00\xff")[:12] != data[:12]
    for place, sealed in ((b"supplier/2", text), (b"", text), (b"logo/1", text), (b"logo/2", data)):
        with pytest.raises(SealBroken, match="altered, moved or sealed with another key"):
            sealer.open_bytes(place, sealed)
    with pytest.raises(SealBroken):
        Sealer(bytes(32)).open_text(b"supplier/1", text)


@pytest.mark.parametrize(
    "sealed", [b"", b"\xe5", b"\xe5\x00", b"\xe5\x00\x01", b"\xe5\x00\x02", bytes(27), bytes(40)]
)
def test_bytes_that_were_never_sealed_open_for_no_place(sealed: bytes) -> None:
    """OP-95: with two keys known, whatever is in the column is refused, and no key is called unknown for it."""
    sealer = Sealer(bytes(range(32)))
    sealer.learn(2, bytes(32))
    for broken in (lambda: sealer.open_bytes(b"here", sealed), lambda: sealer.open(2, 7, sealed)):
        with pytest.raises(SealBroken) as refusal:
            broken()
        assert type(refusal.value) is SealBroken


def test_a_version_is_unknown_only_if_it_is_newer_than_all_that_are_known() -> None:
    """OP-95: a key that was forgotten does not come back, so looking for it anew would help nobody."""
    sealer = Sealer(bytes(range(32)))
    assert sealer.versions == {1}
    for version in (2, 3, 0xFFFF):
        sealer.learn(version, bytes(32))
    sealer.use(0xFFFF)
    newest = sealer.seal(2, 7, "C", "")
    assert newest[:3] == b"\xe5\xff\xff"
    assert sealer.open(2, 7, newest) == ("C", "")
    sealer.use(2)
    code, text = sealer.seal(2, 7, "C", ""), sealer.seal_text(b"here", "T")
    sealer.use(3)
    sealer.forget(2)
    sealer.forget(2)
    sealer.forget(0xFFFF)
    assert sealer.versions == {1, 3}
    assert sealer.version == 3
    assert sealer._texts.keys() == sealer._codes.keys() == {1, 3}, "nothing is kept of a forgotten key"
    for broken in (lambda: sealer.open(2, 7, code), lambda: sealer.open_text(b"here", text)):
        with pytest.raises(SealBroken) as refusal:
            broken()
        assert type(refusal.value) is SealBroken
    with pytest.raises(KeyNotKnown) as unknown:
        sealer.open(2, 7, newest)
    assert unknown.value.version == 0xFFFF
    for sealed in (b"\xe5\x00\x04", b"\xe5\x00\x04" + bytes(40)):
        with pytest.raises(KeyNotKnown, match="needs key 4"):
            sealer.open_bytes(b"here", sealed)


def test_another_master_key_opens_nothing_and_blinds_differently() -> None:
    """Decision 3: every key comes from the one master key."""
    other = Sealer(bytes(32))
    with pytest.raises(SealBroken) as refusal:
        other.open(2, 7, SEALER.seal(2, 7, "ABCD-1234", "S1"))
    assert "ABCD" not in str(refusal.value)
    assert other.blind(1, "ABCD-1234") != SEALER.blind(1, "ABCD-1234")


def test_equal_codes_at_two_places_look_unrelated() -> None:
    """Decision 3: the sealed column says nothing, not even which codes are equal."""
    first, second = (SEALER.seal(2, seq, "ABCD-1234", "S1") for seq in (0, 1))
    assert not {first[at : at + 4] for at in range(25)} & {second[at : at + 4] for at in range(25)}


def test_the_border_between_code_and_serial_can_not_be_moved() -> None:
    """Decision 3: ("A", "BC") and ("AB", "C") stay what they are; a NUL can't fake the border."""
    assert SEALER.open(2, 0, SEALER.seal(2, 0, "A", "B\0C")) == ("A", "B\0C")
    with pytest.raises(ValueError, match="NUL") as refusal:
        SEALER.seal(2, 0, "SECRET\0B", "C")
    assert "SECRET" not in str(refusal.value)


def test_many_are_sealed_as_each_alone() -> None:
    """Decision 3: a seal says nothing about how many were made with it; the border and the mark are the same."""
    marked = Sealer(bytes(32))
    marked.learn(2, b"2" * 32)
    marked.use(2)
    rows = [
        (2, 0, "A", "S"),
        (2, 1, "привет", ""),
        (4, 0, "B C", "ß"),
        (2**40, 2**31 - 1, "x" * 200, "s" * 200),
    ]
    lot_ids, seqs, codes, serials = zip(*rows, strict=True)
    for sealer in (SEALER, marked):
        sealed = sealer.seal_many(
            lot_ids, seqs, [code.encode() for code in codes], [s.encode() for s in serials]
        )
        assert sealed == [sealer.seal(*row) for row in rows]
    assert SEALER.seal_many((), (), (), ()) == []
    with pytest.raises(ValueError, match="NUL") as refusal:
        SEALER.seal_many([2, 2], [0, 1], [b"A", b"SECRET\0B"], [b"", b""])
    assert "SECRET" not in str(refusal.value)


def test_a_blind_keeps_case_ignores_outer_space_and_belongs_to_its_brand() -> None:
    """Decision 3: the same code can't enter twice for one brand; case may matter."""
    blind = SEALER.blind(1, "AbCd-1")
    assert len(blind) == 16
    assert SEALER.blind(1, "  AbCd-1\t") == blind
    assert SEALER.blind(1, "ABCD-1") != blind
    assert SEALER.blind(2, "AbCd-1") != blind


def test_the_stored_forms_never_change() -> None:
    """Decision 3: what was sealed by one release is opened by all later ones."""
    assert (
        SEALER.seal(2, 7, "ABCD-1234", "S1").hex()
        == "f76c82266c5c27211275569e3c0beb3bbaff5fd1108626b96fd0b180"
    )
    assert SEALER.blind(1, "ABCD-1234").hex() == "112aacb1612dbb45eb1caf4d45682f19"
    assert SEALER.generated_range(3, 0, 1) == [("TEST-F4CT-AJQ3-83M5-T8G7", "TEST713678011435")]
    assert SEALER.generated_range(3, 0, 2)[1] == SEALER.generated_range(3, 1, 2)[0]
    marked = Sealer(bytes(range(32)))
    marked.learn(2, bytes(32))
    marked.use(2)
    assert (
        marked.seal(2, 7, "ABCD-1234", "S1").hex()
        == "e5000266a3d6d9e214d04fa8421d4d88530a0517cac02b92cf4f54af44aa35"
    )
    assert SEALER.open_text(
        b"here", bytes.fromhex("0e565b0e9202a92c9b5e324824830bcd61fb07d61e5af928ca93865d95eae518")
    ) == marked.open_text(
        b"here", bytes.fromhex("e50002843c6afb3dc93f52a52b0603d9470a8ac5fb4d58b99b61faca0f43680187b40b")
    )


def test_sandbox_codes_say_test_are_stable_and_all_differ() -> None:
    """OP-49: the sandbox has codes of its own, generated, `TEST…`."""
    codes = SEALER.generated_range(3, 0, 10_000)
    assert all(re.fullmatch(r"TEST(-[0-9A-HJKMNP-TV-Z]{4}){4}", code) for code, _ in codes)
    assert all(re.fullmatch(r"TEST\d{12}", serial) for _, serial in codes)
    assert len({code for code, _ in codes}) == 10_000
    one, again = (
        SEALER.generated_range(3, 1234, 1235),
        Sealer(bytes(range(32))).generated_range(3, 1234, 1235),
    )
    assert [codes[1234]] == one == again
    assert SEALER.generated_range(5, 1234, 1235) != one != Sealer(bytes(32)).generated_range(3, 1234, 1235)


def test_ten_thousand_codes_open_with_a_few_calls_each() -> None:
    """Decision 3: an order has up to 10,000 lines (OP-14), and opening them is a small part of it."""
    rows = [(2, seq, SEALER.seal(2, seq, f"CODE-{seq}", "")) for seq in range(10_000)]
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        opened = SEALER.open_many(rows)
    finally:
        sys.setprofile(None)
    assert opened[9_999] == ("CODE-9999", "")
    # Counted at six of Python and of C together for each code, on any machine.
    assert calls < 8 * len(rows)


# ── the key file ─────────────────────────────────────────────────────────────────────────────────────


def test_a_key_is_created_once_and_only_for_its_owner(tmp_path: Path) -> None:
    """`demo`: the first start makes a key, a second one keeps it."""
    path = tmp_path / "keys" / "master.key"
    master = load_or_create_master(path, create=True)
    assert len(master) == 32
    assert path.stat().st_mode & 0o777 == 0o600
    assert load_or_create_master(path, create=True) == load_or_create_master(path) == master
    assert [entry.name for entry in path.parent.iterdir()] == ["master.key"]


def test_processes_that_start_at_once_end_with_the_same_key(tmp_path: Path) -> None:
    """Decision 3: as many processes as you like; they must not seal with different keys."""
    program = (
        "import sys, pathlib; from voucherd.vault.master_key import load_or_create_master as load;"
        "print(load(pathlib.Path(sys.argv[1]), create=True).hex())"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path / "master.key")], stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    keys = {process.communicate(timeout=HANG_S)[0].strip() for process in running}
    assert len(keys) == 1
    assert len(keys.pop()) == 64


@pytest.mark.parametrize("text", [bytes(range(32)).hex(), base64.b64encode(bytes(range(32))).decode() + "\n"])
def test_a_key_may_be_written_in_hex_or_base64(tmp_path: Path, text: str) -> None:
    """An operator's own key comes from `openssl rand`, in either form."""
    assert load_or_create_master(_key_file(tmp_path, text)) == bytes(range(32))


@pytest.mark.parametrize(
    "text", ["", "abc", "00" * 31, "00" * 33, "zz" * 32, base64.b64encode(bytes(16)).decode()]
)
def test_a_key_of_the_wrong_size_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    """Refused with one clear line, which never holds the key."""
    with pytest.raises(VaultKeyError, match="is not 32 bytes in hex or base64") as refusal:
        load_or_create_master(_key_file(tmp_path, text))
    assert "\n" not in str(refusal.value)
    assert not text or text not in str(refusal.value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o666])
def test_a_key_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    """Decision 3: who reads the key reads every code."""
    path = _key_file(tmp_path, "00" * 32)
    path.chmod(mode)
    with pytest.raises(VaultKeyError, match="open to others"):
        load_or_create_master(path)


def test_a_missing_key_is_refused_unless_it_may_be_created(tmp_path: Path) -> None:
    """A production server never makes up a key because a mount is missing."""
    with pytest.raises(VaultKeyError, match="there is no master key"):
        load_or_create_master(tmp_path / "master.key")


def _key_file(folder: Path, text: str) -> Path:
    path = folder / "master.key"
    path.write_text(text)
    os.chmod(path, 0o600)
    return path


def test_what_an_older_key_sealed_opens_beside_a_newer_one() -> None:
    """OP-95: what has no mark is of version 1; a mark names the version, and a key that is not known is said so."""
    sealer = Sealer(bytes(range(32)))
    old_code, old_text = sealer.seal(4, 1, "OLD", "1"), sealer.seal_text(b"here", "old")
    sealer.learn(2, bytes(32))
    assert sealer.seal(4, 1, "OLD", "1") == old_code, "a key that is known does not seal yet"

    sealer.use(2)
    code, text = sealer.seal(4, 2, "NEW", "2"), sealer.seal_text(b"here", "new")

    assert code[:3] == text[:3] == b"\xe5\x00\x02"
    assert sealer.open_many([(4, 1, old_code), (4, 2, code)]) == [("OLD", "1"), ("NEW", "2")]
    assert [sealer.open_text(b"here", one) for one in (old_text, text)] == ["old", "new"]
    stranger = Sealer(bytes(range(32)))
    for broken in (lambda: stranger.open(4, 2, code), lambda: stranger.open_text(b"here", text)):
        with pytest.raises(KeyNotKnown, match="needs key 2"):
            broken()
    with pytest.raises(SealBroken, match="altered"):
        sealer.open(4, 3, code)
    sealer.forget(1)
    with pytest.raises(SealBroken):
        sealer.open(4, 1, old_code)
    assert sealer.blind(1, "X") == stranger.blind(1, "X")


def test_a_seal_of_version_1_that_looks_marked_opens_all_the_same() -> None:
    """OP-95: one in millions begins like a mark of a key that exists."""
    sealer = Sealer(bytes(range(32)))
    found = next(
        (seq, sealed)
        for seq in range(1_000_000)
        if (sealed := sealer.seal(2, seq, "C", "")).startswith(b"\xe5")
    )
    version = int.from_bytes(found[1][1:3], "big") or 7
    sealer.learn(max(version, 2), bytes(32))

    assert sealer.open(2, *found) == ("C", "")


def test_the_master_key_comes_from_the_environment_or_a_command() -> None:
    """OP-95: what is wrong with it is said in one line, without a word of the key or of the command."""
    key = bytes(range(32))

    def read(**env: str) -> bytes:
        return read_master(
            Settings.load({}, {f"VOUCHERD_MASTER_KEY{name.upper()}": text for name, text in env.items()})
        )

    assert read(**{"": key.hex()}) == key
    assert read(_command=f"echo {key.hex()}") == key
    for env, words in (
        ({"": "secret"}, "in VOUCHERD_MASTER_KEY is not 32 bytes"),
        ({"_command": "echo secret"}, "that its command printed is not 32 bytes"),
        ({"_command": "sh -c 'echo secret >&2; exit 3'"}, "failed with 3"),
        ({"_command": "/no/secret"}, "can't be run: No such file or directory"),
    ):
        with pytest.raises(VaultKeyError, match=words) as refused:
            read(**env)
        assert "secret" not in str(refused.value)


def test_a_command_that_does_not_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """OP-95: it is ended, and the start is refused."""
    monkeypatch.setattr(keys, "COMMAND_S_MAX", 0.1)
    with pytest.raises(VaultKeyError, match=r"did not end within 0\.1 seconds"):
        read_master(Settings.load({}, {"VOUCHERD_MASTER_KEY_COMMAND": "sleep 60"}))
