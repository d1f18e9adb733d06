"""The corpus: small, and tried as it is in every run. What a fuzzer found goes here once it is mended."""

from __future__ import annotations

from tests.fuzz.inputs import CORPUS, kept
from tests.fuzz.test_fuzz_files import read_by_all, read_forms
from tests.fuzz.test_fuzz_http import answered
from tests.fuzz.test_fuzz_readers import READERS, read
from tests.fuzz.test_fuzz_suppliers import believed
from tests.fuzz.world import World
from voucherd.http import Request

BYTES_MAX = 200_000


def test_the_corpus_is_small() -> None:
    """Seeds to start from, not a store of all that was ever tried."""
    assert sum(path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()) < BYTES_MAX


def test_every_kept_stream_of_bytes_is_answered(world: World) -> None:
    """OP-25, OP-26: whole, and byte by byte."""
    for given in kept("http"):
        whole, byte_by_byte = ([given], [given[at : at + 1] for at in range(len(given))])
        # What follows the first call may be refused aloud, or by closing the connection behind its answer.
        assert answered(world, whole)[:1] == answered(world, byte_by_byte)[:1]


def test_every_kept_file_form_and_answer_is_read_or_refused() -> None:
    """OP-25 in spirit: no reader of what others made raises anything but its refusal."""
    for given in kept("tables") + kept("workbooks"):
        read_by_all(given)
    for given in kept("forms"):
        read_forms(given, b"multipart/form-data; boundary=xYzZY")
    for given in kept("answers"):
        believed(given, 200)


def test_every_kept_query_and_body_is_read_or_refused() -> None:
    """OP-25: by every reader of the API, whatever it was meant for."""
    for reader in READERS:
        for asked in kept("queries"):
            read(reader, Request("GET", "/", asked, {}, b"", "192.0.2.1", "req_1"))
        for body in kept("bodies"):
            read(reader, Request("POST", "/", b"", {}, body, "192.0.2.1", "req_1"))
