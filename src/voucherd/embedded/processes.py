"""The processes of one server, told from all others before anything is done to them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from voucherd.embedded.place import DataFolder

PROC = Path("/proc")
PS: Final = "/bin/ps"
PS_S_MAX: Final = 10.0
GONE_POLL_S: Final = 0.02
REAP_S_MAX: Final = 1.0

# Our own children among them, kept so that they can be reaped: a dead child looks alive until then.
_children: dict[int, subprocess.Popen[bytes]] = {}


@dataclass(frozen=True)
class PidFile:
    """What a postmaster has written about itself."""

    pid: int
    cluster: Path
    sockets: Path
    status: str

    def is_about(self, cluster: Path) -> bool:
        """Whether it was written here; a copied folder brings along the file of another one."""
        return self.cluster == cluster or not self.cluster.exists()


def read_pid_file(cluster: Path) -> PidFile | None:
    """The postmaster.pid of this cluster, also a stale one; None if there is none or half of one."""
    try:
        lines = (cluster / "postmaster.pid").read_text(errors="surrogateescape").splitlines()
    except FileNotFoundError:
        return None
    if not lines or not lines[0].strip("-").isdecimal():
        return None
    # A standalone backend writes its number negated.
    pid = abs(int(lines[0]))
    lines += [""] * (8 - len(lines))
    return PidFile(pid, Path(lines[1]), Path(lines[4]), lines[7].strip() or "starting")


def keep(child: subprocess.Popen[bytes]) -> None:
    """Remembers a child of ours, so that it is reaped when it has died."""
    _children[child.pid] = child


def is_postmaster(pid: int, place: DataFolder) -> bool:
    """Whether this very process is the live postmaster of this very cluster."""
    described = _describe_live(pid)
    if described is None or described[0] != place.account.uid:
        return False
    command = described[1]
    if not Path(command.split(" -D ")[0]).name.startswith("postgres"):
        return False
    # The folder may have been renamed under a running server, hence the second question.
    return f" -D {place.cluster} -c " in command or _works_in(pid, place.cluster)


def is_watcher(pid: int, place: DataFolder) -> bool:
    """Whether this very process is the live watcher of this very folder."""
    described = _describe_live(pid)
    return described is not None and f" {place.data} " in described[1] and "embedded.watcher" in described[1]


def orphans(place: DataFolder) -> list[int]:
    """The live processes of this cluster whose postmaster is gone, or all of them."""
    title, launched = f"postgres: {place.name}: ", f" -D {place.cluster} -c "
    return [
        pid
        for pid, uid, command in everything()
        if uid == place.account.uid and (command.startswith(title) or launched in command)
    ]


def everything() -> Iterator[tuple[int, int, str]]:
    """The number, user and command line of every live process that we may see."""
    if not PROC.is_dir():
        yield from _ps("-ax")
        return
    for entry in PROC.iterdir():
        if entry.name.isdecimal():
            described = _describe(int(entry.name))
            if described is not None:
                yield int(entry.name), *described


def send(pid: int, number: signal.Signals, is_meant: Callable[[int], bool]) -> bool:
    """Whether the process was the one meant, and got the signal."""
    try:
        with _held(pid) as handle:
            if not is_meant(pid):
                return False
            if sys.platform == "linux" and handle is not None:
                signal.pidfd_send_signal(handle, number)
            else:
                os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def wait_until(condition: Callable[[], bool], *, wait_s_max: float) -> bool:
    """Whether the condition came true in time."""
    deadline_s = time.monotonic() + wait_s_max
    while not condition():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(GONE_POLL_S)
    return True


@contextmanager
def _held(pid: int) -> Iterator[int | None]:
    """A handle that stays with the process, so that a number reused meanwhile does no harm."""
    handle = None
    if sys.platform == "linux":
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            raise
        except OSError:
            handle = None  # An old kernel or a sandbox: the number alone has to do.
    try:
        yield handle
    finally:
        if handle is not None:
            os.close(handle)


def _describe_live(pid: int) -> tuple[int, str] | None:
    """The user and the command line of a live process; a child of ours that has died is reaped."""
    described = _describe(pid)
    child = _children.get(pid)
    if child is None:
        return described
    if described is None:
        # Its command line goes a moment before it can be reaped.
        with suppress(subprocess.TimeoutExpired):
            child.wait(REAP_S_MAX)
    if child.poll() is None:
        return described
    _children.pop(pid, None)
    return None


def _describe(pid: int) -> tuple[int, str] | None:
    """The user and the command line of a live process."""
    if not PROC.is_dir():
        return next(((uid, command) for _, uid, command in _ps("-p", str(pid))), None)
    try:
        uid = (PROC / str(pid)).stat().st_uid
        command = os.fsdecode((PROC / str(pid) / "cmdline").read_bytes()).replace("\0", " ").strip(" ")
    except OSError:
        return None
    # A zombie has no command line any more.
    return (uid, command + " ") if command else None


def _ps(*which: str) -> Iterator[tuple[int, int, str]]:
    # Where there is no /proc (macOS), ps is part of the system. Its last column is the command line.
    listed = subprocess.run(
        [PS, "-ww", *which, "-o", "pid=,uid=,command="],
        capture_output=True,
        text=True,
        errors="surrogateescape",
        timeout=PS_S_MAX,
        check=False,
    )
    for line in listed.stdout.splitlines():
        pid, uid, *command = line.split(None, 2)
        if command and not command[0].endswith("<defunct>"):
            yield int(pid), int(uid), command[0].strip(" ") + " "


def _works_in(pid: int, folder: Path) -> bool:
    try:
        return (PROC / str(pid) / "cwd").samefile(folder)
    except OSError:
        return False
