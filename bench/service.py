"""The server under test: the real one, in a process of its own, on uvloop, with its worker."""

from __future__ import annotations

import argparse
import asyncio
import resource
import signal
import sys
from contextlib import ExitStack
from pathlib import Path

import uvloop

from bench.sampling import sampled, traced
from voucherd import app, logs, processes
from voucherd.embedded import shutdown_signals
from voucherd.settings import Settings


def main() -> None:
    """Serve until told to stop; the settings come from the environment, the address goes to stdout."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", type=Path, help="write the stacks that a timer saw to this file")
    parser.add_argument("--cprofile", type=Path, help="write a profile of every call to this file")
    parser.add_argument("--no-worker", action="store_true", help="answer calls only")
    given = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 65_536)), hard))
    settings = Settings.load()
    logs.configure(settings.log_level, "json")
    assert settings.database_url is not None
    with ExitStack() as stack:
        # The web server raises the signal that ended it once more; the profile is to be written all the same.
        stack.enter_context(shutdown_signals())
        if given.sample:
            stack.enter_context(sampled(given.sample))
        if given.cprofile:
            stack.enter_context(traced(given.cprofile))
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(settings, settings.database_url, with_worker=not given.no_worker))


async def _serve(settings: Settings, database_url: str, *, with_worker: bool) -> None:
    if settings.processes == 1:
        await app.serve(settings, database_url, with_worker=with_worker, on_ready=_say_ready)
        return
    serving = asyncio.create_task(
        processes.run(
            settings, database_url, processes=settings.processes, with_worker=with_worker, on_ready=_say_ready
        )
    )
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, serving.cancel)
    await serving


def _say_ready(address: str) -> None:
    sys.stdout.write(address + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
