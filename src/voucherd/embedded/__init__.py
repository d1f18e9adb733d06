"""A real PostgreSQL server in the data folder, run by a small supervisor of our own."""

from voucherd.embedded.errors import AlreadyRunning, EmbeddedError
from voucherd.embedded.programs import binaries
from voucherd.embedded.server import EmbeddedPostgres
from voucherd.embedded.session import running, shutdown_signals, stop_now, throwaway

__all__ = [
    "AlreadyRunning",
    "EmbeddedError",
    "EmbeddedPostgres",
    "binaries",
    "running",
    "shutdown_signals",
    "stop_now",
    "throwaway",
]
