"""Events: one append-only log of everything that happened."""
