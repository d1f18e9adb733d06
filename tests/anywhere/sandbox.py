"""A container without an engine: a read-only root of its own, an account without rights, and secrets as files."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from tests.anywhere.installed import ROOT

UID: Final = 10001
SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
ETC: Final = ("ld.so.cache", "nsswitch.conf", "ssl", "ca-certificates.conf", "localtime")


@dataclass(frozen=True)
class Sandbox:
    """What a container would see beside the system's own programs."""

    seen: tuple[Path, ...] = ()
    """Folders that can be read at their own places."""
    kept: Mapping[str, Path] = field(default_factory=dict)
    """Folders that can be written, by the place where they are seen."""
    secrets: Mapping[str, Path] = field(default_factory=dict)
    """Files below /run/secrets, by name."""
    memory: Sequence[str] = ()
    """Places in memory, as compose writes them: /tmp:mode=1777,size=64m."""

    def command(self, words: Sequence[str | Path], env: Mapping[str, str]) -> list[str]:
        """The command line that runs these words in it; the words' own environment is all that they get."""
        return [
            "/usr/bin/unshare",
            "--mount",
            "--propagation",
            "private",
            "/bin/sh",
            "-euc",
            self._script(words, env),
        ]

    def _script(self, words: Sequence[str | Path], env: Mapping[str, str]) -> str:
        lines = [
            "root=/mnt",
            "mount -t tmpfs -o mode=0755 tmpfs $root",
            "mkdir -p $root/etc $root/run/secrets $root/proc $root/dev",
            "mount -t proc proc $root/proc",
            *(
                line
                for device in DEVICES
                for line in (f"touch $root{device}", f"mount --bind {device} $root{device}")
            ),
            *(f"if [ -e /etc/{name} ]; then cp -a /etc/{name} $root/etc/; fi" for name in ETC),
            f"echo 'voucherd:x:{UID}:{UID}::/data:/usr/sbin/nologin' >$root/etc/passwd",
            f"echo 'voucherd:x:{UID}:' >$root/etc/group",
            "echo '127.0.0.1 localhost db' >$root/etc/hosts",
        ]
        for path in map(Path, SYSTEM):
            if path.is_symlink():
                lines.append(f"ln -s {path.readlink()} $root{path}")
            elif path.exists():
                lines += _bound(path, path)
        for place in self.memory:
            path_, _, options = place.partition(":")
            lines += [
                f"mkdir -p $root{path_}",
                f"mount -t tmpfs -o '{options or 'mode=1777'}' tmpfs $root{path_}",
            ]
        # After the memory: this suite may itself be below /tmp.
        for path in self.seen:
            lines += _bound(path, path)
        for name, file in self.secrets.items():
            lines += [
                f"cp {shlex.quote(str(file))} $root/run/secrets/{name}",
                f"chmod 444 $root/run/secrets/{name}",
            ]
        for place, source in self.kept.items():
            lines += _bound(source, Path(place), read_only=False)
        # From here on nothing can be written but what was named.
        lines.append("mount -o remount,ro $root")
        given = " ".join(shlex.quote(f"{name}={value}") for name, value in env.items())
        spoken = " ".join(shlex.quote(str(word)) for word in words)
        lines.append(
            f"exec chroot $root /usr/bin/setpriv --reuid {UID} --regid {UID} --clear-groups --no-new-privs"
            f" --inh-caps=-all --bounding-set=-all /usr/bin/env -i {given} {spoken}"
        )
        return "\n".join(lines)


def _bound(source: Path, place: Path, *, read_only: bool = True) -> list[str]:
    target = f"$root{shlex.quote(str(place))}"
    lines = [f"mkdir -p {target}", f"mount --bind {shlex.quote(str(source))} {target}"]
    return [*lines, f"mount -o remount,bind,ro {target}"] if read_only else lines


def interpreter() -> tuple[Path, ...]:
    """Where this suite's Python and its packages are."""
    found = (Path(sys.prefix), Path(sys.base_prefix), ROOT / "deploy")
    return tuple(path for path in found if not str(path).startswith("/usr"))


def refuse_without_root() -> None:
    """Skip where namespaces can't be made."""
    if os.getuid() != 0 or shutil.which("unshare") is None or shutil.which("setpriv") is None:
        pytest.skip("a root of its own takes root's rights")
