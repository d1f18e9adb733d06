"""Fulfilment: suppliers and their quotes, purchase attempts, and who is asked next."""
