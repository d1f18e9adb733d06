"""Orders: create, confirm, resolve, cancel, find. Load, decide, store."""
