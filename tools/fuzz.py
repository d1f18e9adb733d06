"""`make fuzz`: drives the properties of tests/fuzz by coverage for a given time, then tells what failed.

hypofuzz looks for inputs that reach new lines, but left to itself it never ends, and gives nearly all of its time to
one property. So each property has an equal share of the time here, in as many processes as are wanted. Inputs that
fail are kept where Hypothesis looks first: the tests run once more afterwards, make them small, and show them.
"""

from __future__ import annotations

import argparse
import logging
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from hypothesis import settings
from hypothesis.database import choices_to_bytes
from hypothesis.internal.conjecture.data import ConjectureData, Status
from hypothesis.internal.reflection import function_digest

ROOT: Final = Path(__file__).parents[1]
TESTS: Final = "tests/fuzz"
EXTRA_S_MAX: Final = 300
"""Beyond its time, a process that has not ended hangs in an input."""
REPLAY_S_MAX: Final = 1_800
SECONDARY: Final = b".secondary"
"""Where Hypothesis keeps what failed and is still to be made smaller."""
NOT_RUN, FAILED = 2, 3
"""1 is how a process ends that broke."""


def main(given: list[str]) -> int:
    """0 if the whole time went by and no input failed."""
    reader = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    reader.add_argument("seconds", type=int)
    reader.add_argument("--workers", type=int, default=1)
    reader.add_argument("--worker", type=int, help="Be this one of them, and start no others.")
    reader.add_argument("--tests", default=TESTS)
    wish = reader.parse_args(given)
    if wish.seconds < 1 or wish.workers < 1:
        reader.error("seconds and workers must be at least 1")
    if wish.worker is not None:
        return drive(wish.tests, wish.seconds, wish.worker, wish.workers)
    return judge(run_workers(given, wish.seconds, wish.workers), wish.tests, wish.seconds)


def drive(tests: str, seconds: int, worker: int, workers: int) -> int:
    """Drive this worker's properties one after another, and tell how far each came."""
    # What libraries say of each broken input is no news here.
    logging.disable()
    # Not installed but for this.
    import_module("hypofuzz.entrypoint")
    targets: list[Any] = import_module("hypofuzz.collection").collect_tests([tests]).fuzz_targets
    own = targets[worker::workers]
    failed = [target.nodeid for target in own if not _clean(target, seconds / len(own))]
    return FAILED if failed else 0


def _clean(target: Any, seconds: float) -> bool:
    """Whether no input of the property failed in this time."""
    target._enter_fixtures()
    inputs, failed, ends_at = 0, False, time.monotonic() + seconds
    while time.monotonic() < ends_at and not failed:
        # Its own `run_one` makes a failure smaller by means that our Hypothesis does not have; the tests do that.
        tried = target.new_conjecture_data()
        target._execute_once(tried)
        tried.freeze()
        inputs += 1
        failed = tried.status is Status.INTERESTING
        if failed:
            _keep(target.wrapped_test.hypothesis.inner_test, tried)
    target._exit_fixtures()
    found = "an input failed" if failed else "clean"
    branches = len(target.provider.corpus.behavior_counts)
    _say(f"{target.nodeid.partition('::')[2]}: {inputs:,} inputs, {branches:,} behaviours, {found}")
    return not failed


def _keep(test: Any, failed: ConjectureData) -> None:
    """Keep the input where the test looks first when it runs by itself: under its name without hypofuzz's mark."""
    del test._hypothesis_internal_add_digest
    database = settings().database
    assert database is not None
    database.save(function_digest(test) + SECONDARY, choices_to_bytes(failed.choices))


def run_workers(given: list[str], seconds: int, workers: int) -> list[int | None]:
    """How each worker ended; None for one that hung."""
    command = [sys.executable, "-m", "tools.fuzz", *given, "--worker"]
    running = [subprocess.Popen([*command, str(at)], cwd=ROOT) for at in range(workers)]
    ends_at = time.monotonic() + seconds + EXTRA_S_MAX
    ended: list[int | None] = []
    try:
        for process in running:
            try:
                ended.append(process.wait(max(0.0, ends_at - time.monotonic())))
            except subprocess.TimeoutExpired:
                ended.append(None)
    finally:
        for process in running:
            process.kill()
            process.wait()
    return ended


def judge(ended: list[int | None], tests: str, seconds: int) -> int:
    """The end of it all, in words; inputs that failed are shown by the tests themselves."""
    if None in ended:
        return _end(FAILED, "A process hung: one input takes longer than it may.")
    if not set(ended) <= {0, FAILED}:
        return _end(NOT_RUN, "The fuzzer broke, so nothing is known.")
    command = [sys.executable, "-m", "pytest", "-q", tests]
    replayed = subprocess.run(command, cwd=ROOT, timeout=REPLAY_S_MAX, check=False).returncode
    if replayed or FAILED in ended:
        return _end(
            FAILED, "Inputs failed. They are kept in .hypothesis, and fail in the tests until it is mended."
        )
    return _end(0, f"Nothing failed in {seconds} seconds.")


def _say(words: str) -> None:
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


def _end(status: int, words: str) -> int:
    _say(words)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
