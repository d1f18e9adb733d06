"""Webhooks: events of a company, signed and sent to the addresses that it chose (OP-54)."""
