"""Setting a shop up: the link that begins it, the operator's profile and settings, and what is left to do."""
