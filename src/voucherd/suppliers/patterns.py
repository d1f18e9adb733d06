"""The look of a supplier's codes as a regular expression, from the part of them that can't run for ever.

The operator writes the pattern and the supplier the code: together they must not be able to stop the worker.
"""

from __future__ import annotations

import re
from typing import Final

PATTERN_CHARS_MAX: Final = 200
REPEAT_MAX: Final = 500
CHOICES_MAX: Final = 2
"""Repeats of varying length: each multiplies the work by a code's length."""
GROUPS_DEEP_MAX: Final = 2
"""Repeats of repeats of nothing multiply too."""

_TOKEN: Final = re.compile(
    r"(?P<class>\[\^?\]?(?:[^\]\\]|\\.)*\])"
    r"|(?P<escape>\\[dws.\-/\\])"
    r"|(?P<open>\((?:\?:)?)"
    r"|(?P<close>\))"
    r"|(?P<bar>\|)"
    r"|(?P<exact>\{[0-9]{1,3}\})"
    r"|(?P<varying>\?|\{[0-9]{1,3},[0-9]{1,3}\})"
    r"|(?P<plain>[A-Za-z0-9 _:/#@=,;-]|\.)"
)


def compile_code_pattern(text: str) -> re.Pattern[str]:
    """The pattern; a ValueError that says which rule it breaks."""
    if not 1 <= len(text) <= PATTERN_CHARS_MAX:
        raise ValueError(f"must be a pattern of 1 to {PATTERN_CHARS_MAX} characters")
    _check(text)
    try:
        return re.compile(text, re.ASCII)
    except (re.error, OverflowError):
        raise ValueError("is not a regular expression") from None


def _check(text: str) -> None:
    at, before, choices = 0, "", 0
    open_groups: list[bool] = []
    closed_varies = False
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            raise ValueError(f"has something at character {at + 1} that patterns of codes can't have")
        kind, at = found.lastgroup, found.end()
        if kind == "open":
            open_groups.append(False)
            if len(open_groups) > GROUPS_DEEP_MAX:
                raise ValueError(f"must have groups at most {GROUPS_DEEP_MAX} deep")
        elif kind == "close":
            if not open_groups:
                raise ValueError("is not a regular expression")
            closed_varies = open_groups.pop()
            if closed_varies and open_groups:
                open_groups[-1] = True
        elif kind in {"bar", "varying"}:
            choices += kind == "varying"
            if open_groups:
                open_groups[-1] = True
        if kind in ("exact", "varying"):
            if before not in ("class", "escape", "plain", "close"):
                raise ValueError(f"has a repeat of nothing before character {at + 1}")
            _check_repeat(found[0], after_group=before == "close", group_varies=closed_varies)
        before = kind
    if choices > CHOICES_MAX:
        raise ValueError(f"must have at most {CHOICES_MAX} repeats of varying length")


def _check_repeat(repeat: str, *, after_group: bool, group_varies: bool) -> None:
    if any(int(number) > REPEAT_MAX for number in re.findall(r"[0-9]+", repeat)):
        raise ValueError(f"must repeat nothing more than {REPEAT_MAX} times")
    if after_group and (group_varies or not re.fullmatch(r"\{[0-9]+\}", repeat)):
        raise ValueError("must repeat a group an exact number of times, and only one without choices in it")
