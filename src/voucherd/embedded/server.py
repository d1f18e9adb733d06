"""One PostgreSQL server on one data folder: started, found, adopted, stopped."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import quote

from voucherd.embedded import cluster, place, processes, serverlog, sockets, tuning
from voucherd.embedded.errors import EmbeddedError
from voucherd.embedded.processes import PidFile
from voucherd.embedded.programs import binaries_for

# Replaying what a power cut has left takes as long as there is log to replay, up to max_wal_size.
START_S_MAX: Final = 300.0
START_POLL_S: Final = 0.01
# A clean stop writes a last checkpoint; then come a stop without one, and the end of all patience.
STOPS: Final = ((signal.SIGINT, 60.0), (signal.SIGQUIT, 15.0), (signal.SIGKILL, 5.0))
# Processes without their postmaster leave by themselves at once, unless they are stuck.
ORPHANS_LEAVE_S_MAX: Final = 1.0
ORPHANS_STOPS: Final = ((signal.SIGQUIT, 1.0), (signal.SIGKILL, 5.0))


class EmbeddedPostgres:
    """The server of one data folder. A process that starts or stops it holds the start-stop lock."""

    def __init__(self, data: Path, settings: Mapping[str, str] = {}, *, throwaway: bool = False) -> None:
        tuning.check(settings)
        self.place = place.settle(data)
        self._settings = dict(settings)
        self._throwaway = throwaway

    @property
    def dsn(self) -> str:
        """The address of the running server, for asyncpg and libpq; it holds the password."""
        found = self.found()
        if found is None:
            raise EmbeddedError(f"no database is running on {self.place.data}")
        host, port = quote(str(found.sockets), safe=""), tuning.PRIVATE["port"]
        return f"postgresql://voucherd:{self.place.password()}@/voucherd?host={host}&port={port}"

    def found(self) -> PidFile | None:
        """What the live postmaster says of itself; a stale file or somebody else's process is nothing."""
        written = processes.read_pid_file(self.place.cluster)
        return written if written is not None and self._is_ours(written.pid) else None

    def has_crashed(self) -> bool:
        """Whether the server is gone without having been stopped: a clean stop removes its file."""
        return processes.read_pid_file(self.place.cluster) is not None and self.found() is None

    def start(self, *, alone: bool) -> None:
        """Leaves the server ready, whatever was there before; `alone` when nobody else uses it."""
        self.place.check()
        programs = binaries_for(self.place.account, place.SYSTEM_ROOT)
        cluster.remove_half_made(self.place)
        if not self.place.cluster.exists():
            cluster.create(self.place, programs, sync=not self._throwaway)
        cluster.take_back(self.place)
        self.place.password()
        found = self.found()
        if found is not None and alone and self._is_set_otherwise(found, programs):
            self.stop()
            found = None
        if found is None or not self._adopt(found.pid):
            self._clear_the_way()
            self._launch(programs)

    def stop(self) -> bool:
        """Stops the server as cleanly as it lets itself be stopped; False if none was running."""
        found = self.found()
        if found is None:
            # One that was interrupted at its very start has written nothing about itself yet.
            self._dismiss_orphans()
            return False
        for number, wait_s_max in STOPS:
            processes.send(found.pid, number, self._is_ours)
            if processes.wait_until(lambda: not self._is_ours(found.pid), wait_s_max=wait_s_max):
                sockets.clear(self.place, found.sockets)
                return True
        raise EmbeddedError(f"the database on {self.place.data} (pid {found.pid}) does not stop")

    def _adopt(self, pid: int) -> bool:
        """Whether a server that was found is ready; False once it is gone, as one that was stopping is."""

        def is_settled() -> bool:
            return self._is_ready(pid) or not self._is_ours(pid)

        if not processes.wait_until(is_settled, wait_s_max=START_S_MAX):
            raise EmbeddedError(f"the database on {self.place.data} (pid {pid}) does not get ready")
        return self._is_ready(pid)

    def _launch(self, programs: Path) -> None:
        serverlog.trim(self.place)
        offset = serverlog.size(self.place)
        arguments = self._arguments(programs, sockets.make_folder(self.place))
        with serverlog.opened(self.place) as log:
            child = self.place.account.spawn(arguments, log=log)
        processes.keep(child)
        try:
            self._wait_until_ready(child, offset)
        except BaseException:
            # Ctrl-C during the start, too, leaves no server behind.
            self._abandon(child)
            raise

    def _wait_until_ready(self, child: subprocess.Popen[bytes], offset: int) -> None:
        deadline_s = time.monotonic() + START_S_MAX
        while not self._is_ready(child.pid):
            if child.poll() is not None:
                why = serverlog.reason(self.place, serverlog.since(self.place, offset))
                raise EmbeddedError(
                    f"the database on {self.place.data} does not start: {why} (see {self.place.log})"
                )
            if time.monotonic() > deadline_s:
                raise EmbeddedError(
                    f"the database on {self.place.data} is not ready after {START_S_MAX:.0f} s"
                )
            time.sleep(START_POLL_S)

    def _is_ready(self, pid: int) -> bool:
        written = processes.read_pid_file(self.place.cluster)
        return written is not None and written.pid == pid and written.status == "ready"

    def _abandon(self, child: subprocess.Popen[bytes]) -> None:
        for number, wait_s_max in STOPS:
            if child.poll() is None:
                child.send_signal(number)
            if processes.wait_until(lambda: child.poll() is not None, wait_s_max=wait_s_max):
                return

    def _clear_the_way(self) -> None:
        """Removes what a killed server has left behind, and nothing that is not ours."""
        path = self.place.cluster / "postmaster.pid"
        written = processes.read_pid_file(self.place.cluster)
        if path.exists():
            self._dismiss_orphans()
        folders = {self.place.home / "run"}
        if written is not None and written.is_about(self.place.cluster):
            folders.add(written.sockets)
        # Nothing is touched before this question: a server takes its file's loss as an order to end.
        if any(sockets.answers(folder) for folder in folders):
            raise EmbeddedError(
                f"a server that cannot be seen from here (in a container?) uses {self.place.data}"
            )
        if written is not None:
            self._disown_pid_file(path)
        else:
            # PostgreSQL refuses half a file, and there is nothing in it to protect.
            path.unlink(missing_ok=True)
        for folder in folders:
            sockets.clear(self.place, folder)

    def _dismiss_orphans(self) -> None:
        def are_gone() -> bool:
            return not processes.orphans(self.place)

        if processes.wait_until(are_gone, wait_s_max=ORPHANS_LEAVE_S_MAX):
            return
        for number, wait_s_max in ORPHANS_STOPS:
            for pid in processes.orphans(self.place):
                processes.send(pid, number, lambda one: one in processes.orphans(self.place))
            if processes.wait_until(are_gone, wait_s_max=wait_s_max):
                return

    def _disown_pid_file(self, path: Path) -> None:
        # PostgreSQL believes a file that names any live process of its user. A server ignores its own
        # parent there, so our number makes the file stale, while the rest of it still lets the server
        # find memory that is in use. Removing the file would remove that protection, too.
        _, _, rest = path.read_bytes().partition(b"\n")
        handle, half = tempfile.mkstemp(prefix=".pid-", dir=self.place.home)
        with os.fdopen(handle, "wb") as file:
            file.write(f"{os.getpid()}\n".encode() + rest)
        if self.place.account.switches:
            os.chown(half, self.place.account.uid, self.place.account.gid)
        Path(half).rename(path)

    def _arguments(self, programs: Path, folder: Path) -> list[str]:
        flags = tuning.flags(self._settings, self._throwaway, name=self.place.name, sockets=folder)
        return [str(programs / "postgres"), "-D", str(self.place.cluster), *flags]

    def _is_set_otherwise(self, found: PidFile, programs: Path) -> bool:
        """Whether the running server was started with other settings than these."""
        program, *rest = self._arguments(programs, found.sockets)
        wanted = program + "".join(f' "{part}"' for part in rest)
        return (self.place.cluster / "postmaster.opts").read_text().strip() != wanted

    def _is_ours(self, pid: int) -> bool:
        return processes.is_postmaster(pid, self.place)
