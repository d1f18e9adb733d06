"""What the processes use, as the kernel counts it; zero where there is no /proc to ask."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
_TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """Processor time of one process so far."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) * _TICK_S if fields else 0.0


def parent(pid: int) -> int:
    """The process that started this one."""
    fields = _stat(pid)
    return int(fields[1]) if fields else 0


def family_cpu_s(pid: int) -> float:
    """Processor time of a process and its direct children, those that have ended included."""
    if not pid or not PROC.is_dir():
        return 0.0
    total = cpu_s(pid)
    own = _stat(pid)
    if own:
        total += (int(own[13]) + int(own[14])) * _TICK_S
    for entry in PROC.iterdir():
        if entry.name.isdecimal():
            fields = _stat(int(entry.name))
            if fields and int(fields[1]) == pid:
                total += (int(fields[11]) + int(fields[12])) * _TICK_S
    return total


def rss_mb(pid: int) -> float:
    """Resident memory of a process now."""
    return _status_mb(pid, "VmRSS")


def peak_rss_mb(pid: int) -> float:
    """The most resident memory a process ever had."""
    return _status_mb(pid, "VmHWM")


def _stat(pid: int) -> list[str]:
    """The fields after the name, which may hold blanks itself."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _status_mb(pid: int, name: str) -> float:
    try:
        lines = (PROC / str(pid) / "status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith(name + ":")), 0.0)
