"""Purchasing: buys codes that are not on the shelf, and finds out what became of each purchase."""
