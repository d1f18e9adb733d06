"""Suppliers: one protocol, and an adapter for each kind of supplier that speaks it."""
