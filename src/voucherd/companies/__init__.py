"""Companies: who buys."""
