"""How `make mutate` runs tests on a changed module: in forks of a process that has collected them, or afresh."""

from __future__ import annotations

import ast
import gc
import importlib
import json
import os
import resource
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, Final

import pytest

from tools.mutants import Mutant

MEMORY_BYTES_MAX: Final = 4 * 1024**3
CPU_S_MIN: Final = 2.0
CPU_TIMES_MAX: Final = 10
"""A test that takes so many times its usual processor time goes round in circles."""
FORK_S_MAX: Final = 900
"""By the clock, so it is long: on a busy machine whoever is slow must not be taken for one that hangs."""
SAID_EVERY: Final = 200
SURVIVED, NOTICED, STILLBORN, UNFIT = 0, 1, 70, 71
OPTIONS: Final = (
    *("-q", "-x", "--capture=no", "-p", "no:cacheprovider", "-o", "timeout=0"),
    # It is about libraries that were loaded before pytest could rewrite their assertions.
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
)


@dataclass
class Target:
    """A module to break, and the survivors in it that are known."""

    path: Path
    name: str
    survivors: list[dict[str, str]]
    tree: ast.Module
    mutants: list[Mutant]
    ends: Counter[str] = field(default_factory=Counter)
    survived: list[Mutant] = field(default_factory=list)

    @property
    def noticed(self) -> int:
        """How many changes a test noticed, by failing or by never ending."""
        return self.ends["noticed"] + self.ends["endless"]

    @property
    def tried(self) -> int:
        """How many changes a test could notice; a module that can't be imported any more proves nothing."""
        return self.noticed + len(self.survived)

    def code(self, mutant: Mutant) -> CodeType:
        """The whole module, compiled with one change."""
        with mutant.applied():
            return compile(ast.fix_missing_locations(self.tree), str(self.path), "exec")


Change = tuple[Target, Mutant]


@dataclass
class Reach:
    """The processor time of each test, and the lines of each file that it reaches."""

    seconds: dict[str, float]
    lines: dict[str, dict[str, list[int]]]

    def tests_for(self, change: Change) -> list[str]:
        """The tests that may notice the change, the fastest first."""
        file, place = str(change[0].path), change[1].place
        reached = {test: found[file] for test, found in self.lines.items() if file in found}
        if place.in_function:
            chosen = [test for test, at in reached.items() if not set(at).isdisjoint(place.lines)]
        else:  # It is made while the module is loaded, and every test of a file that uses the module may notice.
            files = {test.partition("::")[0] for test in reached}
            # A module without functions of its own is reached by none, and may be used by any.
            chosen = [test for test in self.lines if not files or test.partition("::")[0] in files]
        return sorted(chosen, key=lambda test: (self.seconds[test], test))


def in_forks(work: Callable[[Change], int], changes: Sequence[Change], jobs: int) -> list[int]:
    """How the work on each change ended in a process of its own; below zero is the signal that ended it."""
    ends, running = [UNFIT] * len(changes), dict[int, tuple[int, float]]()
    waiting = list(enumerate(changes))[::-1]
    while waiting or running:
        while waiting and len(running) < jobs:
            at, change = waiting.pop()
            running[fork(lambda change=change: work(change))] = at, time.monotonic() + FORK_S_MAX  # type: ignore[misc]
        for child, (at, ends_at) in list(running.items()):
            if time.monotonic() > ends_at:
                os.kill(child, signal.SIGKILL)
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                del running[child]
                ends[at] = os.waitstatus_to_exitcode(status)
                if (done_count := len(changes) - len(waiting) - len(running)) % SAID_EVERY == 0:
                    say(f"  {done_count} of {len(changes)}")
        time.sleep(0.002)
    return ends


def fork(work: Callable[[], int]) -> int:
    """The number of a new process, which ends with what the work returns."""
    child = os.fork()
    if child:
        return child
    end = UNFIT
    try:
        end = work()
    finally:
        os._exit(end)


def redirect(file: int) -> None:
    """Let this process read and write there."""
    for stream in (0, 1, 2):
        os.dup2(file, stream)


def bound() -> None:
    """Let a broken program neither talk nor take the machine's memory."""
    redirect(os.open(os.devnull, os.O_RDWR))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))


class Tracer:
    """A plugin of pytest that notes what each test takes and which lines of these files it reaches."""

    def __init__(self, files: frozenset[str]) -> None:
        self._files = files
        self._found: dict[str, set[int]] = {}
        self._loading: dict[str, dict[str, set[int]]] = {}
        self.reach: Reach | None = None

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        """Trace the loading of a file of tests: what it calls then belongs to all of them."""
        with self._traced() as found:
            report = yield
        if isinstance(collector, pytest.Module):
            self._loading[collector.nodeid] = found
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Trace one test with its fixtures, if that is wanted."""
        if self.reach is None:
            return (yield)
        began = time.process_time()
        with self._traced() as found:
            result = yield
        self.reach.seconds[item.nodeid] = time.process_time() - began
        for file, lines in self._loading.get(item.nodeid.partition("::")[0], {}).items():
            found[file] |= lines
        self.reach.lines[item.nodeid] = {file: sorted(lines) for file, lines in found.items()}
        return result

    @contextmanager
    def _traced(self) -> Iterator[dict[str, set[int]]]:
        self._found = defaultdict(set)
        sys.settrace(self._enter)
        try:
            yield self._found
        finally:
            sys.settrace(None)

    def _enter(self, frame: FrameType, _event: str, _argument: Any) -> Callable[..., Any] | None:
        # The body of a module or class runs for the first file of tests alone that needs it.
        if frame.f_code.co_filename not in self._files or not frame.f_code.co_flags & CO_OPTIMIZED:
            return None
        lines = self._found[frame.f_code.co_filename]

        def step(inner: FrameType, _event: str, _argument: Any) -> Callable[..., Any]:
            lines.add(inner.f_lineno)
            return step

        return step


class Bounds:
    """A plugin of pytest that ends the process when a test takes far more processor time than it usually does."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds = seconds

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Start the time of this test."""
        if item.nodeid in self.seconds:
            signal.setitimer(signal.ITIMER_PROF, CPU_S_MIN + CPU_TIMES_MAX * self.seconds[item.nodeid])


class Warm:
    """A plugin of pytest that tries changes on the collected tests, in forks, instead of running them."""

    def __init__(self, changes: Sequence[Change], jobs: int, report: Path, tracer: Tracer) -> None:
        self._changes, self._jobs, self._report, self._tracer = changes, jobs, report, tracer
        self._functions: dict[str, list[FunctionType]] = defaultdict(list)
        self._bounds = Bounds({})

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Measure the tests, try every change that is made in a function, and write down what came of it."""
        if os.waitpid(fork(lambda: self._measure(session)), 0)[1] != 0:
            raise pytest.UsageError(
                "the tests fail already, so nothing can be learned from breaking the code"
            )
        reach = Reach(**json.loads(self._report.read_text()))
        session.config.pluginmanager.register(self._bounds)
        self._bounds.seconds = reach.seconds
        for one in gc.get_objects():
            if isinstance(one, FunctionType):
                self._functions[one.__code__.co_filename].append(one)
        gc.freeze()  # What every fork shares is not looked through in each of them.
        items = {item.nodeid: item for item in session.items}

        def attempt(change: Change) -> int:
            tests = [items[test] for test in reach.tests_for(change)]
            return self._attempt(session, change, tests)

        ends = in_forks(attempt, self._changes, self._jobs)
        libraries = [
            name
            for name, module in list(sys.modules.items())
            if "site-packages" in (getattr(module, "__file__", None) or "")
        ]
        self._report.write_text(json.dumps([vars(reach), ends, libraries]))
        return True

    def _measure(self, session: pytest.Session) -> int:
        redirect(os.open(self._report.with_suffix(".txt"), os.O_RDWR | os.O_CREAT))
        reach = self._tracer.reach = Reach({}, {})
        self._run(session, session.items)
        self._report.write_text(json.dumps(vars(reach)))
        sys.stdout.flush()
        return session.testsfailed

    def _attempt(self, session: pytest.Session, change: Change, tests: Sequence[pytest.Item]) -> int:
        target, mutant = change
        if not mutant.place.in_function:
            return SURVIVED  # Functions are the same: another try shows more.
        bound()
        codes = {(one.co_qualname, one.co_firstlineno): one for one in _nested(target.code(mutant))}
        try:
            for function in self._functions[str(target.path)]:
                old = function.__code__
                function.__code__ = codes.get((old.co_qualname, old.co_firstlineno), old)
        except ValueError:
            return SURVIVED  # It has other closures than before, so it can't be exchanged.
        self._run(session, tests)
        return NOTICED if session.testsfailed else SURVIVED

    @staticmethod
    def _run(session: pytest.Session, tests: Sequence[pytest.Item]) -> None:
        for test, following in zip(tests, [*tests[1:], None], strict=True):
            test.config.hook.pytest_runtest_protocol(item=test, nextitem=following)
            if session.testsfailed:
                return


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _nested(one)


class Changed(SourceFileLoader):
    """Imports one module from code that was made already; every other module as usual."""

    def __init__(self, name: str, path: Path, code: CodeType) -> None:
        super().__init__(name, str(path))
        self._code = code

    def find_spec(self, fullname: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        """The changed module, if it is asked for."""
        return spec_from_file_location(fullname, self.path, loader=self) if fullname == self.name else None

    def get_code(self, _fullname: str) -> CodeType:
        """The changed code."""
        return self._code


def attempt_afresh(change: Change, reach: Reach, options: Sequence[str]) -> int:
    """Import the changed module where nothing of ours is loaded yet, and run the tests; what they found."""
    # Whole files: the name of a test may hold a constant that was changed.
    files = dict.fromkeys(test.partition("::")[0] for test in reach.tests_for(change))
    if not files:
        return SURVIVED
    bound()
    target, mutant = change
    sys.meta_path.insert(0, Changed(target.name, target.path, target.code(mutant)))
    try:
        importlib.import_module(target.name)
    except Exception:  # noqa: BLE001 - Whatever it is, the module can't be imported.
        return STILLBORN
    found = pytest.main([*options, *files], plugins=[Bounds(reach.seconds)])
    return UNFIT if found in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED) else int(found)


def say(line: str) -> None:
    """Print at once: a run takes minutes."""
    print(line, flush=True)  # noqa: T201
