"""`make mutate`: breaks the code in one small place at a time and sees whether a test notices.

The tests are collected once, in a process that is then forked for every change. A fork gives the module's functions
their changed code and runs the tests that reach the change, the fastest first. What is not noticed there, and what is
made while the module is loaded, is tried once more where nothing of ours is loaded yet: there the changed module is
imported in the place of the real one. A change that survives that, too, is listed in tests/mutation/mutate.toml with a
reason, or the run fails. It fails as well when fewer changes are noticed than that file asks for.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import sys
import time
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest

from tools.mutant_runs import (
    OPTIONS,
    STILLBORN,
    SURVIVED,
    UNFIT,
    Reach,
    Target,
    Tracer,
    Warm,
    attempt_afresh,
    fork,
    in_forks,
    say,
)
from tools.mutants import mutants_of, read

CONFIG: Final = Path("tests/mutation/mutate.toml")


def settle_chance() -> None:
    """Let property tests try the same examples every time, and stop at the first that fails."""
    from hypothesis import HealthCheck, Phase, settings  # noqa: PLC0415 - Not before a fork that needs it.

    settings.register_profile(
        "mutate",
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    settings.load_profile("mutate")


def read_targets(config: dict[str, Any], root: Path, only: Sequence[str]) -> list[Target]:
    """The modules of the list whose paths contain one of these words; all of them if there is none."""
    targets = []
    source = (root / config["source"]).resolve()
    for one in config["module"]:
        path = (root / one["path"]).resolve()
        if only and not any(word in one["path"] for word in only):
            continue
        name = ".".join(path.relative_to(source).with_suffix("").parts)
        tree = read(path)
        mutants = mutants_of(tree, frozenset(one.get("leave_out", ())))
        targets.append(Target(path, name, one.get("survivor", []), tree, mutants))
    return targets


def try_all(targets: Sequence[Target], config: dict[str, Any], jobs: int) -> None:
    """Try every change, so many at once, and note in the targets what became of it."""
    changes = [(target, mutant) for target in targets for mutant in target.mutants]
    options = [*OPTIONS, *[f"--deselect={test}" for test in config.get("tests_left_out", ())]]
    with TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        settle_chance()

        def warm() -> int:
            tracer = Tracer(frozenset(str(target.path) for target in targets))
            plugins = [tracer, Warm(changes, jobs, report, tracer)]
            return int(pytest.main([*options, *config["tests"]], plugins=plugins))

        if os.waitpid(fork(warm), 0)[1] != 0:
            raise SystemExit("The changes could not be tried.")
        found, ends, libraries = json.loads(report.read_text())
    reach = Reach(**found)
    for name in libraries:
        with suppress(Exception):
            importlib.import_module(name)
    gc.freeze()
    unsure = [at for at, end in enumerate(ends) if end in (SURVIVED, UNFIT)]
    say(f"{len(changes)} changes, of which {len(changes) - len(unsure)} were noticed at once.")
    again = [changes[at] for at in unsure]
    afresh = in_forks(lambda change: attempt_afresh(change, reach, options), again, jobs)
    for at, end in zip(unsure, afresh, strict=True):
        ends[at] = end
    for (target, mutant), end in zip(changes, ends, strict=True):
        if end == UNFIT:
            raise SystemExit(f"No tests could be run on {target.name}, line {mutant.line}: {mutant.words()}")
        if end == SURVIVED:
            target.survived.append(mutant)
        words = {SURVIVED: "survived", STILLBORN: "stillborn"}
        target.ends["endless" if end < 0 else words.get(end, "noticed")] += 1


def judge(targets: Sequence[Target], score_min: float) -> int:
    """Say what survived; 0 only if the score is reached and the list of survivors is right."""
    wrong = 0
    for target in targets:
        say(
            f"{target.name:32} {target.noticed:4} of {target.tried:4} noticed"
            f" ({target.ends['endless']} never ended, {target.ends['stillborn']} more could not be imported)"
        )
    for target in targets:
        listed = {(one["in"], one["was"], one["now"]) for one in target.survivors if one.get("why")}
        possible = {(mutant.place.function, *mutant.words()) for mutant in target.mutants}
        survived = {(mutant.place.function, *mutant.words()): mutant for mutant in target.survived}
        for key, mutant in survived.items():
            if key not in listed:
                wrong += 1
                function, was, now = (json.dumps(word, ensure_ascii=False) for word in key)
                say(f"\n# {target.name}, line {mutant.line}: no test notices this, and it is not listed.")
                say(f"[[module.survivor]]\nin = {function}\nwas = {was}\nnow = {now}\nwhy = ")
        for function, was, now in sorted(listed - possible):
            wrong += 1
            say(
                f"\n{target.name}: the list names a change that can't be made any more, {function}: {was} → {now}"
            )
        for function, was, now in sorted(listed & possible - survived.keys()):
            say(f"\n{target.name}: a test notices {function}: {was} → {now}; it need not be listed.")
    noticed, tried = (sum(getattr(target, word) for target in targets) for word in ("noticed", "tried"))
    score = 100 * noticed / max(1, tried)
    say(f"\n{noticed} of {tried} changes were noticed: {score:.1f}%, and {score_min}% is the least.")
    return 1 if wrong or score < score_min else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Break the modules of the list, or those whose paths contain one of the given words."""
    parser = argparse.ArgumentParser(description="Break the code and see whether a test notices.")
    parser.add_argument("only", nargs="*", help="words of the paths of modules; none means all")
    parser.add_argument("--config", type=Path, default=CONFIG)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    config = tomllib.loads(options.config.read_text(encoding="utf-8"))
    targets = read_targets(config, Path.cwd(), options.only)
    began = time.monotonic()
    try_all(targets, config, options.jobs)
    end = judge(targets, config["score_min"])
    say(f"It took {(time.monotonic() - began) / 60:.0f} minutes.")
    return end


if __name__ == "__main__":
    sys.exit(main())
