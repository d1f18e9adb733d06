"""`make fuzz`: how its end is told, where no test has to run for it."""

from __future__ import annotations

import pytest

from tools import fuzz


@pytest.mark.parametrize(
    ("ended", "status", "words"),
    [
        ([0, None], fuzz.FAILED, "A process hung"),
        ([fuzz.FAILED, None], fuzz.FAILED, "A process hung"),
        ([0, 1], fuzz.NOT_RUN, "nothing is known"),
        ([-9], fuzz.NOT_RUN, "nothing is known"),
    ],
)
def test_a_fuzzer_that_hung_or_broke_is_no_success(
    ended: list[int | None], status: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that could not look must not be taken for one that found nothing."""
    assert fuzz.judge(ended, "tests/fuzz", 60) == status
    assert words in capsys.readouterr().out
