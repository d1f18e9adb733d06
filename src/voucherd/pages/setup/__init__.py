"""Pages that lead through setting a shop up, from the one-time link to the first sale."""
