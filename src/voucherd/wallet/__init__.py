"""Wallets: a double-entry, append-only ledger."""
