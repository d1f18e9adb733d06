"""Requests that may be sent again: what became of the first one with the same key (OP-28)."""
