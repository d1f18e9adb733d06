"""A sampling profiler of a few lines: a timer that runs on processor time, and the stack it interrupts.

Unlike a tracing profiler it does not make small functions look expensive. Time inside C (the event loop, the driver,
JSON) is charged to the Python line that is next, so read it as "at or just before here".
"""

from __future__ import annotations

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


def _short(filename: str) -> str:
    """The file from its package on: what comes before is this machine's business."""
    return "/".join(filename.split("/")[-2:])
