"""Where a value lies in a JSON document: `data.items[].pin`, `orders[0].id`, `status`."""

from __future__ import annotations

import re
from typing import Any, Final, TypeAlias

PATH_CHARS_MAX: Final = 200
DEPTH_MAX: Final = 10
VALUES_MAX: Final = 100_000
"""Values that one path may lead to; an answer with more is not one of ours."""

Step: TypeAlias = str | int | None
"""A key, a place in a list, or None for every element of a list."""
Path: TypeAlias = tuple[Step, ...]

_PART: Final = re.compile(r"([A-Za-z0-9_@$:-]+)?((?:\[[0-9]{0,4}\])*)")


def parse(text: str) -> Path:
    """The path that the text writes; a ValueError if it writes none."""
    if not 1 <= len(text) <= PATH_CHARS_MAX:
        raise ValueError(f"must be a path of 1 to {PATH_CHARS_MAX} characters, such as data.items[].pin")
    steps: list[Step] = []
    for at, part in enumerate(text.split(".")):
        found = _PART.fullmatch(part)
        # Only a document that is a list itself starts without a name.
        if found is None or (not found[1] and (at or not found[2])):
            raise ValueError("must be a path such as data.items[].pin")
        if found[1]:
            steps.append(found[1])
        steps += [int(place) if place else None for place in re.findall(r"\[([0-9]*)\]", found[2])]
    if len(steps) > DEPTH_MAX:
        raise ValueError(f"must have at most {DEPTH_MAX} steps")
    return tuple(steps)


def is_list(path: Path) -> bool:
    """Whether the path leads to many values."""
    return None in path


def rows_of(path: Path) -> Path:
    """The path of the list that the last `[]` goes through; empty for a path to one value."""
    return path[: len(path) - path[::-1].index(None)] if None in path else ()


def values(document: Any, path: Path) -> list[Any]:
    """The values at the path, in order. One that is missing in an element of a list is None, so lists stay in step."""
    found = [document]
    for step in path:
        if step is None:
            found = [each for value in found if isinstance(value, list) for each in value[:VALUES_MAX]]
            found = found[:VALUES_MAX]
        else:
            found = [_below(value, step) for value in found]
    return found


def value(document: Any, path: Path) -> Any:
    """The one value at a path; None if there is none, or more than one."""
    found = values(document, path)
    return found[0] if len(found) == 1 else None


def _below(value: Any, step: str | int) -> Any:
    if isinstance(step, str):
        return value.get(step) if isinstance(value, dict) else None
    return value[step] if isinstance(value, list) and step < len(value) else None
