"""Where one embedded database lives on the disk, and which account may touch it."""

import hashlib
import logging
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from voucherd.embedded import account, durable, programs
from voucherd.embedded.account import ServerAccount
from voucherd.embedded.errors import EmbeddedError

HOME: Final = "postgres"
# Names the folder under SYSTEM_ROOT that stands in where the server cannot reach the data folder.
POINTER: Final = "postgres.location"
SYSTEM_ROOT: Path = Path("/var/lib/voucherd")

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class DataFolder:
    """The operator's data folder, our folder for the database, and the account the server runs as."""

    data: Path
    home: Path
    account: ServerAccount

    @property
    def cluster(self) -> Path:
        """PostgreSQL's own data directory."""
        return self.home / "cluster"

    @property
    def log(self) -> Path:
        """What the server has to say."""
        return self.home / "server.log"

    @property
    def name(self) -> str:
        """What the server's processes are called, so that they can be told from others."""
        return f"voucherd-{_digest(self.cluster)}"

    def password(self) -> str:
        """The password of this database, made at its first start."""
        path = self.home / "password"
        if path.exists():
            return path.read_text()
        if self.cluster.exists():
            raise EmbeddedError(
                f"{path} is missing: put it back from a backup, the database opens with it only"
            )
        # mkstemp makes it 0600 from its first moment.
        return durable.write_once(path, secrets.token_hex(32))

    def check(self) -> None:
        """Refuses a database of another major version; nothing has been touched then."""
        if not self.cluster.exists():
            return
        try:
            major = (self.cluster / "PG_VERSION").read_text().strip()
        except FileNotFoundError:
            raise EmbeddedError(
                f"{self.cluster} is not a PostgreSQL database (it has no PG_VERSION)"
            ) from None
        if major != programs.MAJOR:
            raise EmbeddedError(
                f"{self.cluster} was made by PostgreSQL {major} and this is PostgreSQL {programs.MAJOR}: "
                "dump it with the version that made it, and restore into a new data folder"
            )


def find(data: Path) -> DataFolder | None:
    """The place of a database that was started here before; makes nothing."""
    data = data.resolve()
    pointer = data / POINTER
    if pointer.exists():
        home = SYSTEM_ROOT / Path(pointer.read_text().strip()).name
        if not home.is_dir():
            raise EmbeddedError(f"the database of {data} was in {home}, which is not there any more")
    else:
        home = data / HOME
        if not home.is_dir():
            return None
    place = DataFolder(data, home, _account_of(home))
    if not place.account.can_enter(home):
        # A new database elsewhere would hide this one, so the operator has to decide.
        raise EmbeddedError(f"the server's account (user {place.account.uid}) cannot reach {home}")
    return place


def settle(data: Path) -> DataFolder:
    """The place of the database of this data folder, made if it is new."""
    found = find(data)
    if found is not None:
        return found
    data = data.resolve()
    server = account.private() if account.is_root() else account.ourselves()
    data.parent.mkdir(parents=True, exist_ok=True)
    make_passable(data, server)
    if server.can_enter(data):
        make_passable(data / HOME, server)
    else:
        _settle_elsewhere(data, server)
    place = find(data)
    assert place is not None
    return place


def _settle_elsewhere(data: Path, server: ServerAccount) -> None:
    # The random part makes a data folder that was removed and made anew start afresh, as it would at home.
    home = SYSTEM_ROOT / f"{_digest(data)}-{secrets.token_hex(4)}"
    SYSTEM_ROOT.parent.mkdir(parents=True, exist_ok=True)
    durable.make_folder(SYSTEM_ROOT, 0o711)
    make_passable(home, server)
    if durable.write_once(data / POINTER, home.name) != home.name:
        home.rmdir()
    else:
        logger.warning(
            "the server runs as user %d, which cannot reach %s: its database is in %s", server.uid, data, home
        )


def make_passable(folder: Path, server: ServerAccount) -> None:
    """The folder exists; made here, it is ours, and the server's account may pass through."""
    # Root keeps the folder, and the private group lets the server and nobody else pass through.
    if server.switches:
        durable.make_folder(folder, 0o710, (0, server.gid))
    else:
        durable.make_folder(folder, 0o700)


def _account_of(home: Path) -> ServerAccount:
    """The account that the files there belong to: a server must run as the same one every time."""
    owner = home.lstat()
    if owner.st_uid != os.geteuid():
        # Root, too, had better not write where another user can put links in its way.
        raise EmbeddedError(f"{home} belongs to user {owner.st_uid}: run voucherd as that user")
    if not account.is_root():
        return account.ourselves()
    cluster = home / "cluster"
    if cluster.exists() and cluster.lstat().st_uid != 0:
        status = cluster.lstat()
        return ServerAccount(status.st_uid, status.st_gid, switches=True)
    return (
        ServerAccount(owner.st_gid, owner.st_gid, switches=True) if owner.st_gid != 0 else account.private()
    )


def _digest(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
