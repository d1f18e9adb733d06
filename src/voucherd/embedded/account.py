"""Who the server runs as: ourselves, or an unprivileged account when we are root."""

import grp
import os
import pwd
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from voucherd.embedded.errors import EmbeddedError

# PostgreSQL refuses root. A number without a passwd entry belongs to no daemon and to no login, so
# nothing else on the machine runs as it, which cannot be said of `nobody`. The range is one that the
# usual systems leave unused, and it lies below 65536, where a rootless container still maps it.
PRIVATE_IDS: Final = range(60_787, 61_184)
PROBE_S_MAX: Final = 10.0
END_S_MAX: Final = 5.0
END_POLL_S: Final = 0.02

# No PG* variable, locale or library path of the caller may reach the server.
ENVIRONMENT: Final = {"LC_ALL": "C", "TZ": "UTC", "PATH": "/usr/local/bin:/usr/bin:/bin"}


@dataclass(frozen=True)
class ServerAccount:
    """A numeric user and group, and whether a child must switch to them."""

    uid: int
    gid: int
    switches: bool

    def run(
        self, arguments: Sequence[str | Path], *, wait_s_max: float, text: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """The finished program, run as this account outside of the terminal's process group."""
        with subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            cwd="/",
            env=ENVIRONMENT,
            umask=0o077,
            start_new_session=True,
            user=self.uid if self.switches else None,
            group=self.gid if self.switches else None,
            extra_groups=[] if self.switches else None,
        ) as child:
            try:
                out, err = child.communicate(text, wait_s_max)
            except BaseException:
                _end_group(child)
                raise
        return subprocess.CompletedProcess(child.args, child.returncode, out, err)

    def spawn(self, arguments: Sequence[str | Path], *, log: IO[bytes]) -> subprocess.Popen[bytes]:
        """The started program, in a session of its own so that Ctrl-C reaches us and not it."""
        return subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=ENVIRONMENT,
            umask=0o077,
            start_new_session=True,
            user=self.uid if self.switches else None,
            group=self.gid if self.switches else None,
            extra_groups=[] if self.switches else None,
        )

    def can_enter(self, folder: Path) -> bool:
        """Whether this account may reach the folder; the kernel is asked, so ACLs count too."""
        if not self.switches:
            return True
        return self.run(["/bin/sh", "-c", 'cd "$0"', folder], wait_s_max=PROBE_S_MAX).returncode == 0

    def can_execute(self, program: Path) -> bool:
        """Whether this account can start the program, libraries and all."""
        if not self.switches:
            return True
        try:
            return self.run([program, "--version"], wait_s_max=PROBE_S_MAX).returncode == 0
        except PermissionError:
            return False

    def for_initdb(self) -> "ServerAccount":
        """The account that creates a cluster: initdb insists on a passwd entry, the server does not."""
        if not self.switches:
            return self
        try:
            nobody = pwd.getpwnam("nobody")
        except KeyError:
            raise EmbeddedError("PostgreSQL refuses to run as root and there is no user 'nobody'") from None
        # The private group keeps other processes of `nobody` out of the folder meanwhile.
        return ServerAccount(nobody.pw_uid, self.gid, switches=True)


def ourselves() -> ServerAccount:
    """The account of this process."""
    return ServerAccount(os.geteuid(), os.getegid(), switches=False)


def is_root() -> bool:
    """Whether this process runs as root, as which PostgreSQL refuses to run."""
    return os.geteuid() == 0


def private() -> ServerAccount:
    """An account that nobody else on this machine uses; only root can switch to it."""
    for number in PRIVATE_IDS:
        if not _has_entry(number) and not _has_group(number):
            return ServerAccount(number, number, switches=True)
    raise EmbeddedError(f"no free user number between {PRIVATE_IDS.start} and {PRIVATE_IDS.stop - 1}")


def _end_group(child: subprocess.Popen[str]) -> None:
    # Killed outright, the helpers of initdb would leave their shared memory behind for good.
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline_s = time.monotonic() + END_S_MAX
        try:
            os.killpg(child.pid, number)
            while time.monotonic() < deadline_s:
                child.poll()
                os.killpg(child.pid, 0)
                time.sleep(END_POLL_S)
        except (ProcessLookupError, PermissionError):
            return  # The group is empty; some systems say so by refusing.


def _has_entry(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def _has_group(gid: int) -> bool:
    try:
        grp.getgrgid(gid)
    except KeyError:
        return False
    return True
