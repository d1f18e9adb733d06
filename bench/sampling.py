"""Two profilers of the process they are in: one that samples, one that traces.

The sampling one is a timer that runs on processor time, and the stack it interrupts. It does not make small functions
look expensive, as tracing does. Time inside C (the event loop, the driver, JSON) is charged to the Python line that
is next, so read it as "at or just before here".
"""

from __future__ import annotations

import cProfile
import json
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

EVERY_S: Final = 0.001
DEPTH_MAX: Final = 60


@contextmanager
def sampled(path: Path) -> Iterator[None]:
    """Sample this process, and write {stack: samples} to the file at the end; SIGUSR1 begins anew."""
    seen: Counter[str] = Counter()

    def look(_number: int, frame: FrameType | None) -> None:
        stack: list[str] = []
        while frame is not None and len(stack) < DEPTH_MAX:
            code = frame.f_code
            stack.append(f"{_short(code.co_filename)}:{code.co_qualname}")
            frame = frame.f_back
        seen["\n".join(stack)] += 1

    def forget(_number: int, _frame: FrameType | None) -> None:
        seen.clear()

    signal.signal(signal.SIGPROF, look)
    signal.signal(signal.SIGUSR1, forget)
    signal.setitimer(signal.ITIMER_PROF, EVERY_S, EVERY_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        path.write_text(json.dumps(seen))


@contextmanager
def traced(path: Path) -> Iterator[None]:
    """Trace every call of this thread, and write the profile to the file at the end; SIGUSR1 begins anew."""
    profile = cProfile.Profile()

    def forget(_number: int, _frame: FrameType | None) -> None:
        profile.clear()

    signal.signal(signal.SIGUSR1, forget)
    profile.enable()
    try:
        yield
    finally:
        profile.disable()
        profile.dump_stats(path)


def _short(filename: str) -> str:
    """The file from its package on: what comes before is this machine's business."""
    return "/".join(filename.split("/")[-2:])
