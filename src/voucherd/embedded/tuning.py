"""How the server is set: durable always, private always, and sized for a small machine."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from voucherd.embedded.errors import EmbeddedError

MIB: Final = 1024 * 1024
SHARED_BUFFERS_MIB_MAX: Final = 256
SHARED_BUFFERS_MIB_MIN: Final = 16
CGROUP_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")

# Money is committed here: what was acknowledged survives a power cut. Nobody may weaken these.
DURABLE: Final = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
}

# Reached through a socket in a private folder, with a password, and in no other way.
PRIVATE: Final = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "password_encryption": "scram-sha-256",
    "port": "5432",
}

SIZED: Final = {
    "max_connections": "100",
    "wal_compression": "on",
    "max_wal_size": "2GB",
    "checkpoint_completion_target": "0.9",
    "random_page_cost": "1.1",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # The log must not repeat what a statement carried: there are voucher codes in them.
    "log_line_prefix": "%m [%p] ",
    "log_min_messages": "warning",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    # A login manager may remove the POSIX memory of a user who logs out, and a container's /dev/shm
    # is small. Most of it fits into the main memory, and files take the rest.
    "dynamic_shared_memory_type": "mmap",
    "min_dynamic_shared_memory": "16MB",
}

# Where things are is decided by the supervisor; elsewhere they would escape it.
PLACED: Final = frozenset(
    {
        "cluster_name",
        "config_file",
        "data_directory",
        "external_pid_file",
        "hba_file",
        "ident_file",
        "log_destination",
        "logging_collector",
        "unix_socket_directories",
        "unix_socket_group",
    }
)


def check(settings: Mapping[str, str]) -> None:
    """Refuses settings that are not the caller's to choose."""
    guarded = sorted(key for key in settings if key.lower() in DURABLE.keys() | PRIVATE.keys() | PLACED)
    if guarded:
        raise EmbeddedError(
            f"the embedded database does not allow to set {', '.join(guarded)}; tests have throwaway()"
        )


def flags(settings: Mapping[str, str], throwaway: bool, *, name: str, sockets: Path) -> list[str]:
    """The server's -c flags, which beat every file and every ALTER SYSTEM."""
    chosen = {
        **SIZED,
        **memory(),
        **settings,
        **PRIVATE,
        **DURABLE,
        **({"fsync": "off"} if throwaway else {}),
        "cluster_name": name,
        # The setting is a list of quoted names.
        "unix_socket_directories": '"' + str(sockets).replace('"', '""') + '"',
    }
    return [part for key, value in chosen.items() for part in ("-c", f"{key}={value}")]


def memory() -> dict[str, str]:
    """The settings that depend on how much memory there is."""
    total_mib = _memory_mib()
    buffers_mib = min(SHARED_BUFFERS_MIB_MAX, max(SHARED_BUFFERS_MIB_MIN, total_mib // 8))
    return {
        "shared_buffers": f"{buffers_mib}MB",
        "effective_cache_size": f"{max(buffers_mib, total_mib // 2)}MB",
    }


def _memory_mib() -> int:
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        limit = CGROUP_LIMIT.read_text().strip()
    except OSError:
        limit = "max"
    if limit.isdecimal():
        total = min(total, int(limit))
    return total // MIB
