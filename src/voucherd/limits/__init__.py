"""Limits: on requests, on failed tries, and on spending."""
