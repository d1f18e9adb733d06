"""`make fuzz`: drives the properties of tests/fuzz by coverage for a given time, then tells what failed.

The fuzzer itself never ends and does not say whether it found anything. It keeps every input that failed where
Hypothesis looks first, so the tests run once more afterwards, and their result is ours.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, Final

ROOT: Final = Path(__file__).parents[1]
TESTS: Final = "tests/fuzz"
END_S_MAX: Final = 20.0
START_S_MAX: Final = 60.0
"""How long the fuzzer may take to find its targets; its time counts from then on."""
REPLAY_S_MAX: Final = 1_800
LOOK_S: Final = 0.5
NOT_RUN: Final = 2
_BEGUN: Final = re.compile(r"using \d+ process\w* to fuzz (\d+) test")


def main(given: list[str]) -> int:
    """0 if the whole time went by and no input failed."""
    reader = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    reader.add_argument("seconds", type=int)
    reader.add_argument("--workers", type=int, default=2)
    reader.add_argument("tests", nargs="*", default=[TESTS])
    wish = reader.parse_args(given)
    if wish.seconds < 1 or wish.workers < 1:
        reader.error("seconds and workers must be at least 1")
    with tempfile.TemporaryFile("w+") as told:
        problem = fuzz(wish.seconds, wish.workers, wish.tests, told)
        if problem:
            told.seek(0)
            sys.stderr.write(told.read()[-4_000:])
    if problem:
        return _end(NOT_RUN, problem)
    failed = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *wish.tests], cwd=ROOT, timeout=REPLAY_S_MAX, check=False
    ).returncode
    if failed:
        return _end(
            failed, "Inputs failed; those above stay in .hypothesis and fail again until they are mended."
        )
    return _end(0, f"Nothing failed in {wish.seconds} seconds.")


def fuzz(seconds: int, workers: int, tests: list[str], told: IO[str]) -> str:
    """Let the fuzzer run for so long; why it did not, or nothing."""
    command = [
        *(str(Path(sys.executable).with_name("hypothesis")), "fuzz", "--no-dashboard"),
        *("--numprocesses", str(workers), "--", *tests),
    ]
    # A group of its own: its workers are ended with it, and nobody else.
    running = subprocess.Popen(
        command, cwd=ROOT, stdout=told, stderr=subprocess.STDOUT, start_new_session=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        targets = _targets(running, told)
        if not targets:
            return "The fuzzer did not start."
        _say(f"Fuzzing {targets} properties with {workers} processes for {seconds} seconds …")
        try:
            running.wait(seconds)
        except subprocess.TimeoutExpired:
            return ""
        # It ends early only if every property failed, which the tests tell; or if it broke.
        return "" if "failing input for every test" in _read(told) else "The fuzzer ended before its time."
    finally:
        _stop(running)


def _targets(running: subprocess.Popen[bytes], told: IO[str]) -> int:
    """How many properties it found, once it has."""
    ends_at = time.monotonic() + START_S_MAX
    while time.monotonic() < ends_at and running.poll() is None:
        found = _BEGUN.search(_read(told))
        if found:
            return int(found[1])
        time.sleep(LOOK_S)
    return 0


def _read(told: IO[str]) -> str:
    return os.pread(told.fileno(), 1 << 20, 0).decode(errors="replace")


def _stop(running: subprocess.Popen[bytes]) -> None:
    """End the group: with a word first, so that it writes down what it has found."""
    for word in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(running.pid, word)
        except ProcessLookupError:
            break
        ends_at = time.monotonic() + END_S_MAX / 2
        while time.monotonic() < ends_at and _is_there(running):
            time.sleep(LOOK_S / 5)
        if not _is_there(running):
            break
    running.wait(END_S_MAX)


def _is_there(running: subprocess.Popen[bytes]) -> bool:
    """Whether anybody of the group still runs."""
    running.poll()
    try:
        os.killpg(running.pid, 0)
    except ProcessLookupError:
        return False
    return True


def _say(words: str) -> None:
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


def _end(status: int, words: str) -> int:
    _say(words)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
