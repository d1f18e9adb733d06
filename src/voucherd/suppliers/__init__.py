"""Suppliers: one protocol, an adapter for each kind of supplier, their offers and quotes."""
