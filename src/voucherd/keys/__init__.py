"""API keys: what they look like, what they may do, and who is behind a request."""
