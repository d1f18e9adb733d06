"""What tests log: as structlog writes it by itself, but with plain tracebacks, not those that show every value."""

from __future__ import annotations

import structlog


def use_plain_logs() -> None:
    """Log for people, and don't spend a second on drawing each traceback."""
    structlog.reset_defaults()
    *chain, _ = structlog.get_config()["processors"]
    plain = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*chain, plain])
