"""`make audit-deps`: the locked dependencies against the published advisories; says plainly what could not be asked."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

LOCK: Final = Path(__file__).parents[1] / "requirements-dev.lock"
AUDIT_S_MAX: Final = 600
FOUND, NOT_ASKED = 1, 2


def main() -> int:
    """Ask about every locked version; 0 only if all were asked about and nothing is known of any."""
    command = [
        sys.executable,
        "-m",
        "pip_audit",
        "--disable-pip",
        "--require-hashes",
        "--format",
        "json",
        "-r",
        str(LOCK),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=AUDIT_S_MAX, check=False)
    except subprocess.TimeoutExpired:
        return _end(
            NOT_ASKED, f"The advisories did not answer within {AUDIT_S_MAX} seconds: nothing was audited."
        )
    try:
        asked: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        last = (done.stderr.strip().splitlines() or ["no word"])[-1]
        return _end(NOT_ASKED, f"The advisories could not be asked, so nothing was audited: {last[:300]}")
    return judge(asked)


def judge(asked: list[dict[str, Any]]) -> int:
    """Say what is known of these versions."""
    for one in asked:
        for flaw in one.get("vulns", ()):
            fixed = ", ".join(flaw.get("fix_versions", ())) or "no version yet"
            _say(f"{one['name']} {one['version']}: {flaw['id']}, fixed in {fixed}")
    flawed = [one for one in asked if one.get("vulns")]
    skipped = [one for one in asked if "skip_reason" in one]
    if flawed:
        return _end(FOUND, f"{len(flawed)} of {len(asked)} locked packages have known flaws.")
    if skipped or not asked:
        return _end(
            NOT_ASKED,
            f"{len(skipped)} of {len(asked)} locked packages could NOT be audited: their advisories are not to be had "
            "from here. Run this where the package index can be reached.",
        )
    return _end(0, f"{len(asked)} locked packages, and nothing is known against any of them.")


def _end(status: int, words: str) -> int:
    _say(words)
    return status


def _say(words: str) -> None:
    sys.stdout.write(words + "\n")


if __name__ == "__main__":
    sys.exit(main())
