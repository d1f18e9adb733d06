"""What one input may cost."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from hypothesis import settings

CPU_S_MAX: Final = 5.0
"""Of the processor's time, with all lines counted by the fuzzer: what it takes without is a tenth of it."""
GROWTH_KIB_MAX: Final = 128 * 1024
EXAMPLES: Final = 60
"""In the suite. `make fuzz` goes on for as long as it is told."""

briefly: Final = settings(max_examples=EXAMPLES)


@contextmanager
def bounded() -> Iterator[None]:
    """Whatever happens in the block ends soon, and takes little memory."""
    before_s, before_kib = time.thread_time(), _peak_kib()
    yield
    assert time.thread_time() - before_s < CPU_S_MAX
    assert _peak_kib() - before_kib < GROWTH_KIB_MAX


def _peak_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
