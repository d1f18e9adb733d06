"""What the matrix is known to find today. Whoever mends one of these takes it out of this list; it ends empty."""

from __future__ import annotations

from typing import Final

EXPECTED: Final[dict[str, str]] = {
    "SIGSTOP / api-1": "the frozen host keeps a wallet locked, so the other one sells nothing; retries are refused",
    "black hole / api-1": "the same, and the host that is cut off answers no Resolve within its limit",
    "kill -9 / api-1": "a retry of a call that the killed host had begun gets 409 until its claim runs out",
    "kill -9 / database": "some calls get 500 while the database starts",
    "SIGSTOP / database": "no Resolve is answered within its limit",
    "read-only / database": "every write gets 500, and the hosts say that they are ready",
    "read-only / api-1": "the same at the one host",
}
"""The name of a cell, and what fails in it."""
