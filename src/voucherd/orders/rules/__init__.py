"""The rules of orders. Pure: no clock, no chance, no database."""
