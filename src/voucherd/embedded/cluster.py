"""A new database: made under another name and renamed, so that it is whole or not there."""

import os
import secrets
import shutil
import tempfile
from pathlib import Path
from typing import Final

from voucherd.embedded import account, durable, processes, serverlog
from voucherd.embedded.account import ServerAccount
from voucherd.embedded.errors import EmbeddedError
from voucherd.embedded.place import DataFolder

INITDB_S_MAX: Final = 120.0
HALF_MADE: Final = ".new-"

# The owner is no superuser: it owns its database, may make others and may look at the server's state; migrations and
# backups run as it. The service has a role that owns nothing, so it can alter no table and switch off no guard; like
# the owner it is not bound by the policies, which are for the tenants' role. That one is taken by reads that serve one
# company, and owns nothing either. The role for backups copies the server's files. The superuser has no password, and
# without one nobody can log in as it.
SETUP: Final = """\
CREATE ROLE voucherd LOGIN CREATEDB PASSWORD '{password}'
CREATE ROLE voucherd_service LOGIN BYPASSRLS PASSWORD '{password}'
CREATE ROLE voucherd_backup LOGIN REPLICATION PASSWORD '{password}'
GRANT pg_monitor, pg_checkpoint, pg_signal_backend TO voucherd
GRANT pg_monitor TO voucherd_service
CREATE ROLE voucherd_tenant NOLOGIN
GRANT voucherd_tenant TO voucherd, voucherd_service WITH INHERIT FALSE, SET TRUE
CREATE DATABASE voucherd OWNER voucherd
ALTER ROLE postgres PASSWORD NULL
"""


def create(place: DataFolder, programs: Path, *, sync: bool) -> None:
    """Makes the cluster; the caller holds the start-stop lock."""
    half = Path(tempfile.mkdtemp(prefix=HALF_MADE, dir=place.home))
    try:
        if place.account.switches:
            # Root keeps the folder; the maker passes through by the private group.
            os.chown(half, 0, place.account.gid)
            half.chmod(0o710)
        _initialise(place, half, programs)
        if place.account.switches:
            durable.give_tree(half / "cluster", (place.account.uid, place.account.gid))
        if sync:
            durable.sync_tree(half / "cluster")
        (half / "cluster").rename(place.cluster)
        durable.sync(place.home)
    finally:
        shutil.rmtree(half, ignore_errors=True)


def remove_half_made(place: DataFolder) -> None:
    """Removes what a killed first start has left, unless its initdb is still at it."""
    left = list(place.home.glob(f"{HALF_MADE}*"))
    busy = [command for _, _, command in processes.everything()] if left else []
    for half in left:
        # Cut off in the middle, it would leave its shared memory behind for good; the next start is time enough.
        if not any(str(half) in command for command in busy):
            shutil.rmtree(half, ignore_errors=True)


def take_back(place: DataFolder) -> None:
    """Gives a cluster that root has copied in, and so owns, to the server's account."""
    if account.is_root() and place.cluster.stat().st_uid == 0:
        durable.give_tree(place.cluster, (place.account.uid, place.account.gid))


def _initialise(place: DataFolder, half: Path, programs: Path) -> None:
    maker = place.account.for_initdb()
    cluster, secret = half / "cluster", half / "secret"
    cluster.mkdir(mode=0o700)
    # The superuser's first password is never kept; initdb only insists on one.
    secret.touch(mode=0o600)
    if maker.switches:
        for path in (cluster, secret):
            os.chown(path, maker.uid, maker.gid)
    secret.write_text(secrets.token_hex(32))
    options = (
        f"--pgdata={cluster}",
        "--username=postgres",
        f"--pwfile={secret}",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--locale=C",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        "--data-checksums",
        # Everything is synced once, after its owner has been set, and removed by us if it fails.
        "--no-sync",
        "--no-clean",
        "--no-instructions",
    )
    _run(place, maker, programs / "initdb", *options)
    # Single-user mode, too, wants a passwd entry, and needs neither a socket nor a password.
    alone = ("--single", "-D", str(cluster), "-c", "exit_on_error=true", "postgres")
    _run(place, maker, programs / "postgres", *alone, text=SETUP.format(password=place.password()))


def _run(place: DataFolder, maker: ServerAccount, *arguments: str | Path, text: str = "") -> None:
    done = maker.run(arguments, wait_s_max=INITDB_S_MAX, text=text)
    if done.returncode != 0:
        raise EmbeddedError(f"cannot create the database: {serverlog.reason(place, done.stderr)}")
